//! Forwarding under way: its queues, its rows, what it tells, and when it is over.

use std::time::Duration;

use anyhow::{Result, ensure};
use dataplane::forward::{ForwardCounters, Rewrite};
use host::Medium;
use measure::place::{DENIED, KERNEL_FULL, OVERSIZED, TO_KERNEL, TX_FULL};
use measure::{QueueSummary, Ticks};
use report::published::{self, State, Totals};
use report::rundir::RunDir;

use super::flows::{FlowWatch, Tables};
use super::judges::Judges;
use super::queues::{ForwardSide, Forwarding, lengths, takes_chains};
use super::summary;
use crate::explain::Received;
use crate::plan::{ForwardMode, ForwardPlan};
use crate::run::clock::now;
use crate::run::close::Ending;
use crate::run::control::Look;
use crate::run::generator;
use crate::run::listening::{Column, Counted, Listening, Rows};
use crate::run::open::{OpenPort, not_sent};
use crate::run::queues::{QueuePlace, shares};
use crate::run::stage::Stage;
use crate::run::{Active, Next};

/// From the index of the port that frames come in by to that of the one that they leave by.
pub const WAYS: [(usize, usize); 2] = [(0, 1), (1, 0)];
/// How long the end waits for what was taken to leave, at most: longer than a full queue is.
const DRAIN: Duration = Duration::from_millis(200);
/// How often that is looked at.
const DRAIN_TICK_NS: u64 = 1_000_000;

/// Forwarding whose tasks are on their queues.
pub struct ActiveForward<J> {
    pub plan: ForwardPlan,
    pub sides: Vec<ForwardSide>,
    pub judges: Option<J>,
    /// Somebody wants rules to be read again, and there are none: until that is said.
    is_asked_in_vain: bool,
    flows: FlowWatch,
    pub course: Listening,
    /// Since when nothing more is taken.
    draining: Option<Duration>,
    drain_ticks: u64,
    pub rows: Rows<Total>,
}

/// Sums over queues.
#[derive(Clone, Copy, Default)]
pub struct Total {
    pub received: u64,
    pub bytes: u64,
    pub forwarded: u64,
    pub denied: u64,
    pub oversized: u64,
    pub tx_full: u64,
    pub to_kernel: u64,
    pub kernel_full: u64,
    pub copied: u64,
    pub uncopied: u64,
    /// The host's own frames, which leave by the other port.
    pub from_kernel: u64,
    /// Those of them that are among `forwarded`.
    pub forwarded_own: u64,
    /// Frames that the two ports had no room for, or could not read: as of the last row.
    pub missed: u64,
    /// Frames among `forwarded` that the two ports did not send: as of the last row.
    pub tx_lost: u64,
}

impl Total {
    /// What the tasks publish that receive from `port`, or from any.
    pub fn of(sides: &[ForwardSide], port: Option<usize>) -> Self {
        let mut total = Self::default();
        let is_of = |side: &&ForwardSide| port.is_none_or(|port| side.side.place.port == port);
        for side in sides.iter().filter(is_of) {
            let counters = &side.side.counters;
            total.forwarded += counters.forwarded.get();
            total.denied += counters.denied.get();
            total.oversized += counters.oversized.get();
            total.tx_full += counters.tx_full.get();
            total.to_kernel += counters.to_kernel.get();
            total.kernel_full += counters.kernel_full.get();
            total.copied += counters.copied.get();
            total.uncopied += counters.uncopied.get();
            total.from_kernel += counters.from_kernel.get();
            total.forwarded_own += counters.forwarded_own.get();
            total.received += counters.frames.get();
            total.bytes += counters.bytes.get();
        }
        total
    }

    /// With what the two ports missed, or took and did not send. Behind them are the taps of the host, whose own ledger that is.
    fn with(self, ports: &[OpenPort<'_>]) -> Self {
        let ports = &ports[..WAYS.len()];
        Self {
            missed: ports.iter().map(OpenPort::not_received).sum(),
            tx_lost: not_sent(ports),
            ..self
        }
    }

    /// What left of it.
    pub fn left(&self) -> u64 {
        self.forwarded.saturating_sub(self.tx_lost)
    }
}

impl Counted for Total {
    const COLUMNS: &'static [Column<Self>] = &[
        ("rx_packets", |total| total.received),
        ("tx_packets", |total| total.forwarded),
        // And not denied.
        ("dropped", |total| {
            total.oversized + total.tx_full + total.kernel_full
        }),
        ("denied", |total| total.denied),
        ("missed", |total| total.missed),
        ("tx_lost", |total| total.tx_lost),
    ];
}

