//! A send run under way: its intervals, its phases, what it tells, and its end.

use anyhow::Result;
use measure::interval::LATENCY_SUB_BITS;
use measure::verdict::OFFERED_TOLERANCE;
use measure::{Histogram, IntervalCollector, IntervalRow, Nanos, Percentiles, Ticks};
use report::published::{self, Buckets, State};
use report::rundir::RunDir;

use super::far::{FarSides, Told};
use super::ledger::Results;
use super::load::Load;
use super::making;
use super::phases::{self, Drain};
use super::wiring::{Mark, ReceiveSide, Wiring};
use super::{status, summary};
use crate::explain::Received;
use crate::plan::SendPlan;
use crate::run::clock::now;
use crate::run::close::Ending;
use crate::run::control::Look;
use crate::run::departure::{Departure, LOOK_MIN};
use crate::run::open::OpenPort;
use crate::run::refusing::Refusing;
use crate::run::stage::Stage;
use crate::run::workers::STALL_NS;
use crate::run::{Active, Next};

/// Near its end a run is looked at this often.
const SOON_NS: u64 = 5_000_000;

/// How much of the latency so far is shown at once, ns, where intervals are shorter.
const RECENT_NS: u64 = 100_000_000;

/// A send run whose tasks are on their queues.
pub struct ActiveSend {
    pub plan: SendPlan,
    pub loads: Vec<Load>,
    pub wiring: Wiring,
    pub told: Told,
    /// When sending ended.
    pub stopped: Nanos,
    /// How long after the end of its time that was, ns; 0 where that is nothing to speak of.
    pub late_ns: u64,
    /// How long after the end, or the last packet, something waited below a port for sure, ns; and for how long nobody looked then.
    pub held_ns: u64,
    pub unseen_ns: u64,
    /// When nobody waited for more packets to leave.
    over: Nanos,
    pub departure: Departure,
    far: FarSides,
    phase: Phase,
    /// Queue by queue: one that takes nothing stands out beside those that go on.
    refusing: Vec<Refusing>,
    rows: Option<report::IntervalWriter>,
    /// The rows, and what is in none of them.
    pub collector: IntervalCollector,
    /// Packets missing from judged intervals.
    judged_lost: u64,
    /// Latencies of judged intervals, and of the last one of them.
    latency: Histogram,
    latency_last: Percentiles,
}

enum Phase {
    Sending,
    Draining(Drain),
}

