//! Prints what a packet costs each loop, in nanoseconds, over rings of this process: send, reflect, receive, burst by burst
//! on one core, the best of several rounds. Arguments: the frame size, with FCS, and of how many streams the packets are in
//! turn.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use dataplane::dpdk_io::{DpdkBuffers, DpdkReceive, DpdkTransmit};
use dataplane::fault::Faults;
use dataplane::receive::{ReceiveCounters, ReceivePlan, ReceiveTask};
use dataplane::reflect::{OwnMac, ReflectCounters, ReflectPlan, ReflectTask};
use dataplane::reflector_counters::Answers;
use dataplane::send::{SendCounters, SendPlan, SendTask};
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use dpdk::{Eal, Pool, Port, PortConfig};
use measure::{Clock, Entry, IntervalRing, Nanos, Pacer, Rate, Ticks};
use wire::{Addresses, Template, TemplateSpec, Verify};

const BURST: usize = 64;
const ROUNDS: usize = 40;
const BURSTS_A_ROUND: u64 = 500;

fn now() -> Ticks {
    Ticks(dpdk::tsc())
}

fn template(frame_size: usize, lane: u16) -> Result<Template, wire::TemplateError> {
    Template::new(&TemplateSpec {
        run: 9,
        lane,
        ..TemplateSpec::plain(frame_size)
    })
}

/// The three loops, in the order in which a packet meets them.
#[allow(clippy::too_many_lines, reason = "one loop after the other")]
fn measure(eal: &Eal, pool: &Pool<'_>, frame_size: usize, streams: u16) -> Result<(), Box<dyn Error>> {
    let (near, far) = eal.ring_pair("loops", 1024, 1)?;
    let config = PortConfig::default();
    let (mut near, mut near_rx, mut near_tx) = Port::by_name(eal, &near)?.configure(&config, pool)?;
    let (mut far, mut far_rx, mut far_tx) = Port::by_name(eal, &far)?.configure(&config, pool)?;
    near.start()?;
    far.start()?;
    let (rx, tx) = (near_rx.remove(0), near_tx.remove(0));
    let (far_rx, far_tx) = (far_rx.remove(0), far_tx.remove(0));
    let clock = Clock::from_calibration(now().0, 1 << 40, 1e9);
    let start = now();
    let count = usize::from(streams);
    let (interval_ns, slots, start_ns) = (1_000_000_000, 16, clock.ns(start));
    let me = |last| Addresses {
        mac: [2, 0, 0, 0, 0, last],
        ips: Vec::new(),
    };
    let buffers = DpdkBuffers::new(eal, pool, false);
    let send_counters = SendCounters::new();
    let mut send = SendTask::new(
        DpdkTransmit::new(eal, tx, false),
        buffers,
        SendPlan {
            templates: (0..streams)
                .map(|stream| template(frame_size, stream))
                .collect::<Result<_, _>>()?,
            schedule: (0..streams)
                .map(|stream| Entry {
                    stream,
                    template: stream.into(),
                })
                .collect(),
            flows: vec![1; count],
            flow_start: 0,
            flow_step: 1,
            lane_base: 0,
            pacer: Pacer::new(Rate::Max, start, 1e9),
            end: Ticks(u64::MAX),
            burst: BURST,
            backlog: 1024,
            clock,
            intervals: IntervalRing::for_sender(count, interval_ns, slots, start_ns)?.into(),
            cut: Arc::new(AtomicU64::new(u64::MAX)),
            counters: Arc::clone(&send_counters),
            replies: Arc::default(),
            checksum_offload: false,
        },
        Slot::new().1,
    );
    let mut reflect = ReflectTask::new(
        DpdkReceive::new(eal, far_rx, false),
        DpdkTransmit::new(eal, far_tx, false),
        ReflectPlan {
            own_mac: OwnMac::Any,
            only_ours: false,
            me: me(2),
            burst: BURST,
            hold_ticks: u64::MAX,
            takes_rest: true,
            counters: ReflectCounters::new(),
            own_counters: None,
        },
        None::<Faults<DpdkBuffers<'_, '_>>>,
        Slot::new().1,
    );
    let counters = ReceiveCounters::new();
    let mut receive = ReceiveTask::new(
        DpdkReceive::new(eal, rx, false),
        ReceivePlan {
            first_lane: 0,
            lanes: count,
            streams: count,
            window: 1 << 16,
            unions: Arc::default(),
            own_macs: Arc::default(),
            ends: Arc::default(),
            latency_bits: 10,
            run: 9,
            start: Nanos(0),
            drain_ns: 1 << 40,
            verify: Verify::Checksum,
            burst: BURST,
            clock,
            tsc: now,
            intervals: IntervalRing::new(count, interval_ns, slots, start_ns)?.into(),
            counters: Arc::clone(&counters),
            me: me(1),
            replies: Arc::default(),
            answers: Arc::new(Answers::default()),
            holes_max: 0,
            senders: Vec::new(),
        },
        Slot::new().1,
    );
    let mut best_ns = [f64::MAX; 3];
    for _ in 0..ROUNDS {
        let mut spent_ns = [0_u128; 3];
        for _ in 0..BURSTS_A_ROUND {
            let tasks: [&mut dyn Task; 3] = [&mut send, &mut reflect, &mut receive];
            for (task, spent_ns) in tasks.into_iter().zip(&mut spent_ns) {
                let began = Instant::now();
                task.poll(now(), Phase::Run);
                *spent_ns += began.elapsed().as_nanos();
            }
        }
        for (best, spent) in best_ns.iter_mut().zip(spent_ns) {
            *best = best.min(spent as f64 / (BURSTS_A_ROUND * BURST as u64) as f64);
        }
    }
    let (accepted, received) = (send_counters.accepted.get(), counters.received.get());
    if accepted != received || accepted != ROUNDS as u64 * BURSTS_A_ROUND * BURST as u64 {
        return Err(format!("{accepted} packets were accepted, {received} came back").into());
    }
    let [send, reflect, receive] = best_ns;
    println!("{frame_size:>6} {send:>8.2} {reflect:>9.2} {receive:>9.2}");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let frame_size = std::env::args().nth(1).map_or(Ok(64), |size| size.parse())?;
    let streams = std::env::args().nth(2).map_or(Ok(1), |streams| streams.parse())?;
    let arguments = [
        "--no-huge",
        "--no-pci",
        "--no-shconf",
        "-m",
        "128",
        "--file-prefix",
        "dl-loops",
    ];
    let eal = Eal::init(&arguments.map(str::to_owned))?;
    let pool = Pool::new(&eal, "packets", 8191, 512, 2048, None)?;
    println!("  size     send   reflect   receive");
    measure(&eal, &pool, frame_size, streams)
}
