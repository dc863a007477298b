//! The sending loop: stamped probes from templates, on an absolute schedule, one transmit queue a task.

mod catching_up;
mod counters;
mod lane;
mod plan;

pub use counters::{SendCounters, SendResult};
pub use plan::SendPlan;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use measure::{Entry, IntervalWriter, Nanos, Ticks};
use wire::{BurstStamp, lag};

use crate::io::{Allocate, Frames, FreshFrames, Transmit};
use crate::slot::Fill;
use crate::{BURST_MAX, Phase, Task};
use catching_up::CatchingUp;
use lane::Lane;

/// Buffers that a sending task may hold back: this burst, the one after, and a reply.
pub const fn buffers_held(burst: usize) -> usize {
    2 * burst + 1
}

/// The headers of a stream's frames, whatever their size.
#[derive(Clone, Copy, Default)]
struct HeaderLens {
    l2: usize,
    l3: usize,
    ipv6: bool,
}

/// Packets of one stream and one size that follow one another.
#[derive(Clone, Copy)]
struct Turn {
    entry: Entry,
    count: usize,
}

/// Sends on one queue.
pub struct SendTask<T: Transmit<Frames = A::Frames>, A: Allocate> {
    io: T,
    buffers: A,
    plan: SendPlan,
    lanes: Vec<Lane>,
    /// What the NIC is told of each stream's frames; of none where it completes no checksums.
    headers: Vec<HeaderLens>,
    /// The schedule, what follows one another and is equal put together, and where in it the next packet stands.
    schedule: Vec<Turn>,
    cursor: usize,
    done_of_turn: usize,
    /// Whether every packet may be of another stream or size than the one before.
    is_interleaved: bool,
    /// Fresh buffers for this burst and the one after: which is which, `current` tells. Of this burst's, the first
    /// `built` are frames waiting for the driver.
    frames: [A::Frames; 2],
    current: usize,
    built: usize,
    /// Bytes of this burst's frames; counted when the driver has the last of them.
    built_bytes: u64,
    /// Streams of the built frames, and how many frames of each follow one another; those before `first_run` are gone.
    runs: [(u16, u16); BURST_MAX],
    first_run: usize,
    built_at: Nanos,
    reply_frames: A::Frames,
    catching_up: CatchingUp,
    accepted_at: Ticks,
    /// When frames were last offered and not all taken.
    refused_at: Ticks,
    intervals: IntervalWriter,
    ended: bool,
    totals: Fill<SendResult>,
}

impl<T: Transmit<Frames = A::Frames>, A: Allocate> SendTask<T, A> {
    /// A task that sends what it writes into `buffers` on `io` as planned, and leaves its totals in `totals`.
    pub fn new(io: T, mut buffers: A, plan: SendPlan, totals: Fill<SendResult>) -> Self {
        let lanes = plan
            .flows
            .iter()
            .map(|&flows| flows.max(1))
            .map(|flows| Lane {
                flow: plan.flow_start % flows,
                flow_step: plan.flow_step % flows,
                flows,
                ..Lane::default()
            })
            .collect();
        let mut headers = Vec::new();
        if plan.checksum_offload {
            headers.resize(plan.flows.len(), HeaderLens::default());
            for entry in &plan.schedule {
                let template = &plan.templates[entry.template as usize];
                headers[usize::from(entry.stream)] = HeaderLens {
                    l2: template.l2_len(),
                    l3: template.l3_len(),
                    ipv6: template.is_ipv6(),
                };
            }
        }
        let schedule = plan.schedule.chunk_by(|a, b| a == b);
        let mut schedule: Vec<Turn> = schedule
            .map(|turn| Turn {
                entry: turn[0],
                count: turn.len(),
            })
            .collect();
        let is_interleaved = schedule.len() > 1 && schedule.iter().all(|turn| turn.count == 1);
        if let [only] = &mut *schedule {
            only.count = usize::MAX;
        }
        let mut frames = buffers.batch();
        buffers.allocate(&mut frames, plan.burst);
        Self {
            reply_frames: buffers.batch(),
            frames: [frames, buffers.batch()],
            current: 0,
            io,
            buffers,
            lanes,
            headers,
            schedule,
            cursor: 0,
            done_of_turn: 0,
            is_interleaved,
            built: 0,
            built_bytes: 0,
            runs: [(0, 0); BURST_MAX],
            first_run: 0,
            built_at: Nanos(0),
            catching_up: CatchingUp::default(),
            accepted_at: Ticks(0),
            refused_at: Ticks(0),
            intervals: IntervalWriter::new(Arc::clone(&plan.intervals)),
            ended: false,
            totals,
            plan,
        }
    }

