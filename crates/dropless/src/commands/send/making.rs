//! Makes the tasks of a send run: which one polls which queue on which core.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Result;
use dataplane::Task;
use dataplane::io::Receive;
use dataplane::receive::{ReceiveCounters, ReceivePlan, ReceiveResult, ReceiveTask};
use dataplane::reflect::OwnMac;
use dataplane::send::{SendCounters, SendPlan as TaskPlan};
use dataplane::slot::{Fill, Slot};
use host::Medium;
use measure::{IntervalRing, LaneUnion, Nanos, Pacer, Rate, Ticks};
use wire::{Addresses, Ends};

use super::load::{self, Load};
use super::wiring::{Mailbox, Mark, ReceiveSide, SendSide, Times, Wiring};
use crate::plan::{FAR_V4, FAR_V6, SendPlan};
use crate::run::clock::now;
use crate::run::generator::SendQueue;
use crate::run::open::OpenPort;
use crate::run::queues::QueuePlace;
use crate::run::reflector::Reflecting;
use crate::run::stage::{OnReceive, Stage};

/// Holes in the sequences kept of a queue: each is joined to a stall.
const HOLES_MAX: usize = 1 << 16;

/// Sequence numbers that all windows of a receiving task remember together: 32 MiB of bits, some seconds at any rate.
const WINDOW_BITS: usize = 1 << 28;

/// Makes all tasks of the run. Takes the queues out of the ports.
pub fn wire<'p, 'e: 'p>(
    plan: &SendPlan,
    loads: &[Load],
    mark: Mark,
    stage: &mut Stage<'_, 'p, 'e>,
) -> Result<Wiring> {
    let streams = plan.streams.len();
    let times = Times::of(plan, mark, stage);
    let sending = |open: &OpenPort<'_>| open.tx.len().min(usize::from(plan.tx_queues));
    let senders: usize = stage.ports.iter().map(sending).sum();
    let receivers: usize = stage.ports.iter().map(|open| open.rx.len()).sum();
    let polled = if plan.tx_only { 0 } else { receivers };
    let lanes = if receivers > 1 { plan.lanes() } else { 0 };
    let window = window(plan.lanes(), receivers);
    let mut wiring = Wiring {
        times,
        send: Vec::new(),
        backlog: u64::MAX,
        receive: Vec::new(),
        reflect: Vec::new(),
        rings: Vec::new(),
        mailboxes: stage.ports.iter().map(|_| Mailbox::default()).collect(),
        cut: Arc::new(AtomicU64::new(u64::MAX)),
        hear_each_other: may_share_a_link(stage.ports),
        unions: (0..lanes).map(|_| Arc::new(LaneUnion::new(window))).collect(),
    };
    let making = Making {
        plan,
        loads,
        window,
        ends: ends(plan, loads, times.run),
        own_macs: own_macs(loads, wiring.hear_each_other),
        places: Places::new(stage.cores.len(), (senders, polled), plan.has_reflector()),
        slots: measure::interval::slots_for(streams, plan.interval_ns, plan.drain_ns)?,
        start: times.clock.ns(times.start),
        sent: (0..senders).map(|_| SendCounters::new()).collect(),
    };
    // Receivers first: what comes back is taken before more is sent.
    for port in 0..if plan.tx_only { 0 } else { stage.ports.len() } {
        making.receivers(port, stage, &mut wiring)?;
    }
    for port in 0..stage.ports.len() {
        making.senders(port, stage, &mut wiring)?;
    }
    for port in 0..stage.ports.len() {
        making.reflectors(port, stage, &mut wiring);
    }
    Ok(wiring)
}

/// Who polls what: with more than one core, sending, receiving and reflecting part.
struct Places {
    send: Vec<usize>,
    receive: Vec<usize>,
    reflect: Vec<usize>,
}

impl Places {
    /// Of this many `cores`, for so many queues that send and that receive.
    fn new(cores: usize, (sending, receiving): (usize, usize), reflects: bool) -> Self {
        let (measuring, reflect) = match (cores, reflects) {
            (1, _) => (1, vec![0]),
            (_, true) => (cores - 1, vec![cores - 1]),
            (_, false) => (cores, Vec::new()),
        };
        // Halves, unless one of them has fewer queues.
        let senders = measuring.div_ceil(2).min(sending);
        let senders = senders.max(measuring.saturating_sub(receiving));
        let receivers = if measuring == 1 { 0..1 } else { senders..measuring };
        Self {
            send: (0..senders).collect(),
            receive: receivers.collect(),
            reflect,
        }
    }
}

