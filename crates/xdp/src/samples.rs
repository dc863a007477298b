//! Packets that a filter tells one by one, with what became of them: denied ones up to a budget, and one of N of all, by chance.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use rules::Malformed;

use crate::program::told;
use crate::{Error, Filter};

/// What `struct sample` holds before the packet's bytes.
const HEAD: usize = 32;
/// A period of the budget.
const PERIOD: Duration = Duration::from_secs(1);
/// `struct sampling`.
const CPU_LEN: usize = 48;
const OF_DENIED: u8 = 1;
const OF_ALL: u8 = 2;

/// Which packets are told. What nobody reads costs no more than what is not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Denied packets a second and processor; 0 for none.
    pub denied_per_second: u32,
    /// One of so many packets, whatever becomes of them; 0 for none.
    pub every: u32,
    /// Bytes that wait to be read; a power of two of at least a page.
    pub room: u32,
}

/// A packet, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Sample {
    /// When, on the monotonic clock.
    pub time_ns: u64,
    /// Bytes of the frame, without FCS.
    pub len: u32,
    /// The rule that decided; the number of rules for the default.
    pub rule: u32,
    /// The generation that the rule is of ([`Ready::number`](crate::Ready::number)).
    pub generation: u32,
    /// It passed.
    pub is_allowed: bool,
    /// What is wrong with it, of what its rules asked for. They had the whole frame.
    pub malformed: Option<Malformed>,
    /// A rate had no entry left for its group.
    pub is_full: bool,
    /// It is told as one of the denied.
    pub of_denied: bool,
    /// It is told as one of every N.
    pub of_all: bool,
    /// Its first bytes, up to 256.
    pub data: Vec<u8>,
}

/// How many packets were told, and how many should have been and were not: above the budget, or without room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// Denied packets that were told.
    pub denied: u64,
    /// Denied packets that were not.
    pub denied_missed: u64,
    /// Of one of N, those that were told.
    pub all: u64,
    /// Of one of N, those that were not.
    pub all_missed: u64,
}

/// The reading end of a filter's samples, whatever rules are in force.
pub struct Samples {
    ring: RingBuffer<'static>,
    read: Receiver<Sample>,
    counts: MapHandle,
    period: MapHandle,
    number: u64,
    granted: Instant,
}

impl std::fmt::Debug for Samples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Samples").finish_non_exhaustive()
    }
}

impl Samples {
    /// Of a filter that was loaded with some.
    pub(crate) fn of(filter: &Filter) -> Result<Self, Error> {
        let (tell, read) = channel();
        let take = move |bytes: &[u8]| {
            if let Some(sample) = Sample::read(bytes) {
                // Who does not read any more has no room to fill.
                let _ = tell.send(sample);
            }
            0
        };
        let map = filter.map("samples")?;
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, take).map_err(told("samples cannot be read"))?;
        let mut samples = Self {
            ring: builder.build().map_err(told("samples cannot be read"))?,
            read,
            counts: filter.map("sampling")?,
            period: filter.map("period")?,
            number: 0,
            granted: Instant::now(),
        };
        samples.grant()?;
        Ok(samples)
    }

    /// Takes what has been told since it was asked last, and grants the next second's once that has begun: ask many times a
    /// second.
    pub fn take(&mut self) -> Result<Vec<Sample>, Error> {
        self.ring.consume().map_err(told("samples cannot be read"))?;
        if self.granted.elapsed() >= PERIOD {
            self.grant()?;
        }
        Ok(self.read.try_iter().collect())
    }

    /// How many there were so far.
    pub fn counts(&self) -> Result<SampleCounts, Error> {
        let found = self.counts.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let found = found.map_err(told("samples cannot be counted"))?;
        let mut sum = SampleCounts::default();
        for cpu in found.iter().flatten().filter(|cpu| cpu.len() >= CPU_LEN) {
            let word = |at: usize| cpu[at..].first_chunk().copied().map_or(0, u64::from_ne_bytes);
            sum.denied += word(16);
            sum.denied_missed += word(24);
            sum.all += word(32);
            sum.all_missed += word(40);
        }
        Ok(sum)
    }

    fn grant(&mut self) -> Result<(), Error> {
        self.number += 1;
        self.granted = Instant::now();
        self.period
            .update(&0_u32.to_ne_bytes(), &self.number.to_ne_bytes(), MapFlags::ANY)
            .map_err(told("samples cannot be granted"))
    }
}

