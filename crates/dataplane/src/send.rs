//! The sending loop: stamped probes from templates, on an absolute schedule, one transmit queue a task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use measure::bunch::BUNCH_SUB_BITS;
use measure::{
    Allowance, Clock, Counter, Entry, IntervalRing, IntervalWriter, Nanos, Pacer, SharedHistogram, Ticks,
};
use wire::{BurstStamp, Template, lag};

use crate::io::{Allocate, Blank, Frames, FreshFrames, Transmit};
use crate::reply::ReplyQueue;
use crate::slot::Fill;
use crate::{BURST_MAX, Phase, Task};

/// What a sending task publishes while it runs. One writer: its worker.
#[derive(Debug)]
pub struct SendCounters {
    /// Packets that the schedule (or, without one, the burst loop) wanted on the wire.
    pub intended: Counter,
    /// Packets that the driver took.
    pub accepted: Counter,
    /// Packets given up because the worker or the queue was later than the backlog bound.
    pub abandoned: Counter,
    /// Bytes of the frames built, without FCS.
    pub bytes: Counter,
    /// Transmit calls that took less than was offered: the queue was full.
    pub queue_full: Counter,
    /// Times that no buffer was free.
    pub no_buffer: Counter,
    /// When the driver first took a packet, ticks; 0 before.
    pub first_ticks: Counter,
    /// When it last took one.
    pub last_ticks: Counter,
    /// 1 once the schedule is served.
    pub done: Counter,
    /// ARP, NDP and echo replies sent for the receiving side.
    pub replies: Counter,
    /// Ticks from one accepted packet to the next, packets of one burst counting as 0.
    pub gap_ticks: SharedHistogram,
    /// How many packets were due at once where more than one was, each time that the schedule was behind anew.
    pub bunches: SharedHistogram,
    /// Those of them that left whole: hardly anything fell due meanwhile.
    pub whole_bunches: SharedHistogram,
}

impl SendCounters {
    /// Zeroed counters.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            intended: Counter::default(),
            accepted: Counter::default(),
            abandoned: Counter::default(),
            bytes: Counter::default(),
            queue_full: Counter::default(),
            no_buffer: Counter::default(),
            first_ticks: Counter::default(),
            last_ticks: Counter::default(),
            done: Counter::default(),
            replies: Counter::default(),
            gap_ticks: SharedHistogram::new(7),
            bunches: SharedHistogram::new(BUNCH_SUB_BITS),
            whole_bunches: SharedHistogram::new(BUNCH_SUB_BITS),
        })
    }
}

/// What a sending task leaves when it has ended.
#[derive(Debug)]
pub struct SendResult {
    /// Accepted packets per stream of this queue; lane = `lane_base + stream`.
    pub accepted: Vec<u64>,
    /// The lane of stream 0.
    pub lane_base: u16,
    /// Flows that really went out, per stream.
    pub flows: Vec<u64>,
    /// Packets built but never taken by the driver.
    pub unsent: u64,
}

/// Buffers that a sending task may hold back: this burst, the one after, and a reply.
pub const fn buffers_held(burst: usize) -> usize {
    2 * burst + 1
}

/// What a sending task needs to know, besides its queue.
pub struct SendPlan {
    /// One template per (stream, frame size), as the schedule's entries index them.
    pub templates: Vec<Template>,
    /// The repeating order of streams and templates.
    pub schedule: Vec<Entry>,
    /// Flows of each stream.
    pub flows: Vec<u32>,
    /// The flow that each stream starts with, and the step to its next: queues share the flows evenly.
    pub flow_start: u32,
    /// See `flow_start`.
    pub flow_step: u32,
    /// The lane of stream 0.
    pub lane_base: u16,
    /// When each packet is due.
    pub pacer: Pacer,
    /// When sending ends.
    pub end: Ticks,
    /// Packets a burst, at most [`BURST_MAX`].
    pub burst: usize,
    /// How many due packets a late worker may still send before it gives the rest up.
    pub backlog: u64,
    /// Converts ticks into the probe's time.
    pub clock: Clock,
    /// Where this queue's per-interval counts go.
    pub intervals: Arc<IntervalRing>,
    /// When control ended the run before its time, ticks; what is due later is nobody's debt.
    pub cut: Arc<AtomicU64>,
    /// What it publishes.
    pub counters: Arc<SendCounters>,
    /// Replies that the receiving tasks of the same port ask to be sent.
    pub replies: Arc<ReplyQueue>,
    /// The templates leave the UDP checksum to the NIC.
    pub checksum_offload: bool,
}

