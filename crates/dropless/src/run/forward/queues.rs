//! Queues that are forwarded from one port to another, and what they count.

use std::sync::Arc;

use dataplane::Task;
use dataplane::flows::{FlowReader, FlowTable};
use dataplane::forward::{
    ForwardCounters, ForwardPlan, ForwardResult, ForwardTask, FromHost, Host, Lengths, Rewrite, ToHost,
};
use dataplane::io::{Allocate, FramesMut, Receive, Transmit};
use dataplane::slot::{Fill, Slot};
use host::Medium;
use measure::Clock;
use measure::place::HOLD_NS;

use super::judges::TaskRules;
use crate::run::clock::now;
use crate::run::open::OpenPort;
use crate::run::queues::{QueuePlace, QueueSide};
use crate::run::stage::{OnBeside, OnPair};

/// Time for the host that a worker may save up: some thousand frames.
const HOST_NS: u64 = 10_000_000;

/// A queue that is received from, and where its frames go.
pub struct ForwardSide {
    pub side: QueueSide<ForwardCounters, ForwardResult>,
    /// The queue that it is sent to.
    pub to: QueuePlace,
    /// What flows it had.
    pub flows: Option<FlowReader>,
}

/// How the queues of a way are forwarded.
pub struct Forwarding {
    pub burst: usize,
    pub rewrite: Rewrite,
    /// The port that they leave by sends frames in several buffers.
    pub takes_chains: bool,
    /// What the ports do not say of long frames.
    pub lengths: Option<Lengths>,
    /// The port that they come by is no file.
    pub takes_rest: bool,
    pub clock: Clock,
    /// Flows that each queue remembers.
    pub flows: Option<usize>,
}

/// A task to be: between the queues of two ports.
pub struct ForwardQueue(ForwardPlan, Fill<ForwardResult>);

impl Forwarding {
    /// A queue of the way, and its task.
    pub fn queue(
        &self,
        (from, to): (QueuePlace, QueuePlace),
        rules: Option<TaskRules>,
    ) -> (ForwardSide, ForwardQueue) {
        let (totals, leave) = Slot::new();
        let counters = Arc::<ForwardCounters>::default();
        let flows = self.flows.map(|room| FlowTable::new(room, crate::run::random()));
        let reader = flows.as_ref().map(FlowTable::reader);
        let (rules, samples) = rules
            .map(|rules| ((rules.judge, rules.exchange), rules.samples))
            .unzip();
        let plan = ForwardPlan {
            burst: self.burst,
            hold_ticks: self.clock.ticks_from_ns(HOLD_NS),
            takes_chains: self.takes_chains,
            lengths: self.lengths,
            takes_rest: self.takes_rest,
            rewrite: self.rewrite,
            rules,
            flows,
            samples: samples.flatten(),
            clock: self.clock,
            counters: Arc::clone(&counters),
        };
        let side = QueueSide {
            place: from,
            counters,
            totals,
        };
        let side = ForwardSide {
            side,
            to,
            flows: reader,
        };
        (side, ForwardQueue(plan, leave))
    }
}

impl OnPair for ForwardQueue {
    fn on<'p, A: Allocate<Frames: FramesMut> + 'p>(
        self,
        rx: impl Receive<Frames = A::Frames> + 'p,
        tx: impl Transmit<Frames = A::Frames> + 'p,
        _buffers: A,
    ) -> Box<dyn Task + 'p> {
        Box::new(ForwardTask::new(rx, tx, self.0, self.1))
    }
}

impl OnBeside for (ForwardQueue, [u8; 6]) {
    fn on<'p, R, T, A>(
        self,
        (rx, tx): (
            impl Receive<Frames = A::Frames> + 'p,
            impl Transmit<Frames = A::Frames> + 'p,
        ),
        (towards, from): (Option<T>, Option<R>),
        buffers: A,
    ) -> Box<dyn Task + 'p>
    where
        R: Receive<Frames = A::Frames> + 'p,
        T: Transmit<Frames = A::Frames> + 'p,
        A: Allocate<Frames: FramesMut> + 'p,
    {
        let (ForwardQueue(plan, leave), mac) = self;
        let saved_ticks = plan.clock.ticks_from_ns(HOST_NS);
        let to = towards.map(|tx| ToHost::new(tx, buffers, mac, (now, saved_ticks)));
        let from = from.map(|rx| FromHost::new(rx, (now, saved_ticks)));
        Box::new(ForwardTask::beside(rx, tx, Host { to, from }, plan, leave))
    }
}

/// What two ports do not say of frames that are too long for them; `None` where both do.
pub fn lengths(from: &OpenPort<'_>, to: &OpenPort<'_>) -> Option<Lengths> {
    let is_silent = from.cut_at.is_some() || to.longest.is_some();
    is_silent.then(|| Lengths {
        cut_at: from.cut_at.unwrap_or(usize::MAX),
        longest: to.longest.unwrap_or(usize::MAX),
    })
}

/// Whether a port sends frames in several buffers. NICs are not asked to, since most are slower then, and receive none.
pub fn takes_chains(open: &OpenPort<'_>) -> bool {
    let can = |device: &dpdk::Port<'_>| device.capabilities().tx_segments;
    !matches!(open.traits().medium, Medium::Nic | Medium::Unknown) && open.device().is_some_and(can)
}
