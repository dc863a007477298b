//! A tap: copies of what a queue receives or sends, for another process to look at, in a bounded share of its worker's time.
//!
//! A [`Tapped`] queue has no tap until control leaves one at its [`TapSlot`] and has the tasks renewed; until then it costs a
//! branch a burst. A tap never waits: what there is no time or no room for is counted, and goes its way uncopied.

use std::sync::Arc;

use capture::pcapng::{Direction, PacketHead};
use capture::ring::Producer;
use crossbeam_queue::ArrayQueue;
use measure::Ticks;

use crate::io::{Frames, Receive, Transmit};
use crate::worker::WorkerCounters;

/// What a tap's ring tells besides packets, by the index of [`Producer::tell`]: frames that went by.
pub const SEEN: usize = 0;
/// Frames that were not copied since the worker had no time for it.
pub const NO_TIME: usize = 1;
/// Frames that were not copied since the ring was full.
pub const NO_ROOM: usize = 2;

/// Of the time in which a worker moves packets one part in so many is for its taps. What they put out of its caches costs
/// it about twice that.
const BUSY_PART: u64 = 300;
/// And of the time in which it finds nothing to do.
const IDLE_PART: u64 = 2;
/// Rounds of the worker for which a tap without time or room does nothing but count: a look at the clock costs, too.
const ROUNDS_OFF: u64 = 32;
/// Bytes of a segment that are not for blocks of packets: the worklist of a burst.
const SEGMENT_SPARE: usize = 4096;
/// Bytes that are copied between two looks at the clock, at most: a burst of long frames is more than a tap has time for.
const LOOK_BYTES: usize = 16 << 10;
/// What a copied burst costs besides the time between its two looks at the clock, ticks.
const LOOK_TICKS: i64 = 60;

/// What a tap needs to know.
pub struct TapPlan {
    /// The port's number.
    pub interface: u32,
    /// The queue's number.
    pub queue: u32,
    /// Which way its frames go.
    pub direction: Direction,
    /// Bytes kept of each frame, at most.
    pub snap_len: usize,
    /// Taps that share the worker's time.
    pub taps: u64,
    /// Ticks that all taps of the worker may save up, and that each may owe.
    pub burst_ticks: u64,
    /// Reads the time stamp counter.
    pub tsc: fn() -> Ticks,
}

/// The time that a worker gives to a tap.
struct Budget {
    worker: Arc<WorkerCounters>,
    taps: u64,
    /// Ticks that may be saved up, and owed.
    saved_max: i64,
    owed_max: i64,
    /// Ticks that may be spent.
    left: i64,
    /// When that was reckoned last, and how long the worker had moved packets by then.
    at: Ticks,
    busy: u64,
}

impl Budget {
    /// Adds what was earned since the last look.
    fn earn(&mut self, now: Ticks) {
        let busy = self.worker.moved_ticks.get();
        let elapsed = now.since(self.at);
        let moved = busy.saturating_sub(self.busy).min(elapsed);
        let earned = (moved / BUSY_PART + (elapsed - moved) / IDLE_PART) / self.taps;
        // What is too little for a tick is kept for the next look.
        if earned > 0 {
            self.left = self.left.saturating_add_unsigned(earned).min(self.saved_max);
            (self.at, self.busy) = (now, busy);
        }
    }

    /// Whether there would be nothing left.
    fn is_spent(&self, ticks: u64) -> bool {
        i64::try_from(ticks).map_or(true, |ticks| ticks >= self.left)
    }

    /// Takes what was spent. A worker that was stopped meanwhile does not owe all of that.
    fn spend(&mut self, ticks: u64) {
        let spent = i64::try_from(ticks)
            .unwrap_or(i64::MAX)
            .saturating_add(LOOK_TICKS);
        self.left = self.left.saturating_sub(spent).max(-self.owed_max);
    }
}

