//! How long a trial waits for what it misses: no longer than this path has ever kept anything.

use super::journal::Line;

/// A path that was quiet for so many times the longest latency that any trial has seen has nothing left to give.
const TIMES: u64 = 10;
/// And not below this, ns: a far side that is not polled for a while keeps what it has.
const QUIET_MIN_NS: u64 = 100_000_000;

/// What the trials so far say of it.
#[derive(Default)]
pub struct Patience {
    latency_ns_max: Option<u64>,
    /// Something came later than a trial waited for it.
    is_fooled: bool,
}

impl Patience {
    /// Takes in one more trial.
    pub fn look(&mut self, line: &Line) {
        self.latency_ns_max = self.latency_ns_max.max(line.trial.latency_ns.max);
        self.is_fooled |= line.overdue > 0;
    }

    /// The quiet after which a trial ends that misses something; `None` is its whole drain time. The first trial waits for it:
    /// it is at the highest rate, where queues are as long as they get.
    pub fn quiet_ns(&self) -> Option<u64> {
        let longest = self.latency_ns_max.filter(|_| !self.is_fooled)?;
        Some(longest.saturating_mul(TIMES).max(QUIET_MIN_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::search::journal::tests::line;

    fn seen(lines: &[(Option<u64>, u64)]) -> Option<u64> {
        let mut patience = Patience::default();
        for (latency_ns_max, overdue) in lines {
            let mut line = line(1);
            line.trial.latency_ns.max = *latency_ns_max;
            line.overdue = *overdue;
            patience.look(&line);
        }
        patience.quiet_ns()
    }

    #[test]
    fn a_path_is_waited_for_as_long_as_it_ever_took() {
        assert_eq!(seen(&[]), None);
        assert_eq!(seen(&[(None, 0)]), None, "nothing ever came back");
        assert_eq!(seen(&[(Some(5_000), 0)]), Some(QUIET_MIN_NS));
        assert_eq!(
            seen(&[(Some(80_000_000), 0), (Some(5_000), 0)]),
            Some(800_000_000)
        );
        assert_eq!(
            seen(&[(Some(5_000), 0), (Some(5_000), 1), (Some(5_000), 0)]),
            None
        );
    }
}
