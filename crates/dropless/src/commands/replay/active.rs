//! A replay under way: its queue, its reader, what it tells, and when it is over.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use dataplane::Task;
use dataplane::io::{Allocate, Transmit};
use dataplane::replay::feed::{Feed, feed};
use dataplane::replay::{ReplayCounters, ReplayPlan as TaskPlan, ReplayResult, ReplayTask};
use dataplane::slot::{Fill, Slot};
use measure::place::{RX_ERROR, RX_MISSED, RX_NO_BUFFER};
use measure::{Clock, QueueSummary, Ticks};
use report::published::{self, State, Totals};
use report::rundir::RunDir;

use super::reader::{Came, ReadCounters, ReaderSide};
use super::{FRAME_OVERHEAD, ReplayJob, summary};
use crate::explain::Received;
use crate::plan::ReplayPlan;
use crate::run::clock::now;
use crate::run::close::Ending;
use crate::run::control::Look;
use crate::run::departure::{self, Departure};
use crate::run::open::OpenPort;
use crate::run::queues::{QueuePlace, shares};
use crate::run::refusing::Refusing;
use crate::run::stage::{OnTransmit, Stage};
use crate::run::waiting::Waiting;
use crate::run::{Active, Next};

/// How long a file that does not fill the memory for it is waited for: then it is sent as it comes.
const FILL: Duration = Duration::from_millis(500);
/// How long the port may take to send what its driver took, and the driver to take what was due, at the end.
const DRAIN: Duration = Duration::from_secs(1);
/// Without the head, which an interface does not count in its MTU, but with which a capture begins.
const HEAD_LEN: usize = 14;

/// A replay whose task is on its queue.
pub struct ActiveReplay {
    pub plan: ReplayPlan,
    pub place: QueuePlace,
    pub counters: Arc<ReplayCounters>,
    pub totals: Slot<ReplayResult>,
    pub read: Arc<ReadCounters>,
    /// What the reader left.
    pub came: Came,
    /// Packets that had been read when the worker ended, and that it had not taken: those due before the end, and the others.
    pub left: [u64; 2],
    pub is_paced: bool,
    /// The capture comes through a pipe, from whoever writes it when they will.
    pub is_stream: bool,
    clock: Clock,
    feed: Feed,
    reader: Option<ReaderSide>,
    draining: Option<Waiting>,
    pub departure: Departure,
    next_look: Option<Ticks>,
    refusing: Refusing,
    /// When the end came, after the start of the run.
    pub ended: Duration,
}

/// A task to be.
struct Queue(TaskPlan, Fill<ReplayResult>);

impl OnTransmit for Queue {
    fn on<'p, A: Allocate + 'p>(
        self,
        tx: impl Transmit<Frames = A::Frames> + 'p,
        buffers: A,
    ) -> Box<dyn Task + 'p> {
        Box::new(ReplayTask::new(tx, buffers, self.0, self.1))
    }
}

/// The last tick after the first packet at which anything is due: the next one is no longer of the duration.
fn until(duration_ns: Option<u64>, clock: &Clock) -> u64 {
    let lasts = duration_ns.map(|ns| clock.ticks_from_ns(ns));
    lasts.map_or(u64::MAX, |lasts| lasts.saturating_sub(1))
}

