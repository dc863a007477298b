//! The receiving loop: every frame is verified, matched to its lane's sequence, timed, and counted once.

mod counters;
mod result;

pub use counters::ReceiveCounters;
pub use result::{LaneResult, ReceiveResult};

use std::sync::Arc;

use measure::{
    Clock, Hole, IntervalRing, IntervalWriter, Jitter, LaneUnion, Nanos, SendOrder, SequenceWindow,
    SharedHistogram, Ticks,
};
use wire::{
    Addresses, Class, Classifier, Ends, Foreign, MAX_FRAME_SIZE, Probe, Verify, classify, lag, whose_damage,
};

use crate::io::{Frames, Receive};
use crate::reflector_counters::Answers;
use crate::reply::ReplyQueue;
use crate::send::SendCounters;
use crate::slot::Fill;
use crate::{Phase, Task};

const TIME_MASK: u64 = (1 << 48) - 1;
/// A sender has told of all but the burst under way; more than that, for readers on other cores.
const AHEAD_MAX: u64 = 1 << 12;

/// Buffers that a receiving task may hold back.
pub const fn buffers_held(burst: usize) -> usize {
    burst
}

/// What a receiving task needs to know, besides its queue.
pub struct ReceivePlan {
    /// Lanes of the whole run: streams x transmit queues x ports.
    pub lanes: usize,
    /// Streams: lane modulo this is the stream.
    pub streams: usize,
    /// Sequence numbers that each lane's window remembers; a power of two.
    pub window: usize,
    /// Of each lane what all receive queues saw together; empty where there is one queue.
    pub unions: Arc<[Arc<LaneUnion>]>,
    /// Relative resolution of the whole-run latency histograms: 2^-bits.
    pub latency_bits: u32,
    /// The run id in the probe.
    pub run: u8,
    /// The number of the first lane in the probe: the others follow it, round 2^16.
    pub first_lane: u16,
    /// Probes sent before this belong to an earlier run.
    pub start: Nanos,
    /// Probes older than this are late, ns.
    pub drain_ns: u64,
    /// How much of a frame is checked.
    pub verify: Verify,
    /// The ends of all streams: what is damaged and shows none of them is a stranger's.
    pub ends: Arc<[Ends]>,
    /// Packets a burst.
    pub burst: usize,
    /// Converts ticks into time.
    pub clock: Clock,
    /// Reads the time stamp counter: a frame's time of arrival is taken right after the queue gave it.
    pub tsc: fn() -> Ticks,
    /// Where this queue's per-interval counts go.
    pub intervals: Arc<IntervalRing>,
    /// What it publishes.
    pub counters: Arc<ReceiveCounters>,
    /// Whose ARP, NDP and echo requests are answered, and the way out for the answers.
    pub me: Addresses,
    /// See `me`.
    pub replies: Arc<ReplyQueue>,
    /// Where the far side's answers go.
    pub answers: Arc<Answers>,
    /// MAC addresses of the run's ports, where they may share a link; else empty. A probe that comes from one of them was
    /// heard as it was sent.
    pub own_macs: Arc<[[u8; 6]]>,
    /// How many holes are kept; 0 where the queue sees only some packets of a lane, and every burst would have one.
    pub holes_max: usize,
    /// The senders of the run, in the order of their lanes: what they have not sent yet cannot come back.
    pub senders: Vec<Arc<SendCounters>>,
}

impl ReceivePlan {
    /// Which lane it is that a probe names.
    #[inline]
    fn lane(&self, in_probe: u16) -> usize {
        usize::from(in_probe.wrapping_sub(self.first_lane))
    }

    /// Whether the sender of its lane has come so far.
    #[cold]
    fn was_sent(&self, run: &Run) -> bool {
        self.senders
            .get(self.lane(run.lane) / self.streams)
            .is_none_or(|sender| run.first + run.count <= sender.intended.get() + AHEAD_MAX)
    }
}

struct Lane {
    window: SequenceWindow,
    order: SendOrder,
    jitter: Jitter,
    received: u64,
    duplicate: u64,
    reordered: u64,
    extent_max: u64,
    late: u64,
    too_old: u64,
}

