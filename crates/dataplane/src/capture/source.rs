//! One queue of a capture as the merge sees it: bursts that came and have not gone to the ring yet.

use std::collections::VecDeque;

use capture::ring::Producer;

use super::select::{Marks, Selector};
use super::write::{Taken, Writer};
use super::{QueueCounters, QueuePlan};
use crate::io::{Frames, Receive};
use crate::rest::Rest;

/// Bursts that a queue may hold while the merge waits for another one. After that it is not polled, and its frames wait
/// where they are.
const BURSTS: usize = 4;

/// Buffers that a queue may hold back whose worker merges, too.
pub const fn buffers_held(burst: usize) -> usize {
    BURSTS * burst
}

/// A burst that came.
pub(super) struct Batch<F> {
    pub stamp: u64,
    pub frames: F,
    /// Frames that are not wanted.
    pub unwanted: Marks,
}

/// Batches are handed on by their address: they are a kilobyte.
pub(super) type Boxed<F> = Box<Batch<F>>;

/// A queue as the merge sees it: bursts, not frames, so that a call through a table costs little.
pub trait Source: Send {
    /// Takes what has come, if there is room for it; throws it away if `flush`. Returns how many frames came.
    fn poll(&mut self, flush: bool) -> usize;
    /// What was just taken came at `now`, ns, where nobody else has said so.
    fn stamp(&mut self, now: u64);
    /// What comes from now on is stamped at this time or later; `None` where the queue was not asked.
    fn watermark(&self) -> Option<u64>;
    /// The stamp of the first burst that has not gone.
    fn head(&self) -> Option<u64>;
    /// Writes the first burst, if it is stamped `until` or earlier, and returns its stamp. Of its frames `wanted` are
    /// written at most; the others are thrown away.
    fn emit(&mut self, until: u64, wanted: u64, ring: &mut Producer) -> Option<(u64, Taken)>;
    /// Whether what waits in it at the end came in the run: it is no file, and no copy of what others have.
    fn takes_rest(&self) -> bool {
        false
    }
    /// Throws away what nobody will take any more: how many frames.
    fn discard(&mut self, _rest: &mut Rest) -> u64 {
        0
    }
    /// The run is over: takes what is on its way from another worker. Whether that was all, since that worker has ended.
    fn settle(&mut self) -> bool;
    /// Frames that have not gone.
    fn held(&self) -> u64;
}

/// Asks a queue, and judges what came.
pub(super) struct Poller<R: Receive> {
    io: R,
    burst: usize,
    waits: bool,
    selector: Selector,
    counters: QueueCounters,
}

impl<R: Receive> Poller<R> {
    pub fn new(io: R, plan: QueuePlan) -> (Self, Writer) {
        let writer = Writer::new(plan.packets, plan.counters.clone());
        let poller = Self {
            io,
            burst: plan.burst,
            waits: plan.waits,
            selector: plan.selector,
            counters: plan.counters,
        };
        (poller, writer)
    }

    pub fn batch(&self) -> Batch<R::Frames> {
        Batch {
            stamp: u64::MAX,
            frames: self.io.batch(),
            unwanted: 0,
        }
    }

    /// Takes a burst into `batch`, which is empty; what comes before the run is thrown away (`flush`).
    #[inline]
    pub fn receive(&mut self, batch: &mut Batch<R::Frames>, flush: bool) -> usize {
        if flush && self.waits {
            return 0;
        }
        let count = self.io.receive(&mut batch.frames, self.burst);
        let counters = &self.counters.received;
        if count == 0 {
            return 0;
        }
        if flush {
            batch.frames.clear();
            counters.flushed.add(count as u64);
        } else {
            counters.frames.add(count as u64);
            batch.unwanted = self.selector.unwanted(&batch.frames, counters);
        }
        count
    }

    /// Whether what waits in the queue at the end came in the run.
    pub fn takes_rest(&self) -> bool {
        !self.waits
    }

