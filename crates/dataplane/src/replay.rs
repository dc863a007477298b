//! The replaying loop: packets of a capture, each when it is due, on one transmit queue.

use std::collections::VecDeque;
use std::sync::Arc;

use measure::units::frame_on_wire;
use measure::{Counter, SharedHistogram, Ticks};

use crate::io::{Allocate, Frames, FreshFrames, Transmit};
use crate::slot::Fill;
use crate::{Phase, Task};
use feed::{Chunk, Feed, Planned};

pub mod feed;

/// Of the histograms of times: values are kept to 1 part in 128.
const SUB_BITS: u32 = 7;

/// What a replaying task publishes while it runs. One writer: its worker.
#[derive(Debug)]
pub struct ReplayCounters {
    /// Packets that the driver took.
    pub sent: Counter,
    /// Their bytes, without FCS.
    pub bytes: Counter,
    /// Their bytes as Ethernet carries them: with FCS, the shortest filled up.
    pub wire_bytes: Counter,
    /// Those of them of which the input has only the beginning.
    pub snapped: Counter,
    /// Transmit calls that took less than was due: the queue was full.
    pub queue_full: Counter,
    /// How long packets were due while the queue was full for sure, before the end, ticks: between two offers of which it
    /// took nothing.
    pub full_ticks: Counter,
    /// 1 once the end has come and nothing is left of what was due before it.
    pub drained: Counter,
    /// Times that no buffer was free.
    pub no_buffer: Counter,
    /// Times that packets were due, or without a schedule could have been sent, and had not been read yet.
    pub starved: Counter,
    /// How long that was in all, ticks.
    pub starved_ticks: Counter,
    /// Packets that were due before they had been read.
    pub late_by_file: Counter,
    /// When the driver first took a packet, ticks; 0 before.
    pub first_ticks: Counter,
    /// When it last took one.
    pub last_ticks: Counter,
    /// When that one was due, ticks after the first.
    pub due_ticks: Counter,
    /// How much of the input had been read before the packet that was sent last, bytes.
    pub position: Counter,
    /// 1 once everything is sent.
    pub done: Counter,
    /// By how many ticks the time between two packets, as they were handed to the driver, differs from what it should be.
    pub gap_error_ticks: SharedHistogram,
    /// How many ticks after it was due each packet was handed to the driver.
    pub late_ticks: SharedHistogram,
}

impl ReplayCounters {
    /// Zeroed counters.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            sent: Counter::default(),
            bytes: Counter::default(),
            wire_bytes: Counter::default(),
            snapped: Counter::default(),
            queue_full: Counter::default(),
            full_ticks: Counter::default(),
            drained: Counter::default(),
            no_buffer: Counter::default(),
            starved: Counter::default(),
            starved_ticks: Counter::default(),
            late_by_file: Counter::default(),
            first_ticks: Counter::default(),
            last_ticks: Counter::default(),
            due_ticks: Counter::default(),
            position: Counter::default(),
            done: Counter::default(),
            gap_error_ticks: SharedHistogram::new(SUB_BITS),
            late_ticks: SharedHistogram::new(SUB_BITS),
        })
    }
}

/// What a replaying task leaves when it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayResult {
    /// Packets of those taken from the feed that were due before the end, and that the driver did not take.
    pub held: u64,
    /// The rest of them.
    pub not_due: u64,
    /// When the end came, ticks after the first packet, where packets are due at times.
    pub ended_at: Option<u64>,
    /// When the oldest of `held` was due, ticks after the first packet.
    pub held_from: Option<u64>,
    /// For how long at the end nothing had come of an input that had not ended, ticks: from when its last packet was due.
    pub starved: u64,
}

impl ReplayResult {
    /// By how much the oldest of `held` was overdue at the end, ticks.
    pub fn overdue(&self) -> Option<u64> {
        Some(self.ended_at?.saturating_sub(self.held_from?))
    }
}

/// Buffers that a replaying task may hold back: packets that were copied before they were due.
pub const fn buffers_held(burst: usize) -> usize {
    burst
}

/// What a replaying task needs to know, besides its queue.
pub struct ReplayPlan {
    /// Where the packets come from.
    pub feed: Feed,
    /// Packets a burst, at most [`crate::BURST_MAX`].
    pub burst: usize,
    /// Whether packets are due at times; if not, they are all due at once.
    pub is_paced: bool,
    /// The last moment at which anything is due, ticks after the first packet; without times, at which anything new is offered.
    /// [`u64::MAX`] where it goes on to the end of the input.
    pub until: u64,
    /// The clock, asked when packets are handed to the driver.
    pub now: fn() -> Ticks,
    /// What it publishes.
    pub counters: Arc<ReplayCounters>,
}

/// A packet that was copied into a buffer.
#[derive(Clone, Copy)]
struct Copied {
    planned: Planned,
    len: u32,
}