/// Consecutive probes of one lane with one time stamp: the books are made once for all of them.
#[derive(Clone, Copy)]
struct Run {
    lane: u16,
    lag: u8,
    time: u64,
    first: u64,
    count: u64,
}

impl Run {
    #[inline]
    fn of(probe: &Probe) -> Self {
        Self {
            lane: probe.lane,
            lag: probe.lag,
            time: probe.time_ns,
            first: probe.sequence,
            count: 1,
        }
    }
}

/// What is known of the run so far: everything but the queue itself.
struct Books {
    plan: ReceivePlan,
    lanes: Vec<Lane>,
    latency: Vec<SharedHistogram>,
    latency_scheduled: SharedHistogram,
    intervals: IntervalWriter,
    clock_backwards: u64,
    contradictions: u64,
    as_sent: u64,
    holes: Vec<Hole>,
}

/// Receives on one queue.
pub struct ReceiveTask<R: Receive> {
    io: R,
    frames: R::Frames,
    classifier: Classifier,
    /// Room for all of a chained frame.
    whole: Box<[u8]>,
    books: Books,
    totals: Fill<ReceiveResult>,
}

impl<R: Receive> ReceiveTask<R> {
    /// A task that receives on `io` as planned, and leaves its totals in `totals`.
    pub fn new(io: R, plan: ReceivePlan, totals: Fill<ReceiveResult>) -> Self {
        let lane = |lane: usize| Lane {
            window: SequenceWindow::new(plan.window).shared(plan.unions.get(lane).cloned()),
            order: SendOrder::new(plan.start),
            jitter: Jitter::default(),
            received: 0,
            duplicate: 0,
            reordered: 0,
            extent_max: 0,
            late: 0,
            too_old: 0,
        };
        Self {
            frames: io.batch(),
            classifier: Classifier::new(plan.run, plan.verify),
            whole: vec![0; MAX_FRAME_SIZE].into_boxed_slice(),
            io,
            totals,
            books: Books {
                lanes: (0..plan.lanes).map(lane).collect(),
                latency: (0..plan.streams)
                    .map(|_| SharedHistogram::new(plan.latency_bits))
                    .collect(),
                latency_scheduled: SharedHistogram::new(10),
                intervals: IntervalWriter::new(Arc::clone(&plan.intervals)),
                clock_backwards: 0,
                contradictions: 0,
                as_sent: 0,
                holes: Vec::with_capacity(plan.holes_max),
                plan,
            },
        }
    }

    /// `SHARES`: whether ports of the run may share a link, and each probe is asked where it comes from.
    #[inline]
    fn account_burst<const SHARES: bool>(&mut self, at: Nanos) {
        let Self {
            frames,
            classifier,
            whole,
            books,
            ..
        } = self;
        let count = frames.len();
        let mut run = Run {
            lane: 0,
            lag: 0,
            time: 0,
            first: 0,
            count: 0,
        };
        let mut bytes = 0;
        // A copy on the stack: nothing that is called here can change it, so it stays in registers.
        let mut judge = *classifier;
        let mut each = frames.each();
        while let Some((frame, whole_len)) = each.next() {
            bytes += whole_len as u64;
            let Some(class) = judge.classify_first(frame, whole_len) else {
                let all = frames.copy_whole(count - 1 - each.len(), whole);
                run = books.account_chained(run, all, at);
                continue;
            };
            if SHARES && matches!(class, Class::Probe(_)) {
                books.hear(frame);
            }
            match class {
                Class::Probe(probe) if continues(&run, &probe) => run.count += 1,
                Class::Probe(probe) => {
                    if run.count > 0 {
                        books.account(&run, at);
                    }
                    run = Run::of(&probe);
                }
                other => books.account_other(frame, &other, at),
            }
        }
        *classifier = judge;
        if run.count > 0 {
            books.account(&run, at);
        }
        books.plan.counters.frames.add(count as u64);
        books.plan.counters.bytes.add(bytes);
    }