impl ActiveSend {
    /// Makes the tasks of `plan`, and opens the files that are streamed.
    pub fn wire<'p, 'e: 'p>(
        plan: SendPlan,
        loads: Vec<Load>,
        mark: Mark,
        stage: &mut Stage<'_, 'p, 'e>,
    ) -> Result<Self> {
        let wiring = making::wire(&plan, &loads, mark, stage)?;
        let names: Vec<String> = plan.streams.iter().map(|stream| stream.name.clone()).collect();
        Ok(Self {
            far: FarSides::new(&plan, &loads, &wiring)?,
            rows: Some(report::IntervalWriter::create(stage.dir, &names, !plan.tx_only)),
            collector: IntervalCollector::new(wiring.rings.clone(), plan.drain_ns),
            told: Told::default(),
            stopped: Nanos(0),
            over: Nanos(u64::MAX),
            late_ns: 0,
            held_ns: 0,
            unseen_ns: 0,
            departure: Departure::default(),
            phase: Phase::Sending,
            refusing: wiring.send.iter().map(|_| Refusing::default()).collect(),
            judged_lost: 0,
            latency: Histogram::new(LATENCY_SUB_BITS),
            latency_last: Percentiles::default(),
            plan,
            loads,
            wiring,
        })
    }

    /// How long workers had been away when the drain ended for that, ns.
    pub fn away_ns(&self) -> u64 {
        match &self.phase {
            Phase::Sending => 0,
            Phase::Draining(drain) => drain.away_ns(),
        }
    }

    /// How long it sent, s.
    pub fn seconds(&self) -> f64 {
        let start = self.wiring.times.clock.ns(self.wiring.times.start);
        (self.stopped.since(start) as f64 / 1e9).max(1e-9)
    }

    fn write(&mut self, row: &IntervalRow) {
        if !self.plan.tx_only {
            self.judged_lost += row.total().lost();
        }
        self.latency.merge(&row.latency);
        self.latency_last = row.percentiles();
        if let Some(rows) = &mut self.rows {
            rows.push(row);
        }
    }

    /// Latencies of what just ended, an interval or as many short ones as are looked at together: shown before they are final, or
    /// of the last interval that is.
    fn recent_latency(&self, look: &Look<'_, '_>) -> Percentiles {
        let ended = look.elapsed().as_nanos() as u64 / self.plan.interval_ns;
        let several = (RECENT_NS / self.plan.interval_ns).max(1);
        let first = ended.saturating_sub(several).max(self.collector.next_index());
        if self.plan.tx_only {
            return Percentiles::default();
        }
        // With a drain that is shorter than an interval what ended is final by now.
        if first >= ended {
            return self.latency_last;
        }
        let mut latency = Histogram::new(LATENCY_SUB_BITS);
        (first..ended).for_each(|index| latency.merge(&self.collector.collect(index).latency));
        Percentiles::from(&latency)
    }

    /// How long it will last, s, and how much of it is done.
    fn done(&self, elapsed_s: f64) -> (Option<f64>, Option<f64>) {
        let planned_s = self.plan.duration_ns.map(|ns| ns as f64 / 1e9);
        let by_time = planned_s.map(|planned| elapsed_s / planned);
        let accepted = || self.wiring.sent(|counters| counters.accepted.get()) as f64;
        let by_count = self.plan.count.map(|count| accepted() / count as f64);
        let done = by_time.into_iter().chain(by_count).reduce(f64::max);
        (planned_s, done.map(|done| done.min(1.0)))
    }

    /// When the driver took the last packet that was due before the end. What it took when nobody waited for it was not sent until
    /// then; interrupted before its first packet it has no last one.
    fn taken_until(&self) -> Nanos {
        if self.wiring.sent(|counters| counters.accepted.get()) == 0 {
            return self.stopped;
        }
        let last = self.wiring.times.clock.ns(self.wiring.last_sent());
        last.min(self.over).after(1).max(self.stopped)
    }

    /// When the last packet left that was due before the end, and by how much later than the end that was, ns.
    fn sent_until(&self) -> (Nanos, u64) {
        let left = self.departure.left_at().map(|at| self.wiring.times.clock.ns(at));
        let until = self.taken_until().max(left.unwrap_or(Nanos(0)));
        let late_ns = until.since(self.stopped);
        (self.stopped.after(late_ns), late_ns)
    }

    /// One look: what comes next.
    fn step_on(&mut self, look: &Look<'_, '_>) -> Next {
        match &mut self.phase {
            Phase::Sending if !phases::sending_is_over(&self.plan, &self.wiring, look) => Next::GoOn,
            Phase::Sending => {
                self.stopped = phases::end_sending(&self.plan, &self.wiring);
                self.over = self.wiring.times.clock.ns(now());
                self.departure.look_below(look.ports, self.wiring.is_done());
                self.phase = Phase::Draining(Drain::begin(&self.wiring, look));
                Next::Drain
            }
            Phase::Draining(drain) => {
                let all = self.wiring.is_done();
                let is_out = self.departure.look_below(look.ports, all) && self.plan.tx_only;
                if !is_out && !drain.is_over(&self.plan, &self.wiring, look) {
                    return Next::GoOn;
                }
                if !look.worker_died {
                    // One that has ended the sending has had its say: only a further one is for this wait.
                    let stop = || !look.is_interrupted && look.interrupt.is_set();
                    self.far.ask_after(look.ports, stop);
                    self.told = self.far.told();
                }
                Next::Stop
            }
        }
    }
}

impl Active for ActiveSend {
    type Summary = measure::Summary;