    /// Builds `count` frames, all stamped with one time: the stamp costs a burst, not a packet.
    #[inline]
    fn build(&mut self, count: usize, now: Ticks, lag_ticks: u64) {
        let at = self.plan.clock.ns(now);
        let lag = if lag_ticks == 0 {
            0
        } else {
            lag::encode(self.plan.clock.ns_from_ticks(lag_ticks))
        };
        let stamp = BurstStamp::new(at.0, lag);
        let next = &mut self.frames[self.current ^ 1];
        if next.is_empty() {
            // One burst ahead: its lines are on their way while this one is written.
            self.buffers.allocate(next, self.plan.burst);
        }
        self.built_bytes = if self.is_interleaved {
            self.build_interleaved(count, &stamp)
        } else {
            self.build_runs(count, &stamp)
        };
        self.built = count;
        if !self.headers.is_empty() {
            self.request_checksums();
        }
        self.built_at = at;
    }

    /// Writes the frames, where each is a run of its own.
    #[inline(never)]
    fn build_interleaved(&mut self, count: usize, stamp: &BurstStamp) -> u64 {
        let (mut bytes, mut cursor) = (0, self.cursor);
        let blanks = self.frames[self.current].blanks(0, count);
        for (blank, run) in blanks.zip(&mut self.runs) {
            let Entry { stream, template } = self.schedule[cursor].entry;
            let template = &self.plan.templates[template as usize];
            self.lanes[usize::from(stream)].write_one(template, stamp, blank);
            *run = (stream, 1);
            bytes += template.frame_len();
            cursor += 1;
            if cursor == self.schedule.len() {
                cursor = 0;
            }
        }
        self.cursor = cursor;
        self.first_run = 0;
        bytes as u64
    }

    /// Writes the frames, run by run.
    #[inline]
    fn build_runs(&mut self, count: usize, stamp: &BurstStamp) -> u64 {
        let frames = &mut self.frames[self.current];
        let (mut built, mut bytes, mut runs) = (0, 0, 0);
        while built < count {
            let Turn { entry, count: turn } = self.schedule[self.cursor];
            let run = (turn - self.done_of_turn).min(count - built);
            let template = &self.plan.templates[entry.template as usize];
            self.lanes[usize::from(entry.stream)].write(template, stamp, frames, built, run);
            self.runs[runs] = (entry.stream, run as u16);
            runs += 1;
            built += run;
            bytes += run * template.frame_len();
            self.done_of_turn += run;
            if self.done_of_turn == turn {
                self.done_of_turn = 0;
                self.cursor += 1;
                if self.cursor == self.schedule.len() {
                    self.cursor = 0;
                }
            }
        }
        self.first_run = 0;
        bytes as u64
    }

    #[inline(never)]
    fn request_checksums(&mut self) {
        let frames = &mut self.frames[self.current];
        let mut index = 0;
        for (stream, count) in &self.runs {
            let HeaderLens { l2, l3, ipv6 } = self.headers[usize::from(*stream)];
            for _ in 0..*count {
                if index == self.built {
                    return;
                }
                frames.request_udp_checksum(index, l2, l3, ipv6);
                index += 1;
            }
        }
    }

    /// Offers the built frames; what is not taken stays for the next poll.
    #[inline]
    fn offer(&mut self, now: Ticks) -> usize {
        let taken = self.io.transmit(&mut self.frames[self.current], self.built);
        if taken < self.built {
            self.plan.counters.queue_full.add(1);
            self.refused_at = now;
            if taken == 0 {
                return 0;
            }
        }
        let row = self.intervals.row(self.built_at, taken as u64);
        let mut left = taken;
        for (stream, count) in &mut self.runs[self.first_run..] {
            let gone = left.min(usize::from(*count));
            if let Some(row) = row {
                row.accepted(usize::from(*stream), gone as u64);
            }
            left -= gone;
            if left == 0 {
                *count -= gone as u16;
                self.first_run += usize::from(*count == 0);
                break;
            }
            self.first_run += 1;
        }
        self.built -= taken;
        let counters = &self.plan.counters;
        counters.accepted.add(taken as u64);
        if self.built == 0 {
            counters.bytes.add(self.built_bytes);
        }
        if self.accepted_at.0 != 0 {
            counters
                .gap_ticks
                .record(now.0.saturating_sub(self.accepted_at.0), 1);
            if taken > 1 {
                counters.gap_ticks.record(0, taken as u64 - 1);
            }
        } else {
            counters.first_ticks.set(now.0);
        }
        counters.last_ticks.set(now.0);
        self.accepted_at = now;
        taken
    }