/// What the making of all tasks shares.
struct Making<'m> {
    plan: &'m SendPlan,
    loads: &'m [Load],
    places: Places,
    /// Sequence numbers that a window remembers.
    window: usize,
    /// The ends of all streams, of all ports.
    ends: Arc<[Ends]>,
    own_macs: Arc<[[u8; 6]]>,
    /// Interval slots of each ring.
    slots: usize,
    start: Nanos,
    /// What each transmit queue publishes.
    sent: Vec<Arc<SendCounters>>,
}

impl Making<'_> {
    /// The tasks that receive on one port.
    fn receivers<'p, 'e: 'p>(
        &self,
        port: usize,
        stage: &mut Stage<'_, 'p, 'e>,
        wiring: &mut Wiring,
    ) -> Result<()> {
        let (plan, times) = (self.plan, wiring.times);
        let streams = plan.streams.len();
        let open = &mut stage.ports[port];
        let verify = if open.sockets().is_some() {
            plan.verify_behind_sockets()
        } else {
            plan.verify.into()
        };
        let queues: Vec<_> = std::mem::take(&mut open.rx);
        let holes_max = if queues.len() == 1 { HOLES_MAX } else { 0 };
        for (queue, rx) in queues.into_iter().enumerate() {
            let counters = ReceiveCounters::new();
            let ring = IntervalRing::new(streams, plan.interval_ns, self.slots, self.start);
            let intervals = Arc::new(ring?);
            wiring.rings.push(Arc::clone(&intervals));
            let task = ReceivePlan {
                lanes: plan.lanes(),
                streams,
                window: self.window,
                unions: Arc::clone(&wiring.unions),
                latency_bits: match streams {
                    0..=64 => 10,
                    65..=4096 => 7,
                    _ => 5,
                },
                run: times.run,
                first_lane: times.first_lane,
                start: self.start,
                drain_ns: plan.drain_ns,
                verify,
                ends: Arc::clone(&self.ends),
                burst: plan.machine.burst,
                clock: times.clock,
                tsc: now,
                intervals,
                counters: Arc::clone(&counters),
                me: self.loads[port].me.clone(),
                replies: Arc::clone(&wiring.mailboxes[port].replies),
                answers: Arc::clone(&wiring.mailboxes[port].answers),
                own_macs: Arc::clone(&self.own_macs),
                holes_max,
                senders: self.sent.clone(),
            };
            let worker = self.places.receive[wiring.receive.len() % self.places.receive.len()];
            let (totals, leave) = Slot::new();
            if stage.receive((worker, "receive"), port, rx, ReceiveQueue(task, leave)) {
                let core = stage.cores[worker];
                let place = QueuePlace { port, queue, core };
                wiring.receive.push(ReceiveSide {
                    place,
                    counters,
                    totals,
                });
            }
        }
        Ok(())
    }

    /// The tasks that send on one port.
    fn senders<'p, 'e: 'p>(
        &self,
        port: usize,
        stage: &mut Stage<'_, 'p, 'e>,
        wiring: &mut Wiring,
    ) -> Result<()> {
        let (plan, times, load) = (self.plan, wiring.times, &self.loads[port]);
        let streams = plan.streams.len();
        let open = &mut stage.ports[port];
        let queues = open.tx.len().min(usize::from(plan.tx_queues));
        let offload =
            plan.checksum_offload && open.granted().is_some_and(|granted| granted.tx_checksum_offload);
        // A file has no pace that could be missed, and so nothing is given up for it.
        let room = match open.traits().medium {
            Medium::Files => u64::MAX,
            _ => open.tx_room(),
        };
        let backlog = plan.backlog.unwrap_or(room);
        wiring.backlog = wiring.backlog.min(backlog);
        let taken: Vec<_> = open.tx.drain(..).take(queues).collect();
        for (queue, tx) in taken.into_iter().enumerate() {
            let number = wiring.send.len();
            let lane_base = number * streams;
            let counters = Arc::clone(&self.sent[number]);
            let ring = IntervalRing::for_sender(streams, plan.interval_ns, self.slots, self.start);
            let intervals = Arc::new(ring?);
            wiring.rings.push(Arc::clone(&intervals));
            let task = TaskPlan {
                templates: load::templates(plan, load, (port, lane_base), &times, offload)?,
                schedule: load.schedule.clone(),
                flows: plan.streams.iter().map(|stream| stream.flows).collect(),
                flow_start: queue as u32,
                flow_step: queues as u32,
                lane_base: lane_base as u16,
                pacer: self.pacer(load.rate, (queue, queues), number, &times),
                // A packet that is due when the time is up belongs to the time after: 10 s at 100 pps are 1000.
                end: Ticks(times.end.0 - 1),
                burst: plan.machine.burst,
                backlog,
                clock: times.clock,
                intervals,
                cut: Arc::clone(&wiring.cut),
                counters: Arc::clone(&counters),
                replies: Arc::clone(&wiring.mailboxes[port].replies),
                checksum_offload: offload,
            };
            let worker = self.places.send[number % self.places.send.len()];
            let (totals, leave) = Slot::new();
            if stage.transmit((worker, "send"), port, tx, SendQueue(task, leave)) {
                let core = stage.cores[worker];
                let place = QueuePlace { port, queue, core };
                wiring.send.push(SendSide {
                    place,
                    counters,
                    totals,
                });
            }
        }
        Ok(())
    }

    /// When the packets of transmit queue `number` are due, one of `queues` of its port.
    fn pacer(&self, rate: Rate, (queue, queues): (usize, usize), number: usize, times: &Times) -> Pacer {
        let pacer = Pacer::of_queue(rate, (queue, queues), times.start, times.clock.hz());
        let Some(count) = self.plan.count else {
            return pacer;
        };
        let senders = self.sent.len() as u64;
        let (each, rest) = (count / senders, count % senders);
        pacer.with_limit(each + u64::from((number as u64) < rest))
    }

    /// The in-process reflector of an embedded ring.
    fn reflectors<'p, 'e: 'p>(&self, port: usize, stage: &mut Stage<'_, 'p, 'e>, wiring: &mut Wiring) {
        let Some(far) = &mut stage.ports[port].far else {
            return;
        };
        let reflecting = Reflecting {
            me: Addresses {
                mac: far.mac,
                ips: vec![FAR_V4.into(), FAR_V6.into()],
            },
            own_mac: OwnMac::Any,
            only_ours: false,
            burst: self.plan.machine.burst,
            fault: self.plan.fault.as_ref(),
            seed: self.plan.seed,
            clock: wiring.times.clock,
            takes_rest: false,
            own_counters: None,
        };
        let pairs: Vec<_> = far.rx.drain(..).zip(far.tx.drain(..)).collect();
        for (queue, (rx, tx)) in pairs.into_iter().enumerate() {
            let number = wiring.reflect.len();
            let worker = self.places.reflect[number % self.places.reflect.len().max(1)];
            let core = stage.cores[worker];
            let (side, task) = reflecting.queue(number, QueuePlace { port, queue, core });
            let place = (worker, "reflect");
            if stage.on_far_side(|stage| stage.pair(place, (port, rx), (port, tx), task)) {
                wiring.reflect.push(side);
            }
        }
    }
}

