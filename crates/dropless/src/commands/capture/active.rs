//! A capture under way: its queues, its ring, its files, what it tells, and when it is over.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use capture::merge::Order;
use capture::pcapng::{self, Interface};
use capture::ring::share::{Door, Guest};
use capture::ring::{Producer, Ring};
use dataplane::capture::{
    CaptureCounters, CaptureResult, CaptureTask, MergeCounters, QueueSource, Resting, Source, SourcePlan,
    TapReceive, TapSource,
};
use dataplane::io::Receive;
use dataplane::slot::Slot;
use measure::place::{RING_FULL, TAP_BUDGET, TAP_FULL};
use measure::{Clock, ConsumerSummary, QueueSummary, Ticks};
use report::published::{self, State, Totals};
use report::rows::RowWriter;
use report::rundir::{RunDir, file};

use super::attach::{Attached, Link};
use super::consumer::ConsumerSide;
use super::summary;
use crate::explain::Received;
use crate::plan::CapturePlan;
use crate::run::clock::now;
use crate::run::close::Ending;
use crate::run::control::Look;
use crate::run::listening::Listening;
use crate::run::open::OpenPort;
use crate::run::queues::{QueuePlace, shares};
use crate::run::stage::{OnSource, Stage};
use crate::run::{Active, Next};

/// Rows that may wait for the disk.
const ROWS_WAITING: usize = 4096;
/// Other processes that take nothing for so long after the end get nothing more.
const GUESTS_QUIET: Duration = Duration::from_secs(3);
/// The columns of `intervals.csv`.
const HEADER: &str = "time,rx_packets,captured,dropped\n";

/// One captured queue.
pub struct CaptureSide {
    pub place: QueuePlace,
    /// `rx`, or `tx` where it is a tap on what another run sends.
    direction: &'static str,
    pub counters: Arc<CaptureCounters>,
}

/// A capture whose task is on its queues.
pub struct ActiveCapture {
    pub plan: CapturePlan,
    pub sides: Vec<CaptureSide>,
    pub merged: Arc<MergeCounters>,
    pub totals: Slot<CaptureResult>,
    ring: Ring,
    pub consumers: Vec<ConsumerSide>,
    /// Where other processes join the ring.
    pub door: Option<Door>,
    pub course: Listening,
    /// The run that is looked into.
    pub link: Option<Link>,
    rows: Option<RowWriter<String>>,
    row_base: Total,
    clock: Clock,
    epoch_ns: u64,
}

/// Sums over all queues.
#[derive(Clone, Copy, Default)]
pub struct Total {
    pub received: u64,
    pub bytes: u64,
    pub captured: u64,
    pub ring_full: u64,
    /// Came after as many as were wanted.
    pub unwanted: u64,
}

/// A source to be.
struct Queue(SourcePlan);

impl OnSource for Queue {
    fn on<'p>(self, rx: impl Receive + 'p) -> Box<dyn Source + 'p> {
        Box::new(QueueSource::new(rx, self.0))
    }
}