impl<J: Judges> ActiveForward<J> {
    /// Puts a task onto each queue that receives.
    pub fn wire<'p, 'e: 'p>(
        plan: ForwardPlan,
        mut judges: Option<J>,
        stage: &mut Stage<'_, 'p, 'e>,
    ) -> Result<Self> {
        let mut sides: Vec<ForwardSide> = Vec::new();
        let mut queues = Vec::new();
        for (from, to) in WAYS {
            let [rx, tx] = [stage.ports[from].rx.len(), stage.ports[to].tx.len()];
            ensure!(
                rx == tx,
                "port {} has {rx} receive queues and port {} has {tx} transmit queues, of which each goes to one; use --queues {}",
                stage.ports[from].uri,
                stage.ports[to].uri,
                rx.min(tx)
            );
            let rx: Vec<_> = std::mem::take(&mut stage.ports[from].rx);
            let tx: Vec<_> = std::mem::take(&mut stage.ports[to].tx);
            let pairs = rx.into_iter().zip(tx).enumerate();
            queues.extend(pairs.map(|(queue, pair)| (queue, (from, to), pair)));
        }
        // Of two cores each has a direction, of four each a queue.
        queues.sort_by_key(|(queue, (from, _), _)| (*queue, *from));
        for (queue, (from, to), (rx, tx)) in queues {
            let worker = sides.len() % stage.cores.len();
            let place = |port| QueuePlace {
                port,
                queue,
                core: stage.cores[worker],
            };
            let forwarding = Forwarding {
                burst: plan.machine.burst,
                rewrite: rewrite(&plan, to, stage.ports[to].mac),
                takes_chains: takes_chains(&stage.ports[to]),
                lengths: lengths(&stage.ports[from], &stage.ports[to]),
                takes_rest: stage.ports[from].traits().medium != Medium::Files,
                clock: stage.clock,
                flows: plan.flows.map(|flows| flows.get() as usize),
            };
            let rules = judges.as_mut().map(J::task);
            let (side, task) = forwarding.queue((place(from), place(to)), rules);
            let role = (worker, "forward");
            let is_there = if plan.kernel.is_empty() {
                stage.pair(role, (from, rx), (to, tx), task)
            } else {
                // Each queue has one of the tap's, which has as many.
                let towards = kernel_of(&plan, from).and_then(|tap| stage.ports[tap].tx.pop());
                let comes = kernel_of(&plan, to).and_then(|tap| stage.ports[tap].rx.pop());
                let mac = stage.ports[from].mac;
                stage.pair_beside(role, (from, rx), (to, tx), (towards, comes), (task, mac))
            };
            if is_there {
                sides.push(side);
            }
        }
        // Of an embedded ring the other end is here, too: somebody sends into it, and takes what comes.
        let last = stage.cores.len() - 1;
        for port in 0..stage.ports.len() {
            generator::swallow(stage, last, port);
            generator::feed(stage, (last, plan.machine.burst), port)?;
        }
        let (interval, lasts) = (plan.interval_ns, (plan.duration_ns, plan.idle_exit_ns));
        Ok(Self {
            course: Listening::new(&stage.clock, interval, lasts.0, lasts.1),
            plan,
            sides,
            judges,
            is_asked_in_vain: false,
            flows: FlowWatch::default(),
            draining: None,
            drain_ticks: stage.clock.ticks_from_ns(DRAIN_TICK_NS),
            rows: Rows::create(stage.dir),
        })
    }

    pub fn queues(&self) -> Vec<QueueSummary> {
        shares(self.sides.iter().flat_map(|ForwardSide { side, to, .. }| {
            let counters = &side.counters;
            let places = [
                (DENIED, counters.denied.get()),
                (OVERSIZED, counters.oversized.get()),
                (TX_FULL, counters.tx_full.get()),
                (TO_KERNEL, counters.to_kernel.get()),
                (KERNEL_FULL, counters.kernel_full.get()),
            ];
            let places = places.into_iter().filter(|(_, packets)| *packets > 0);
            let received = QueueSummary {
                places: places.map(|(place, packets)| (place.into(), packets)).collect(),
                ..side.place.moved("rx", counters.frames.get())
            };
            [received, to.moved("tx", counters.forwarded.get())]
        }))
    }

    /// Whether all that was taken has left, also the hardware.
    fn is_drained(&self, look: &Look<'_, '_>) -> bool {
        let has_left = |(from, to): (usize, usize)| {
            let open = &look.ports[to];
            let sent = open.stats().map(|stats| stats.opackets);
            let is_out = sent.is_none_or(|sent| sent >= Total::of(&self.sides, Some(from)).forwarded);
            !open.traits().counts_on_wire || is_out
        };
        let is_done = |counters: &ForwardCounters| counters.held() == 0 && counters.is_rest_taken.get() == 1;
        let is_empty = self.sides.iter().all(|side| is_done(&side.side.counters));
        is_empty && WAYS.into_iter().all(has_left)
    }
}

