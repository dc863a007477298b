//! Whether the limit of a path wandered while it was looked for: then the answer is of no time at all.

use super::trial::Extent;
use super::{Limit, Trial};

/// Orders in which the same outcomes might have come, at the least, for their order to say anything.
const ORDERS_MIN: f64 = 250.0;
/// The part of all contradictions that goes one way.
const ONE_WAY: f64 = 0.9;

/// Trials that contradict each other, nearly all in one direction of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// What was carried first was not later: the limit sank. Else it rose.
    pub sank: bool,
    /// The lowest rate among the trials that contradict each other that was not carried, in packets per second.
    pub failed_pps: f64,
    /// The highest that was.
    pub carried_pps: f64,
    /// Trials from the one to the other rate that were carried.
    pub carried: u64,
    /// And that were not.
    pub failed: u64,
}

/// Looks at the trials of one frame size, in the order in which they were made, with what a goal allows.
///
/// A path that loses at random contradicts itself as often in either direction, as long as the trials are of one length: in
/// a longer one it has more time to lose, and the longer ones come later. Trials that our own side spoiled say nothing.
pub fn drift(trials: &[Trial], loss_ratio: f64) -> Option<Drift> {
    let mut extents: Vec<Extent> = Vec::new();
    for trial in trials {
        if !extents.contains(&trial.ask.extent) {
            extents.push(trial.ask.extent);
        }
    }
    let of_extent = |extent: Extent| trials.iter().filter(move |trial| trial.ask.extent == extent);
    extents
        .into_iter()
        .find_map(|extent| drift_of(of_extent(extent), loss_ratio))
}

fn drift_of<'t>(trials: impl Iterator<Item = &'t Trial>, loss_ratio: f64) -> Option<Drift> {
    let outcome = |trial: &Trial| match trial.without_bunches(0).limit(loss_ratio) {
        _ if !trial.invalid.is_empty() => None,
        None => Some((trial.ask.rate_pps, true)),
        Some(Limit::Path) => Some((trial.ask.rate_pps, false)),
        Some(_) => None,
    };
    let outcomes: Vec<(f64, bool)> = trials.filter_map(outcome).collect();
    let rates = |good: bool| {
        let of_it = outcomes.iter().filter(move |(_, was_good)| *was_good == good);
        of_it.map(|(rate, _)| *rate)
    };
    let failed_pps = rates(false).reduce(f64::min)?;
    let carried_pps = rates(true).reduce(f64::max)?;
    let between = |rate: &f64| (failed_pps..=carried_pps).contains(rate);
    let count = |good: bool| rates(good).filter(between).count() as u64;
    let (carried, failed) = (count(true), count(false));
    let (sank, rose) = contradictions(&outcomes);
    let one_way = sank.max(rose) as f64 >= ONE_WAY * (sank + rose) as f64;
    (one_way && orders(carried, failed) >= ORDERS_MIN).then_some(Drift {
        sank: sank > rose,
        failed_pps,
        carried_pps,
        carried,
        failed,
    })
}

/// Pairs in which a rate was carried and the same or a lower one later not; and pairs the other way round.
fn contradictions(outcomes: &[(f64, bool)]) -> (u64, u64) {
    let (mut sank, mut rose) = (0, 0);
    for (index, (earlier, was_good)) in outcomes.iter().enumerate() {
        for (later, is_good) in &outcomes[index + 1..] {
            sank += u64::from(*was_good && !is_good && later <= earlier);
            rose += u64::from(!was_good && *is_good && later >= earlier);
        }
    }
    (sank, rose)
}

/// In how many orders so many of two kinds can come.
fn orders(one: u64, other: u64) -> f64 {
    let fewer = one.min(other);
    (1..=fewer).fold(1.0, |orders, taken| {
        orders * (one + other - fewer + taken) as f64 / taken as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_binomials() {
        assert_eq!((orders(0, 9), orders(2, 2), orders(5, 5)), (1.0, 6.0, 252.0));
        assert!((orders(3, 9) - orders(9, 3)).abs() < 1e-9);
    }
}
