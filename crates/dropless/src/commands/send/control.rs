//! The control thread of a send run: moves the phases on, collects finished intervals, shows, and watches the links.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dataplane::Phase;
use dataplane::worker::Control;
use measure::verdict::LinkLoss;
use measure::{IntervalCollector, IntervalRow, Nanos, Percentiles, Ticks};
use report::live::{Live, Snapshot, Traffic};
use report::out::Console;
use report::published::{self, Phase::Draining, Phase::Sending};
use report::rundir::RunDir;

use super::far::{FarSides, Told};
use super::publish::{Progress, Teller};
use super::tasks::{ReceiveSide, Times, Wiring};
use super::waiting::Waiting;
use crate::explain::Explainer;
use crate::plan::SendPlan;
use crate::run::clock::now;
use crate::run::open::OpenPort;
use crate::run::signals::Interrupt;
use crate::run::workers::Running;

/// The workers must know by then that the run begins.
const RUN_UP_NS: u64 = 10_000_000;
/// How often the control thread looks. Nothing in the run waits for it.
const TICK: Duration = Duration::from_millis(20);
/// The same where missed packets are joined to pauses: the finer, the surer.
const TICK_EXPLAIN: Duration = Duration::from_millis(5);
/// Copies may trail the last first copy by this much.
const GRACE_NS: u64 = 50_000_000;
/// With packets still coming in, the drain ends after this many drain times all the same.
const DRAINS_MAX: u64 = 5;

/// What the control thread saw.
pub struct Seen {
    /// When sending ended.
    pub stopped: Nanos,
    /// Ports that lost their link.
    pub link_losses: Vec<LinkLoss>,
    /// Packets in no interval's row, because this thread was late.
    pub overrun: u64,
    /// Whether somebody asked the run to end.
    pub interrupted: bool,
    /// A worker that ended by itself.
    pub ended_early: Option<usize>,
    /// What the far sides told.
    pub far: Told,
    /// What explains pauses.
    pub explainer: Option<Explainer>,
}

/// Watches one run.
pub struct Watch<'w, 'e> {
    plan: &'w SendPlan,
    wiring: &'w Wiring<'w>,
    ports: &'w mut [OpenPort<'e>],
    interrupt: &'w Interrupt,
    times: Times,
    teller: Teller<'w>,
    live: Live,
    dir: &'w RunDir,
    rows: report::IntervalWriter,
    collector: IntervalCollector,
    links: Vec<Option<usize>>,
    judged_lost: u64,
    shown: Shown,
    seen: Seen,
}

#[derive(Clone, Copy, Default)]
struct Shown {
    at: Option<Instant>,
    sent: u64,
    received: u64,
    rates: (f64, f64),
}

