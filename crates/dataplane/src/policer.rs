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
    last: Ticks,
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
            last: Ticks(0),
        }
    }

    /// Time has passed.
    pub fn fill(&mut self, now: Ticks) {
        let passed = now.0.saturating_sub(self.last.0) as f64;
        self.held_ticks = (self.held_ticks + passed).min(self.full_ticks);
        self.last = now;
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
