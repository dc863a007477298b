//! Wires a capture: its ring and consumers, and which worker polls what.

use std::fs::File;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use capture::filter::Filter;
use capture::merge::Order;
use capture::pcapng::{self, Interface};
use capture::ring::Producer;
use capture::ring::share::Door;
use dataplane::Task;
use dataplane::capture::{
    CaptureCounters, CaptureTask, InterfaceDrops, MergeCounters, PacketPlan, QueuePlan, QueueSource, Resting,
    Sample, Selector, Source, TapReceive, TapSource, hand_over,
};
use dataplane::io::Receive;
use dataplane::slot::Slot;
use host::DriverStamps;
use measure::Clock;

use super::WHOLE;
use super::active::{ActiveCapture, CaptureSide};
use super::attach::{Attached, Link};
use super::consumer::ConsumerSide;
use super::guests::Guests;
use super::statistics::Interfaces;
use super::wall::Wall;
use crate::plan::CapturePlan;
use crate::run::clock::now;
use crate::run::generator;
use crate::run::listening::{Listening, Rows};
use crate::run::open::OpenPort;
use crate::run::queues::QueuePlace;
use crate::run::stage::{OnSource, Sourced, Stage};

/// A source to be, polled by the worker that merges, or, where there is a clock, by another one.
struct Queue(QueuePlan, Option<Clock>);

impl OnSource for Queue {
    fn on<'p>(self, rx: impl Receive + 'p) -> Sourced<'p> {
        let Self(plan, clock) = self;
        let Some(clock) = clock else {
            return (Box::new(QueueSource::new(rx, plan)), None);
        };
        let (task, source) = hand_over(rx, plan, (clock, now));
        (Box::new(source), Some(Box::new(task) as Box<dyn Task + 'p>))
    }
}

/// The queues of a capture on their workers.
struct Queues<'p> {
    sources: Vec<Box<dyn Source + 'p>>,
    sides: Vec<CaptureSide>,
    drops: Vec<Arc<InterfaceDrops>>,
}

/// Puts the tasks onto all queues, and makes the ring and its consumers; `sink` gets a stream of pcapng.
pub fn wire<'p, 'e: 'p>(
    plan: CapturePlan,
    attached: Option<Attached>,
    (sink, door): (Option<File>, Option<Door>),
    stage: &mut Stage<'_, 'p, 'e>,
) -> Result<ActiveCapture> {
    let stamps = driver_stamps(stage.ports);
    let interfaces: Vec<Interface> = match &attached {
        Some(host) => host.interfaces(&plan),
        None => stage
            .ports
            .iter()
            .map(|open| interface(open, stamps, &plan))
            .collect(),
    };
    let application = concat!("dropless ", env!("CARGO_PKG_VERSION"));
    let preamble = pcapng::preamble(application, &interfaces);
    let (mut producer, ring) = Producer::new(plan.ring.segments, plan.ring.segment_len, &preamble)?;
    let wall = Wall::begin(&stage.clock, stamps.is_none());
    let mut all = queues(&plan, (wall.epoch_ns, stamps), stage)?;
    let link = attached.map(|host| taps(host, &plan, wall.epoch_ns, (stage, &mut all)));
    let link = link.transpose()?;
    let Queues {
        sources,
        sides,
        drops,
    } = all;
    let counted = Interfaces::new(&drops, &sides);
    let mut consumers = Vec::new();
    if let Some(files) = &plan.files {
        let counted = counted.clone();
        let end = Box::new(move || counted.so_far());
        consumers.push(ConsumerSide::files(files, end, (&mut producer, &ring))?);
    }
    if let Some(sink) = sink {
        consumers.push(ConsumerSide::stream(sink, &mut producer, &ring)?);
    }
    let merged = Arc::<MergeCounters>::default();
    let (totals, leave) = Slot::new();
    let order = plan.patience_ns.map_or(Order::Strict, Order::Bounded);
    let task = CaptureTask::new(
        sources,
        (order, plan.count.unwrap_or(u64::MAX)),
        producer,
        (stage.clock, now),
        Arc::clone(&merged),
        leave,
    );
    let role = if plan.has_receivers() { "merge" } else { "capture" };
    match link {
        Some(_) => stage.add((0, role), Box::new(Resting(task))),
        None => stage.add((0, role), Box::new(task)),
    }
    let (last, mut generators) = (stage.cores.len() - 1, Vec::new());
    for port in 0..stage.ports.len() {
        let fed = generator::feed(stage, (last, plan.machine.burst), port)?;
        generators.extend(fed.into_iter().map(|sent| (port, sent)));
    }
    let lasts = (plan.duration_ns, plan.idle_exit_ns);
    Ok(ActiveCapture {
        course: Listening::new(&stage.clock, plan.interval_ns, lasts.0, lasts.1),
        plan,
        link,
        sides,
        merged,
        totals,
        drops,
        counted,
        generators,
        ring,
        consumers,
        guests: door.map(Guests::at),
        rows: Rows::create(stage.dir),
        clock: stage.clock,
        stamped_by: stamps.map_or("tsc", |stamps| stamps.clock),
        wall,
        draining: None,
    })
}

