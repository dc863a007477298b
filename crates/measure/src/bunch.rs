//! Packets that left at once because the sender had fallen behind its schedule.
//!
//! What is sent at a steady rate fits any path that carries the rate. A sender that was kept from its core for a while
//! sends at once what fell due meanwhile, and a policer or a short buffer drops what exceeds it, at any rate.
//!
//! How large a bunch a path bears can be learned: a token bucket (or a buffer) that carries the rate has recovered before each
//! bunch, since our sender was silent for as long as its packets would have taken, and it drops exactly what exceeds its depth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// How exactly bunches are told apart: to the packet below 64, above by a 32nd.
pub const BUNCH_SUB_BITS: u32 = 5;

/// A sender with a core of its own looks at the clock more often, seconds.
const LOOK_S: f64 = 1e-4;
/// Two that leave at once are nothing that a path would notice.
const ALONE: u64 = 2;

/// Bunches of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bunch {
    /// Packets that were due at once, at most a 32nd too many.
    pub due: u64,
    /// How often.
    pub times: u64,
    /// How often they really left together: the sender was not kept from its core once more while it caught up.
    pub whole: u64,
}

impl Bunch {
    /// The fewest packets that it may have been.
    fn due_min(self) -> u64 {
        self.due - (self.due >> BUNCH_SUB_BITS)
    }
}

/// The bunches of two histograms of how many were due at once, of all and of those that left whole; the smallest first.
pub fn bunches(all: &Histogram, whole: &Histogram) -> Vec<Bunch> {
    let whole: BTreeMap<u64, u64> = whole.buckets().collect();
    let bunch = |(due, times)| Bunch {
        due,
        times,
        whole: whole.get(&due).copied().unwrap_or(0),
    };
    all.buckets().map(bunch).collect()
}

/// The largest; 0 where every packet left alone.
pub fn largest(bunches: &[Bunch]) -> u64 {
    bunches.iter().map(|bunch| bunch.due).max().unwrap_or(0)
}

/// What a path that bears `borne` at once may have dropped of them, in packets.
pub fn beyond(bunches: &[Bunch], borne: u64) -> u64 {
    bunches.iter().fold(0, |sum, bunch| {
        sum.saturating_add(bunch.times.saturating_mul(bunch.due.saturating_sub(borne)))
    })
}

/// The least that a path bears at once which lost no more than `lost` packets of what so left together.
pub fn borne(bunches: &[Bunch], lost: u64) -> u64 {
    let exceeds = |borne: u64| {
        let beyond = bunches.iter().fold(0_u64, |sum, bunch| {
            sum.saturating_add(bunch.whole.saturating_mul(bunch.due_min().saturating_sub(borne)))
        });
        beyond > lost
    };
    let whole = bunches.iter().filter(|bunch| bunch.whole > 0);
    let (mut low, mut high) = (0, whole.map(|bunch| bunch.due).max().unwrap_or(0));
    while low < high {
        let middle = low.midpoint(high);
        if exceeds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Twice the bunch in which the packet in the middle left, of `sent` in all: at high rates every look at the clock finds
/// several due, and that is how this sender sends. A look that takes longer than 100 us is none of that.
pub fn usual(bunches: &[Bunch], sent: u64, rate_pps: f64) -> u64 {
    let most = ((rate_pps * LOOK_S) as u64).max(ALONE);
    let mut left = sent / 2;
    let mut largest_first: Vec<&Bunch> = bunches.iter().collect();
    largest_first.sort_by_key(|bunch| std::cmp::Reverse(bunch.due));
    for bunch in largest_first {
        left = left.saturating_sub(bunch.times.saturating_mul(bunch.due));
        if left == 0 {
            return bunch.due.saturating_mul(2).min(most);
        }
    }
    ALONE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(records: &[u64]) -> Vec<Bunch> {
        let mut histogram = Histogram::new(BUNCH_SUB_BITS);
        for due in records {
            histogram.record(*due, 1);
        }
        bunches(&histogram, &histogram)
    }

    #[test]
    fn what_exceeds_the_depth_may_be_lost() {
        let seen = of(&[40, 60, 60]);
        assert_eq!(
            (largest(&seen), beyond(&seen, 0), beyond(&seen, 50)),
            (60, 160, 20)
        );
        assert_eq!((beyond(&seen, 60), beyond(&[], 0), largest(&[])), (0, 0, 0));
    }

    #[test]
    fn what_did_not_leave_together_proves_nothing() {
        let scattered = Bunch {
            whole: 0,
            ..of(&[60])[0]
        };
        assert_eq!((borne(&[scattered], 0), beyond(&[scattered], 0)), (0, 60));
    }

    #[test]
    fn the_usual_bunch_is_that_of_most_packets() {
        let usual = |records: &[u64], rate_pps: f64| usual(&of(records), 1000, rate_pps);
        assert_eq!(usual(&[400], 1e7), 2);
        assert_eq!(usual(&[20; 50], 1e7), 40);
        assert_eq!(usual(&[], 1e7), 2);
        // So many are not due within a look.
        assert_eq!((usual(&[20; 50], 1e5), usual(&[20; 50], 1e3)), (10, 2));
    }

    proptest! {
        /// A bucket is never taken for deeper than it is, and what it dropped is always explained.
        #[test]
        fn a_token_bucket_explains_itself(
            sizes in prop::collection::vec(2_u64..5000, 0..20), depth in 1_u64..3000, more in 0_u64..100,
        ) {
            let seen = of(&sizes);
            let dropped: u64 = sizes.iter().map(|due| due.saturating_sub(depth)).sum();
            prop_assert!(borne(&seen, dropped + more) <= depth);
            prop_assert!(beyond(&seen, depth) >= dropped);
            prop_assert!(borne(&seen, 0) >= sizes.iter().max().map_or(0, |due| due - due / 32 - 1));
        }
    }
}