    #[cold]
    fn abandon(&mut self, count: u64, at: Ticks) {
        self.plan.counters.abandoned.add(count);
        self.plan.counters.intended.add(count);
        // They were due before the end, so that is where they are missed, in its last interval at most.
        let due = self.plan.clock.ns(at.min(self.plan.end)).0.saturating_sub(1);
        self.intervals.unsent(Nanos(due), count);
    }

    /// Sending is over: what was due by now and not taken is abandoned.
    #[cold]
    fn end(&mut self, now: Ticks) {
        self.ended = true;
        if self.catching_up.due > 0 {
            self.catching_up.end(&self.plan.counters);
        }
        let cut = Ticks(self.plan.cut.load(Ordering::Acquire));
        let end = now.min(self.plan.end).min(cut);
        let late = self.plan.pacer.finish(end);
        if late > 0 {
            self.abandon(late, end);
        }
    }

    /// Sends what the receiving tasks answered (ARP, NDP, echo). Rare, and bounded to one frame a poll.
    #[cold]
    fn send_reply(&mut self) {
        if self.reply_frames.is_empty() && self.buffers.allocate(&mut self.reply_frames, 1) == 0 {
            return;
        }
        let Some(reply) = self.plan.replies.pop() else {
            return;
        };
        let bytes = reply.bytes();
        let room = self.reply_frames.write(0, bytes.len());
        if let Some(room) = room.get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
            self.plan
                .counters
                .replies
                .add(self.io.transmit(&mut self.reply_frames, 1) as u64);
        }
        self.reply_frames.clear();
    }
}

impl<T: Transmit<Frames = A::Frames>, A: Allocate> Task for SendTask<T, A> {
    #[inline]
    fn poll(&mut self, now: Ticks, phase: Phase) -> usize {
        self.intervals.publish(self.plan.clock.ns(now));
        if !self.plan.replies.is_empty() {
            self.send_reply();
        }
        let mut moved = 0;
        if self.built > 0 {
            if phase == Phase::Run {
                let waited = now.0.saturating_sub(self.refused_at.0);
                self.plan.counters.full_ticks.add(waited);
            }
            moved = self.offer(now);
        }
        if phase != Phase::Run {
            if phase > Phase::Run && !self.ended {
                self.end(now);
            }
            return moved;
        }
        if self.built > 0 {
            return moved;
        }
        if self.frames[self.current].is_empty() {
            self.current ^= 1;
            let frames = &mut self.frames[self.current];
            if frames.is_empty() && self.buffers.allocate(frames, self.plan.burst) == 0 {
                self.plan.counters.no_buffer.add(1);
            }
        }
        let room = self.frames[self.current].len().min(self.plan.burst);
        // After the end only what was due before it is still sent; without a schedule nothing is.
        let over = now >= self.plan.end;
        let room = if over && !self.plan.pacer.is_paced() {
            0
        } else {
            room
        };
        let take = self
            .plan
            .pacer
            .take(now.min(self.plan.end), room, self.plan.backlog);
        if take.abandoned > 0 {
            self.abandon(take.abandoned, now);
        }
        if take.count == 0 {
            if over || self.plan.pacer.is_done() {
                self.plan.counters.done.set(1);
            }
            return moved;
        }
        if take.backlog > 1 || self.catching_up.due > 0 {
            self.catching_up.take(&take, &self.plan.counters);
        }
        self.plan.counters.intended.add(take.count as u64);
        // By the schedule they were due before its end, however long ago that is.
        self.build(take.count, now, take.lag_ticks + now.since(self.plan.end));
        moved += self.offer(now);
        moved
    }

    fn renew(&mut self) {
        self.io.renew();
    }

    fn finish(self: Box<Self>) {
        let mut accepted: Vec<u64> = self.lanes.iter().map(|lane| lane.sequence).collect();
        let mut unsent = self.built;
        for (stream, count) in &self.runs[self.first_run..] {
            if unsent == 0 {
                break;
            }
            accepted[usize::from(*stream)] -= u64::from(*count);
            unsent -= usize::from(*count);
        }
        let bytes = &self.plan.counters.bytes;
        if self.built > 0 {
            let frames = &self.frames[self.current];
            let left: usize = (0..self.built).map(|index| frames.whole_len(index)).sum();
            bytes.add(self.built_bytes - left as u64);
        }
        let flows = self.lanes.iter().zip(&accepted);
        self.totals.fill(SendResult {
            flows: flows.map(|(lane, accepted)| lane.flows_sent(*accepted)).collect(),
            accepted,
            lane_base: self.plan.lane_base,
            unsent: self.built as u64,
            bytes: bytes.get(),
        });
    }
}
