//! What firewall rules cost the kernel's sockets: floods in turns, with the rules and without them.

use anyhow::Result;
use measure::units::format_rate;
use report::number::{counted, time};

use super::result::{FirewallCost, MethodResult, Trial};
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
    let received = |trials: &[Trial]| trials.iter().map(|trial| trial.received_pps).collect::<Vec<_>>();
    let best_with = received(&with).into_iter().fold(0.0, f64::max);
    let worst_without = received(&without).into_iter().fold(f64::INFINITY, f64::min);
    let cost = median(&with, Trial::ns_per_packet)
        .zip(median(&without, Trial::ns_per_packet))
        .map(|(with, without)| with - without);
    let pps = |trials: &[Trial]| median(trials, |trial| Some(trial.received_pps)).unwrap_or_default();
    Ok(FirewallCost {
        is_apart: best_with < worst_without,
        rules,
        turns: TURNS,
        with_pps: pps(&with),
        without_pps: pps(&without),
        ns_per_packet: cost,
    })
}

/// Of the trials in which it was measured; `None` where it was in none.
fn median(trials: &[Trial], pick: fn(&Trial) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = trials.iter().filter_map(pick).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The same for the recommendation; nothing where there were no rules.
pub fn words(results: &[MethodResult]) -> Option<String> {
    let costs: Vec<(&str, &FirewallCost)> = results
        .iter()
        .filter_map(|result| Some((result.words.as_str(), result.firewall.as_ref()?)))
        .collect();
    let rules = costs.first()?.1.rules;
    let each: Vec<String> = costs.iter().map(|(way, cost)| one(way, cost)).collect();
    Some(format!(
        "What {} cost at both ends, flooded with and without them: {}. AF_PACKET, AF_XDP and DPDK pass the rules by: they cost nothing there, and filter nothing.",
        counted(rules.into(), "firewall rule"),
        each.join("; ")
    ))
}

fn one(way: &str, cost: &FirewallCost) -> String {
    let FirewallCost {
        with_pps,
        without_pps,
        ..
    } = *cost;
    let Some(ns_per_packet) = cost.told_ns() else {
        return format!("{way} nothing that could be told from chance");
    };
    format!(
        "{way} {:.0} % of the packets ({} instead of {}), which is {} of processor time a packet",
        (1.0 - with_pps / without_pps) * 100.0,
        format_rate(with_pps),
        format_rate(without_pps),
        time(ns_per_packet)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(with_pps: f64, without_pps: f64, ns_per_packet: f64) -> MethodResult {
        MethodResult {
            words: "kernel sockets".into(),
            firewall: Some(FirewallCost {
                rules: 50,
                turns: 3,
                with_pps,
                without_pps,
                ns_per_packet: Some(ns_per_packet),
                is_apart: with_pps < without_pps,
            }),
            ..MethodResult::default()
        }
    }

    #[test]
    fn a_cost_is_said_and_none_is_not_made_up() {
        assert_eq!(words(&[MethodResult::default()]), None);
        let dear = words(&[result(60e3, 100e3, 12_000.0)]).unwrap();
        assert!(
            dear.contains("What 50 firewall rules cost")
                && dear.contains("40 % of the packets (60.00 kpps instead of 100.0 kpps)")
                && dear.contains("12.00 us of processor time"),
            "{dear}"
        );
        let free = words(&[result(100e3, 99e3, -100.0)]).unwrap();
        assert!(
            free.contains("kernel sockets nothing that could be told"),
            "{free}"
        );
    }
}
