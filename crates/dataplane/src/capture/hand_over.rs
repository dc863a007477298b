//! Hands bursts from the worker that receives them to the worker that merges.
//!
//! Batches go round: full ones one way, empty ones back. The receiver publishes its watermark after it has handed over what
//! came before, and the merge reads it before it takes: whatever it does not find then is stamped later. Where no empty
//! batch is left the queue is not polled, and its frames wait, or are missed and counted, where they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Release};

use capture::ring::Producer;
use crossbeam_queue::ArrayQueue;
use crossbeam_utils::CachePadded;
use measure::{Clock, Ticks};

use super::QueuePlan;
use super::source::{Boxed, Poller, Source, Waiting};
use super::write::Taken;
use crate::io::{Frames, Receive};
use crate::rest::Rest;
use crate::{Phase, Task};

/// Bursts between the two workers.
const BURSTS: usize = 16;
/// How often an empty one is looked for at the end: some milliseconds.
const SPINS: u32 = 1 << 16;

/// Buffers that a queue may hold back whose bursts are handed to another worker.
pub const fn buffers_held(burst: usize) -> usize {
    BURSTS * burst
}

/// What receiver and merge share.
struct Shared<F> {
    full: ArrayQueue<Boxed<F>>,
    empty: ArrayQueue<Boxed<F>>,
    /// The end of the receiver's last poll, ns; 0 before the first.
    watermark: CachePadded<AtomicU64>,
    is_closed: AtomicBool,
    /// Frames that were thrown away at the end, since there was no room for them.
    discarded: AtomicU64,
}

/// Receives from a queue, and hands over what came.
pub struct ReceiverTask<R: Receive> {
    poller: Poller<R>,
    shared: Arc<Shared<R::Frames>>,
    /// The batch that is filled next.
    next: Option<Boxed<R::Frames>>,
    rest: Rest,
    clock: Clock,
    tsc: fn() -> Ticks,
}

/// The same queue, in the merge.
pub struct HandedSource<F> {
    shared: Arc<Shared<F>>,
    waiting: Waiting<F>,
    watermark: Option<u64>,
}

/// Both ends of the queue `io`: the task of the worker that receives, and what the merge takes from.
pub fn hand_over<R: Receive>(
    io: R,
    plan: QueuePlan,
    (clock, tsc): (Clock, fn() -> Ticks),
) -> (ReceiverTask<R>, HandedSource<R::Frames>) {
    let (poller, writer) = Poller::new(io, plan);
    let rest = Rest::of(poller.takes_rest());
    let shared = Arc::new(Shared {
        full: ArrayQueue::new(BURSTS),
        empty: ArrayQueue::new(BURSTS),
        watermark: CachePadded::default(),
        is_closed: AtomicBool::new(false),
        discarded: AtomicU64::new(0),
    });
    while shared.empty.push(Box::new(poller.batch())).is_ok() {}
    let source = HandedSource {
        shared: Arc::clone(&shared),
        waiting: Waiting::new(BURSTS, writer),
        watermark: None,
    };
    let task = ReceiverTask {
        poller,
        shared,
        next: None,
        rest,
        clock,
        tsc,
    };
    (task, source)
}

impl<R: Receive> Task for ReceiverTask<R> {
    fn poll(&mut self, _now: Ticks, phase: Phase) -> usize {
        let Some(mut batch) = self.next.take().or_else(|| self.shared.empty.pop()) else {
            self.poller.leave();
            return 0;
        };
        let count = self.poller.receive(&mut batch, phase == Phase::Warm);
        let now = self.clock.ns((self.tsc)()).0;
        if batch.frames.is_empty() {
            self.next = Some(batch);
        } else {
            batch.stamp = now;
            // There are no more batches than places.
            self.next = self.shared.full.push(batch).err();
        }
        self.shared.watermark.store(now, Release);
        count
    }

    fn take_rest(&mut self, now: Ticks) -> usize {
        if !self.rest.begin() {
            return 0;
        }
        // The merge gives batches back as long as it can write.
        for _ in 0..SPINS {
            if self.next.is_some() {
                break;
            }
            self.next = self.shared.empty.pop();
            std::hint::spin_loop();
        }
        if self.next.is_none() {
            return 0;
        }
        let came = self.poll(now, Phase::Drain);
        self.rest.came(came);
        came
    }

    /// Its end closes the queue; what was handed over is the merge's.
    fn finish(mut self: Box<Self>) {
        let count = self.poller.discard(&mut self.rest);
        self.shared.discarded.store(count, Release);
    }
}

impl<R: Receive> Drop for ReceiverTask<R> {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Release);
    }
}

impl<F: Frames + Send> Source for HandedSource<F> {
    #[inline]
    fn poll(&mut self, _flush: bool) -> usize {
        let watermark = self.shared.watermark.load(Acquire);
        self.watermark = (watermark > 0).then_some(watermark);
        let mut count = 0;
        while let Some(batch) = self.shared.full.pop() {
            count += batch.frames.len();
            self.waiting.push(batch);
        }
        count
    }

    fn stamp(&mut self, _now: u64) {}

    #[inline]
    fn watermark(&self) -> Option<u64> {
        self.watermark
    }

    #[inline]
    fn head(&self) -> Option<u64> {
        self.waiting.head()
    }

    fn emit(&mut self, until: u64, wanted: u64, ring: &mut Producer) -> Option<(u64, Taken)> {
        let (batch, taken) = self.waiting.emit(until, wanted, ring)?;
        let stamp = batch.stamp;
        // There is a place for each.
        let _ = self.shared.empty.push(batch);
        Some((stamp, taken))
    }

    fn settle(&mut self) -> bool {
        // What was handed over before the end is found after the end was seen.
        let is_closed = self.shared.is_closed.load(Acquire);
        self.poll(false);
        is_closed
    }

    fn takes_rest(&self) -> bool {
        true
    }

    fn held(&self) -> u64 {
        self.waiting.held() + self.shared.discarded.load(Acquire)
    }
}