/// Replays on one queue.
pub struct ReplayTask<T: Transmit<Frames = A::Frames>, A: Allocate> {
    io: T,
    buffers: A,
    plan: ReplayPlan,
    /// Buffers, of which the first ones are frames: as many as `copied`.
    frames: A::Frames,
    copied: VecDeque<Copied>,
    /// Packets at the front that were offered and refused.
    refused: usize,
    /// When the queue was found full, if it was when it was offered something last.
    full_at: Option<Ticks>,
    /// When the end came, ticks after the first packet.
    ended_at: Option<u64>,
    /// What is copied from, and which packet is next.
    chunk: Option<Box<Chunk>>,
    next: usize,
    /// When the first packet was handed over.
    begun: Option<Ticks>,
    /// When the last one was, ticks after the first, and when it was due.
    last: Option<(u64, u64)>,
    /// Since when there was nothing to copy although the input has not ended.
    starved_since: Option<Ticks>,
    /// When a chunk came last that had been waited for, ticks after the first packet: what is copied from then on, and was
    /// due before, is late because of its input.
    read_at: u64,
    totals: Fill<ReplayResult>,
}

impl<T: Transmit<Frames = A::Frames>, A: Allocate> ReplayTask<T, A> {
    /// A task that sends what the feed of `plan` gives on `io`, in `buffers`, and leaves its totals in `totals`.
    pub fn new(io: T, buffers: A, plan: ReplayPlan, totals: Fill<ReplayResult>) -> Self {
        Self {
            frames: buffers.batch(),
            copied: VecDeque::with_capacity(plan.burst),
            refused: 0,
            full_at: None,
            ended_at: None,
            chunk: None,
            next: 0,
            begun: None,
            last: None,
            starved_since: None,
            read_at: 0,
            io,
            buffers,
            plan,
            totals,
        }
    }

    /// Ticks since the first packet.
    #[inline]
    fn elapsed(&self, now: Ticks) -> u64 {
        self.begun.map_or(0, |begun| now.since(begun))
    }

    /// Copies packets ahead, until a burst of them waits to be due.
    #[inline]
    fn copy_ahead(&mut self, now: Ticks) {
        while self.copied.len() < self.plan.burst {
            if self.chunk.is_none() && !self.next_chunk(now) {
                return;
            }
            if self.frames.len() == self.copied.len() {
                let wanted = self.plan.burst - self.copied.len();
                if self.buffers.allocate(&mut self.frames, wanted) == 0 {
                    self.plan.counters.no_buffer.add(1);
                    return;
                }
            }
            let chunk = self.chunk.as_ref();
            let Some((planned, bytes)) = chunk.and_then(|chunk| chunk.get(self.next)) else {
                self.end_chunk();
                continue;
            };
            let room = self.frames.write(self.copied.len(), bytes.len());
            if let Some(room) = room.get_mut(..bytes.len()) {
                room.copy_from_slice(bytes);
            }
            self.copied.push_back(Copied {
                planned,
                len: bytes.len() as u32,
            });
            if planned.at < self.read_at {
                self.plan.counters.late_by_file.add(1);
            }
            self.next += 1;
        }
    }

    /// Takes the next chunk; false if there is none.
    fn next_chunk(&mut self, now: Ticks) -> bool {
        // Asked before the feed is: what was handed over before the end is found.
        let has_ended = self.plan.feed.has_ended();
        let Some(chunk) = self.plan.feed.next() else {
            if has_ended {
                self.plan.counters.done.set(u64::from(self.copied.is_empty()));
            } else if self.begun.is_some() {
                self.starved_since.get_or_insert(now);
            }
            return false;
        };
        if let (Some(since), Some((first, _))) = (self.starved_since.take(), chunk.get(0)) {
            self.fed_again(since, now, first.at);
        }
        self.chunk = Some(chunk);
        self.next = 0;
        true
    }

    /// There was nothing to copy from `since` on, and the first packet that came now was due at `at`.
    #[cold]
    fn fed_again(&mut self, since: Ticks, now: Ticks, at: u64) {
        let missed = self.elapsed(now).saturating_sub(self.elapsed(since).max(at));
        if missed > 0 {
            self.plan.counters.starved.add(1);
            self.plan.counters.starved_ticks.add(missed);
            if self.plan.is_paced {
                self.read_at = self.elapsed(now);
            }
        }
    }

    /// See [`ReplayResult::starved`].
    fn starved_at_end(&self) -> u64 {
        let (Some(since), Some(ended_at), false) =
            (self.starved_since, self.ended_at, self.plan.feed.has_ended())
        else {
            return 0;
        };
        let copied = self.copied.back().map(|packet| packet.planned.at);
        let last = copied.or(self.last.map(|(_, due)| due)).unwrap_or(0);
        ended_at.saturating_sub(self.elapsed(since).max(last))
    }

    fn end_chunk(&mut self) {
        if let Some(chunk) = self.chunk.take() {
            self.plan.feed.give_back(chunk);
        }
    }

    /// Offers what is due; what is not taken stays for the next poll.
    #[inline]
    fn offer_due(&mut self) -> usize {
        let now = (self.plan.now)();
        let elapsed = now.since(*self.begun.get_or_insert(now));
        let taken = self.offer(self.due_by(elapsed.min(self.plan.until)), now, elapsed);
        if self.refused > 0 {
            self.was_full(taken, now);
        } else {
            self.full_at = None;
        }
        taken
    }

