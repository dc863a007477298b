//! A reflecting run under way: its queues, its rows, what it tells, and when it is over.

use std::sync::Arc;

use dataplane::reflect::{OwnMac, ReflectCounters};
use dataplane::reflector_counters::OwnCounters;
use host::{Medium, PortTraits};
use measure::place::FAULT_DROP;
use measure::{Counter, QueueSummary, Ticks};
use report::published::{self, State, Totals};
use report::rundir::RunDir;
use wire::{Addresses, ReflectorCounters};

use super::summary;
use crate::explain::Received;
use crate::plan::ReflectPlan;
use crate::run::close::Ending;
use crate::run::control::Look;
use crate::run::listening::{Column, Counted, Listening, Rows};
use crate::run::open::{OpenPort, losses, not_sent};
use crate::run::queues::{QueuePlace, shares};
use crate::run::reflector::{ReflectSide, Reflecting, drops, fault_drops};
use crate::run::stage::Stage;
use crate::run::{Active, Next};

/// A reflecting run whose tasks are on their queues.
pub struct ActiveReflect {
    pub plan: ReflectPlan,
    pub sides: Vec<ReflectSide>,
    pub course: Listening,
    /// What the far sender of each port is told.
    own_counters: Vec<Arc<OwnCounters>>,
    pub rows: Rows<Total>,
}

/// Sums over all queues.
#[derive(Clone, Copy, Default)]
pub struct Total {
    pub received: u64,
    pub returned: u64,
    /// Frames that were not to be returned, or could not, or were dropped by the injector.
    pub dropped: u64,
    /// Frames that the ports had no room for, or could not read: as of the last row.
    missed: u64,
    /// Frames among `returned` that the ports did not send: as of the last row.
    tx_lost: u64,
}

impl Total {
    /// What the tasks publish.
    pub fn of(sides: &[ReflectSide]) -> Self {
        let mut total = Self::default();
        for side in sides {
            let counters = &side.counters;
            total.received += counters.frames.get();
            total.returned += counters.returned.get();
            total.dropped += counters.oversized.get() + counters.tx_full.get();
            total.dropped += counters.dropped.iter().map(Counter::get).sum::<u64>();
            total.dropped += side.faults.drop.get();
        }
        total
    }

    /// With what `ports` missed, or took and did not send.
    fn with(self, ports: &[OpenPort<'_>]) -> Self {
        Self {
            missed: ports.iter().map(OpenPort::not_received).sum(),
            tx_lost: not_sent(ports),
            ..self
        }
    }

    /// What left of it.
    pub fn left(&self) -> u64 {
        self.returned.saturating_sub(self.tx_lost)
    }
}

impl Counted for Total {
    const COLUMNS: &'static [Column<Self>] = &[
        ("rx_packets", |total| total.received),
        ("tx_packets", |total| total.returned),
        ("dropped", |total| total.dropped),
        ("missed", |total| total.missed),
        ("tx_lost", |total| total.tx_lost),
    ];
}

impl ActiveReflect {
    /// Puts a task onto each pair of queues.
    pub fn wire<'p, 'e: 'p>(plan: ReflectPlan, stage: &mut Stage<'_, 'p, 'e>) -> Self {
        let mut sides: Vec<ReflectSide> = Vec::new();
        let own_counters: Vec<Arc<OwnCounters>> = stage
            .ports
            .iter()
            .map(|_| Arc::new(OwnCounters::of(crate::run::random())))
            .collect();
        for (port, own) in own_counters.iter().enumerate() {
            let open = &mut stage.ports[port];
            let reflecting = Reflecting {
                me: Addresses {
                    mac: open.mac,
                    ips: plan.addresses.clone(),
                },
                own_mac: own_mac(open.traits()),
                only_ours: plan.only_ours,
                burst: plan.machine.burst,
                fault: plan.fault.as_ref(),
                seed: plan.seed,
                clock: stage.clock,
                takes_rest: true,
                own_counters: Some(Arc::clone(own)),
            };
            let pairs: Vec<_> = open.rx.drain(..).zip(open.tx.drain(..)).collect();
            for (queue, (rx, tx)) in pairs.into_iter().enumerate() {
                let worker = sides.len() % stage.cores.len();
                let core = stage.cores[worker];
                let (side, task) = reflecting.queue(sides.len(), QueuePlace { port, queue, core });
                if stage.pair((worker, "reflect"), (port, rx), (port, tx), task) {
                    sides.push(side);
                }
            }
        }
        Self {
            course: Listening::new(
                &stage.clock,
                plan.interval_ns,
                plan.duration_ns,
                plan.idle_exit_ns,
            ),
            plan,
            sides,
            own_counters,
            rows: Rows::create(stage.dir),
        }
    }

    pub fn queues(&self) -> Vec<QueueSummary> {
        shares(self.sides.iter().flat_map(|side| {
            [
                side.place.moved("rx", side.counters.frames.get()),
                side.place.moved("tx", side.counters.returned.get()),
            ]
        }))
    }

    /// What the port `index` has counted so far, for the sender that asks.
    fn counters(&self, index: usize, open: &OpenPort<'_>) -> ReflectorCounters {
        let port = open.summary();
        let mut counters = ReflectorCounters::default();
        for (name, count) in losses(&port) {
            counters.add(name, count);
        }
        for side in self.sides.iter().filter(|side| side.place.port == index) {
            let (frames, answered) = came(&side.counters);
            counters.received += frames.saturating_sub(answered);
            counters.returned += side.counters.returned.get().saturating_sub(answered);
            for (name, count) in drops([side]) {
                counters.add(&name, count);
            }
            counters.add(FAULT_DROP, side.faults.drop.get());
        }
        counters
    }
}

