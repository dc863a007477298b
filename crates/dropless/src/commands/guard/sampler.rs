//! Samples of a filter's packets: how many each stands for, and how often one is taken, so that they stay few.

use std::collections::HashMap;

use guard::Sample;
use rules::{ON_REQUEST, look};
use xdp::{SampleCounts, Samples, Sampling};

/// Samples a second that are aimed at when there are too many.
const AIM: f64 = 25_000.0;
/// Above this there are too many.
const MANY: f64 = 50_000.0;
/// Below this, too few.
const FEW: f64 = 5_000.0;
/// One of so many at least.
const EVERY_MAX: u32 = 1 << 16;
/// Between two looks at the rate.
const LOOK_NS: u64 = 100_000_000;
/// One of more packets is taken at once, one of fewer when there were few for so long.
const CALM_NS: u64 = 2_000_000_000;
/// One in so many at first: a flood may be there already.
const FIRST: u32 = 8;
/// Sets that samples may still be of.
const SETS_MAX: u32 = 64;
/// Bytes that wait to be read: some 14,000 samples.
const ROOM: u32 = 4 << 20;

/// Takes samples, and says how often they should be taken.
pub struct Sampler {
    /// By generation of the rules: one of so many packets is a sample.
    every: HashMap<u32, u32>,
    current: u32,
    counted: SampleCounts,
    looked: (u64, u64),
    busy_ns: u64,
    /// Packets that should have been samples, and found no room.
    pub missed: u64,
}

impl Sampler {
    pub fn new() -> Self {
        Self {
            every: HashMap::from([(1, FIRST)]),
            current: FIRST,
            counted: SampleCounts::default(),
            looked: (0, 0),
            busy_ns: 0,
            missed: 0,
        }
    }

    /// What the first rules are loaded with.
    pub fn first() -> Sampling {
        Sampling {
            denied_per_second: 0,
            every: FIRST,
            room: ROOM,
        }
    }

    /// Rules of this generation take one of so many.
    pub fn loaded(&mut self, generation: u32, every: u32) {
        self.every.insert(generation, every);
        // Samples of sets before these are read by now.
        self.every.retain(|known, _| known + SETS_MAX > generation);
        self.current = every;
    }

    /// What was told since the last time, each with the packets that it stands for.
    pub fn take(&mut self, samples: &mut Samples) -> Result<Vec<Sample>, xdp::Error> {
        let told = samples.take()?;
        let counts = samples.counts()?;
        let (all, missed) = (
            counts.all.saturating_sub(self.counted.all),
            counts.all_missed.saturating_sub(self.counted.all_missed),
        );
        self.counted = counts;
        self.missed += missed;
        // Each stands for those, too, that found no room.
        let share = (all + missed) as f64 / all.max(1) as f64;
        let of = |sample: &xdp::Sample| Sample {
            packet: look(&sample.data, sample.len as usize, ON_REQUEST),
            len: sample.len,
            weight: (f64::from(*self.every.get(&sample.generation).unwrap_or(&self.current)) * share).round()
                as u32,
            time_ns: sample.time_ns,
        };
        let mut all: Vec<Sample> = told.iter().filter(|sample| sample.of_all).map(of).collect();
        // Several processors told them.
        all.sort_by_key(|sample| sample.time_ns);
        Ok(all)
    }

    /// One of how many should be taken from now on, if that is another number.
    pub fn wanted(&mut self, now_ns: u64) -> Option<u32> {
        let (then_ns, before) = self.looked;
        let passed_ns = now_ns.saturating_sub(then_ns);
        if passed_ns < LOOK_NS {
            return None;
        }
        let count = self.counted.all + self.counted.all_missed;
        self.looked = (now_ns, count);
        if then_ns == 0 {
            return None;
        }
        let rate = count.saturating_sub(before) as f64 * 1e9 / passed_ns as f64;
        if rate >= FEW {
            self.busy_ns = now_ns;
        }
        let wanted = if rate > MANY {
            let times = (rate / AIM).ceil() as u32;
            self.current.saturating_mul(times).min(EVERY_MAX)
        } else if now_ns.saturating_sub(self.busy_ns) > CALM_NS {
            self.busy_ns = now_ns;
            (self.current / 2).max(1)
        } else {
            self.current
        };
        (wanted != self.current).then_some(wanted)
    }
}