    /// The queue has taken `taken` and no more.
    #[cold]
    fn was_full(&mut self, taken: usize, now: Ticks) {
        if let (0, Some(before)) = (taken, self.full_at) {
            self.plan.counters.full_ticks.add(now.since(before));
        }
        self.full_at = Some(now);
    }

    /// How many of the packets that were copied are due by then.
    #[inline]
    fn due_by(&self, elapsed: u64) -> usize {
        let due = |packet: &&Copied| packet.planned.at <= elapsed;
        self.copied.iter().take_while(due).count()
    }

    /// Offers what was due before the end came, and nothing else: without times, that is what the driver refused.
    #[cold]
    fn drain(&mut self) -> usize {
        let now = (self.plan.now)();
        let elapsed = self.elapsed(now);
        let is_first = self.ended_at.is_none();
        self.ended_at.get_or_insert(elapsed.min(self.plan.until));
        let moved = match self.owed() {
            0 => 0,
            owed => self.offer(owed, now, elapsed),
        };
        if is_first && self.refused > 0 {
            self.was_full(moved, now);
        }
        if self.due_until().is_some() {
            self.copy_ahead(now);
        }
        // Where no buffer is free what is due may wait in the chunk.
        let next = self.chunk.as_ref().and_then(|chunk| chunk.get(self.next));
        let is_due = next.is_some_and(|(next, _)| self.due_until().is_some_and(|end| next.at <= end));
        let is_drained = self.owed() == 0 && !is_due;
        self.plan.counters.drained.set(u64::from(is_drained));
        moved
    }

    /// The end, if it has come and packets are due at times.
    fn due_until(&self) -> Option<u64> {
        self.ended_at
            .filter(|_| self.plan.is_paced && self.begun.is_some())
    }

    /// How many of the packets that were copied were due before the end.
    fn owed(&self) -> usize {
        self.due_until().map_or(self.refused, |end| self.due_by(end))
    }

    #[inline]
    fn offer(&mut self, count: usize, now: Ticks, elapsed: u64) -> usize {
        let taken = self.io.transmit(&mut self.frames, count);
        let counters = &self.plan.counters;
        self.refused = count - taken;
        if self.refused > 0 {
            counters.queue_full.add(1);
        }
        if taken == 0 {
            return 0;
        }
        let (mut bytes, mut wire_bytes, mut snapped) = (0, 0, 0);
        for Copied { planned: packet, len } in self.copied.drain(..taken) {
            bytes += u64::from(len);
            wire_bytes += frame_on_wire(u64::from(len));
            snapped += u64::from(packet.is_snapped);
            counters.position.set(packet.position);
            if self.plan.is_paced {
                counters.late_ticks.record(elapsed.saturating_sub(packet.at), 1);
                if let Some((handed_over, due)) = self.last {
                    let wanted = packet.at.saturating_sub(due);
                    counters
                        .gap_error_ticks
                        .record(elapsed.saturating_sub(handed_over).abs_diff(wanted), 1);
                }
                counters.due_ticks.set(packet.at);
            }
            self.last = Some((elapsed, packet.at));
        }
        if counters.first_ticks.get() == 0 {
            counters.first_ticks.set(now.0);
        }
        counters.last_ticks.set(now.0);
        counters.bytes.add(bytes);
        counters.wire_bytes.add(wire_bytes);
        counters.snapped.add(snapped);
        counters.sent.add(taken as u64);
        taken
    }

    /// Whether the packet that is next is due.
    #[inline]
    fn is_due(&self, now: Ticks) -> bool {
        let elapsed = self.elapsed(now);
        // By times, what was due before the end and held up is offered after it, too.
        let is_open = elapsed <= self.plan.until || self.plan.is_paced;
        let due = elapsed.min(self.plan.until);
        is_open && self.copied.front().is_some_and(|packet| packet.planned.at <= due)
    }
}

impl<T: Transmit<Frames = A::Frames>, A: Allocate> Task for ReplayTask<T, A> {
    #[inline]
    fn poll(&mut self, now: Ticks, phase: Phase) -> usize {
        match phase {
            Phase::Run if self.begun.is_some() || self.plan.feed.is_primed() => {
                let moved = if self.is_due(now) { self.offer_due() } else { 0 };
                self.copy_ahead(now);
                moved
            }
            Phase::Drain => self.drain(),
            _ => 0,
        }
    }

    fn renew(&mut self) {
        self.io.renew();
    }

    fn finish(self: Box<Self>) {
        let starved = self.starved_at_end();
        let ended_at = self.due_until();
        let chunk = self.chunk.as_ref();
        let [due, rest] = chunk.map_or([0; 2], |chunk| chunk.due_by(self.next, ended_at));
        let owed = self.owed();
        self.totals.fill(ReplayResult {
            held: owed as u64 + due,
            not_due: (self.copied.len() - owed) as u64 + rest,
            ended_at,
            held_from: (owed > 0).then(|| self.copied[0].planned.at),
            starved,
        });
    }
}