impl Sample {
    /// `struct sample`.
    fn read(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let [.., verdict, malformed, why, is_full] = *bytes.get(..26)? else {
            return None;
        };
        let captured = usize::from(u16::from_ne_bytes(*bytes.get(20..)?.first_chunk()?));
        Some(Self {
            time_ns: u64::from_ne_bytes(*bytes.first_chunk()?),
            len: word(8)?,
            rule: word(12)?,
            generation: word(16)?,
            is_allowed: verdict == 0,
            malformed: usize::from(malformed)
                .checked_sub(1)
                .and_then(|reason| Malformed::ALL.get(reason).copied()),
            is_full: is_full != 0,
            of_denied: why & OF_DENIED != 0,
            of_all: why & OF_ALL != 0,
            data: bytes.get(HEAD..HEAD + captured)?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Setup;
    use crate::skip;
    use rules::Tables;

    /// Denied ones as the budget says, about a third of all, each with its rule and bytes; and the rest counted.
    #[test]
    fn samples_are_told_and_what_was_not_is_counted() {
        let text = "deny ethertype 0x88a4\n";
        let set = rules::parse("test", &|_| Ok(text.to_owned())).unwrap();
        let setup = Setup {
            groups: 4,
            sampling: Sampling {
                denied_per_second: 5,
                every: 3,
                room: 1 << 16,
            },
            generation: 7,
            tells: true,
            ..Setup::default()
        };
        let filter = match Filter::load_with(&Tables::new(&set).unwrap(), setup) {
            Err(Error::Bpf { source, .. }) if source.kind() == libbpf_rs::ErrorKind::PermissionDenied => {
                return skip::skip("needs leave to load BPF programs (root)");
            }
            other => other.unwrap(),
        };
        let mut samples = Samples::of(&filter).unwrap();
        let frame = |kind: u16, len: usize, number: u8| {
            let mut frame = vec![number; len];
            frame[12..14].copy_from_slice(&kind.to_be_bytes());
            frame
        };
        // The processor that runs them may change in between: each has its own budget and its own count.
        let one = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        for number in 0..60 {
            filter.test(&frame(0x88A4, 300, number), 1).unwrap();
            filter.test(&frame(0x88B5, 60, number), 1).unwrap();
        }
        let told = samples.take().unwrap();
        let counts = samples.counts().unwrap();
        assert_eq!(counts.denied + counts.denied_missed, 60);
        assert!((5..=5 * one).contains(&counts.denied), "{counts:?}");
        // By chance: its deviation is 3.
        assert!(
            (20..=60).contains(&(counts.all + counts.all_missed)),
            "{counts:?}"
        );
        let of = |which: fn(&Sample) -> bool| told.iter().filter(|sample| which(sample)).count() as u64;
        assert_eq!(of(|sample| sample.of_denied), counts.denied);
        assert_eq!(of(|sample| sample.of_all), counts.all);
        for sample in &told {
            let (kind, len, rule) = if sample.is_allowed {
                (0x88B5, 60, 1)
            } else {
                (0x88A4, 300, 0)
            };
            let whole = frame(kind, len, sample.data[0]);
            assert_eq!(
                (sample.len as usize, sample.rule, sample.generation),
                (len, rule, 7)
            );
            assert_eq!(sample.data, whole[..len.min(256)]);
        }
        // New ones are granted by who reads.
        samples.grant().unwrap();
        filter.test(&frame(0x88A4, 60, 0), 1).unwrap();
        assert!(samples.take().unwrap().iter().any(|sample| sample.of_denied));
    }

    /// Packets of which each Nth is of another kind are told in their proportion: with every Nth, all or none would be that.
    #[test]
    fn what_keeps_time_is_sampled_in_its_true_proportion() {
        const EVERY: u32 = 8;
        const PACKETS: u32 = 40_000;
        let set = rules::parse("test", &|_| Ok("deny udp\n".to_owned())).unwrap();
        for period in [EVERY, 2 * EVERY, 3] {
            let setup = Setup {
                groups: 4,
                sampling: Sampling {
                    denied_per_second: 0,
                    every: EVERY,
                    room: 1 << 22,
                },
                generation: 1,
                ..Setup::default()
            };
            let filter = match Filter::load_with(&Tables::new(&set).unwrap(), setup) {
                Err(Error::Bpf { source, .. }) if source.kind() == libbpf_rs::ErrorKind::PermissionDenied => {
                    return skip::skip("needs leave to load BPF programs (root)");
                }
                other => other.unwrap(),
            };
            let mut samples = Samples::of(&filter).unwrap();
            let frame = |number: u8| {
                let mut frame = vec![number; 60];
                frame[12..14].copy_from_slice(&[0x88, 0xB5]);
                frame
            };
            let (usual, other) = (frame(0), frame(1));
            let (mut told, mut of_other) = (0_u32, 0_u32);
            for number in 0..PACKETS {
                let frame = if number % period == 0 { &other } else { &usual };
                filter.test(frame, 1).unwrap();
                if number % 1000 == 999 {
                    let taken = samples.take().unwrap();
                    told += taken.len() as u32;
                    of_other += taken.iter().filter(|sample| sample.data[0] == 1).count() as u32;
                }
            }
            assert_eq!(samples.counts().unwrap().all_missed, 0);
            // Its deviation is 38.
            let expected = PACKETS / EVERY;
            assert!(told.abs_diff(expected) < 350, "{told} of {expected}");
            // And of the others' share less than a hundredth.
            let share = f64::from(of_other) / f64::from(told);
            assert!((share * f64::from(period) - 1.0).abs() < 0.4, "{period}: {share}");
        }
    }
}