    fn step(&mut self, look: &Look<'_, '_>) -> Next {
        for (refusing, side) in self.refusing.iter_mut().zip(&self.wiring.send) {
            refusing.look(side.counters.accepted.get(), side.counters.queue_full.get());
        }
        let next = self.step_on(look);
        // Until when packets were sent that were due before the end is known once the end has come.
        if matches!(self.phase, Phase::Draining(_)) {
            self.collector.ends_at(self.sent_until().0);
        }
        while let Some(row) = self.collector.next_final() {
            self.write(&row);
        }
        next
    }

    fn wakes_at(&self) -> Option<Ticks> {
        let times = &self.wiring.times;
        let soon = |ns| now().after(times.clock.ticks_from_ns(ns));
        match self.phase {
            Phase::Sending => Some(times.end.max(soon(SOON_NS))).filter(|at| at.0 != u64::MAX),
            Phase::Draining(_) if self.departure.is_over() => Some(soon(SOON_NS)),
            Phase::Draining(_) => Some(soon(LOOK_MIN.as_nanos() as u64)),
        }
    }

    fn status(&self, look: &Look<'_, '_>) -> State {
        let (planned_s, done) = self.done(look.elapsed().as_secs_f64());
        State {
            phase: match self.phase {
                Phase::Sending => published::Phase::Sending,
                Phase::Draining(_) => published::Phase::Draining,
            },
            planned_s,
            done,
            refused_s: self
                .refusing
                .iter()
                .filter_map(Refusing::lasts_s)
                .reduce(f64::max),
            latency_recent_ns: self.recent_latency(look),
            latency_ns: Percentiles::from(&self.latency),
            latency_buckets: Buckets::of(&self.latency),
            ..status::state(&self.wiring, self.judged_lost, !self.plan.tx_only)
        }
    }

    fn joined(&mut self, dir: &RunDir, _ports: &[OpenPort<'_>]) {
        let (until, late_ns) = self.sent_until();
        let lasted_ns = self.seconds() * 1e9;
        // The last poll comes a little after the end.
        if late_ns > STALL_NS.min((lasted_ns * OFFERED_TOLERANCE) as u64) {
            let held_until = self.departure.held_until();
            let held_until = held_until.map_or(Nanos(0), |at| self.wiring.times.clock.ns(at));
            let taken_until = self.taken_until();
            self.held_ns = held_until.since(taken_until);
            self.unseen_ns = until.since(taken_until.max(held_until));
            (self.stopped, self.late_ns) = (until, late_ns);
        }
        // Every packet is in a row.
        self.collector.ends_at(until);
        while let Some(row) = self.collector.next_remaining() {
            self.write(&row);
        }
        if let Some(rows) = self.rows.take() {
            let _ = dir.keep(rows.finish());
        }
    }

    fn received(&self) -> Vec<Received<'_>> {
        let results = Results::of(&self.wiring);
        let sent: u64 = results.send.iter().flat_map(|send| &send.accepted).sum();
        // What each receiver has to expect if all that was sent comes back: its part of what came, or an equal one where that
        // is more, since it may have missed some.
        let frames = |side: &ReceiveSide| side.counters.frames.get() as f64;
        let equal = 1.0 / self.wiring.receive.len().max(1) as f64;
        let all = self.wiring.receive.iter().map(frames).sum::<f64>().max(1.0);
        let waits_ns = self.plan.quiet_ns.unwrap_or(u64::MAX).min(self.plan.drain_ns);
        let most_pps = sent as f64 / self.seconds();
        let sides = self.wiring.receive.iter().map(|side| Received {
            port: side.place.port,
            core: side.place.core,
            rate_pps: most_pps * equal.max(frames(side) / all),
            most_pps,
            came: Some((side.counters.frames.get(), waits_ns)),
            holes: side.totals.get().map_or(&[], |totals| &totals.holes),
        });
        sides.collect()
    }

    fn close(self, ending: Ending<'_>) -> measure::Summary {
        summary::summarise(&self, ending)
    }
}