impl ActiveReplay {
    /// Puts the task onto its queue, and starts the reader.
    pub fn wire<'p, 'e: 'p>(job: ReplayJob, stage: &mut Stage<'_, 'p, 'e>) -> Result<Self> {
        let ReplayJob {
            plan,
            input,
            longest,
            timetable,
        } = job;
        let timetable = timetable.context("the port was not met")?;
        let is_paced = timetable.is_paced();
        let (filler, feed) = feed(plan.buffer.chunks, plan.buffer.chunk_len);
        let counters = ReplayCounters::new();
        let (totals, leave) = Slot::new();
        let task = TaskPlan {
            feed: feed.hold(),
            burst: plan.machine.burst,
            is_paced,
            until: until(plan.duration_ns, &stage.clock),
            now,
            counters: Arc::clone(&counters),
        };
        let tx = stage.ports[0]
            .tx
            .drain(..)
            .next()
            .context("a port without queues")?;
        stage.transmit((0, "replay"), 0, tx, Queue(task, leave));
        let carries = longest - FRAME_OVERHEAD + HEAD_LEN;
        let is_stream = input.len.is_none();
        let reader = ReaderSide::start(input, (filler, timetable, stage.clock), &plan, carries)?;
        Ok(Self {
            place: QueuePlace {
                port: 0,
                queue: 0,
                core: stage.cores[0],
            },
            plan,
            counters,
            totals,
            read: Arc::clone(&reader.counters),
            came: Came::default(),
            left: [0; 2],
            is_paced,
            is_stream,
            clock: stage.clock,
            feed,
            reader: Some(reader),
            draining: None,
            departure: Departure::default(),
            next_look: None,
            refusing: Refusing::default(),
            ended: Duration::ZERO,
        })
    }

    pub fn queues(&self) -> Vec<QueueSummary> {
        shares([self.place.moved("tx", self.counters.sent.get())].into_iter())
    }

    /// How much of the capture has been sent, 0 to 1, where its length and the number of loops are known.
    fn done(&self) -> Option<f64> {
        let whole = self.read.loop_bytes.get() as f64 * self.plan.loops? as f64;
        (whole > 0.0).then(|| (self.counters.position.get() as f64 / whole).min(1.0))
    }

    /// What the worker left.
    pub fn result(&self) -> ReplayResult {
        self.totals.get().copied().unwrap_or_default()
    }

    /// For how long it has sent. One that cannot begin ends, too: what it is to send first is waited for, and the worker.
    fn lasted(&self, look: &Look<'_, '_>) -> Duration {
        match self.counters.first_ticks.get() {
            0 => look.elapsed().saturating_sub(2 * FILL),
            first => look.since(Ticks(first)),
        }
    }

    fn is_over(&self, look: &Look<'_, '_>) -> bool {
        let planned = self.plan.duration_ns.map(Duration::from_nanos);
        look.is_interrupted
            || look.worker_died
            || self.counters.done.get() == 1
            || planned.is_some_and(|planned| self.lasted(look) >= planned)
            || look.ports.iter().any(OpenPort::is_gone)
            || look.has_lost_link_for(self.plan.machine.wait_ns)
    }

    /// Whether the port has sent all that was due.
    fn is_out(&mut self, look: &Look<'_, '_>) -> bool {
        let counters = &self.counters;
        let all = counters.done.get() == 1 || counters.drained.get() == 1;
        self.departure.look(look.ports, counters.sent.get(), all)
    }
}

impl Active for ActiveReplay {
    type Summary = measure::ReplaySummary;

    fn step(&mut self, look: &Look<'_, '_>) -> Next {
        self.refusing
            .look(self.counters.sent.get(), self.counters.queue_full.get());
        if look.elapsed() > FILL && self.read.packets.get() > 0 {
            self.feed.prime();
        }
        self.next_look = Some(departure::next_look(self.lasted(look), look));
        if self.draining.is_none() && self.is_over(look) {
            self.is_out(look);
            (self.draining, self.ended) = (Some(Waiting::begin()), look.elapsed());
            return Next::Drain;
        }
        let Some(waiting) = &mut self.draining else {
            return Next::GoOn;
        };
        let waited = waiting.look(true);
        let is_drained = self.counters.drained.get() == 1;
        if self.is_out(look) && is_drained || look.worker_died || waited >= DRAIN {
            Next::Stop
        } else {
            Next::GoOn
        }
    }

    fn says(&mut self) -> Option<String> {
        let reader = self.reader.as_mut().filter(|_| self.counters.sent.get() > 0)?;
        reader.pauses.line(self.counters.due_ticks.get())
    }

    fn wakes_at(&self) -> Option<Ticks> {
        let first = self.counters.first_ticks.get();
        let lasts = self
            .plan
            .duration_ns
            .filter(|_| first > 0 && self.draining.is_none());
        let ends = lasts.map(|lasts| Ticks(first).after(self.clock.ticks_until_ns(lasts)));
        self.next_look.into_iter().chain(ends).min()
    }

    fn status(&self, _look: &Look<'_, '_>) -> State {
        let counters = &self.counters;
        let unsent = self.read.places().iter().map(|(_, count)| count).sum();
        let mut state = State {
            phase: match self.draining {
                None => published::Phase::Replaying,
                Some(_) => published::Phase::Draining,
            },
            done: self.done(),
            refused_s: self.refusing.lasts_s(),
            total: Totals {
                intended: self.read.packets.get(),
                sent: counters.sent.get(),
                unsent,
                late: counters.late_by_file.get(),
                sent_bytes: Some(counters.bytes.get()),
                ..Totals::default()
            },
            queues: self.queues(),
            ..State::default()
        };
        state.add_places(self.read.places());
        state
    }

    fn settle(&self, state: &mut State) {
        // What comes to its port is none of its packets.
        for place in [RX_MISSED, RX_NO_BUFFER, RX_ERROR] {
            state.places.remove(place);
        }
        state.total.lost = state.lost();
    }

    fn joined(&mut self, _dir: &RunDir, ports: &[OpenPort<'_>]) {
        self.departure.end(ports, self.counters.sent.get());
        if let Some(reader) = self.reader.take() {
            self.came = reader.finish();
        }
        self.left = self.feed.count_left(self.result().ended_at);
    }

    /// Nothing is received.
    fn received(&self) -> Vec<Received<'_>> {
        Vec::new()
    }

    fn close(self, ending: Ending<'_>) -> measure::ReplaySummary {
        summary::summarise(&self, ending)
    }
}
