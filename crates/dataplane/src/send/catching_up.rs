//! Bunches: packets that were due at once, because the sender was kept away, and how they left.

use measure::Allowance;

use super::SendCounters;

/// A bunch of packets that were due at once, on their way out.
#[derive(Default)]
pub(super) struct CatchingUp {
    /// How many were due; 0 where nothing is behind.
    pub(super) due: u64,
    /// Packets since, those that fell due meanwhile among them.
    sent: u64,
}

impl CatchingUp {
    /// Takes in one more look at which more than one packet was due.
    #[inline]
    pub(super) fn take(&mut self, take: &Allowance, counters: &SendCounters) {
        if self.due == 0 {
            self.due = take.backlog;
        }
        self.sent += take.count as u64;
        if take.backlog <= take.count as u64 {
            self.end(counters);
        }
    }

    pub(super) fn end(&mut self, counters: &SendCounters) {
        counters.bunches.record(self.due, 1);
        // One that the end of the run cut off did not leave whole.
        if (self.due..=self.due + self.due / 8).contains(&self.sent) {
            counters.whole_bunches.record(self.due, 1);
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use measure::SharedHistogram;

    use super::*;

    /// What is counted of looks at which so many were due and so many left: all bunches, and whole ones.
    fn counted(looks: &[(u64, usize)]) -> [Vec<(u64, u64)>; 2] {
        let (counters, mut catching_up) = (SendCounters::new(), CatchingUp::default());
        for &(backlog, count) in looks {
            let take = Allowance {
                count,
                backlog,
                ..Allowance::default()
            };
            catching_up.take(&take, &counters);
        }
        let of = |histogram: &SharedHistogram| histogram.snapshot().buckets().collect();
        [of(&counters.bunches), of(&counters.whole_bunches)]
    }

    #[test]
    fn a_bunch_counts_once_however_many_bursts_it_takes() {
        let [all, whole] = counted(&[(50, 32), (19, 19), (3, 3), (3, 3)]);
        assert_eq!(all, [(3, 2), (50, 1)]);
        assert_eq!(whole, all);
    }

    #[test]
    fn a_sender_that_is_kept_away_while_it_catches_up_sends_no_whole_bunch() {
        let [all, whole] = counted(&[(50, 32), (60, 32), (28, 28)]);
        assert_eq!(all, [(50, 1)]);
        assert!(whole.is_empty(), "{whole:?}");
    }
}
