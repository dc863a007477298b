//! The capturing loop: takes what several queues receive, in the order of its stamps, into the ring.
//!
//! Where one core suffices, [`CaptureTask`] polls the [`QueueSource`]s itself; where there are more, each queue has a
//! [`ReceiverTask`] on another worker, and the merge takes from [`HandedSource`]s.

mod counters;
mod hand_over;
mod select;
mod source;
mod tap;
mod write;

pub use counters::{CaptureCounters, InterfaceDrops, MergeCounters, ReceivedCounters, WrittenCounters};
pub use hand_over::{HandedSource, ReceiverTask, hand_over};
pub use select::{Marks, Sample, Selector};
pub use source::{QueueSource, Source};
pub use tap::{Resting, TapCounters, TapReceive, TapSource};
pub use write::{PacketPlan, Taken};

use std::sync::Arc;

use capture::merge::{Merge, Order};
use capture::ring::Producer;
use measure::{Clock, Ticks};

use crate::rest::Rest;
use crate::slot::Fill;
use crate::{Phase, Task};

/// What a queue publishes.
pub type QueueCounters = Arc<CaptureCounters>;

/// What is captured of a queue, and how.
pub struct QueuePlan {
    /// Frames a burst.
    pub burst: usize,
    /// What it holds waits for the run, and none of it came before: it is a file.
    pub waits: bool,
    /// What is wanted.
    pub selector: Selector,
    /// What its frames are told of.
    pub packets: PacketPlan,
    /// What it publishes.
    pub counters: QueueCounters,
}

/// Buffers that a queue may hold back; more where its bursts are `handed` to another worker.
pub const fn buffers_held(burst: usize, handed: bool) -> usize {
    if handed {
        hand_over::buffers_held(burst)
    } else {
        source::buffers_held(burst)
    }
}

/// What a capturing task leaves when it has ended.
#[derive(Debug)]
pub struct CaptureResult {
    /// Frames that had come and were not written when it ended.
    pub held: u64,
}

/// Merges queues into a ring.
pub struct CaptureTask<'q> {
    sources: Vec<Box<dyn Source + 'q>>,
    merge: Merge,
    ring: Producer,
    /// Frames that are still wanted.
    wanted: u64,
    clock: Clock,
    tsc: fn() -> Ticks,
    rest: Rest,
    counters: Arc<MergeCounters>,
    totals: Fill<CaptureResult>,
}

impl<'q> CaptureTask<'q> {
    /// A task that merges `sources`, in the order in which equal stamps go, into `ring`; the first `wanted` frames.
    pub fn new(
        sources: Vec<Box<dyn Source + 'q>>,
        (order, wanted): (Order, u64),
        ring: Producer,
        (clock, tsc): (Clock, fn() -> Ticks),
        counters: Arc<MergeCounters>,
        totals: Fill<CaptureResult>,
    ) -> Self {
        Self {
            merge: Merge::new(sources.len(), order),
            sources,
            ring,
            wanted,
            clock,
            tsc,
            rest: Rest::of(true),
            counters,
            totals,
        }
    }

    /// Takes what has come from all queues. Returns how many frames came, and when the last one was asked.
    #[inline]
    fn take(&mut self, phase: Phase) -> (usize, u64) {
        let (mut moved, mut now) = (0, 0);
        for (queue, source) in self.sources.iter_mut().enumerate() {
            moved += source.poll(phase == Phase::Warm);
            now = self.clock.ns((self.tsc)()).0;
            source.stamp(now);
            self.merge.set_head(queue, source.head());
            if let Some(watermark) = source.watermark() {
                self.merge.set_watermark(queue, watermark);
            }
        }
        (moved, now)
    }

    /// Writes what may go. Returns how many frames went.
    #[inline]
    fn write(&mut self, now: u64) -> usize {
        let mut went = 0;
        while let Some(turn) = self.merge.turn(now) {
            let source = &mut self.sources[turn.queue];
            let Some((stamp, taken)) = source.emit(turn.until, self.wanted, &mut self.ring) else {
                break;
            };
            self.merge.went(stamp);
            self.merge.set_head(turn.queue, source.head());
            self.counters.written.add(taken.written);
            self.wanted -= taken.written;
            let late = if turn.is_late { taken.written } else { taken.late };
            if late > 0 {
                self.counters.late.add(late);
            }
            went += (taken.written + taken.refused + taken.unwanted) as usize;
        }
        went
    }
}

impl Task for CaptureTask<'_> {
    fn poll(&mut self, _now: Ticks, phase: Phase) -> usize {
        let (came, now) = self.take(phase);
        let went = self.write(now);
        self.ring.commit();
        came + went
    }

    fn take_rest(&mut self, _now: Ticks) -> usize {
        // Of a capture by count the rest is nobody's.
        if self.wanted == 0 || !self.sources.iter().all(|source| source.takes_rest()) {
            self.rest = Rest::default();
        }
        if !self.rest.begin() {
            return 0;
        }
        let (came, now) = self.take(Phase::Drain);
        let went = self.write(now);
        self.ring.commit();
        // A queue without room is not asked.
        if came > 0 || self.sources.iter().all(|source| source.watermark().is_some()) {
            self.rest.came(came);
        }
        came + went
    }

    /// Waits for the workers that receive for it, which have been told to stop, too, and wait for nobody.
    fn finish(mut self: Box<Self>) {
        loop {
            let mut is_over = true;
            for (queue, source) in self.sources.iter_mut().enumerate() {
                is_over &= source.settle();
                self.merge.set_head(queue, source.head());
                if let Some(watermark) = source.watermark() {
                    self.merge.set_watermark(queue, watermark);
                }
            }
            if is_over {
                break;
            }
            // Who waits for an empty burst gets one.
            self.write(self.clock.ns((self.tsc)()).0);
            self.ring.commit();
            std::hint::spin_loop();
        }
        self.merge.end();
        self.write(u64::MAX);
        self.ring.end();
        let rest = &mut self.rest;
        let held = self
            .sources
            .iter_mut()
            .map(|source| source.held() + source.discard(rest))
            .sum();
        self.totals.fill(CaptureResult { held });
    }
}