/// A receive queue's task to be.
struct ReceiveQueue(ReceivePlan, Fill<ReceiveResult>);

impl OnReceive for ReceiveQueue {
    fn on<'p>(self, rx: impl Receive + 'p) -> Box<dyn Task + 'p> {
        Box::new(ReceiveTask::new(rx, self.0, self.1))
    }
}

/// Whether several of the ports may be on one link: those of shared memory have one of their own each.
fn may_share_a_link(ports: &[OpenPort<'_>]) -> bool {
    let on_a_link = |open: &&OpenPort<'_>| {
        let medium = open.traits().medium;
        matches!(
            medium,
            Medium::Nic | Medium::SharedInterface | Medium::OwnInterface
        )
    };
    ports.iter().filter(on_a_link).count() > 1
}

/// The MAC addresses from which probes are sent, where another port may hear them.
fn own_macs(loads: &[Load], hear_each_other: bool) -> Arc<[[u8; 6]]> {
    let heard = loads.iter().filter(|_| hear_each_other);
    heard.map(|load| load.me.mac).collect()
}

fn ends(plan: &SendPlan, loads: &[Load], run: u8) -> Arc<[Ends]> {
    let ports = loads.iter().enumerate();
    let specs = ports.flat_map(|(port, load)| {
        (0..plan.streams.len()).map(move |stream| load::spec(plan, load, port, stream, run))
    });
    specs.map(|spec| Ends::of(&spec)).collect()
}

/// Sequence numbers that each window remembers: fewer where what leaves one is compared with what others saw.
fn window(lanes: usize, receivers: usize) -> usize {
    let bits = if receivers > 1 {
        WINDOW_BITS / 4
    } else {
        WINDOW_BITS
    };
    let each = (bits / lanes.max(1)).clamp(1 << 12, bits / 4);
    1 << each.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_has_something_to_do() {
        let shares = |cores, queues, reflects| {
            let places = Places::new(cores, queues, reflects);
            [places.send, places.receive, places.reflect].map(|share| share.len())
        };
        assert_eq!(shares(2, (1, 1), true), [1, 1, 1]);
        assert_eq!(shares(3, (1, 1), true), [1, 1, 1]);
        assert_eq!(shares(2, (1, 1), false), [1, 1, 0]);
        assert_eq!(shares(5, (4, 4), true), [2, 2, 1]);
        assert_eq!(shares(4, (1, 3), false), [1, 3, 0]);
        assert_eq!(shares(4, (3, 1), false), [3, 1, 0]);
        assert_eq!(shares(4, (4, 0), false), [4, 0, 0]);
    }
}
