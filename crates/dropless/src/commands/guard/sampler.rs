//! Samples of a filter's packets: how many each stands for.

use std::collections::HashMap;

use guard::Sample;
use rules::{ON_REQUEST, look};
use xdp::{SampleCounts, Samples, Sampling};

use super::pace::{FIRST, Pace};

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
    pace: Pace,
}

impl Sampler {
    pub fn new() -> Self {
        Self {
            every: HashMap::from([(1, FIRST)]),
            current: FIRST,
            counted: SampleCounts::default(),
            pace: Pace::new(),
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

    /// What was told since the last time, each with the packets that it stands for, and how many found no room meanwhile.
    pub fn take(&mut self, samples: &mut Samples) -> Result<(Vec<Sample>, u64), xdp::Error> {
        let told = samples.take()?;
        let counts = samples.counts()?;
        let missed = counts.all_missed.saturating_sub(self.counted.all_missed);
        self.counted = counts;
        let of = |sample: &xdp::Sample| Sample {
            packet: look(&sample.data, sample.len as usize, ON_REQUEST),
            len: sample.len,
            weight: *self.every.get(&sample.generation).unwrap_or(&self.current),
            time_ns: sample.time_ns,
        };
        let mut all: Vec<Sample> = told.iter().filter(|sample| sample.of_all).map(of).collect();
        // Several processors told them.
        all.sort_by_key(|sample| sample.time_ns);
        Ok((all, missed))
    }

    /// One of how many should be taken from now on, if that is another number.
    pub fn wanted(&mut self, now_ns: u64) -> Option<u32> {
        let count = self.counted.all + self.counted.all_missed;
        self.pace.wanted(now_ns, count, self.current)
    }
}
