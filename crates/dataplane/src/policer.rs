//! A policer of the fault injector: lets a rate and a burst through.

use measure::Ticks;
use measure::units::RateSpec;
use serde::{Deserialize, Serialize};

/// A policer: a token bucket that drops what comes when it is empty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Probes per second that get through.
    pub pps: f64,
    /// Probes that get through at once.
    pub burst: u32,
}

impl RateLimit {
    /// The smallest burst that is taken where none is given: a poll may bring as many at once.
    const BURST_MIN: f64 = 64.0;
    /// And so much of a second, for a poller that was kept from its core for a while.
    const BURST_S: f64 = 0.01;

    /// `10kpps`, or `10kpps:200` with a burst.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (rate, burst) = match text.split_once(':') {
            Some((rate, burst)) => (rate, Some(burst)),
            None => (text, None),
        };
        let RateSpec::Pps(pps) = rate.parse().ok()? else {
            return None;
        };
        let burst = match burst {
            Some(burst) => burst.parse().ok()?,
            None => (pps * Self::BURST_S).max(Self::BURST_MIN) as u32,
        };
        (pps > 0.0 && burst > 0).then_some(Self { pps, burst })
    }
}

/// The bucket: how much time it holds, of which each probe takes its share.
pub(crate) struct Bucket {
    probe_ticks: f64,
    full_ticks: f64,
    held_ticks: f64,
    last: Option<Ticks>,
}

impl Bucket {
    /// A full one; `hz` is ticks per second.
    pub fn new(limit: RateLimit, hz: f64) -> Self {
        let probe_ticks = hz / limit.pps;
        let full_ticks = probe_ticks * f64::from(limit.burst);
        Self {
            probe_ticks,
            full_ticks,
            held_ticks: full_ticks,
            last: None,
        }
    }

    /// Time has passed; it may run over until [`Bucket::settle`].
    ///
    /// What waits has come at any time since the last look. A poller that was kept from its core takes it as if it had come
    /// evenly: else what it drops would be its own doing, and not the rate's.
    pub fn fill(&mut self, now: Ticks) {
        let last = self.last.replace(now).unwrap_or(now);
        self.held_ticks += now.0.saturating_sub(last.0) as f64;
    }

    /// Nothing waits any more: what runs over is lost.
    pub fn settle(&mut self) {
        self.held_ticks = self.held_ticks.min(self.full_ticks);
    }

    /// Whether one more probe gets through; if so, it has taken its share.
    pub fn admits(&mut self) -> bool {
        let admitted = self.held_ticks >= self.probe_ticks;
        if admitted {
            self.held_ticks -= self.probe_ticks;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: RateLimit = RateLimit {
        pps: 1000.0,
        burst: 10,
    };

    fn admitted(bucket: &mut Bucket, now: u64, packets: usize) -> usize {
        bucket.fill(Ticks(now));
        let admitted = (0..packets).filter(|_| bucket.admits()).count();
        bucket.settle();
        admitted
    }

    #[test]
    fn what_came_while_nobody_looked_came_evenly() {
        // Ticks of a microsecond: one packet a millisecond gets through.
        let mut bucket = Bucket::new(LIMIT, 1e6);
        assert_eq!(admitted(&mut bucket, 0, 100), 10);
        // Nobody looks for 50 ms, and at the limit 50 have come.
        assert_eq!(admitted(&mut bucket, 50_000, 50), 50);
        assert_eq!(admitted(&mut bucket, 100_000, 100), 50);
        // Nothing comes for a second, and then too much at once.
        assert_eq!(admitted(&mut bucket, 1_100_000, 0), 0);
        assert_eq!(admitted(&mut bucket, 1_100_000, 100), 10);
    }
}