impl ActiveCapture {
    /// Puts one task onto all queues, and makes the ring and its consumers; `sink` gets a stream of pcapng.
    pub fn wire<'p, 'e: 'p>(
        plan: CapturePlan,
        (sink, attached): (Option<File>, Option<Attached>),
        stage: &mut Stage<'_, 'p, 'e>,
    ) -> Result<Self> {
        let interfaces: Vec<Interface> = match &attached {
            Some(host) => host.interfaces(&plan),
            None => stage.ports.iter().map(|open| interface(open, &plan)).collect(),
        };
        let application = concat!("dropless ", env!("CARGO_PKG_VERSION"));
        let preamble = pcapng::preamble(application, &interfaces);
        let (mut producer, ring) = Producer::new(plan.ring.segments, plan.ring.segment_len, &preamble)?;
        let (mut sides, mut sources) = (Vec::new(), Vec::new());
        let epoch_ns = epoch_ns(stage);
        let core = stage.cores[0];
        for port in 0..stage.ports.len() {
            let queues: Vec<_> = stage.ports[port].rx.drain(..).collect();
            let several = queues.len() > 1;
            for (queue, rx) in queues.into_iter().enumerate() {
                let counters = Arc::<CaptureCounters>::default();
                let source = Queue(SourcePlan {
                    interface: port as u32,
                    direction: None,
                    queue: several.then_some(queue as u32),
                    snap_len: plan.snap_len as usize,
                    burst: plan.machine.burst,
                    epoch_ns,
                    counters: Arc::clone(&counters),
                });
                if let Some(source) = stage.source(port, rx, source) {
                    sources.push(source);
                    let place = QueuePlace { port, queue, core };
                    sides.push(CaptureSide {
                        place,
                        direction: "rx",
                        counters,
                    });
                }
            }
        }
        let link = attached.map(|host| {
            let (link, taps) = host.into_link();
            for ((told, consumer), tap) in taps.into_iter().zip(&link.taps) {
                let counters = Arc::<CaptureCounters>::default();
                let source = SourcePlan {
                    interface: told.port,
                    queue: Some(told.queue),
                    direction: Some(told.direction),
                    snap_len: plan.snap_len as usize,
                    burst: plan.machine.burst,
                    epoch_ns,
                    counters: Arc::clone(&counters),
                };
                let read = TapReceive::new(consumer, stage.clock, Arc::clone(tap));
                sources.push(Box::new(TapSource::new(read, source)));
                sides.push(CaptureSide {
                    place: QueuePlace {
                        port: told.port as usize,
                        queue: told.queue as usize,
                        core,
                    },
                    direction: told.name(),
                    counters,
                });
            }
            link
        });
        let door = plan
            .ring
            .door
            .as_deref()
            .map(|path| open_door(path, plan.ring.group));
        let door = door.transpose()?;
        let merged = Arc::<MergeCounters>::default();
        let (totals, leave) = Slot::new();
        let order = plan.patience_ns.map_or(Order::Strict, Order::Bounded);
        let mut consumers = Vec::new();
        if let Some(files) = &plan.files {
            consumers.push(ConsumerSide::files(files, &mut producer, &ring)?);
        }
        if let Some(sink) = sink {
            consumers.push(ConsumerSide::stream(sink, &mut producer, &ring)?);
        }
        let task = CaptureTask::new(
            sources,
            (order, plan.count.unwrap_or(u64::MAX)),
            producer,
            (stage.clock, now),
            Arc::clone(&merged),
            leave,
        );
        match link {
            Some(_) => stage.add((0, "capture"), Box::new(Resting(task))),
            None => stage.add((0, "capture"), Box::new(task)),
        }
        let rows = RowWriter::create(&stage.dir.file(file::INTERVALS), HEADER, ROWS_WAITING);
        Ok(Self {
            course: Listening::new(
                &stage.clock,
                plan.interval_ns,
                plan.duration_ns,
                plan.idle_exit_ns,
            ),
            link,
            plan,
            sides,
            merged,
            totals,
            ring,
            consumers,
            door,
            rows: stage.dir.keep(rows).ok(),
            row_base: Total::default(),
            clock: stage.clock,
            epoch_ns,
        })
    }

    pub fn total(&self) -> Total {
        let sum = |of: fn(&CaptureCounters) -> u64| self.sides.iter().map(|side| of(&side.counters)).sum();
        Total {
            received: sum(|counters| counters.frames.get()),
            bytes: sum(|counters| counters.bytes.get()),
            captured: self.merged.written.get(),
            ring_full: sum(|counters| counters.refused.get()),
            unwanted: self.merged.unwanted.get(),
        }
    }

    pub fn queues(&self) -> Vec<QueueSummary> {
        shares(
            self.sides
                .iter()
                .map(|side| side.place.moved(side.direction, side.counters.frames.get())),
        )
    }

    /// When it began and ended, ns since the epoch of Unix.
    pub fn times_ns(&self) -> (u64, u64) {
        let begun = self.epoch_ns.wrapping_add(self.clock.ns(self.course.begun).0);
        (begun, begun + self.course.elapsed.as_nanos() as u64)
    }

    /// The producer has ended: other processes take what is left, as long as they go on taking.
    pub fn see_out(&mut self, captured: u64) -> Vec<ConsumerSummary> {
        let Some(mut door) = self.door.take() else {
            return Vec::new();
        };
        let mut moved = (0, Instant::now());
        loop {
            door.look(&self.ring);
            let guests = || door.guests().iter().filter(|guest| guest.seat.is_taken());
            let mut waits = guests().filter(|guest| !guest.is_gone);
            let waits = waits.any(|guest| {
                let (taken, lost) = guest.seat.counts();
                guest.seat.first() + taken + lost < captured
            });
            let taken: u64 = guests().map(|guest| guest.seat.counts().0).sum();
            if taken > moved.0 {
                moved = (taken, Instant::now());
            }
            if !waits || moved.1.elapsed() > GUESTS_QUIET {
                return guests().map(|guest| of_guest(guest, captured)).collect();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn write_rows(&mut self, total: Total) {
        while let Some(at) = self.course.row() {
            let base = std::mem::replace(&mut self.row_base, total);
            let row = format!(
                "{},{},{},{}\n",
                at.as_secs_f64() * 1e3,
                total.received - base.received,
                total.captured - base.captured,
                total.ring_full - base.ring_full,
            );
            if let Some(rows) = &mut self.rows {
                rows.push(row);
            }
        }
    }

    fn is_over(&self, total: Total, look: &Look<'_, '_>) -> bool {
        let by_count = self.plan.count.is_some_and(|count| total.captured >= count);
        // Without anybody who takes packets there is nothing left to do.
        let mut consumers = self.consumers.iter();
        let is_alone =
            self.door.is_none() && !self.consumers.is_empty() && consumers.all(ConsumerSide::is_gone);
        by_count || is_alone || self.course.is_over(look)
    }
}

/// Opens the socket at which other processes join the ring, in a directory that is made if it is not there.
fn open_door(path: &Path, group: Option<u32>) -> Result<Door> {
    let made = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let made = made.map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| Door::open(path, group))
        .map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => anyhow!(
                "--ring {}: another capture has this name; choose another, or end that one",
                path.display()
            ),
            _ => anyhow!("--ring {}: {error}", path.display()),
        })
}