/// A tap on one queue. Belongs to the queue's worker while it is there; dropping it ends its ring.
pub struct Tap {
    ring: Producer,
    plan: TapPlan,
    budget: Budget,
    seen: u64,
    no_time: u64,
    no_room: u64,
    /// Frames that were not copied, and are told at the next look.
    passed: u64,
    /// The worker's round up to which frames are only counted, and what for.
    off_until: u64,
    is_full: bool,
}

impl Tap {
    /// A tap into `ring` on a queue of `worker`. Stamps in the ring are ticks.
    pub fn new(ring: Producer, plan: TapPlan, worker: Arc<WorkerCounters>) -> Self {
        let owed_max = i64::try_from(plan.burst_ticks).unwrap_or(i64::MAX);
        // What all have saved up may be spent in one round of the worker.
        let taps = plan.taps.max(1);
        let saved_max = (owed_max / i64::try_from(taps).unwrap_or(i64::MAX)).max(1);
        Self {
            budget: Budget {
                taps,
                saved_max,
                owed_max,
                left: saved_max,
                at: (plan.tsc)(),
                busy: worker.moved_ticks.get(),
                worker,
            },
            ring,
            plan,
            seen: 0,
            no_time: 0,
            no_room: 0,
            passed: 0,
            off_until: 0,
            is_full: false,
        }
    }

    /// Whether frames are only counted in this round of the worker.
    #[inline]
    fn is_off(&self) -> bool {
        self.budget.worker.polls.get() < self.off_until
    }

    /// So many frames went by while it was off.
    #[inline]
    fn pass(&mut self, frames: usize) {
        self.passed += frames as u64;
    }

    /// Frames from `first` on came.
    #[inline]
    fn received(&mut self, frames: &impl Frames, first: usize) {
        let count = frames.len() - first;
        if self.is_off() {
            self.pass(count);
        } else {
            let copied = self.copy(frames, first, count);
            self.count(count, copied);
        }
    }

    /// Copies up to `count` frames, as time and room allow, and returns how many. Nobody sees them yet. More time than there is
    /// goes into [`LOOK_BYTES`] and the frame that they end in.
    #[cold]
    #[inline(never)]
    fn copy(&mut self, frames: &impl Frames, first: usize, count: usize) -> usize {
        self.tell();
        let begun = (self.plan.tsc)();
        self.budget.earn(begun);
        self.is_full = false;
        if self.budget.left <= 0 {
            self.rest();
            return 0;
        }
        let head = |whole: usize| PacketHead {
            interface: self.plan.interface,
            time_ns: begun.0,
            original_len: whole as u32,
            ..PacketHead::default()
        };
        let captured = |index: usize| frames.whole_len(index).min(self.plan.snap_len);
        let block = |index: usize| head(0).block_len(captured(index));
        // Very long frames may be more than a segment holds, beside what it says of them.
        let room = self.ring.segment_len() - SEGMENT_SPARE;
        let (mut fits, mut len) = (0, 0);
        while fits < count && len + block(first + fits) <= room {
            len += block(first + fits);
            fits += 1;
        }
        if self.ring.reserve(fits, len).is_err() {
            self.is_full = true;
            self.rest();
            return 0;
        }
        self.is_full = fits < count;
        let (mut copied, mut unlooked) = (0, 0);
        for index in first..first + fits {
            let captured = captured(index);
            let mut left = captured;
            let parts = frames.segments(index).map(|part| {
                let kept = part.len().min(left);
                left -= kept;
                &part[..kept]
            });
            if self
                .ring
                .push(&head(frames.whole_len(index)), captured, parts)
                .is_err()
            {
                break;
            }
            copied += 1;
            unlooked += captured;
            if unlooked >= LOOK_BYTES {
                unlooked = 0;
                if self.budget.is_spent((self.plan.tsc)().since(begun)) {
                    self.is_full &= copied == fits;
                    break;
                }
            }
        }
        self.budget.spend((self.plan.tsc)().since(begun));
        copied
    }

    /// Of these frames the first `copied` were copied, and others may see them now.
    #[cold]
    #[inline(never)]
    fn count(&mut self, frames: usize, copied: usize) {
        self.seen += copied as u64;
        self.passed += (frames - copied) as u64;
        self.tell();
        self.ring.commit();
    }

