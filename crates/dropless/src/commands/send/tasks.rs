//! Wires a send run: which task polls which queue on which core, and what each publishes.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Result;
use dataplane::Task;
use dataplane::reflector_counters::Answers;
use dataplane::dpdk_io::{DpdkReceive, DpdkTransmit};
use dataplane::fault::{self, FaultCounters, Faults};
use dataplane::receive::{ReceiveCounters, ReceivePlan, ReceiveResult, ReceiveTask};
use dataplane::reflect::{ReflectCounters, ReflectPlan, ReflectResult, ReflectTask};
use dataplane::reply::ReplyQueue;
use dataplane::send::{SendCounters, SendPlan as TaskPlan, SendResult, SendTask};
use dataplane::slot::Slot;
use measure::{Clock, IntervalRing, Pacer, Rate, Ticks};
use wire::Addresses;

use super::load::{self, Load};
use crate::plan::{FAR_V4, FAR_V6, SendPlan};
use crate::run::clock::now;
use crate::run::pools::Pools;
use crate::run::session::Needs;
use crate::run::open::{Dpdk, OpenPort, Rx, Tx};
use crate::run::workers::Worker;

/// Holes in the sequences kept of a queue: each is joined to a pause.
const HOLES_MAX: usize = 1 << 16;

/// Sequence numbers that all windows of a receiving task remember together: 32 MiB of bits, some seconds at any rate.
const WINDOW_BITS: usize = 1 << 28;
/// How long the in-process reflector waits for a full ring.
const HOLD_NS: u64 = 100_000_000;
/// Probes that the injector delays at once, at most.
const DELAYED_MAX: usize = 4096;

/// One transmit queue, as the control thread sees it.
pub struct SendSide {
    /// Index of its port.
    pub port: usize,
    /// Queue of the port.
    pub queue: usize,
    /// Core of its worker.
    pub core: usize,
    /// What it publishes.
    pub counters: Arc<SendCounters>,
    /// What it leaves.
    pub totals: Slot<SendResult>,
}

/// One receive queue, as the control thread sees it.
pub struct ReceiveSide {
    /// Index of its port.
    pub port: usize,
    /// Queue of the port.
    pub queue: usize,
    /// Core of its worker.
    pub core: usize,
    /// What it publishes.
    pub counters: Arc<ReceiveCounters>,
    /// What it leaves.
    pub totals: Slot<ReceiveResult>,
}

/// One queue of the in-process reflector.
pub struct ReflectSide {
    /// What it publishes.
    pub counters: Arc<ReflectCounters>,
    /// What its injector publishes.
    pub faults: Arc<FaultCounters>,
    /// What it leaves.
    pub totals: Slot<ReflectResult>,
}

/// What passes between control and the tasks of one port.
#[derive(Default)]
pub struct Desk {
    /// Frames to be sent: replies to neighbours, and control's own.
    pub replies: Arc<ReplyQueue>,
    /// What the far side told.
    pub answers: Arc<Answers>,
}

/// The wiring.
pub struct Wiring<'a> {
    /// One for each core.
    pub workers: Vec<Worker<'a>>,
    /// Transmit queues, in the order of their lanes.
    pub send: Vec<SendSide>,
    /// Receive queues.
    pub receive: Vec<ReceiveSide>,
    /// In-process reflectors.
    pub reflect: Vec<ReflectSide>,
    /// The rings of every sender and receiver.
    pub rings: Vec<Arc<IntervalRing>>,
    /// One for each port.
    pub desks: Vec<Desk>,
    /// When control ended the run before its time, ticks.
    pub cut: Arc<AtomicU64>,
}

/// When and on what clock the run goes.
#[derive(Clone, Copy)]
pub struct Times {
    /// The clock.
    pub clock: Clock,
    /// When sending begins.
    pub start: Ticks,
    /// When it ends, if not by count.
    pub end: Ticks,
    /// The run id in the probe.
    pub run: u8,
}

/// Who polls what: with more than one core, sending, receiving and reflecting part.
struct Places {
    send: Vec<usize>,
    receive: Vec<usize>,
    reflect: Vec<usize>,
}

impl Places {
    fn new(cores: usize, reflects: bool) -> Self {
        let (measuring, reflect) = match (cores, reflects) {
            (1, _) => (1, vec![0]),
            (_, true) => (cores - 1, vec![cores - 1]),
            (_, false) => (cores, Vec::new()),
        };
        let senders = measuring.div_ceil(2);
        Self {
            send: (0..senders).collect(),
            receive: if measuring == 1 {
                vec![0]
            } else {
                (senders..measuring).collect()
            },
            reflect,
        }
    }
}

