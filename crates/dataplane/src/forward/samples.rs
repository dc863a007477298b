//! Samples of what a poll loop receives, for whoever decides about all of it: of N frames one, chosen by chance, so that
//! nothing that repeats can keep out of its way.
//!
//! They go to control through a queue of fixed size. What finds it full is counted and not waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use measure::{Counter, Ticks};
use rtrb::{Consumer, Producer, RingBuffer};
use rules::Looked;

use crate::io::Frames;

/// Two to the power of -53: between two numbers from 0 to 1 that chance can tell apart.
const STEP: f64 = 1.0 / (1_u64 << 53) as f64;

/// One of how many frames is a sample: control says so to all tasks at once.
#[derive(Debug)]
pub struct Every(AtomicU32);

/// A frame that stands for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What it is.
    pub packet: Looked,
    /// Its length in bytes, without FCS.
    pub len: u32,
    /// It was one of so many.
    pub every: u32,
    /// When its burst was received.
    pub at: Ticks,
}

/// The task's end.
#[derive(Debug)]
pub struct Sampler {
    every: Arc<Every>,
    /// By which what is skipped was drawn.
    drawn: u32,
    /// The logarithm of the share that is no sample.
    left_out: f64,
    /// Frames until the next sample.
    skip: u64,
    chance: u64,
    queue: Producer<Sample>,
    missed: Arc<Counter>,
}

/// Control's end.
#[derive(Debug)]
pub struct Samples {
    queue: Consumer<Sample>,
    missed: Arc<Counter>,
}

impl Every {
    /// One of so many.
    pub fn new(every: u32) -> Arc<Self> {
        Arc::new(Self(AtomicU32::new(every.max(1))))
    }

    /// One of so many from now on.
    pub fn set(&self, every: u32) {
        self.0.store(every.max(1), Relaxed);
    }

    /// One of so many now.
    #[inline]
    pub fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// The two ends for one task, with room for `room` samples between them; the seed decides what is left to chance.
pub fn samples(room: usize, every: &Arc<Every>, seed: u64) -> (Sampler, Samples) {
    let (queue, far) = RingBuffer::new(room.max(1));
    let missed = Arc::<Counter>::default();
    let mut teller = Sampler {
        every: Arc::clone(every),
        drawn: 0,
        left_out: 0.0,
        skip: 0,
        chance: seed | 1,
        queue,
        missed: Arc::clone(&missed),
    };
    teller.renew(every.get());
    (teller, Samples { queue: far, missed })
}

impl Samples {
    /// The next one, if there is one.
    pub fn take(&mut self) -> Option<Sample> {
        self.queue.pop().ok()
    }

    /// How many found no room so far.
    pub fn missed(&self) -> u64 {
        self.missed.get()
    }
}

impl Sampler {
    /// Looks at a burst that was received at `now`.
    #[inline]
    pub(super) fn look(&mut self, frames: &impl Frames, now: Ticks) {
        let (count, every) = (frames.len() as u64, self.every.get());
        if every != self.drawn {
            self.renew(every);
        }
        if self.skip >= count {
            self.skip -= count;
        } else {
            self.tell(frames, now);
        }
    }

    #[cold]
    fn tell(&mut self, frames: &impl Frames, now: Ticks) {
        let count = frames.len() as u64;
        while self.skip < count {
            let at = self.skip as usize;
            let len = frames.whole_len(at);
            let sample = Sample {
                packet: Looked::at(frames.bytes(at), len),
                len: len as u32,
                every: self.drawn,
                at: now,
            };
            if self.queue.push(sample).is_err() {
                self.missed.add(1);
            }
            self.skip = self.skip.saturating_add(1).saturating_add(self.draw());
        }
        self.skip -= count;
    }