/// What a consumer in another process came to.
fn of_guest(guest: &Guest, captured: u64) -> ConsumerSummary {
    let (taken, lost) = guest.seat.counts();
    let offered = captured.saturating_sub(guest.seat.first());
    ConsumerSummary {
        name: format!("{} ({})", guest.name, guest.process),
        lossless: guest.is_lossless,
        offered,
        taken,
        lost,
        left: offered.saturating_sub(taken + lost),
        behind_max: guest.behind_max,
    }
}

/// What is told of a port in the file.
fn interface(open: &OpenPort<'_>, plan: &CapturePlan) -> Interface {
    Interface {
        name: open.uri.to_string(),
        description: "stamped by the processor's time stamp counter when its burst was polled".into(),
        mac: Some(open.mac),
        speed: None,
        snap_len: plan.snap_len,
        filter: None,
    }
}

/// From the run's clock (`CLOCK_MONOTONIC`) to the epoch of Unix, ns.
fn epoch_ns(stage: &Stage<'_, '_, '_>) -> u64 {
    let before = stage.clock.ns(now()).0;
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let after = stage.clock.ns(now()).0;
    (unix.as_nanos() as u64).wrapping_sub(before + (after - before) / 2)
}

impl Active for ActiveCapture {
    type Summary = measure::CaptureSummary;

    fn ready(&mut self, look: &Look<'_, '_>) {
        let doing = self.link.as_ref().map(|link| &*link.what);
        self.course.begin(doing.unwrap_or("capturing from"), look);
    }

    fn step(&mut self, look: &Look<'_, '_>) -> Next {
        let total = self.total();
        self.course.look(look, total.received);
        self.write_rows(total);
        let begun = self.ring.begun();
        self.consumers
            .iter_mut()
            .for_each(|consumer| consumer.look(begun));
        if let Some(door) = &mut self.door {
            door.look(&self.ring);
        }
        let mut is_over = self.is_over(total, look);
        if let Some(link) = &mut self.link {
            is_over = link.look(total.received, is_over);
        }
        if is_over { Next::Stop } else { Next::GoOn }
    }

    fn wakes_at(&self) -> Option<Ticks> {
        Some(self.course.wakes_at())
    }

    fn status(&self, look: &Look<'_, '_>) -> State {
        let total = self.total();
        let (planned_s, by_time) = self.course.done(look);
        let tapped = self
            .link
            .as_ref()
            .map_or([0; 2], |link| link.counts(total.received).1);
        let by_count = self.plan.count.map(|count| total.captured as f64 / count as f64);
        let done = by_time.into_iter().chain(by_count).reduce(f64::max);
        let mut state = State {
            phase: published::Phase::Capturing,
            planned_s,
            done: done.map(|done| done.min(1.0)),
            total: Totals {
                received: total.received,
                lost: total.ring_full + tapped.iter().sum::<u64>(),
                received_bytes: total.bytes,
                ..Totals::default()
            },
            queues: self.queues(),
            ..State::default()
        };
        state.add_places([
            (RING_FULL, total.ring_full),
            (TAP_BUDGET, tapped[0]),
            (TAP_FULL, tapped[1]),
        ]);
        state
    }

    fn joined(&mut self, dir: &RunDir) {
        if let Some(rows) = self.rows.take() {
            let _ = dir.keep(rows.finish());
        }
    }

    fn received(&self) -> Vec<Received<'_>> {
        let all: u64 = self.sides.iter().map(|side| side.counters.frames.get()).sum();
        let rate_pps = self.course.rate_pps(all);
        // The ports of a run that is looked into are not ours.
        let sides = self.sides.iter().filter(|_| self.link.is_none());
        let sides = sides.map(|side| Received {
            port: side.place.port,
            core: side.place.core,
            rate_pps,
            holes: &[],
        });
        sides.collect()
    }

    fn close(self, ending: Ending<'_>) -> measure::CaptureSummary {
        summary::summarise(self, ending)
    }
}