#[allow(
    clippy::too_many_lines,
    reason = "the whole wiring, in the order of the packet's way"
)]
/// Makes all tasks of the run. Takes the queues out of `ports`.
pub fn wire<'p, 'e>(
    plan: &SendPlan,
    pools: Option<&'p Pools<'e>>,
    ports: &mut [OpenPort<'e>],
    loads: &[Load],
    cores: &[usize],
    times: Times,
) -> Result<Wiring<'p>>
where
    'e: 'p,
{
    let streams = plan.streams.len();
    let slots = measure::interval::slots_for(streams, plan.interval_ns, plan.drain_ns)?;
    let start = times.clock.ns(times.start);
    let places = Places::new(cores.len(), plan.has_reflector());
    let mut wiring = Wiring {
        workers: cores.iter().map(|core| Worker::new(*core)).collect(),
        send: Vec::new(),
        receive: Vec::new(),
        reflect: Vec::new(),
        rings: Vec::new(),
        desks: ports.iter().map(|_| Desk::default()).collect(),
        cut: Arc::new(AtomicU64::new(u64::MAX)),
    };
    let senders: usize = ports
        .iter()
        .map(|open| open.tx.len().min(usize::from(plan.tx_queues)))
        .sum();
    let sent: Vec<_> = (0..senders).map(|_| SendCounters::new()).collect();
    // Receivers first: what comes back is taken before more is sent.
    for (port, open) in ports.iter_mut().enumerate() {
        if plan.tx_only {
            break;
        }
        let cold = open.is_cold();
        let dpdk = pools.map(|pools| pools.of_port(port));
        let verify = if open.is_sockets() {
            plan.verify_behind_sockets()
        } else {
            plan.verify.into()
        };
        let holes_max = if open.rx.len() == 1 { HOLES_MAX } else { 0 };
        for (queue, rx) in open.rx.drain(..).enumerate() {
            let counters = ReceiveCounters::new();
            let intervals = Arc::new(IntervalRing::new(streams, plan.interval_ns, slots, start)?);
            wiring.rings.push(Arc::clone(&intervals));
            let task = ReceivePlan {
                lanes: plan.lanes(),
                streams,
                window: window(plan.lanes()),
                latency_bits: match streams {
                    0..=64 => 10,
                    65..=4096 => 7,
                    _ => 5,
                },
                run: times.run,
                start,
                drain_ns: plan.drain_ns,
                verify,
                burst: plan.machine.burst,
                clock: times.clock,
                tsc: now,
                intervals,
                counters: Arc::clone(&counters),
                me: loads[port].me.clone(),
                replies: Arc::clone(&wiring.desks[port].replies),
                answers: Arc::clone(&wiring.desks[port].answers),
                holes_max,
                senders: sent.clone(),
            };
            let worker = places.receive[wiring.receive.len() % places.receive.len()];
            let (totals, leave) = Slot::new();
            let task: Box<dyn Task + 'p> = match (rx, dpdk) {
                (Rx::Socket(rx), _) => Box::new(ReceiveTask::new(*rx, task, leave)),
                (Rx::Device(rx), Some(dpdk)) => {
                    Box::new(ReceiveTask::new(DpdkReceive::new(dpdk.eal, rx, cold), task, leave))
                }
                (Rx::Device(_), None) => continue,
            };
            wiring.workers[worker].add("receive", task);
            wiring.receive.push(ReceiveSide {
                port,
                queue,
                core: cores[worker],
                counters,
                totals,
            });
        }
    }
    for (port, open) in ports.iter_mut().enumerate() {
        let queues = open.tx.len().min(usize::from(plan.tx_queues));
        let dpdk = pools.map(|pools| pools.of_port(port));
        let offload =
            plan.checksum_offload && open.granted().is_some_and(|granted| granted.tx_checksum_offload);
        let tx_room = open.tx_room();
        for (queue, tx) in open.tx.drain(..).take(queues).enumerate() {
            let number = wiring.send.len();
            let lane_base = number * streams;
            let rate = match loads[port].rate {
                Rate::Pps(pps) => Rate::Pps(pps / queues as f64),
                Rate::Max => Rate::Max,
            };
            let mut pacer = Pacer::new(rate, times.start, times.clock.hz());
            if let Some(count) = plan.count {
                let (each, rest) = (count / senders as u64, count % senders as u64);
                pacer = pacer.with_limit(each + u64::from((number as u64) < rest));
            }
            let counters = Arc::clone(&sent[number]);
            let intervals = Arc::new(IntervalRing::for_sender(streams, plan.interval_ns, slots, start)?);
            wiring.rings.push(Arc::clone(&intervals));
            let task = TaskPlan {
                templates: load::templates(plan, &loads[port], port, lane_base, times.run, offload)?,
                schedule: loads[port].schedule.clone(),
                flows: plan.streams.iter().map(|stream| stream.flows).collect(),
                flow_start: queue as u32,
                flow_step: queues as u32,
                lane_base: lane_base as u16,
                pacer,
                // A packet that is due when the time is up belongs to the time after: 10 s at 100 pps are 1000.
                end: Ticks(times.end.0 - 1),
                burst: plan.machine.burst,
                backlog: plan.backlog.unwrap_or(tx_room),
                clock: times.clock,
                intervals,
                cut: Arc::clone(&wiring.cut),
                counters: Arc::clone(&counters),
                replies: Arc::clone(&wiring.desks[port].replies),
                checksum_offload: offload,
            };
            let worker = places.send[number % places.send.len()];
            let (totals, leave) = Slot::new();
            let task: Box<dyn Task + 'p> = match (tx, dpdk) {
                (Tx::Socket(tx), _) => {
                    let buffers = tx.buffers();
                    Box::new(SendTask::new(*tx, buffers, task, leave))
                }
                (Tx::Device(tx), Some(dpdk)) => {
                    let buffers = dpdk.buffers();
                    Box::new(SendTask::new(DpdkTransmit::new(dpdk.eal, tx), buffers, task, leave))
                }
                (Tx::Device(_), None) => continue,
            };
            wiring.workers[worker].add("send", task);
            wiring.send.push(SendSide {
                port,
                queue,
                core: cores[worker],
                counters,
                totals,
            });
        }
    }
    for (port, open) in ports.iter_mut().enumerate() {
        let dpdk = pools.map(|pools| pools.of_port(port));
        reflectors(plan, dpdk, open, &places, times, &mut wiring);
    }
    Ok(wiring)
}

