//! What the kernel has counted so far: two samples tell what happens on a core now.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Sys;
use crate::cores::Core;
use crate::noise::interrupts::Interrupts;

/// One look at the counters.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// `/proc/interrupts`.
    pub interrupts: Interrupts,
    /// `/proc/softirqs`, which looks the same.
    pub softirqs: Interrupts,
    /// Of each core its `steal` of `/proc/stat`, ticks of `USER_HZ`.
    pub steal: BTreeMap<Core, u64>,
}

impl Sample {
    /// Reads them.
    pub fn take(sys: &Sys) -> Self {
        let stat = sys.text("/proc/stat").unwrap_or_default();
        let steal = stat.lines().filter_map(|line| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            let core = words.next()?.parse().ok().map(Core)?;
            Some((core, words.nth(7)?.parse().ok()?))
        });
        Self {
            interrupts: Interrupts::read(sys),
            softirqs: Interrupts::parse(&sys.text("/proc/softirqs").unwrap_or_default()),
            steal: steal.collect(),
        }
    }
}

/// Two samples and the time between them.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// The first.
    pub before: Sample,
    /// The second.
    pub after: Sample,
    /// From one to the other.
    pub over: Duration,
}

impl Watched {
    /// Looks twice; sleeps between.
    pub fn for_a(time: Duration, sys: &Sys) -> Self {
        let before = Sample::take(sys);
        let begun = std::time::Instant::now();
        std::thread::sleep(time);
        Self {
            before,
            after: Sample::take(sys),
            over: begun.elapsed(),
        }
    }

    /// A count in that time as a rate, 1/s.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.over.as_secs_f64().max(1e-9)
    }
}
