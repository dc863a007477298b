//! What is known of the run so far: everything but the queue itself.

use std::sync::Arc;

use measure::{
    HistogramSet, Hole, IntervalWriter, Jitter, Nanos, Outcome, Row, SendOrder, SequenceWindow,
    SharedHistogram, Ticks,
};
use wire::{Class, Foreign, Probe, classify, lag, whose_damage};

use super::{LaneResult, ReceiveCounters, ReceivePlan, ReceiveResult};

const LOW_48: u64 = (1 << 48) - 1;

/// Two lines of the cache: a lane is looked at once a run of packets, which may be one packet.
#[repr(align(64))]
struct Lane {
    duplicate: u64,
    reordered: u64,
    extent_max: u64,
    late: u64,
    too_old: u64,
    window: SequenceWindow,
    order: SendOrder,
    jitter: Jitter,
    received: u64,
}

const _: () = assert!(size_of::<Lane>() == 128);

impl Lane {
    fn new(number: usize, plan: &ReceivePlan) -> Self {
        Self {
            duplicate: 0,
            reordered: 0,
            extent_max: 0,
            late: 0,
            too_old: 0,
            window: SequenceWindow::new(plan.window).shared(plan.unions.get(number).cloned()),
            order: SendOrder::new(plan.start),
            jitter: Jitter::default(),
            received: 0,
        }
    }

    /// Records a run that may begin with any number; `None` if its sender has not come so far. And whether it contradicts what
    /// came before.
    fn record(
        &mut self,
        number: usize,
        run: &Run,
        plan: &ReceivePlan,
        holes: &mut Vec<Hole>,
        at: Nanos,
    ) -> (Option<Outcome>, bool) {
        let sequence = run.sequence();
        let mut order = self.order;
        let contradicts = !order.goes_with(sequence, run.time());
        if self.window.is_ahead(sequence) {
            if !plan.was_sent(run) {
                plan.counters.never_sent.add(run.count);
                // Its number is none of the lane's: what is expected is above all others.
                return (None, contradicts);
            }
            if holes.len() < plan.holes_max {
                let next = self.window.next_expected();
                holes.push(Hole {
                    lane: number as u16,
                    first: next,
                    count: sequence.wrapping_sub(next) & LOW_48,
                    at,
                });
            }
        }
        self.order = order;
        let outcome = self.window.record(sequence, run.count);
        self.duplicate += outcome.duplicate;
        self.too_old += outcome.too_old;
        plan.counters.duplicate.add(outcome.duplicate);
        plan.counters.too_old.add(outcome.too_old);
        (Some(outcome), contradicts)
    }

    /// Books copies, and what came out of order.
    fn account_disorder(
        &mut self,
        outcome: &Outcome,
        stream: usize,
        row: Row<'_>,
        counters: &ReceiveCounters,
    ) {
        row.duplicate(stream, outcome.duplicate);
        if outcome.reordered > 0 {
            self.reordered += outcome.reordered;
            self.extent_max = self.extent_max.max(outcome.extent_max);
            counters.reordered.add(outcome.reordered);
            row.reordered(stream, outcome.reordered);
        }
    }

    fn result(&self) -> LaneResult {
        LaneResult {
            received: self.received,
            duplicate: self.duplicate,
            reordered: self.reordered,
            extent_max: self.extent_max,
            late: self.late,
            too_old: self.too_old,
            jitter: self.jitter,
            beyond: self.window.next_expected(),
        }
    }
}

/// Consecutive probes of one lane with one time stamp: the books are made once for all of them.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// The last sequence number above the lane.
    last: u64,
    /// The lag above the time.
    stamp: u64,
    pub(super) count: u64,
}

/// From one sequence number to the next in [`Run::last`], which goes round as they do.
const NEXT: u64 = 1 << 16;

impl Run {
    /// No probe goes on with it.
    pub(super) const NONE: Self = Self {
        last: 0,
        stamp: u64::MAX,
        count: 0,
    };

    #[inline]
    pub(super) fn of(probe: &Probe) -> Self {
        Self {
            last: probe.sequence << 16 | u64::from(probe.lane),
            stamp: u64::from(probe.lag) << 48 | probe.time_ns,
            count: 1,
        }
    }

    /// Takes one more probe into the run, if it is the next.
    #[inline]
    pub(super) fn takes(&mut self, probe: &Run) -> bool {
        if self.last.wrapping_add(NEXT) != probe.last || self.stamp != probe.stamp {
            return false;
        }
        self.last = probe.last;
        self.count += 1;
        true
    }

    /// The lane, as the probe names it.
    #[inline]
    pub(super) fn lane(&self) -> u16 {
        self.last as u16
    }