/// One worker polls all queues and merges. Of several the first merges, and the queues take turns on the others.
fn queues<'p, 'e: 'p>(
    plan: &CapturePlan,
    (epoch_ns, stamps): (u64, Option<DriverStamps>),
    stage: &mut Stage<'_, 'p, 'e>,
) -> Result<Queues<'p>> {
    let mut all = Queues {
        sources: Vec::new(),
        sides: Vec::new(),
        drops: stage.ports.iter().map(|_| Arc::default()).collect(),
    };
    let receivers = stage.cores.len() - 1;
    let hands_over = (receivers > 0).then_some(stage.clock);
    for port in 0..stage.ports.len() {
        let queues: Vec<_> = std::mem::take(&mut stage.ports[port].rx);
        let several = queues.len() > 1;
        let is_file = stage.ports[port].traits().medium == host::Medium::Files;
        for (queue, rx) in queues.into_iter().enumerate() {
            let worker = if receivers > 0 {
                1 + all.sides.len() % receivers
            } else {
                0
            };
            let counters = Arc::<CaptureCounters>::default();
            let packets = PacketPlan {
                direction: None,
                interface: port as u32,
                queue: several.then_some(queue as u32),
                snap_len: plan.snap_len as usize,
                epoch_ns,
                cut_at: stage.ports[port].cut_at,
                driver_unit_ns: stamps.map(|stamps| stamps.unit_ns),
                drops: Arc::clone(&all.drops[port]),
            };
            let of_queue = QueuePlan {
                burst: plan.machine.burst,
                waits: is_file,
                selector: selector(plan)?,
                packets,
                counters: Arc::clone(&counters),
            };
            let source = Queue(of_queue, hands_over);
            if let Some(source) = stage.source((worker, "receive"), port, rx, source) {
                all.sources.push(source);
                let core = stage.cores[worker];
                let place = QueuePlace { port, queue, core };
                all.sides.push(CaptureSide {
                    place,
                    direction: "rx",
                    counters,
                });
            }
        }
    }
    Ok(all)
}

/// The taps of the run that is looked into: queues of its ports.
fn taps<'p>(
    host: Attached,
    plan: &CapturePlan,
    epoch_ns: u64,
    (stage, all): (&Stage<'_, 'p, '_>, &mut Queues<'p>),
) -> Result<Link> {
    // Filter and sample look at whole frames, which are cut afterwards.
    let is_looked_at = plan.filter.is_some() || plan.sample.is_some();
    let snap_len = if is_looked_at { WHOLE } else { plan.snap_len };
    let (link, taps) = host.tap(snap_len)?;
    all.drops = (0..link.ports).map(|_| Arc::default()).collect();
    for ((told, consumer), tap) in taps.into_iter().zip(&link.taps) {
        let counters = Arc::<CaptureCounters>::default();
        let packets = PacketPlan {
            interface: told.port,
            queue: Some(told.queue),
            direction: Some(told.direction),
            snap_len: plan.snap_len as usize,
            epoch_ns,
            cut_at: None,
            driver_unit_ns: None,
            drops: Arc::clone(&all.drops[told.port as usize]),
        };
        let queue = QueuePlan {
            burst: plan.machine.burst,
            waits: false,
            selector: selector(plan)?,
            packets,
            counters: Arc::clone(&counters),
        };
        let read = TapReceive::new(consumer, stage.clock, Arc::clone(tap));
        all.sources.push(Box::new(TapSource::new(read, queue)));
        let place = QueuePlace {
            port: told.port as usize,
            queue: told.queue as usize,
            core: stage.cores[0],
        };
        all.sides.push(CaptureSide {
            place,
            direction: told.name(),
            counters,
        });
    }
    Ok(link)
}

/// What is wanted of a queue.
fn selector(plan: &CapturePlan) -> Result<Selector> {
    let filter = plan.filter.as_deref().map(Filter::compile).transpose();
    let filter = filter.map_err(|error| anyhow!("--filter {error}"))?;
    Ok(Selector::new(filter, plan.sample.map(Sample::one_in)))
}

/// The stamps of the driver, where there is nothing to merge with what it received: clocks of two kinds have no order.
fn driver_stamps(ports: &[OpenPort<'_>]) -> Option<DriverStamps> {
    match ports {
        [only] if only.rx.len() == 1 => only.uri.kind.traits().stamps,
        _ => None,
    }
}

/// What is told of a port in the file.
fn interface(open: &OpenPort<'_>, stamps: Option<DriverStamps>, plan: &CapturePlan) -> Interface {
    let description = match stamps {
        Some(stamps) => format!(
            "stamped by its driver with the clock of the {}, in units of {} ns",
            stamps.clock, stamps.unit_ns
        ),
        None => "stamped by the processor's time stamp counter when its burst was polled".into(),
    };
    Interface {
        name: open.uri.to_string(),
        description,
        mac: Some(open.mac),
        speed: None,
        snap_len: plan.snap_len,
        filter: plan.filter.clone(),
    }
}
