//! What is known of the run so far: everything but the queue itself.

use std::sync::Arc;

use measure::{
    HistogramSet, Hole, IntervalWriter, Jitter, Nanos, SendOrder, SequenceWindow, SharedHistogram, Ticks,
};
use wire::{Class, Foreign, Probe, classify, lag, whose_damage};

use super::{LaneResult, ReceivePlan, ReceiveResult};

const TIME_MASK: u64 = (1 << 48) - 1;

/// Two lines of the cache: a lane is looked at once a run of packets, which may be one packet.
#[repr(align(64))]
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

const _: () = assert!(size_of::<Lane>() == 128);

/// Consecutive probes of one lane with one time stamp: the books are made once for all of them.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) lane: u16,
    pub(super) lag: u8,
    pub(super) time: u64,
    pub(super) first: u64,
    pub(super) count: u64,
}

impl Run {
    #[inline]
    pub(super) fn of(probe: &Probe) -> Self {
        Self {
            lane: probe.lane,
            lag: probe.lag,
            time: probe.time_ns,
            first: probe.sequence,
            count: 1,
        }
    }
}

/// New probes with one time stamp, of whichever lanes: what does not go by streams is booked once for all of them.
#[derive(Clone, Copy, Default)]
struct Timed {
    sent_at: Nanos,
    age: u64,
    lag: u8,
    count: u64,
    /// Those that an interval had room for.
    in_rows: u64,
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
    /// Those that are not booked yet: none between two bursts.
    timed: Timed,
    clock_backwards: u64,
    contradictions: u64,
    as_sent: u64,
    holes: Vec<Hole>,
}

impl Books {
    pub(super) fn new(plan: ReceivePlan) -> Self {
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
            lanes: (0..plan.lanes).map(lane).collect(),
            stream_of: (0..plan.lanes).map(|lane| (lane % plan.streams) as u16).collect(),
            latency: HistogramSet::new(plan.streams, plan.latency_bits),
            latency_scheduled: SharedHistogram::new(10),
            intervals: IntervalWriter::new(Arc::clone(&plan.intervals)),
            timed: Timed::default(),
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
        ReceiveResult {
            lanes: self.lanes.iter().map(lane).collect(),
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

    /// Books a run of probes.
    #[inline]
    pub(super) fn account(&mut self, run: &Run, at: Nanos) {
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
        let stream = usize::from(self.stream_of[number]);
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
        if outcome.fresh != run.count {
            counters.duplicate.add(outcome.duplicate);
            counters.too_old.add(outcome.too_old);
        }
        if outcome.reordered > 0 {
            counters.reordered.add(outcome.reordered);
        }
        if is_backwards {
            counters.received.add(outcome.fresh);
            self.intervals.untimed(sent_at, stream, outcome.fresh);
        } else if outcome.fresh > 0 {
            lane.jitter.record(age, outcome.fresh);
            self.latency.record(stream, age, outcome.fresh);
            let timed = &self.timed;
            if (timed.sent_at, timed.age, timed.lag) != (sent_at, age, run.lag) {
                self.settle();
                self.timed = Timed {
                    sent_at,
                    age,
                    lag: run.lag,
                    ..Timed::default()
                };
            }
            self.timed.count += outcome.fresh;
            self.timed.in_rows += self.intervals.received(sent_at, stream, age, outcome.fresh);
        }
        if outcome.duplicate > 0 {
            self.intervals.duplicate(sent_at, stream, outcome.duplicate);
        }
        if outcome.reordered > 0 {
            self.intervals.reordered(sent_at, stream, outcome.reordered);
        }
    }

    /// Books what was only added up so far; at the end of every burst.
    #[inline]
    pub(super) fn settle(&mut self) {
        let Timed {
            sent_at,
            age,
            lag,
            count,
            in_rows,
        } = std::mem::take(&mut self.timed);
        if count > 0 {
            self.plan.counters.received.add(count);
            self.latency_scheduled.record(age + lag::decode(lag), count);
            self.intervals.timed(sent_at, age, in_rows);
        }
    }

    /// Books a chained frame by all its bytes, which are `None` where it is longer than any probe, after the run of probes
    /// before it. Returns the run from here on.
    #[cold]
    #[inline(never)]
    pub(super) fn account_chained(&mut self, run: Run, frame: Option<&[u8]>, at: Nanos) -> Run {
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

#[inline]
pub(super) fn continues(run: &Run, probe: &Probe) -> bool {
    run.count > 0
        && probe.sequence == run.first + run.count
        && probe.time_ns == run.time
        && probe.lane == run.lane
        && probe.lag == run.lag
}