    /// Is off for some rounds.
    fn rest(&mut self) {
        self.off_until = self.budget.worker.polls.get() + ROUNDS_OFF;
    }

    /// Tells what went by. What was not copied since it was told last, was so for one reason.
    fn tell(&mut self) {
        let passed = std::mem::take(&mut self.passed);
        self.seen += passed;
        if passed > 0 && self.is_full {
            self.no_room += passed;
            self.ring.tell(NO_ROOM, self.no_room);
        } else if passed > 0 {
            self.no_time += passed;
            self.ring.tell(NO_TIME, self.no_time);
        }
        self.ring.tell(SEEN, self.seen);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.tell();
        self.ring.end();
    }
}

/// Where control leaves a tap for a queue, and takes it back.
pub struct TapSlot {
    worker: Arc<WorkerCounters>,
    next: ArrayQueue<Option<Tap>>,
    old: ArrayQueue<Tap>,
}

impl TapSlot {
    /// Of a queue that `worker` polls.
    pub fn new(worker: Arc<WorkerCounters>) -> Arc<Self> {
        Arc::new(Self {
            worker,
            next: ArrayQueue::new(1),
            old: ArrayQueue::new(1),
        })
    }

    /// The worker of its queue.
    pub fn worker(&self) -> &Arc<WorkerCounters> {
        &self.worker
    }

    /// Leaves a tap there, or nothing in the place of the one that is there, to be found when tasks are renewed. The one
    /// before, if there is any, must have been taken back.
    pub fn leave(&self, tap: Option<Tap>) {
        // What nobody has picked up yet is dropped.
        let _ = self.next.force_push(tap);
    }

    /// Takes the tap that the queue had before it was renewed.
    pub fn take_back(&self) -> Option<Tap> {
        self.old.pop()
    }
}

/// A queue that may be tapped.
pub struct Tapped<Q> {
    queue: Q,
    tap: Option<Tap>,
    slot: Arc<TapSlot>,
}

impl<Q> Tapped<Q> {
    /// `queue`, whose taps come by way of `slot`.
    pub fn new(queue: Q, slot: Arc<TapSlot>) -> Self {
        Self {
            queue,
            tap: None,
            slot,
        }
    }

    #[cold]
    fn exchange(&mut self) {
        while let Some(next) = self.slot.next.pop() {
            if let Some(old) = std::mem::replace(&mut self.tap, next) {
                // Control frees it. There is place: it took the one before back.
                let _ = self.slot.old.push(old);
            }
        }
    }
}

impl<R: Receive> Receive for Tapped<R> {
    type Frames = R::Frames;

    fn batch(&self) -> Self::Frames {
        self.queue.batch()
    }

    #[inline]
    fn receive(&mut self, into: &mut Self::Frames, max: usize) -> usize {
        let first = into.len();
        let count = self.queue.receive(into, max);
        if let Some(tap) = self.tap.as_mut().filter(|_| count > 0) {
            tap.received(into, first);
        }
        count
    }

    #[inline]
    fn is_far(&self) -> bool {
        self.queue.is_far()
    }

    fn renew(&mut self) {
        self.exchange();
    }
}

impl<T: Transmit> Transmit for Tapped<T> {
    type Frames = T::Frames;

    fn batch(&self) -> Self::Frames {
        self.queue.batch()
    }

    #[inline]
    fn transmit(&mut self, from: &mut Self::Frames, count: usize) -> usize {
        let Some(tap) = &mut self.tap else {
            return self.queue.transmit(from, count);
        };
        if tap.is_off() {
            let taken = self.queue.transmit(from, count);
            tap.pass(taken);
            return taken;
        }
        // What the driver has taken is not ours to read.
        let copied = tap.copy(from, 0, count.min(from.len()));
        let taken = self.queue.transmit(from, count);
        tap.ring.withdraw(copied.saturating_sub(taken));
        tap.count(taken, copied.min(taken));
        taken
    }

    fn renew(&mut self) {
        self.exchange();
    }
}
