//! A send run as control sees it: its queues, what each publishes, and what passes between control and tasks.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dataplane::receive::{ReceiveCounters, ReceiveResult};
use dataplane::reflector_counters::Answers;
use dataplane::reply::ReplyQueue;
use dataplane::send::{SendCounters, SendResult};
use measure::{Clock, IntervalRing, LaneUnion, QueueSummary, Ticks};

use crate::plan::SendPlan;
use crate::run::queues::{QueueSide, shares};
use crate::run::reflector::{self, ReflectSide};
use crate::run::stage::Stage;

/// One transmit queue, as the control thread sees it.
pub type SendSide = QueueSide<SendCounters, SendResult>;
/// One receive queue, as the control thread sees it.
pub type ReceiveSide = QueueSide<ReceiveCounters, ReceiveResult>;

/// What passes between control and the tasks of one port.
#[derive(Default)]
pub struct Mailbox {
    /// Frames to be sent: replies to neighbours, and control's own.
    pub replies: Arc<ReplyQueue>,
    /// What the far side told.
    pub answers: Arc<Answers>,
}

/// The queues of a run as control sees them, and what it shares with their tasks.
pub struct Wiring {
    pub times: Times,
    /// Transmit queues, in the order of their lanes.
    pub send: Vec<SendSide>,
    /// Due packets that each of them catches up on, at least.
    pub backlog: u64,
    pub receive: Vec<ReceiveSide>,
    pub reflect: Vec<ReflectSide>,
    /// The rings of every sender and receiver.
    pub rings: Vec<Arc<IntervalRing>>,
    /// One for each port.
    pub mailboxes: Vec<Mailbox>,
    /// When control ended the run before its time, ticks.
    pub cut: Arc<AtomicU64>,
    /// Of each lane what all receive queues saw together; empty where there is one queue.
    pub unions: Arc<[Arc<LaneUnion>]>,
    /// Ports may share a link, and hear what another one sends, and the same answers.
    pub hear_each_other: bool,
}

/// When and on what clock the run goes.
#[derive(Clone, Copy)]
pub struct Times {
    pub clock: Clock,
    /// When sending begins.
    pub start: Ticks,
    /// When it ends, if not by count.
    pub end: Ticks,
    /// See [`Mark`].
    pub run: u8,
    /// See [`Mark`].
    pub first_lane: u16,
}

/// What the probes of a run are told from others' by.
#[derive(Clone, Copy)]
pub struct Mark {
    /// The run id in the probe.
    pub run: u8,
    /// What lanes are counted up from in the probe, round 2^16: 16 bits more by which runs on one link are told apart.
    pub first_lane: u16,
}

impl Mark {
    /// One that hardly another run has.
    pub fn draw() -> Self {
        let random = crate::run::random();
        Self {
            run: random as u8,
            first_lane: (random >> 8) as u16,
        }
    }
}

impl Times {
    pub fn of(plan: &SendPlan, mark: Mark, stage: &Stage<'_, '_, '_>) -> Self {
        let (clock, start) = (stage.clock, stage.start);
        Self {
            clock,
            start,
            end: plan
                .duration_ns
                .map_or(Ticks(u64::MAX), |ns| start.after(clock.ticks_from_ns(ns))),
            run: mark.run,
            first_lane: mark.first_lane,
        }
    }
}

impl Wiring {
    /// A sum over all transmit queues.
    pub fn sent(&self, pick: fn(&SendCounters) -> u64) -> u64 {
        self.send.iter().map(|side| pick(&side.counters)).sum()
    }

    /// A sum over all receive queues.
    pub fn received(&self, pick: fn(&ReceiveCounters) -> u64) -> u64 {
        self.receive.iter().map(|side| pick(&side.counters)).sum()
    }

    pub fn queues(&self) -> Vec<QueueSummary> {
        let sent = |side: &SendSide| side.place.moved("tx", side.counters.accepted.get());
        let received = |side: &ReceiveSide| side.place.moved("rx", side.counters.frames.get());
        shares(
            self.send
                .iter()
                .map(sent)
                .chain(self.receive.iter().map(received)),
        )
    }

    /// Whether every sender has sent what it should.
    pub fn is_done(&self) -> bool {
        self.send.iter().all(|side| side.counters.done.get() == 1)
    }

    /// When the last packet left, not before the start: a sender that was late by then sends what was due before the end after it.
    pub fn last_sent(&self) -> Ticks {
        let last = self.send.iter().map(|side| side.counters.last_ticks.get());
        Ticks(last.max().unwrap_or(0)).max(self.times.start)
    }
}

/// Buffers that the tasks of a queue pair of each kind may hold back.
pub fn buffers_held(plan: &SendPlan) -> usize {
    let burst = plan.machine.burst;
    let own = dataplane::send::buffers_held(burst) + dataplane::receive::buffers_held(burst);
    if plan.has_reflector() {
        own + reflector::buffers_held(burst, plan.fault.is_some())
    } else {
        own
    }
}