    /// Before the run: old frames go, but the neighbours are answered already.
    #[cold]
    fn flush(&mut self) {
        let plan = &self.books.plan;
        for index in 0..self.frames.len() {
            if self.frames.is_segmented(index) {
                continue;
            }
            let frame = self.frames.bytes(index);
            match classify(frame, plan.run, Verify::None) {
                Class::Foreign(Foreign::Arp | Foreign::Ndp) => {
                    plan.replies.answer(frame, &plan.me);
                }
                Class::Foreign(Foreign::ReflectorCounters) => plan.answers.take_from(frame),
                _ => {}
            }
        }
        plan.counters.flushed.add(self.frames.len() as u64);
    }
}

impl Books {
    /// Counts a probe that comes from one of our own ports, and was sent to none of them: a bystander heard it.
    #[inline]
    fn hear(&mut self, frame: &[u8]) {
        let is_own = |at: usize| {
            let own = |mac: &[u8; 6]| frame.get(at..at + 6) == Some(mac);
            self.plan.own_macs.iter().any(own)
        };
        self.as_sent += u64::from(is_own(6) && !is_own(0));
    }

    /// Books a run of probes.
    #[inline]
    fn account(&mut self, run: &Run, at: Nanos) {
        let counters = &*self.plan.counters;
        let number = self.plan.lane(run.lane);
        let Some(lane) = self.lanes.get_mut(number) else {
            counters.foreign[Foreign::OtherRun.index()].add(run.count);
            return;
        };
        // 48 bits of nanoseconds are 78 hours: the age is exact for anything younger than half of that.
        let mut age = at.0.wrapping_sub(run.time) & TIME_MASK;
        let is_backwards = age > TIME_MASK / 2;
        if is_backwards {
            self.clock_backwards += run.count;
            age = 0;
        }
        let sent_at = Nanos(at.0.wrapping_sub(age));
        if sent_at.0 < self.plan.start.0 {
            counters.stale.add(run.count);
            return;
        }
        if !lane.order.goes_with(run.first, run.time) {
            self.contradictions += 1;
        }
        if lane.window.is_ahead(run.first) {
            if !self.plan.was_sent(run) {
                counters.never_sent.add(run.count);
                return;
            }
            if self.holes.len() < self.plan.holes_max {
                self.holes.push(Hole {
                    lane: number as u16,
                    first: lane.window.next_expected(),
                    count: run.first.wrapping_sub(lane.window.next_expected()) & TIME_MASK,
                    at,
                });
            }
        }
        let outcome = lane.window.record(run.first, run.count);
        let stream = number % self.plan.streams;
        lane.duplicate += outcome.duplicate;
        lane.too_old += outcome.too_old;
        if age > self.plan.drain_ns {
            lane.late += outcome.fresh;
            counters.late.add(outcome.fresh);
            counters.duplicate.add(outcome.duplicate);
            counters.too_old.add(outcome.too_old);
            if outcome.duplicate > 0 {
                // The row of its original may be out: it is in that of its arrival.
                self.intervals.duplicate(at, stream, outcome.duplicate);
            }
            return;
        }
        lane.received += outcome.fresh;
        lane.reordered += outcome.reordered;
        lane.extent_max = lane.extent_max.max(outcome.extent_max);
        counters.received.add(outcome.fresh);
        if outcome.fresh != run.count {
            counters.duplicate.add(outcome.duplicate);
            counters.too_old.add(outcome.too_old);
        }
        counters.reordered.add(outcome.reordered);
        if is_backwards {
            self.intervals.untimed(sent_at, stream, outcome.fresh);
        } else if outcome.fresh > 0 {
            lane.jitter.record(age, outcome.fresh);
            self.latency[stream].record(age, outcome.fresh);
            self.latency_scheduled
                .record(age + lag::decode(run.lag), outcome.fresh);
            self.intervals.received(sent_at, stream, age, outcome.fresh);
        }
        if outcome.duplicate > 0 {
            self.intervals.duplicate(sent_at, stream, outcome.duplicate);
        }
        if outcome.reordered > 0 {
            self.intervals.reordered(sent_at, stream, outcome.reordered);
        }
    }

