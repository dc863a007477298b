//! The narrowest rules against a source that floods many: each host gets little, and no rule of a destination would end it.
//!
//! As with a flood of one destination, what it has and legitimate packets of the same source have not comes first, then who
//! sends it: the narrowest prefixes. Where legitimate ones look the same and come from the same addresses, nobody is cut
//! off: all of the source's together have a rate.

use rules::{Facts, Prefix, RATE_MAX};

use crate::block::Action;
use crate::explain::{
    BLAMED, Case, ENOUGH, Found, RATE_MIN, RULES_MAX, WORTH, best, by_source, count, holds,
};
use crate::settings::Cap;
use crate::shape::Shape;
use crate::sources;

/// The rules, best first; none if nothing explains enough, or the cap on prefixes forbids what would.
pub fn explain(case: &Case<'_>, from: Prefix) -> Vec<Found> {
    let mut left: Vec<&Facts> = case.flood.clone();
    let mut found = Vec::new();
    let whole = left.len() as f64;
    let is_little =
        |left: usize| left as f64 <= (1.0 - ENOUGH) * whole || case.pps(left) <= case.limit_pps as f64 / 2.0;
    while found.len() < RULES_MAX && !is_little(left.len()) {
        let Some((shape, met)) = best(&count(&left), case, true) else {
            break;
        };
        let of_shape: Vec<&Facts> = left.iter().copied().filter(|facts| shape.holds(facts)).collect();
        let blamed = sources::prefixes(&of_shape, &[], case.cap);
        let is_blamed = |facts: &Facts| shape.holds(facts) && holds(&blamed, facts);
        let held = of_shape.iter().filter(|facts| is_blamed(facts)).count();
        if (met as f64) < WORTH * whole || (held as f64) < BLAMED * met as f64 {
            break;
        }
        left.retain(|facts| !is_blamed(facts));
        found.push(Found {
            cost: case.cost(&shape, is_blamed),
            meets: case.shaped(shape, blamed, false),
            action: Action::Deny,
            explained: case.share(held),
            unspared: 0,
        });
    }
    if case.pps(left.len()) > case.limit_pps as f64 {
        found.extend(by_source(case, &left, |shape, met| {
            together(case, from, (shape, met))
        }));
    }
    found
}

/// All that the prefix sends has a rate together, where a rule may name it.
fn together(case: &Case<'_>, from: Prefix, (shape, met): (Shape, usize)) -> Option<Found> {
    is_long(from, case.cap).then(|| Found {
        cost: case.cost(&shape, |_| true),
        meets: case.shaped(shape, vec![from], false),
        action: Action::Together(case.limit_pps.clamp(RATE_MIN, RATE_MAX), from),
        explained: case.share(met),
        unspared: 0,
    })
}

/// Whether a rule may name a prefix of this length.
fn is_long(prefix: Prefix, cap: &Cap) -> bool {
    prefix.bits() >= if prefix.is_v6() { cap.v6_len } else { cap.v4_len }
}