#[derive(Clone, Copy, Default)]
struct Lane {
    sequence: u64,
    accepted: u64,
    flow: u32,
    /// Below `flows`, so that one subtraction wraps.
    flow_step: u32,
    flows: u32,
}

/// A bunch of packets that were due at once, on their way out.
#[derive(Default)]
struct CatchingUp {
    /// How many were due; 0 where nothing is behind.
    due: u64,
    /// Packets since, those that fell due meanwhile among them.
    sent: u64,
}

impl CatchingUp {
    /// Takes in one more look at which more than one packet was due.
    #[inline]
    fn take(&mut self, take: &Allowance, counters: &SendCounters) {
        if self.due == 0 {
            self.due = take.backlog;
        }
        self.sent += take.count as u64;
        if take.backlog <= take.count as u64 {
            self.end(counters);
        }
    }

    fn end(&mut self, counters: &SendCounters) {
        counters.bunches.record(self.due, 1);
        // One that the end of the run cut off did not leave whole.
        if (self.due..=self.due + self.due / 8).contains(&self.sent) {
            counters.whole_bunches.record(self.due, 1);
        }
        *self = Self::default();
    }
}

/// The headers of a stream's frames, whatever their size.
#[derive(Clone, Copy, Default)]
struct HeaderLens {
    l2: usize,
    l3: usize,
    ipv6: bool,
}

/// Sends on one queue.
pub struct SendTask<T: Transmit<Frames = A::Frames>, A: Allocate> {
    io: T,
    buffers: A,
    plan: SendPlan,
    lanes: Vec<Lane>,
    /// What the NIC is told of each stream's frames; of none where it completes no checksums.
    headers: Vec<HeaderLens>,
    cursor: usize,
    /// Fresh buffers for this burst and the one after: which is which, `current` tells. Of this burst's, the first
    /// `built` are frames waiting for the driver.
    frames: [A::Frames; 2],
    current: usize,
    built: usize,
    /// Streams of the built frames, from `built_first`.
    streams: [u16; BURST_MAX],
    built_first: usize,
    built_at: Nanos,
    reply_frames: A::Frames,
    catching_up: CatchingUp,
    accepted_at: Ticks,
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
            cursor: 0,
            built: 0,
            streams: [0; BURST_MAX],
            built_first: 0,
            built_at: Nanos(0),
            catching_up: CatchingUp::default(),
            accepted_at: Ticks(0),
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
        let bytes = self.build_runs(count, &stamp);
        if !self.headers.is_empty() {
            self.request_checksums(count);
        }
        self.plan.counters.bytes.add(bytes);
        self.built = count;
        self.built_first = 0;
        self.built_at = at;
    }

    /// Writes the frames run by run: equal entries that follow each other are one run.
    #[inline]
    fn build_runs(&mut self, count: usize, stamp: &BurstStamp) -> u64 {
        let schedule = &*self.plan.schedule;
        let mut blanks = self.frames[self.current].blanks(count);
        if let [entry] = *schedule {
            let template = &self.plan.templates[entry.template as usize];
            write_run(
                &mut self.lanes[usize::from(entry.stream)],
                template,
                stamp,
                blanks,
            );
            return (count * template.frame_len()) as u64;
        }
        let (mut built, mut bytes) = (0, 0);
        while built < count {
            let entry = schedule[self.cursor];
            let ahead = schedule[self.cursor..].iter().take(count - built);
            let run = ahead.take_while(|next| **next == entry).count();
            let template = &self.plan.templates[entry.template as usize];
            let lane = &mut self.lanes[usize::from(entry.stream)];
            write_run(lane, template, stamp, blanks.by_ref().take(run));
            self.streams[built..built + run].fill(entry.stream);
            built += run;
            bytes += run * template.frame_len();
            self.cursor += run;
            if self.cursor == schedule.len() {
                self.cursor = 0;
            }
        }
        bytes as u64
    }

    #[inline(never)]
    fn request_checksums(&mut self, count: usize) {
        let frames = &mut self.frames[self.current];
        // A lonely stream is written down for no packet.
        let is_lonely = self.headers.len() == 1;
        for (index, stream) in self.streams[..count].iter().enumerate() {
            let HeaderLens { l2, l3, ipv6 } = self.headers[if is_lonely { 0 } else { usize::from(*stream) }];
            frames.request_udp_checksum(index, l2, l3, ipv6);
        }
    }

    /// Offers the built frames; what is not taken stays for the next poll.
    #[inline]
    fn offer(&mut self, now: Ticks) -> usize {
        let taken = self.io.transmit(&mut self.frames[self.current], self.built);
        if taken < self.built {
            self.plan.counters.queue_full.add(1);
            if taken == 0 {
                return 0;
            }
        }
        if self.lanes.len() == 1 {
            self.lanes[0].accepted += taken as u64;
            self.intervals.sent(self.built_at, 0, taken as u64);
        } else {
            let streams = &self.streams[self.built_first..self.built_first + taken];
            for run in streams.chunk_by(|a, b| a == b) {
                let (stream, count) = (usize::from(run[0]), run.len() as u64);
                self.lanes[stream].accepted += count;
                self.intervals.sent(self.built_at, stream, count);
            }
        }
        self.built -= taken;
        self.built_first += taken;
        let counters = &self.plan.counters;
        counters.accepted.add(taken as u64);
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
        self.build(take.count, now, take.lag_ticks);
        moved += self.offer(now);
        moved
    }

    fn renew(&mut self) {
        self.io.renew();
    }

    fn finish(self: Box<Self>) {
        let flows = |lane: &Lane| {
            // start, start + step, ... modulo `flows` repeats after flows / gcd(flows, step) packets.
            lane.accepted
                .min(u64::from(lane.flows / gcd(lane.flows, lane.flow_step)))
        };
        self.totals.fill(SendResult {
            accepted: self.lanes.iter().map(|lane| lane.accepted).collect(),
            flows: self.lanes.iter().map(flows).collect(),
            lane_base: self.plan.lane_base,
            unsent: self.built as u64,
        });
    }
}