/// The index of the tap of `port`, if it has one.
pub fn kernel_of(plan: &ForwardPlan, port: usize) -> Option<usize> {
    (port < plan.kernel.len()).then(|| WAYS.len() + port)
}

/// What becomes of the MAC addresses of what leaves by port `to`, whose own is `mac`.
fn rewrite(plan: &ForwardPlan, to: usize, mac: [u8; 6]) -> Rewrite {
    match (plan.mode, plan.to_mac.get(to)) {
        (ForwardMode::Mac, Some(destination)) => Rewrite::Addresses {
            destination: destination.0,
            source: mac,
        },
        (ForwardMode::Swap, _) => Rewrite::Swap,
        _ => Rewrite::Nothing,
    }
}

impl<J: Judges> Active for ActiveForward<J> {
    type Summary = J::Summary;
    const COUNTS_EARLY: bool = true;

    fn ready(&mut self, look: &Look<'_, '_>) -> Option<String> {
        let begins = self.course.begin(J::DOING, look, || {
            // In this order: what is lost between the two is in a row.
            let lost = Total::default().with(look.ports);
            let early = Total {
                missed: lost.missed,
                tx_lost: lost.tx_lost,
                ..Total::of(&self.sides, None)
            };
            self.rows.begin(early);
            early.received
        });
        let has_generator = self.plan.machine.has(|traits| traits.is_reflected);
        let generator = has_generator.then(|| {
            let pps = report::number::pps(generator::RATE_PPS);
            format!(
                "a generator in this process sends {pps} into each ring, and takes what comes out of it\n"
            )
        });
        Some(generator.unwrap_or_default() + &begins)
    }

    fn step(&mut self, look: &Look<'_, '_>) -> Next {
        let total = Total::of(&self.sides, None);
        self.course.look(look, total.received);
        self.rows.look(&mut self.course, || total.with(look.ports));
        self.flows.look(&Tables {
            room: self.plan.flows,
            sides: &self.sides,
            clock: &look.clock,
            begun: self.course.begun,
        });
        match &mut self.judges {
            Some(judges) => judges.look(look),
            None => self.is_asked_in_vain |= look.is_reload_asked,
        }
        if self.draining.is_none() && !self.course.is_over(look) {
            return Next::GoOn;
        }
        let elapsed = look.elapsed();
        let since = *self.draining.get_or_insert(elapsed);
        let is_late = elapsed.saturating_sub(since) > DRAIN;
        // One look that has seen the workers drain.
        let has_begun = elapsed > since;
        if look.worker_died || is_late || (has_begun && self.is_drained(look)) {
            Next::Stop
        } else {
            Next::Drain
        }
    }

    fn says(&mut self) -> Option<String> {
        if std::mem::take(&mut self.is_asked_in_vain) {
            return Some("there is no --rules that could be read again; all goes on passing\n".to_owned());
        }
        self.judges.as_mut()?.says()
    }

    fn wakes_at(&self) -> Option<Ticks> {
        Some(match self.draining {
            Some(_) => now().after(self.drain_ticks),
            None => self.course.wakes_at(),
        })
    }

    fn status(&self, look: &Look<'_, '_>) -> State {
        let total = Total::of(&self.sides, None);
        let (planned_s, done) = self.course.done(look);
        let mut state = State {
            phase: published::Phase::Forwarding,
            planned_s,
            done,
            total: Totals {
                sent: total.forwarded,
                received: total.received,
                received_bytes: total.bytes,
                sent_own: total.forwarded_own,
                ..Totals::default()
            },
            queues: self.queues(),
            rules: self.judges.as_ref().map(J::told),
            flows: self.flows.told(),
            ..State::default()
        };
        state.add_places([
            (DENIED, total.denied),
            (OVERSIZED, total.oversized),
            (TX_FULL, total.tx_full),
            (TO_KERNEL, total.to_kernel),
            (KERNEL_FULL, total.kernel_full),
        ]);
        state
    }

    fn settle(&self, state: &mut State) {
        state.total.lost = state.lost();
    }

    fn joined(&mut self, dir: &RunDir, ports: &[OpenPort<'_>]) {
        let total = Total::of(&self.sides, None).with(ports);
        self.rows.end(&self.course, total, dir);
    }

    fn received(&self) -> Vec<Received<'_>> {
        let sides = self.sides.iter().map(|side| &side.side);
        let received = sides.map(|side| self.course.received(side.place, side.counters.frames.get()));
        received.collect()
    }

    fn close(self, ending: Ending<'_>) -> J::Summary {
        let forward = summary::summarise(&self, ending);
        J::conclude(self.judges, forward)
    }
}
