//! Samples of a filter's packets: how many each stands for.

use std::collections::HashMap;

use guard::Sample;
use rules::{Looked, ON_REQUEST, is_cut};
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
    /// Samples that do not say what their packets are.
    not_judged: u64,
    pace: Pace,
}

/// What the packet of a sample is; nothing where its headers go on behind what the sample has.
fn looked(sample: &xdp::Sample) -> Option<Looked> {
    let len = sample.len as usize;
    let looked = Looked::at(&sample.data, len);
    if !is_cut(&sample.data, len, &looked.asked(ON_REQUEST)) {
        return Some(looked);
    }
    // The program looked at the whole frame.
    sample.malformed.map(|reason| Err(reason).into())
}

impl Sampler {
    pub fn new() -> Self {
        Self {
            every: HashMap::from([(1, FIRST)]),
            current: FIRST,
            counted: SampleCounts::default(),
            not_judged: 0,
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
        let mut all = Vec::new();
        for sample in told.iter().filter(|sample| sample.of_all) {
            let Some(packet) = looked(sample) else {
                self.not_judged += 1;
                continue;
            };
            all.push(Sample {
                packet,
                len: sample.len,
                weight: *self.every.get(&sample.generation).unwrap_or(&self.current),
                time_ns: sample.time_ns,
            });
        }
        // Several processors told them.
        all.sort_by_key(|sample| sample.time_ns);
        Ok((all, missed))
    }

    /// How many samples did not say what their packets are.
    pub fn not_judged(&self) -> u64 {
        self.not_judged
    }

    /// One of how many should be taken from now on, if that is another number.
    pub fn wanted(&mut self, now_ns: u64) -> Option<u32> {
        let count = self.counted.all + self.counted.all_missed;
        self.pace.wanted(now_ns, count, self.current)
    }
}

#[cfg(test)]
mod tests {
    use rules::{Facts, Malformed};

    use super::*;

    /// A sample of an IPv6 packet with so many bytes of destination options before UDP, and this length in its UDP header.
    fn sample(options: usize, udp_len: u8, malformed: Option<Malformed>) -> xdp::Sample {
        let mut frame = vec![2; 12];
        frame.extend([0x86, 0xDD, 0x60, 0, 0, 0]);
        frame.extend([((options + 8) >> 8) as u8, (options + 8) as u8, 60, 64]);
        frame.extend([1; 16]);
        frame.extend([2; 16]);
        frame.extend([17, (options / 8 - 1) as u8]);
        frame.resize(54 + options, 0);
        frame.extend([0, 123, 0, 7, 0, udp_len, 0, 0]);
        xdp::Sample {
            time_ns: 1,
            len: frame.len() as u32,
            rule: 0,
            generation: 1,
            is_allowed: true,
            malformed,
            is_full: false,
            of_denied: false,
            of_all: true,
            data: frame[..frame.len().min(256)].to_vec(),
        }
    }

    #[test]
    fn a_sample_that_is_cut_among_its_headers_says_what_the_program_saw() {
        let found = |sample: &xdp::Sample| looked(sample).map(|looked| looked.asked(ON_REQUEST));
        let ports =
            |found: Option<Result<Facts, Malformed>>| found.map(|found| found.map(|facts| facts.ports));
        assert_eq!(ports(found(&sample(16, 8, None))), Some(Ok(Some((123, 7)))));
        // Neither how far the options go is to be seen, nor what follows.
        for options in [200, 208, 1024] {
            assert_eq!(found(&sample(options, 8, None)), None, "{options}");
            let malformed = Some(Malformed::UdpLength);
            let told = found(&sample(options, 9, malformed));
            assert_eq!(told, Some(Err(Malformed::UdpLength)), "{options}");
        }
        // What is wrong before the cut is wrong.
        let mut other = sample(1024, 8, None);
        other.data[14] = 0x50;
        assert_eq!(found(&other), Some(Err(Malformed::IpHeader)));
    }
}