/// Frames that came, and how many of them were answered. A frame is counted after its answer: between two equal counts of
/// answers no frame has come that was answered and is not among those.
fn came(counters: &ReflectCounters) -> (u64, u64) {
    let answered = || counters.answered.get() + counters.told.get();
    let mut before = answered();
    loop {
        let frames = counters.frames.get();
        let after = answered();
        if after == before {
            return (frames, after);
        }
        before = after;
    }
}

fn own_mac(traits: PortTraits) -> OwnMac {
    match traits.medium {
        Medium::SharedInterface => OwnMac::Destination,
        _ if traits.has_neighbours => OwnMac::Source,
        _ => OwnMac::Any,
    }
}

impl Active for ActiveReflect {
    type Summary = measure::ReflectSummary;
    const COUNTS_EARLY: bool = true;

    fn ready(&mut self, look: &Look<'_, '_>) -> Option<String> {
        Some(self.course.begin("reflecting on", look, || {
            // In this order: what is lost between the two is in a row.
            let lost = Total::default().with(look.ports);
            let early = Total {
                missed: lost.missed,
                tx_lost: lost.tx_lost,
                ..Total::of(&self.sides)
            };
            self.rows.begin(early);
            early.received
        }))
    }

    fn step(&mut self, look: &Look<'_, '_>) -> Next {
        let total = Total::of(&self.sides);
        self.course.look(look, total.received);
        self.rows.look(&mut self.course, || total.with(look.ports));
        for (index, (open, own)) in look.ports.iter().zip(&self.own_counters).enumerate() {
            own.publish(self.counters(index, open));
        }
        if self.course.is_over(look) {
            Next::Stop
        } else {
            Next::GoOn
        }
    }

    fn wakes_at(&self) -> Option<Ticks> {
        Some(self.course.wakes_at())
    }

    fn status(&self, look: &Look<'_, '_>) -> State {
        let total = Total::of(&self.sides);
        let (planned_s, done) = self.course.done(look);
        let mut state = State {
            phase: published::Phase::Reflecting,
            planned_s,
            done,
            total: Totals {
                sent: total.returned,
                received: total.received,
                received_bytes: self.sides.iter().map(|side| side.counters.bytes.get()).sum(),
                ..Totals::default()
            },
            queues: self.queues(),
            ..State::default()
        };
        state.add_places(drops(&self.sides));
        state.add_places([(FAULT_DROP, fault_drops(&self.sides))]);
        state
    }

    fn settle(&self, state: &mut State) {
        state.total.lost = state.lost();
    }

    fn stopped(&mut self) {
        self.course.end();
    }

    fn joined(&mut self, dir: &RunDir, ports: &[OpenPort<'_>]) {
        let total = Total::of(&self.sides).with(ports);
        self.rows.end(&self.course, total, dir);
    }

    fn received(&self) -> Vec<Received<'_>> {
        let received = |side: &ReflectSide| self.course.received(side.place, side.counters.frames.get());
        self.sides.iter().map(received).collect()
    }

    fn close(self, ending: Ending<'_>) -> measure::ReflectSummary {
        summary::summarise(&self, ending)
    }
}
