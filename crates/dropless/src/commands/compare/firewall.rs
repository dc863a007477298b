//! What firewall rules cost the kernel's sockets: floods in turns, with the rules and without them.

use anyhow::Result;
use measure::comparison::FirewallCost;

use super::trial::Ends;
use super::wire::Wire;

/// Floods of each kind: turns, so that what else the machine does hits both.
const TURNS: u32 = 3;
/// Floods of one way, altogether.
pub const TRIALS: u32 = 2 * TURNS;

/// Floods the way in turns. The rules are there before, and again afterwards.
pub fn cost(rules: u32, wire: &Wire, ends: &mut Ends<'_>) -> Result<FirewallCost> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let why = format!("again, for what {rules} firewall rules cost");
        with.push(ends.trial(None, &why)?.0);
        wire.no_firewall()?;
        let flood = ends.trial(None, "without the firewall rules");
        wire.firewall(rules)?;
        without.push(flood?.0);
    }
    Ok(FirewallCost::of(rules, &with, &without))
}