    /// The first sequence number.
    #[inline]
    pub(super) fn sequence(&self) -> u64 {
        self.last.wrapping_sub((self.count - 1) * NEXT) >> 16
    }

    /// When they were sent, ns.
    #[inline]
    fn time(&self) -> u64 {
        self.stamp & LOW_48
    }

    #[inline]
    fn lag(&self) -> u8 {
        (self.stamp >> 48) as u8
    }
}

/// What the time stamp of probes says: it is worked out once for all that follow one another with it, of whichever lanes.
struct Stamp {
    /// See [`Run::stamp`].
    of: u64,
    lag: u8,
    sent_at: Nanos,
    age: u64,
    age_is: Age,
    /// It came before it was sent.
    is_backwards: bool,
}

/// What an age says of a probe.
#[derive(Clone, Copy, PartialEq)]
enum Age {
    /// How long it was under way.
    Latency,
    /// It was longer under way than anybody waited.
    Late,
    /// Nothing: it came before it was sent.
    Unknown,
    /// It was sent before the run began.
    Stale,
}

/// The books of one receive queue.
pub(super) struct Books {
    pub(super) plan: ReceivePlan,
    lanes: Vec<Lane>,
    /// The stream of each lane: a division a run would cost more.
    stream_of: Box<[u16]>,
    latency: HistogramSet,
    latency_scheduled: SharedHistogram,
    intervals: IntervalWriter,
    clock_backwards: u64,
    contradictions: u64,
    as_sent: u64,
    holes: Vec<Hole>,
}

impl Books {
    pub(super) fn new(plan: ReceivePlan) -> Self {
        Self {
            lanes: (0..plan.lanes).map(|lane| Lane::new(lane, &plan)).collect(),
            stream_of: (0..plan.lanes).map(|lane| (lane % plan.streams) as u16).collect(),
            latency: HistogramSet::new(plan.streams, plan.latency_bits),
            latency_scheduled: SharedHistogram::new(10),
            intervals: IntervalWriter::new(Arc::clone(&plan.intervals)),
            clock_backwards: 0,
            contradictions: 0,
            as_sent: 0,
            holes: Vec::with_capacity(plan.holes_max),
            plan,
        }
    }

    /// Tells the interval that goes on at `now`.
    #[inline]
    pub(super) fn publish(&mut self, now: Ticks) {
        self.intervals.publish(self.plan.clock.ns(now));
    }

    /// Closes them.
    pub(super) fn end(mut self) -> ReceiveResult {
        for lane in &mut self.lanes {
            lane.window.end();
        }
        ReceiveResult {
            lanes: self.lanes.iter().map(Lane::result).collect(),
            latency: self.latency.histograms(),
            latency_scheduled: self.latency_scheduled.snapshot(),
            clock_backwards: self.clock_backwards,
            contradictions: self.contradictions,
            as_sent: self.as_sent,
            holes: self.holes,
        }
    }

    /// Counts a probe that comes from one of our own ports, and was sent to none of them: a bystander heard it.
    #[inline]
    pub(super) fn hear(&mut self, frame: &[u8]) {
        let is_own = |at: usize| {
            let own = |mac: &[u8; 6]| frame.get(at..at + 6) == Some(mac);
            self.plan.own_macs.iter().any(own)
        };
        self.as_sent += u64::from(is_own(6) && !is_own(0));
    }

    /// Books runs of probes that came in one burst.
    #[inline]
    pub(super) fn account(&mut self, mut runs: &[Run], at: Nanos) {
        while let Some(first) = runs.first() {
            let stamp = self.stamp(first, at);
            runs = if stamp.age_is == Age::Latency {
                self.account_timed(runs, &stamp, at)
            } else {
                self.account_untimed(runs, &stamp, at)
            };
        }
    }

