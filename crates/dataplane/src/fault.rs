//! Faults on purpose: drops, duplicates, reorders, corrupts, delays and polices probes, and counts each one it really did.
//!
//! A probe suffers at most one fault, so every count has one meaning for whoever must find it again.

mod spec;

use std::collections::VecDeque;
use std::sync::Arc;

use measure::{Counter, Ticks};
use wire::Probe;

use crate::BURST_MAX;
use crate::io::{Allocate, Frames, FramesMut, FreshFrames};
use crate::policer::Bucket;
pub use crate::policer::RateLimit;
pub use spec::{FaultError, FaultSpec};

/// Probes that wait to be overtaken, at most.
const OVERTAKEN_MAX: usize = 64;
/// Room kept in the output for one packet's doings: itself, its copy and those it overtakes.
const OUT_RESERVE: usize = OVERTAKEN_MAX / 2;

/// What was really done. One writer: the reflecting worker.
#[derive(Debug, Default)]
pub struct FaultCounters {
    /// Probes that came by.
    pub seen: Counter,
    /// Dropped.
    pub drop: Counter,
    /// Of those, the ones over the rate limit.
    pub limit: Counter,
    /// Sent twice.
    pub duplicate: Counter,
    /// Sent on after a later probe of their lane, by reordering or by delay.
    pub reorder: Counter,
    /// One bit flipped.
    pub corrupt: Counter,
    /// Sent later.
    pub delay: Counter,
    /// Faults wanted that could not be done: no buffer for a copy, no room to hold.
    pub not_done: Counter,
}

/// Buffers that an injector may hold back which delays up to `delayed_max` probes: these, those that wait to be overtaken,
/// and a copy.
pub const fn buffers_held(delayed_max: usize) -> usize {
    delayed_max + OVERTAKEN_MAX + 1
}

struct Held<F> {
    frame: F,
    probe: Probe,
    since: Ticks,
}

/// The highest sequence passed on of a lane, plus one.
#[derive(Clone, Copy, Default)]
struct Highest {
    /// Sequences begin again with every run.
    run: u8,
    sequence: u64,
}

/// The injector of one reflecting task.
pub struct Faults<A: Allocate>
where
    A::Frames: FramesMut,
{
    /// Cumulative thresholds out of 2^32: drop, duplicate, reorder, corrupt, delay.
    thresholds: [u64; 5],
    bucket: Option<Bucket>,
    delay_ticks: u64,
    patience_ticks: u64,
    random: u64,
    delayed: VecDeque<Held<<A::Frames as FramesMut>::Frame>>,
    delayed_max: usize,
    overtaken: VecDeque<Held<<A::Frames as FramesMut>::Frame>>,
    /// By lane, of the run that came by last.
    highest: Vec<Highest>,
    /// Where copies come from.
    buffers: A,
    copy: A::Frames,
    counters: Arc<FaultCounters>,
}

