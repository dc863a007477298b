//! The capturing loop: takes what several queues receive, in the order of its stamps, into the ring.

mod source;
mod tap;

pub use source::{CaptureCounters, QueueSource, Source, SourcePlan, Taken, buffers_held};
pub use tap::{Resting, TapCounters, TapReceive, TapSource};

use std::sync::Arc;

use capture::merge::{Merge, Order};
use capture::ring::Producer;
use measure::{Clock, Counter, Ticks};

use crate::slot::Fill;
use crate::{Phase, Task};

/// What the merge publishes. One writer: its worker.
#[derive(Debug, Default)]
pub struct MergeCounters {
    /// Frames written to the ring.
    pub written: Counter,
    /// Frames that came after as many as were wanted.
    pub unwanted: Counter,
    /// Frames among `written` that came after one with a later stamp had gone.
    pub late: Counter,
}

/// What a capturing task leaves when it has ended.
#[derive(Debug)]
pub struct CaptureResult {
    /// Frames that had come and were not written when it ended.
    pub held: u64,
}

/// Merges queues of one worker into a ring.
pub struct CaptureTask<'q> {
    sources: Vec<Box<dyn Source + 'q>>,
    merge: Merge,
    ring: Producer,
    /// Frames that are still wanted.
    wanted: u64,
    clock: Clock,
    tsc: fn() -> Ticks,
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
            counters,
            totals,
        }
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
            self.counters.unwanted.add(taken.unwanted);
            self.wanted -= taken.written;
            if turn.is_late {
                self.counters.late.add(taken.written);
            }
            went += (taken.written + taken.refused + taken.unwanted) as usize;
        }
        went
    }
}

impl Task for CaptureTask<'_> {
    fn poll(&mut self, _now: Ticks, phase: Phase) -> usize {
        let mut moved = 0;
        let mut now = 0;
        for (queue, source) in self.sources.iter_mut().enumerate() {
            let received = source.poll(phase == Phase::Warm);
            now = self.clock.ns((self.tsc)()).0;
            source.stamp(now);
            moved += received;
            self.merge.set_head(queue, source.head());
            if let Some(watermark) = source.watermark() {
                self.merge.set_watermark(queue, watermark);
            }
        }
        moved += self.write(now);
        self.ring.commit();
        moved
    }

    fn finish(mut self: Box<Self>) {
        self.merge.end();
        self.write(u64::MAX);
        self.ring.end();
        let held = self.sources.iter().map(|source| source.held()).sum();
        self.totals.fill(CaptureResult { held });
    }
}