    /// What is left to be skipped was drawn for another share. Each frame is a sample by its own chance, whatever came
    /// before it, so that it may be drawn anew at any time.
    #[cold]
    fn renew(&mut self, every: u32) {
        self.drawn = every;
        self.left_out = (-1.0 / f64::from(every)).ln_1p();
        self.skip = self.draw();
    }

    /// How many frames are no sample until one is: geometric, of mean N - 1.
    #[inline]
    fn draw(&mut self) -> u64 {
        if self.drawn == 1 {
            return 0;
        }
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        // From above 0 to 1.
        let share = ((self.chance >> 11) + 1) as f64 * STEP;
        (share.ln() / self.left_out) as u64
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says so by failing")]
mod tests {
    use super::*;
    use crate::io::Receive;
    use crate::memory::{MemoryFrames, MemoryLink};

    /// Bursts of frames, of which each has its number in a field that rules look at.
    fn burst(link: &mut MemoryLink, numbers: std::ops::Range<u64>) -> MemoryFrames {
        for number in numbers.clone() {
            let mut frame = [0_u8; 60];
            // Of no known ether type: that is all there is to it.
            frame[12..14].copy_from_slice(&(0xA000 | number as u16 & 0x3FF).to_be_bytes());
            link.inject(&frame);
        }
        let mut frames = link.batch();
        link.receive(&mut frames, numbers.count());
        frames
    }

    #[test]
    fn samples_stand_for_all_frames_whatever_their_period() {
        for (every, period) in [(1, 1_u64), (8, 8), (8, 4), (50, 50), (300, 3)] {
            let mut link = MemoryLink::new(usize::MAX);
            let (mut teller, mut far) = samples(1 << 20, &Every::new(every), 0xD1CE);
            // As many as make a hundred thousand samples, or so.
            let bursts = 100_000 * u64::from(every) / 32 / 100 * 10;
            let mut told = vec![0_u64; period as usize];
            for number in 0..bursts {
                let mut frames = burst(&mut link, number * 32..number * 32 + 32);
                teller.look(&frames, Ticks(number));
                frames.clear();
                while let Some(sample) = far.take() {
                    assert_eq!((sample.every, sample.len, sample.at), (every, 60, Ticks(number)));
                    let of = u64::from(sample.packet.plain.unwrap().ether_type);
                    // The number is known modulo 1024, and by its burst.
                    let number = number * 32 + (of & 0x3FF).wrapping_sub(number * 32) % 1024;
                    told[(number % period) as usize] += u64::from(sample.every);
                }
            }
            let (all, stood) = (bursts * 32, told.iter().sum::<u64>());
            let off = stood as f64 / all as f64 - 1.0;
            assert!(off.abs() < 0.05, "one of {every}: {stood} of {all}");
            for (phase, stood) in told.iter().enumerate() {
                let share = *stood as f64 * period as f64 / all as f64;
                assert!(
                    (0.7..1.3).contains(&share),
                    "one of {every}: phase {phase} of {period}: {share}"
                );
            }
            assert_eq!(far.missed(), 0);
        }
    }

    #[test]
    fn what_finds_no_room_is_counted_and_another_share_is_taken_at_once() {
        let mut link = MemoryLink::new(usize::MAX);
        let every = Every::new(1);
        let (mut teller, mut far) = samples(40, &every, 7);
        for number in 0..2 {
            let frames = burst(&mut link, number * 32..number * 32 + 32);
            teller.look(&frames, Ticks(number));
        }
        assert_eq!(far.missed(), 24);
        assert_eq!(std::iter::from_fn(|| far.take()).count(), 40);
        // With one of so many none comes for long; as soon as all are wanted, all come.
        every.set(1 << 30);
        teller.look(&burst(&mut link, 0..32), Ticks(2));
        assert_eq!(far.take(), None);
        every.set(1);
        teller.look(&burst(&mut link, 0..32), Ticks(3));
        assert_eq!(std::iter::from_fn(|| far.take()).count(), 32);
        assert_eq!(far.missed(), 24);
    }
}