    /// Books the first runs, which have that stamp, whose age is a latency. Returns the others.
    #[inline]
    fn account_timed<'r>(&mut self, runs: &'r [Run], stamp: &Stamp, at: Nanos) -> &'r [Run] {
        let age = stamp.age;
        let mut latency = self.latency.value(age);
        let row = self.intervals.row(stamp.sent_at, 0);
        let (has_room, row) = (row.is_some(), row.unwrap_or_default());
        let (mut timed, mut copies) = (0, 0);
        let mut rest = runs.iter();
        while let Some(run) = rest.as_slice().first().filter(|run| run.stamp == stamp.of) {
            rest.next();
            let number = self.plan.lane(run.lane());
            let (Some(lane), Some(stream)) = (self.lanes.get_mut(number), self.stream_of.get(number)) else {
                self.plan.counters.foreign[Foreign::OtherRun.index()].add(run.count);
                continue;
            };
            let stream = usize::from(*stream);
            let mut fresh = run.count;
            if lane.window.record_expected(run.sequence(), run.count) {
                if !lane.order.goes_on_with(run.sequence(), run.time()) {
                    self.contradictions += 1;
                }
            } else {
                let (outcome, contradicts) = lane.record(number, run, &self.plan, &mut self.holes, at);
                self.contradictions += u64::from(contradicts);
                let Some(outcome) = outcome else { continue };
                lane.account_disorder(&outcome, stream, row, &self.plan.counters);
                copies += outcome.duplicate;
                fresh = outcome.fresh;
                if fresh == 0 {
                    continue;
                }
            }
            lane.received += fresh;
            lane.jitter.record(age, fresh);
            latency.record(stream, fresh);
            row.received(stream, age, fresh);
            timed += fresh;
        }
        if timed > 0 {
            self.plan.counters.received.add(timed);
            self.latency_scheduled.record(age + lag::decode(stamp.lag), timed);
            row.timed(age, timed);
        }
        if !has_room {
            self.intervals.outside(stamp.sent_at, timed + copies);
        }
        rest.as_slice()
    }

    /// Books the first runs, which have that stamp, whose age is none. Returns the others.
    #[cold]
    fn account_untimed<'r>(&mut self, runs: &'r [Run], stamp: &Stamp, at: Nanos) -> &'r [Run] {
        let counters = &*self.plan.counters;
        let mut rest = runs.iter();
        while let Some(run) = rest.as_slice().first().filter(|run| run.stamp == stamp.of) {
            rest.next();
            let number = self.plan.lane(run.lane());
            let (Some(lane), Some(stream)) = (self.lanes.get_mut(number), self.stream_of.get(number)) else {
                counters.foreign[Foreign::OtherRun.index()].add(run.count);
                continue;
            };
            let stream = usize::from(*stream);
            if stamp.is_backwards {
                self.clock_backwards += run.count;
            }
            if stamp.age_is == Age::Stale {
                counters.stale.add(run.count);
                continue;
            }
            let (outcome, contradicts) = lane.record(number, run, &self.plan, &mut self.holes, at);
            self.contradictions += u64::from(contradicts);
            let Some(outcome) = outcome else { continue };
            // What is late, or a copy of it, is in the row of its arrival: that of its sending may be out.
            let in_row = outcome.duplicate
                + if stamp.age_is == Age::Late {
                    0
                } else {
                    outcome.fresh
                };
            let row = self.intervals.row(at, in_row).unwrap_or_default();
            if stamp.age_is == Age::Late {
                row.duplicate(stream, outcome.duplicate);
                lane.late += outcome.fresh;
                counters.late.add(outcome.fresh);
            } else {
                lane.account_disorder(&outcome, stream, row, counters);
                lane.received += outcome.fresh;
                counters.received.add(outcome.fresh);
                row.untimed(stream, outcome.fresh);
            }
        }
        rest.as_slice()
    }

    /// What the time of a run says.
    #[inline]
    fn stamp(&self, run: &Run, at: Nanos) -> Stamp {
        // 48 bits of nanoseconds are 78 hours: the age is exact for anything younger than half of that.
        let mut age = at.0.wrapping_sub(run.time()) & LOW_48;
        let is_backwards = age > LOW_48 / 2;
        if is_backwards {
            age = 0;
        }
        let sent_at = Nanos(at.0.wrapping_sub(age));
        let age_is = if sent_at.0 < self.plan.start.0 {
            Age::Stale
        } else if is_backwards {
            Age::Unknown
        } else if age > self.plan.drain_ns {
            Age::Late
        } else {
            Age::Latency
        };
        Stamp {
            of: run.stamp,
            lag: run.lag(),
            sent_at,
            age,
            age_is,
            is_backwards,
        }
    }

    /// The probe in a chained frame, by all its bytes, which are `None` where it is longer than any probe; what is none is
    /// booked.
    #[cold]
    #[inline(never)]
    pub(super) fn account_chained(&mut self, frame: Option<&[u8]>, at: Nanos) -> Option<Probe> {
        let Some(frame) = frame else {
            self.plan.counters.oversized.add(1);
            return None;
        };
        match classify(frame, self.plan.run, self.plan.verify) {
            Class::Probe(probe) => {
                self.hear(frame);
                Some(probe)
            }
            other => {
                self.account_other(frame, &other, at);
                None
            }
        }
    }

    /// Books a frame that is no sound probe, and answers it where a host would.
    #[cold]
    pub(super) fn account_other(&mut self, frame: &[u8], class: &Class, at: Nanos) {
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