/// The in-process reflector of an embedded ring.
fn reflectors<'p, 'e>(
    plan: &SendPlan,
    dpdk: Option<Dpdk<'p, 'e>>,
    open: &mut OpenPort<'e>,
    places: &Places,
    times: Times,
    wiring: &mut Wiring<'p>,
) where
    'e: 'p,
{
    let (Some(far), Some(dpdk)) = (&mut open.far, dpdk) else {
        return;
    };
    let cold = far.is_cold();
    for (rx, tx) in far.rx.drain(..).zip(far.tx.drain(..)) {
        let (Rx::Device(rx), Tx::Device(tx)) = (rx, tx) else {
            continue;
        };
        let number = wiring.reflect.len();
        let (totals, leave) = Slot::new();
        let side = ReflectSide {
            counters: ReflectCounters::new(),
            faults: Arc::default(),
            totals,
        };
        let faults = plan.fault.as_ref().map(|spec| {
            let seed = plan.seed.wrapping_add(number as u64);
            Faults::new(
                spec,
                seed,
                times.clock.hz(),
                DELAYED_MAX,
                dpdk.buffers(),
                Arc::clone(&side.faults),
            )
        });
        let task = ReflectPlan {
            only_ours: false,
            me: Addresses {
                mac: far.mac,
                ips: vec![FAR_V4.into(), FAR_V6.into()],
            },
            burst: plan.machine.burst,
            hold_ticks: times.clock.ticks_from_ns(HOLD_NS),
            counters: Arc::clone(&side.counters),
            own_counters: None,
        };
        let task = ReflectTask::new(
            DpdkReceive::new(dpdk.eal, rx, cold),
            DpdkTransmit::new(dpdk.eal, tx),
            task,
            faults,
            leave,
        );
        let worker = places.reflect[number % places.reflect.len().max(1)];
        wiring.workers[worker].add("reflect", Box::new(task));
        wiring.reflect.push(side);
    }
}

/// What a sending run wants of its ports.
pub fn needs(plan: &SendPlan) -> Result<Needs> {
    let burst = plan.machine.burst;
    let by_injector = plan.fault.as_ref().map_or(0, |_| fault::buffers_held(DELAYED_MAX));
    Ok(Needs {
        queues: (plan.rx_queues, plan.tx_queues),
        largest_frame: plan.largest_frame()?,
        held_per_queue: dataplane::send::buffers_held(burst)
            + dataplane::receive::buffers_held(burst)
            + dataplane::reflect::buffers_held(burst)
            + by_injector,
    })
}

fn window(lanes: usize) -> usize {
    let each = (WINDOW_BITS / lanes.max(1)).clamp(1 << 12, 1 << 26);
    1 << each.ilog2()
}