impl<A: Allocate> Faults<A>
where
    A::Frames: FramesMut,
{
    /// An injector; `delayed_max` bounds how many probes it holds at once, `hz` is ticks per second; copies
    /// are made in `buffers`.
    pub fn new(
        spec: &FaultSpec,
        seed: u64,
        hz: f64,
        delayed_max: usize,
        buffers: A,
        counters: Arc<FaultCounters>,
    ) -> Self {
        let mut sum = 0.0;
        let thresholds = [spec.drop, spec.duplicate, spec.reorder, spec.corrupt, spec.delay].map(|share| {
            sum += share;
            (sum * 4_294_967_296.0).round() as u64
        });
        Self {
            thresholds,
            bucket: spec.limit.map(|limit| Bucket::new(limit, hz)),
            delay_ticks: (spec.delay_ns as f64 * hz / 1e9) as u64,
            patience_ticks: (hz / 100.0) as u64,
            random: seed,
            delayed: VecDeque::with_capacity(delayed_max),
            delayed_max,
            overtaken: VecDeque::with_capacity(OVERTAKEN_MAX),
            highest: vec![Highest::default(); 1 << 16],
            copy: buffers.batch(),
            buffers,
            counters,
        }
    }

    /// Probes in hand.
    pub fn held(&self) -> usize {
        self.delayed.len() + self.overtaken.len()
    }

    /// `SplitMix64` (Steele, Lea, Flood 2014): one multiply-and-shift chain a packet, replays from its seed.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Moves frames from `from` to `out`, some of them with a fault. Frames may stay in `from` while `out` is full.
    /// `more` may wait to be received.
    pub fn pass(&mut self, from: &mut A::Frames, out: &mut A::Frames, now: Ticks, more: bool) {
        self.release_due(out, now);
        if let Some(bucket) = &mut self.bucket {
            bucket.fill(now);
        }
        while !from.is_empty() && out.len() + OUT_RESERVE <= BURST_MAX {
            let probe = wire::peek(from.bytes(0));
            let Some(probe) = probe else {
                forward(from, out);
                continue;
            };
            self.counters.seen.add(1);
            if self.bucket.as_mut().is_some_and(|bucket| !bucket.admits()) {
                drop_front(from);
                self.counters.drop.add(1);
                self.counters.limit.add(1);
                continue;
            }
            let random = self.next_random();
            let draw = random & 0xFFFF_FFFF;
            let [drop, duplicate, reorder, corrupt, delay] = self.thresholds;
            if draw < drop {
                drop_front(from);
                self.counters.drop.add(1);
            } else if draw < duplicate {
                let copy = self.copy_front(from);
                forward(from, out);
                self.passed(&probe, out);
                match copy.map(|copy| out.push(copy)) {
                    Some(Ok(())) => self.counters.duplicate.add(1),
                    _ => self.counters.not_done.add(1),
                }
            } else if draw < reorder {
                self.hold(from, out, probe, now, false);
            } else if draw < corrupt {
                let len = from.bytes(0).len();
                let done = from
                    .room_mut(0)
                    .get_mut(..len)
                    .is_some_and(|b| wire::corrupt_one_bit(b, random >> 32));
                forward(from, out);
                if done {
                    &self.counters.corrupt
                } else {
                    &self.counters.not_done
                }
                .add(1);
            } else if draw < delay {
                self.hold(from, out, probe, now, true);
            } else {
                forward(from, out);
                self.passed(&probe, out);
            }
        }
        if let Some(bucket) = self.bucket.as_mut().filter(|_| from.is_empty() && !more) {
            bucket.settle();
        }
    }

    fn hold(&mut self, from: &mut A::Frames, out: &mut A::Frames, probe: Probe, now: Ticks, delay: bool) {
        let room = if delay {
            self.delayed.len() < self.delayed_max
        } else {
            self.overtaken.len() < OVERTAKEN_MAX
        };
        if !room {
            self.counters.not_done.add(1);
            forward(from, out);
            self.passed(&probe, out);
        } else if let Some(frame) = from.pop_front() {
            let held = Held {
                frame,
                probe,
                since: now,
            };
            if delay {
                &mut self.delayed
            } else {
                &mut self.overtaken
            }
            .push_back(held);
        }
    }

    /// Notes that a sound probe went on, and sends those after it that waited for this.
    fn passed(&mut self, probe: &Probe, out: &mut A::Frames) {
        let (lane, run, sequence) = (probe.lane, probe.run, probe.sequence);
        let highest = &mut self.highest[usize::from(lane)];
        if highest.run == run && sequence < highest.sequence {
            self.counters.reorder.add(1);
            return;
        }
        *highest = Highest {
            run,
            sequence: sequence + 1,
        };
        let mut index = 0;
        while index < self.overtaken.len() {
            let held = &self.overtaken[index].probe;
            let overtakes = held.lane == lane && held.run == run && held.sequence < sequence;
            if overtakes && out.len() < BURST_MAX - 1 {
                if let Some(held) = self.overtaken.remove(index) {
                    self.counters.reorder.add(1);
                    // Cannot be refused: there was room.
                    let _ = out.push(held.frame);
                }
            } else {
                index += 1;
            }
        }
    }

    fn copy_front(&mut self, from: &A::Frames) -> Option<<A::Frames as FramesMut>::Frame> {
        let bytes = from.bytes(0);
        if self.buffers.allocate(&mut self.copy, 1) == 0 {
            return None;
        }
        match self.copy.write(0, bytes.len()).get_mut(..bytes.len()) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.copy.clear(),
        }
        self.copy.pop_front()
    }

    /// Sends what was delayed long enough, and what nobody came to overtake.
    fn release_due(&mut self, out: &mut A::Frames, now: Ticks) {
        while out.len() + OUT_RESERVE <= BURST_MAX
            && self
                .delayed
                .front()
                .is_some_and(|held| now.0.saturating_sub(held.since.0) >= self.delay_ticks)
        {
            if let Some(held) = self.delayed.pop_front() {
                self.counters.delay.add(1);
                let _ = out.push(held.frame);
                self.passed(&held.probe, out);
            }
        }
        while out.len() + OUT_RESERVE <= BURST_MAX
            && self
                .overtaken
                .front()
                .is_some_and(|held| now.0.saturating_sub(held.since.0) >= self.patience_ticks)
        {
            if let Some(held) = self.overtaken.pop_front() {
                self.counters.not_done.add(1);
                let _ = out.push(held.frame);
                self.passed(&held.probe, out);
            }
        }
    }
}

fn forward<B: FramesMut>(from: &mut B, out: &mut B) {
    if let Some(frame) = from.pop_front() {
        // Cannot be refused: the caller kept room.
        let _ = out.push(frame);
    }
}

fn drop_front<B: FramesMut>(from: &mut B) {
    drop(from.pop_front());
}
