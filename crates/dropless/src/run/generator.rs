//! A generator at the other end of an embedded ring, so that a run that only receives has something to receive: probes of
//! usual sizes in some flows, at a gentle rate.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Result;
use dataplane::Task;
use dataplane::io::{Allocate, Receive, Transmit};
use dataplane::send::{SendCounters, SendPlan, SendResult, SendTask};
use dataplane::slot::{Fill, Slot};
use dataplane::swallow::SwallowTask;
use measure::{IntervalRing, Pacer, Rate, Schedule, SizeMix, StreamWeights, Ticks};
use wire::{Template, TemplateSpec};

use super::stage::{OnReceive, OnTransmit, Stage};
use crate::plan::FAR_V4;

/// Packets a second that it sends into each port.
pub const RATE_PPS: f64 = 10_000.0;
/// How many packets may be behind: what was due while its worker had not begun, or was away, is not made up for in a flood.
const BACKLOG: u64 = 64;
/// Flows of each queue.
const FLOWS: u32 = 64;
/// What its packets come from, and where they go.
const FROM: (Ipv4Addr, u16) = (Ipv4Addr::new(198, 18, 0, 1), 49_152);
const TO_PORT: u16 = 7;
/// Nobody reads its intervals: one that lasts as long as any run.
const INTERVAL_NS: u64 = 1 << 62;

/// Buffers that the generator of a queue may hold back.
pub const fn buffers_held(burst: usize) -> usize {
    dataplane::send::buffers_held(burst)
}

/// The task of a transmit queue that sends on a schedule, to be.
pub struct SendQueue(pub SendPlan, pub Fill<SendResult>);

impl OnTransmit for SendQueue {
    fn on<'p, A: Allocate + 'p>(
        self,
        tx: impl Transmit<Frames = A::Frames> + 'p,
        buffers: A,
    ) -> Box<dyn Task + 'p> {
        Box::new(SendTask::new(tx, buffers, self.0, self.1))
    }
}

/// The task of a receive queue that throws away what comes, to be.
struct Swallow;

impl OnReceive for Swallow {
    fn on<'p>(self, rx: impl Receive + 'p) -> Box<dyn Task + 'p> {
        Box::new(SwallowTask::new(rx))
    }
}

/// Has `worker` take what is sent out of `port`, where its other end is in this process.
pub fn swallow<'p, 'e: 'p>(stage: &mut Stage<'_, 'p, 'e>, worker: usize, port: usize) {
    let queues = stage.ports[port]
        .far
        .as_mut()
        .map(|far| std::mem::take(&mut far.rx));
    for rx in queues.into_iter().flatten() {
        stage.on_far_side(|stage| stage.receive((worker, "swallow"), port, rx, Swallow));
    }
}

/// Has `worker` send bursts of at most `burst` frames into `port`, where its other end is in this process. What each queue
/// sent.
pub fn feed<'p, 'e: 'p>(
    stage: &mut Stage<'_, 'p, 'e>,
    (worker, burst): (usize, usize),
    port: usize,
) -> Result<Vec<Arc<SendCounters>>> {
    let (near_mac, clock, start) = (stage.ports[port].mac, stage.clock, stage.start);
    let Some(far) = &mut stage.ports[port].far else {
        return Ok(Vec::new());
    };
    let far_mac = far.mac;
    let queues: Vec<_> = std::mem::take(&mut far.tx);
    let count = queues.len();
    let mix = SizeMix::Imix(64);
    let schedule = Schedule::build(&StreamWeights::of(&[(1.0, mix.clone())]))?;
    let mut all = Vec::new();
    for (queue, tx) in queues.into_iter().enumerate() {
        let template = |(frame_size, _)| {
            Template::new(&TemplateSpec {
                src_mac: far_mac,
                dst_mac: near_mac,
                src: SocketAddr::from(FROM),
                dst: SocketAddr::new(FAR_V4.into(), TO_PORT),
                lane: queue as u16,
                flows: FLOWS,
                dst_ports: TO_PORT..=TO_PORT,
                ..TemplateSpec::plain(frame_size)
            })
        };
        let templates: Result<Vec<_>, _> = mix.sizes().into_iter().map(template).collect();
        let counters = SendCounters::new();
        let plan = SendPlan {
            templates: templates?,
            schedule: schedule.entries().to_vec(),
            flows: vec![FLOWS],
            flow_start: queue as u32,
            flow_step: count as u32,
            lane_base: 0,
            pacer: Pacer::of_queue(Rate::Pps(RATE_PPS), (queue, count), start, clock.hz()),
            end: Ticks(u64::MAX),
            burst,
            backlog: BACKLOG,
            clock,
            intervals: Arc::new(IntervalRing::for_sender(1, INTERVAL_NS, 1, clock.ns(start))?),
            cut: Arc::new(AtomicU64::new(u64::MAX)),
            counters: Arc::clone(&counters),
            replies: Arc::default(),
            checksum_offload: false,
        };
        // What it sent is known from its counters, also while it runs.
        let (_, leave) = Slot::new();
        let task = SendQueue(plan, leave);
        if stage.on_far_side(|stage| stage.transmit((worker, "generate"), port, tx, task)) {
            all.push(counters);
        }
    }
    Ok(all)
}