impl<'w, 'e> Watch<'w, 'e> {
    /// Opens the run's streamed files and the display.
    #[allow(clippy::too_many_arguments, reason = "everything that can be seen")]
    pub fn new(
        plan: &'w SendPlan,
        wiring: &'w Wiring<'w>,
        ports: &'w mut [OpenPort<'e>],
        dir: &'w RunDir,
        console: Console,
        interrupt: &'w Interrupt,
        times: Times,
        teller: Teller<'w>,
    ) -> Self {
        let names: Vec<String> = plan.streams.iter().map(|stream| stream.name.clone()).collect();
        Self {
            plan,
            wiring,
            links: vec![None; ports.len()],
            ports,
            interrupt,
            times,
            teller,
            live: Live::stderr(console.quiet),
            dir,
            rows: report::IntervalWriter::create(dir, &names),
            collector: IntervalCollector::new(wiring.rings.clone(), plan.drain_ns),
            judged_lost: 0,
            shown: Shown::default(),
            seen: Seen {
                stopped: Nanos(0),
                link_losses: Vec::new(),
                overrun: 0,
                interrupted: false,
                ended_early: None,
                far: Told::default(),
                explainer: None,
            },
        }
    }

    /// Watches for what is to be explained, too.
    pub fn explaining(mut self, explainer: Option<Explainer>) -> Self {
        self.seen.explainer = explainer;
        self
    }

    /// Takes the run through its phases.
    pub fn run(&mut self, control: &Control, running: &Running<'_>, mut far: FarSides) {
        while control.ready() < running.count() && running.ended_early().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        far.ask_before(|| now().after(self.times.clock.ticks_from_ns(RUN_UP_NS)) < self.times.start);
        control.set(Phase::Run);
        while !self.sending_is_over(running) {
            self.tick(Sending);
        }
        self.seen.interrupted = self.interrupt.is_set();
        self.seen.ended_early = running.ended_early();
        let asked_to_stop = now().min(self.times.end);
        self.wiring.cut.store(asked_to_stop.0, Ordering::Relaxed);
        control.set(Phase::Drain);
        self.seen.stopped = self.end_of_sending(asked_to_stop);
        self.drain(running);
        if running.ended_early().is_none() {
            far.ask_after();
            self.seen.far = far.told();
        }
        control.set(Phase::Stop);
    }

    fn sending_is_over(&self, running: &Running<'_>) -> bool {
        let done = || self.wiring.send.iter().all(|side| side.counters.done.get() == 1);
        // A sender that cannot get rid of its last burst is not waited for longer than a second.
        let overdue = self.times.end.0 != u64::MAX
            && now().since(self.times.end) > self.times.clock.ticks_from_ns(1_000_000_000);
        self.interrupt.is_set() || done() || overdue || self.is_given_up() || running.ended_early().is_some()
    }

    /// A run without an end in time does not wait longer for a lost link than it would have at the start.
    fn is_given_up(&self) -> bool {
        let at = self.elapsed_ns();
        let mut lost = self.links.iter().flatten();
        self.times.end.0 == u64::MAX
            && lost.any(|&index| at - self.seen.link_losses[index].at_ns > self.plan.machine.wait_ns)
    }

    fn elapsed_ns(&self) -> u64 {
        let clock = &self.times.clock;
        clock.ns(now()).since(clock.ns(self.times.start))
    }

    /// A run by time ends with its time; one by count with its last packet.
    fn end_of_sending(&self, stopped: Ticks) -> Nanos {
        let by_count =
            self.plan.count.is_some() && self.wiring.send.iter().all(|side| side.counters.done.get() == 1);
        let end = if by_count {
            self.last_sent().min(stopped)
        } else {
            stopped
        };
        self.times.clock.ns(end.max(self.times.start))
    }

    /// When the last packet left: a sender that was late by then sends what was due before the end after it.
    fn last_sent(&self) -> Ticks {
        let sides = self.wiring.send.iter();
        Ticks(
            sides
                .map(|side| side.counters.last_ticks.get())
                .max()
                .unwrap_or(0),
        )
    }

    /// Waits until everything is back or known to be lost, or nothing has come for the drain time.
    fn drain(&mut self, running: &Running<'_>) {
        if self.plan.tx_only {
            return;
        }
        let (mut begun, mut quiet) = (Waiting::begin(), Waiting::begin());
        let (mut arrived, mut rounds) = (self.arrived(), running.rounds());
        loop {
            self.tick(Draining);
            let now_arrived = self.arrived();
            if now_arrived != arrived {
                (arrived, quiet) = (now_arrived, Waiting::begin());
            }
            // What lies in a ring is not quiet for as long as its worker is away.
            let before = std::mem::replace(&mut rounds, running.rounds());
            let all_polled = rounds.iter().zip(&before).all(|(now, before)| *now >= before + 2);
            let waited = quiet.look(all_polled).as_nanos() as u64;
            let everything = self.received() + self.known_lost() >= self.accepted();
            if waited >= self.plan.drain_ns
                || (everything && waited >= GRACE_NS.min(self.plan.drain_ns))
                || begun.look(true).as_nanos() as u64 >= self.plan.drain_ns * DRAINS_MAX
                || running.ended_early().is_some()
            {
                return;
            }
        }
    }

    /// Probes of which it is sure that they will not come any more, or have come in vain.
    fn known_lost(&self) -> u64 {
        let spoiled = |side: &ReceiveSide| {
            let counters = &side.counters;
            counters.corrupt.get() + counters.late.get() + counters.too_old.get()
        };
        let injected = self.wiring.reflect.iter().map(|side| side.faults.drop.get());
        injected.sum::<u64>() + self.wiring.receive.iter().map(spoiled).sum::<u64>()
    }

    fn accepted(&self) -> u64 {
        self.wiring
            .send
            .iter()
            .map(|side| side.counters.accepted.get())
            .sum()
    }

    fn received(&self) -> u64 {
        self.wiring
            .receive
            .iter()
            .map(|side| side.counters.received.get())
            .sum()
    }

    fn arrived(&self) -> u64 {
        self.wiring
            .receive
            .iter()
            .map(|side| side.counters.frames.get())
            .sum()
    }

    /// One look: finished intervals go to the file, the display is brought up to date, links are checked.
    fn tick(&mut self, phase: published::Phase) {
        if let Some(explainer) = &mut self.seen.explainer {
            std::thread::sleep(TICK_EXPLAIN);
            explainer.look(self.ports);
        } else {
            std::thread::sleep(TICK);
        }
        while let Some(row) = self.collector.next_final() {
            self.write(&row);
        }
        self.check_links();
        self.show(phase.name());
        if self.teller.is_due() {
            self.tell(phase);
        }
    }

    fn write(&mut self, row: &IntervalRow) {
        self.judged_lost += row.total().lost();
        self.teller.add(row);
        self.rows.push(row);
    }

    fn check_links(&mut self) {
        let at = self.elapsed_ns();
        for (open, down) in self.ports.iter_mut().zip(&mut self.links) {
            let up = open.tend().up;
            match (up, *down) {
                (false, None) => {
                    *down = Some(self.seen.link_losses.len());
                    self.seen.link_losses.push(LinkLoss {
                        port: open.uri.to_string(),
                        at_ns: at,
                        down_ns: None,
                    });
                }
                (true, Some(index)) => {
                    let loss = &mut self.seen.link_losses[index];
                    loss.down_ns = Some(at.saturating_sub(loss.at_ns));
                    *down = None;
                }
                _ => {}
            }
        }
    }

    fn show(&mut self, phase: &str) {
        let elapsed = self.elapsed();
        // The first look only begins the time that rates are taken over.
        if self.shown.at.is_some() && !self.live.is_due(elapsed) {
            return;
        }
        let (sent, received) = (self.accepted(), self.received());
        let since = self.shown.at.map_or(0.0, |at| at.elapsed().as_secs_f64());
        let is_first = self.shown.rates == (0.0, 0.0) && since >= 0.1;
        if self.shown.at.is_none() || since >= 0.5 || is_first {
            if since > 0.0 {
                self.shown.rates = (
                    (sent - self.shown.sent) as f64 / since,
                    (received - self.shown.received) as f64 / since,
                );
            }
            self.shown = Shown {
                at: Some(Instant::now()),
                sent,
                received,
                ..self.shown
            };
        }
        let (planned, done) = self.done(elapsed);
        let recent = self.recent_latency(elapsed);
        let latency = |percentile: Option<u64>| percentile.map(|ns| ns as f64);
        let abandoned = self
            .wiring
            .send
            .iter()
            .map(|side| side.counters.abandoned.get())
            .sum();
        self.live.update(&Snapshot {
            phase: phase.into(),
            elapsed,
            done,
            planned,
            traffic: Traffic::Send {
                rate_tx_pps: self.shown.rates.0,
                rate_rx_pps: self.shown.rates.1,
                sent,
                lost: self.judged_lost,
                unsent: abandoned,
                latency_p50_ns: latency(recent.p50),
                latency_p99_ns: latency(recent.p99),
            },
        });
    }

    /// Tells whoever watches from outside.
    fn tell(&mut self, phase: published::Phase) {
        let elapsed = self.elapsed();
        let (planned, done) = self.done(elapsed);
        let progress = Progress {
            phase,
            elapsed,
            planned,
            done,
            lost: self.judged_lost,
            recent: self.recent_latency(elapsed),
        };
        self.teller.tell(self.wiring, self.ports, &progress);
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.times.clock.ns_from_ticks(now().since(self.times.start)))
    }

    /// How long it will last, and how much of it is done.
    fn done(&self, elapsed: Duration) -> (Option<Duration>, Option<f64>) {
        let planned = self.plan.duration_ns.map(Duration::from_nanos);
        let by_time = planned.map(|planned| elapsed.as_secs_f64() / planned.as_secs_f64());
        let by_count = self.plan.count.map(|count| self.accepted() as f64 / count as f64);
        let done = by_time.into_iter().chain(by_count).reduce(f64::max);
        (planned, done.map(|done| done.min(1.0)))
    }

    /// Latencies of an interval that just ended: shown before it is final.
    fn recent_latency(&self, elapsed: Duration) -> Percentiles {
        let index = (elapsed.as_nanos() as u64 / self.plan.interval_ns).saturating_sub(1);
        if index < self.collector.next_index() || self.plan.tx_only {
            return Percentiles::default();
        }
        self.collector.collect(index).percentiles()
    }

    /// After the workers have ended: the rest of the rows.
    pub fn finish(mut self) -> Seen {
        // Every packet is in a row, also one that left after the end.
        let last = self.times.clock.ns(self.last_sent().max(self.times.start));
        // Interrupted before its first packet it has no last one.
        let end = if self.accepted() == 0 || last < self.seen.stopped {
            self.seen.stopped
        } else {
            last.after(1)
        };
        while let Some(row) = self.collector.next_remaining(end) {
            self.write(&row);
        }
        // With the last rows, what was told equals the books.
        self.tell(Draining);
        self.seen.overrun = self.collector.overrun();
        let _ = self.dir.keep(self.rows.finish());
        self.live.finish();
        self.seen
    }
}