/// Writes frames of one stream and one size: everything but sequence and flow stays in registers.
#[inline(always)]
#[allow(clippy::inline_always, reason = "per packet: must vanish into the loop")]
fn write_run<'b>(
    lane: &mut Lane,
    template: &Template,
    stamp: &BurstStamp,
    blanks: impl Iterator<Item = impl Blank<'b>>,
) {
    let Lane {
        mut sequence,
        mut flow,
        flow_step,
        flows,
        ..
    } = *lane;
    let len = template.frame_len();
    for blank in blanks {
        template.write(blank.write(len), stamp, sequence, flow);
        sequence += 1;
        flow += flow_step;
        if flow >= flows {
            flow -= flows;
        }
    }
    (lane.sequence, lane.flow) = (sequence, flow);
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is counted of looks at which so many were due and so many left: all bunches, and whole ones.
    fn counted(looks: &[(u64, usize)]) -> [Vec<(u64, u64)>; 2] {
        let (counters, mut catching_up) = (SendCounters::new(), CatchingUp::default());
        for &(backlog, count) in looks {
            let take = Allowance {
                count,
                backlog,
                ..Allowance::default()
            };
            catching_up.take(&take, &counters);
        }
        let of = |histogram: &SharedHistogram| histogram.snapshot().buckets().collect();
        [of(&counters.bunches), of(&counters.whole_bunches)]
    }

    #[test]
    fn a_bunch_counts_once_however_many_bursts_it_takes() {
        let [all, whole] = counted(&[(50, 32), (19, 19), (3, 3), (3, 3)]);
        assert_eq!(all, [(3, 2), (50, 1)]);
        assert_eq!(whole, all);
    }

    #[test]
    fn a_sender_that_is_kept_away_while_it_catches_up_sends_no_whole_bunch() {
        let [all, whole] = counted(&[(50, 32), (60, 32), (28, 28)]);
        assert_eq!(all, [(50, 1)]);
        assert!(whole.is_empty());
    }
}