    /// Throws away what nobody will take any more: how many frames.
    pub fn discard(&mut self, rest: &mut Rest) -> u64 {
        let mut frames = self.io.batch();
        let (count, _) = rest.discard(&mut self.io, &mut frames);
        self.counters.received.frames.add(count);
        count
    }

    /// There is no room for what may have come.
    pub fn leave(&self) {
        self.counters.received.full.add(1);
    }
}

/// A queue of some kind of port, polled by the worker that merges.
pub struct QueueSource<R: Receive> {
    poller: Poller<R>,
    /// The last one may not have its stamp yet.
    waiting: Waiting<R::Frames>,
    free: Vec<Boxed<R::Frames>>,
    is_polled: bool,
    has_new: bool,
    watermark: Option<u64>,
}

impl<R: Receive> QueueSource<R> {
    /// The queue `io`.
    pub fn new(io: R, plan: QueuePlan) -> Self {
        let (poller, writer) = Poller::new(io, plan);
        Self {
            free: (0..BURSTS).map(|_| Box::new(poller.batch())).collect(),
            poller,
            waiting: Waiting::new(BURSTS, writer),
            is_polled: false,
            has_new: false,
            watermark: None,
        }
    }
}

impl<R: Receive> Source for QueueSource<R> {
    #[inline]
    fn poll(&mut self, flush: bool) -> usize {
        self.has_new = false;
        let Some(mut batch) = self.free.pop() else {
            self.is_polled = false;
            self.poller.leave();
            return 0;
        };
        self.is_polled = true;
        let count = self.poller.receive(&mut batch, flush);
        if batch.frames.is_empty() {
            self.free.push(batch);
        } else {
            self.waiting.push(batch);
            self.has_new = true;
        }
        count
    }

    #[inline]
    fn stamp(&mut self, now: u64) {
        if let Some(batch) = self.waiting.batches.back_mut().filter(|_| self.has_new) {
            batch.stamp = now;
        }
        self.watermark = self.is_polled.then_some(now);
    }

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
        self.free.push(batch);
        Some((stamp, taken))
    }

    fn takes_rest(&self) -> bool {
        self.poller.takes_rest()
    }

    fn discard(&mut self, rest: &mut Rest) -> u64 {
        self.poller.discard(rest)
    }

    fn settle(&mut self) -> bool {
        true
    }

    fn held(&self) -> u64 {
        self.waiting.held()
    }
}

/// Bursts that came and have not gone, and what writes them.
pub(super) struct Waiting<F> {
    batches: VecDeque<Boxed<F>>,
    writer: Writer,
}

impl<F: Frames> Waiting<F> {
    /// Room for so many bursts.
    pub fn new(room: usize, writer: Writer) -> Self {
        Self {
            batches: VecDeque::with_capacity(room),
            writer,
        }
    }

    #[inline]
    pub fn push(&mut self, batch: Boxed<F>) {
        self.batches.push_back(batch);
    }

    /// The stamp of the first one.
    #[inline]
    pub fn head(&self) -> Option<u64> {
        self.batches.front().map(|batch| batch.stamp)
    }

    /// Writes the first one, if it is stamped `until` or earlier; of its frames `wanted` at most. It is empty then.
    #[inline]
    pub fn emit(&mut self, until: u64, wanted: u64, ring: &mut Producer) -> Option<(Boxed<F>, Taken)> {
        self.batches.front().filter(|batch| batch.stamp <= until)?;
        let mut batch = self.batches.pop_front()?;
        let taken = self.writer.write(&mut batch, wanted, ring);
        Some((batch, taken))
    }

    /// Wanted frames in them.
    pub fn held(&self) -> u64 {
        let wanted = |batch: &Boxed<F>| batch.frames.len() as u64 - u64::from(batch.unwanted.count_ones());
        self.batches.iter().map(wanted).sum()
    }
}
