//! One queue of a capture: what it received and what has not gone to the ring yet.

use std::collections::VecDeque;
use std::sync::Arc;

use capture::pcapng::{Direction, PacketHead};
use capture::ring::Producer;
use measure::Counter;

use crate::io::{Frames, Receive};

/// Bursts that a queue may hold while the merge waits for another one. After that it is not polled, and its frames wait
/// where they are.
const BURSTS: usize = 4;

/// Buffers that a capturing queue may hold back.
pub const fn buffers_held(burst: usize) -> usize {
    BURSTS * burst
}

/// What a queue publishes. One writer: its worker.
#[derive(Debug, Default)]
pub struct CaptureCounters {
    /// Frames taken from the queue since the run began.
    pub frames: Counter,
    /// Bytes of these, without FCS.
    pub bytes: Counter,
    /// Frames thrown out before the run began.
    pub flushed: Counter,
    /// Frames for which the ring had no place.
    pub refused: Counter,
    /// Polls for which all bursts were still held.
    pub full: Counter,
}

/// What a queue's frames are told of in the ring.
pub struct SourcePlan {
    /// The port's number among the interfaces.
    pub interface: u32,
    /// The queue's number, where the port has several.
    pub queue: Option<u32>,
    /// Which way they went, where that is not plain.
    pub direction: Option<Direction>,
    /// Bytes kept of each frame, at most.
    pub snap_len: usize,
    /// Frames a burst.
    pub burst: usize,
    /// From the run's clock to nanoseconds since the epoch of Unix.
    pub epoch_ns: u64,
    /// What it publishes.
    pub counters: Arc<CaptureCounters>,
}

/// What became of a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Frames written to the ring.
    pub written: u64,
    /// Frames for which there was no place.
    pub refused: u64,
    /// Frames that came after all that were wanted.
    pub unwanted: u64,
}

/// A queue as the merge sees it: bursts, not frames, so that a call through a table costs little.
pub trait Source: Send {
    /// Takes a burst from the queue, if there is room for one; throws it away if `flush`. Returns how many frames came.
    fn poll(&mut self, flush: bool) -> usize;
    /// The burst that was just taken came at `now`, ns.
    fn stamp(&mut self, now: u64);
    /// What comes from now on is stamped at this time or later; `None` where the queue was not asked.
    fn watermark(&self) -> Option<u64>;
    /// The stamp of the first burst that has not gone.
    fn head(&self) -> Option<u64>;
    /// Writes the first burst, if it is stamped `until` or earlier, and returns its stamp. Of its frames `wanted` are
    /// written at most; the others are thrown away.
    fn emit(&mut self, until: u64, wanted: u64, ring: &mut Producer) -> Option<(u64, Taken)>;
    /// Frames that have not gone.
    fn held(&self) -> u64;
}

/// A queue of some kind of port.
pub struct QueueSource<R: Receive> {
    io: R,
    plan: SourcePlan,
    /// Bursts that came, with their stamps; the last one may not have its stamp yet.
    waiting: VecDeque<(u64, R::Frames)>,
    free: Vec<R::Frames>,
    is_polled: bool,
    has_new: bool,
    watermark: Option<u64>,
    /// Frames refused since one was written.
    dropped: u64,
}

impl<R: Receive> QueueSource<R> {
    /// The queue `io`.
    pub fn new(io: R, plan: SourcePlan) -> Self {
        Self {
            free: (0..BURSTS).map(|_| io.batch()).collect(),
            io,
            plan,
            waiting: VecDeque::with_capacity(BURSTS),
            is_polled: false,
            has_new: false,
            watermark: None,
            dropped: 0,
        }
    }

    /// Writes frame `index` of a burst; false if there is no place.
    #[inline]
    fn write(&mut self, frames: &R::Frames, index: usize, time_ns: u64, ring: &mut Producer) -> bool {
        let whole = frames.whole_len(index);
        let captured = whole.min(self.plan.snap_len);
        let head = PacketHead {
            interface: self.plan.interface,
            time_ns,
            original_len: whole as u32,
            queue: self.plan.queue,
            direction: self.plan.direction,
            dropped: self.dropped,
        };
        let first = frames.bytes(index);
        let written = if first.len() >= captured {
            ring.push(&head, captured, [&first[..captured]])
        } else {
            let mut left = captured;
            let parts = frames.segments(index).map(move |part| {
                let kept = part.len().min(left);
                left -= kept;
                &part[..kept]
            });
            ring.push(&head, captured, parts)
        };
        if written.is_ok() {
            self.dropped = 0;
        } else {
            self.dropped += 1;
        }
        written.is_ok()
    }
}

impl<R: Receive> Source for QueueSource<R> {
    #[inline]
    fn poll(&mut self, flush: bool) -> usize {
        self.has_new = false;
        let Some(frames) = self.free.last_mut() else {
            self.is_polled = false;
            self.plan.counters.full.add(1);
            return 0;
        };
        self.is_polled = true;
        let count = self.io.receive(frames, self.plan.burst);
        if count == 0 {
            return 0;
        }
        if flush {
            frames.clear();
            self.plan.counters.flushed.add(count as u64);
            return count;
        }
        self.plan.counters.frames.add(count as u64);
        if let Some(frames) = self.free.pop() {
            self.waiting.push_back((u64::MAX, frames));
            self.has_new = true;
        }
        count
    }

    #[inline]
    fn stamp(&mut self, now: u64) {
        if let Some((stamp, _)) = self.waiting.back_mut().filter(|_| self.has_new) {
            *stamp = now;
        }
        self.watermark = self.is_polled.then_some(now);
    }

    #[inline]
    fn watermark(&self) -> Option<u64> {
        self.watermark
    }

    #[inline]
    fn head(&self) -> Option<u64> {
        self.waiting.front().map(|(stamp, _)| *stamp)
    }

    fn emit(&mut self, until: u64, wanted: u64, ring: &mut Producer) -> Option<(u64, Taken)> {
        let (stamp, _) = self.waiting.front().filter(|(stamp, _)| *stamp <= until)?;
        let stamp = *stamp;
        let (_, mut frames) = self.waiting.pop_front()?;
        let time_ns = self.plan.epoch_ns.wrapping_add(stamp);
        let (mut taken, mut bytes) = (Taken::default(), 0);
        let count = frames.len();
        for index in 0..count {
            bytes += frames.whole_len(index) as u64;
            if taken.written == wanted {
                taken.unwanted += 1;
            } else if self.write(&frames, index, time_ns, ring) {
                taken.written += 1;
            } else {
                taken.refused += 1;
            }
        }
        frames.clear();
        self.free.push(frames);
        self.plan.counters.bytes.add(bytes);
        if taken.refused > 0 {
            self.plan.counters.refused.add(taken.refused);
        }
        Some((stamp, taken))
    }

    fn held(&self) -> u64 {
        self.waiting.iter().map(|(_, frames)| frames.len() as u64).sum()
    }
}