    /// Books a chained frame by all its bytes, which are `None` where it is longer than any probe, after the run of probes
    /// before it. Returns the run from here on.
    #[cold]
    #[inline(never)]
    fn account_chained(&mut self, run: Run, frame: Option<&[u8]>, at: Nanos) -> Run {
        let Some(frame) = frame else {
            self.plan.counters.oversized.add(1);
            return run;
        };
        let class = classify(frame, self.plan.run, self.plan.verify);
        if matches!(class, Class::Probe(_)) {
            self.hear(frame);
        }
        match class {
            Class::Probe(probe) if continues(&run, &probe) => Run {
                count: run.count + 1,
                ..run
            },
            Class::Probe(probe) => {
                if run.count > 0 {
                    self.account(&run, at);
                }
                Run::of(&probe)
            }
            other => {
                self.account_other(frame, &other, at);
                run
            }
        }
    }

    /// Books a frame that is no sound probe, and answers it where a host would.
    #[cold]
    fn account_other(&mut self, frame: &[u8], class: &Class, at: Nanos) {
        let counters = &*self.plan.counters;
        match class {
            Class::Corrupt => match whose_damage(frame, self.plan.run, &self.plan.ends) {
                None => {
                    counters.corrupt.add(1);
                    self.intervals.corrupt(at, 1);
                }
                Some(kind) => counters.foreign[kind.index()].add(1),
            },
            Class::Foreign(kind) => {
                counters.foreign[kind.index()].add(1);
                if matches!(kind, Foreign::Arp | Foreign::Ndp | Foreign::IcmpEcho)
                    && self.plan.replies.answer(frame, &self.plan.me)
                {
                    counters.answered.add(1);
                }
                if *kind == Foreign::ReflectorCounters {
                    self.plan.answers.take_from(frame);
                }
            }
            Class::Probe(_) => {}
        }
    }
}

#[inline]
fn continues(run: &Run, probe: &Probe) -> bool {
    run.count > 0
        && probe.sequence == run.first + run.count
        && probe.time_ns == run.time
        && probe.lane == run.lane
        && probe.lag == run.lag
}

impl<R: Receive> Task for ReceiveTask<R> {
    #[inline]
    fn poll(&mut self, now: Ticks, phase: Phase) -> usize {
        self.books.intervals.publish(self.books.plan.clock.ns(now));
        let count = self.io.receive(&mut self.frames, self.books.plan.burst);
        if count == 0 {
            return 0;
        }
        let at = self.books.plan.clock.ns((self.books.plan.tsc)());
        // A worker that was stopped before it received, after it had looked at the phase, finds frames of the run.
        if phase == Phase::Warm && at < self.books.plan.start {
            self.flush();
        } else if self.books.plan.own_macs.is_empty() {
            self.account_burst::<false>(at);
        } else {
            self.account_burst::<true>(at);
        }
        self.frames.clear();
        count
    }

    fn renew(&mut self) {
        self.io.renew();
    }

    fn finish(mut self: Box<Self>) {
        for lane in &mut self.books.lanes {
            lane.window.end();
        }
        let lane = |lane: &Lane| LaneResult {
            received: lane.received,
            duplicate: lane.duplicate,
            reordered: lane.reordered,
            extent_max: lane.extent_max,
            late: lane.late,
            too_old: lane.too_old,
            jitter: lane.jitter,
            beyond: lane.window.next_expected(),
        };
        self.totals.fill(ReceiveResult {
            lanes: self.books.lanes.iter().map(lane).collect(),
            latency: self.books.latency.iter().map(SharedHistogram::snapshot).collect(),
            latency_scheduled: self.books.latency_scheduled.snapshot(),
            clock_backwards: self.books.clock_backwards,
            contradictions: self.books.contradictions,
            as_sent: self.books.as_sent,
            holes: self.books.holes,
        });
    }
}
