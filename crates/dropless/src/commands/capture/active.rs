//! A capture under way: what it counts and tells, and when it is over.

use std::fmt::Write as _;
use std::sync::Arc;

use capture::ring::Ring;
use dataplane::capture::{CaptureCounters, CaptureResult, InterfaceDrops, MergeCounters, ReceivedCounters};
use dataplane::send::SendCounters;
use dataplane::slot::Slot;
use measure::place::{
    FILTERED, RING_FULL, SAMPLED_OUT, TAP_BUDGET, TAP_FULL, TX_DROPPED, TX_ERROR, UNWANTED,
};
use measure::{Clock, QueueSummary, Ticks};
use report::published::{self, ConsumerLevel, State, Totals};
use report::rundir::RunDir;

use super::attach::Link;
use super::consumer::ConsumerSide;
use super::draining::Draining;
use super::guests::Guests;
use super::statistics::Interfaces;
use super::summary;
use super::wall::Wall;
use crate::explain::Received;
use crate::plan::CapturePlan;
use crate::run::close::Ending;
use crate::run::control::Look;
use crate::run::generator;
use crate::run::listening::{Column, Counted, Listening, Rows};
use crate::run::open::OpenPort;
use crate::run::queues::{QueuePlace, shares};
use crate::run::{Active, Next};

/// One captured queue.
pub struct CaptureSide {
    pub place: QueuePlace,
    /// `rx`, or `tx` where it is a tap on what another run sends.
    pub direction: &'static str,
    pub counters: Arc<CaptureCounters>,
}

/// A capture whose tasks are on its queues.
pub struct ActiveCapture {
    pub plan: CapturePlan,
    /// The run that is looked into.
    pub link: Option<Link>,
    pub sides: Vec<CaptureSide>,
    pub merged: Arc<MergeCounters>,
    pub totals: Slot<CaptureResult>,
    /// What each port lost.
    pub drops: Vec<Arc<InterfaceDrops>>,
    /// What each file ends with.
    pub counted: Interfaces,
    /// Generators at the other end of ports: the port's number, and what was sent.
    pub generators: Vec<(usize, Arc<SendCounters>)>,
    pub ring: Ring,
    pub consumers: Vec<ConsumerSide>,
    /// Where other processes join the ring.
    pub guests: Option<Guests>,
    pub course: Listening,
    pub rows: Rows<Total>,
    pub clock: Clock,
    /// Whose clock stamps the packets.
    pub stamped_by: &'static str,
    pub wall: Wall,
    /// The end of a capture with generators.
    pub draining: Option<Draining>,
}

/// What generators sent, and what of it came.
#[derive(Clone, Copy)]
pub struct Generated {
    pub sent: u64,
    pub received: u64,
}

/// Sums over all queues.
#[derive(Clone, Copy, Default)]
pub struct Total {
    pub received: u64,
    pub bytes: u64,
    pub captured: u64,
    pub ring_full: u64,
    /// Lost before it was received: at a port, or in a tap.
    pub missed: u64,
    /// Refused by the filter.
    pub filtered: u64,
    /// Of flows that are not in the sample.
    pub sampled_out: u64,
    /// Came after as many as were wanted.
    pub unwanted: u64,
}

impl Counted for Total {
    const COLUMNS: &'static [Column<Self>] = &[
        ("rx_packets", |total| total.received),
        ("captured", |total| total.captured),
        ("dropped", |total| total.ring_full),
        ("missed", |total| total.missed),
    ];
}

impl ActiveCapture {
    pub fn total(&self) -> Total {
        let sum = |of: fn(&CaptureCounters) -> u64| self.sides.iter().map(|side| of(&side.counters)).sum();
        Total {
            received: sum(|counters| counters.received.frames.get()),
            bytes: sum(|counters| counters.written.bytes.get()),
            captured: self.merged.written.get(),
            ring_full: sum(|counters| counters.written.refused.get()),
            missed: self.drops.iter().map(|drops| drops.missed()).sum(),
            filtered: sum(|counters| counters.received.filtered.get()),
            sampled_out: sum(|counters| counters.received.sampled_out.get()),
            unwanted: sum(|counters| counters.written.unwanted.get()),
        }
    }

    pub fn queues(&self) -> Vec<QueueSummary> {
        let queue = |side: &CaptureSide| {
            let (received, written) = (&side.counters.received, &side.counters.written);
            let places = [
                (FILTERED, received.filtered.get()),
                (SAMPLED_OUT, received.sampled_out.get()),
                (RING_FULL, written.refused.get()),
                (UNWANTED, written.unwanted.get()),
            ];
            let places = places.into_iter().filter(|(_, packets)| *packets > 0);
            QueueSummary {
                places: places.map(|(place, packets)| (place.into(), packets)).collect(),
                ..side.place.moved(side.direction, received.frames.get())
            }
        };
        shares(self.sides.iter().map(queue))
    }

    /// Of the ports at whose other end a generator is: what was sent since the run began, and what of that came. Nothing
    /// where there are none.
    pub fn generated(&self) -> Option<Generated> {
        let is_fed = |side: &&CaptureSide| self.generators.iter().any(|(port, _)| *port == side.place.port);
        let sum = |of: fn(&ReceivedCounters) -> u64| -> u64 {
            let sides = self.sides.iter().filter(is_fed);
            sides.map(|side| of(&side.counters.received)).sum()
        };
        let sent: u64 = self.generators.iter().map(|(_, sent)| sent.accepted.get()).sum();
        (!self.generators.is_empty()).then(|| Generated {
            sent: sent.saturating_sub(sum(|counters| counters.flushed.get())),
            received: sum(|counters| counters.frames.get()),
        })
    }

    /// Whoever takes packets out of the ring now.
    fn levels(&self) -> Vec<ConsumerLevel> {
        let begun = self.ring.begun();
        let own = self.consumers.iter().map(|consumer| consumer.level(begun));
        let guests = self.guests.iter().flat_map(|guests| guests.levels(begun));
        own.chain(guests).collect()
    }

    /// When it began and ended, ns since the epoch of Unix.
    pub fn times_ns(&self) -> (u64, u64) {
        let begun = self
            .wall
            .epoch_ns
            .wrapping_add(self.clock.ns(self.course.begun).0);
        (begun, begun + self.course.elapsed.as_nanos() as u64)
    }

    /// What each port has missed, or the taps on it have.
    fn look_at_drops(&self, ports: &[OpenPort<'_>]) {
        for (port, drops) in self.drops.iter().enumerate() {
            drops.set_missed(match (&self.link, ports.get(port)) {
                (Some(link), _) => link.lost(|tap| self.sides[tap].place.port == port),
                (None, open) => open.map_or(0, OpenPort::rx_lost),
            });
        }
    }

    /// One look at the run that is looked into.
    fn step_attached(&mut self, total: Total, look: &Look<'_, '_>) -> Next {
        let is_over = self.is_over(total, look);
        let Some(link) = &mut self.link else {
            return Next::Stop;
        };
        if link.look(is_over) {
            Next::Stop
        } else {
            Next::GoOn
        }
    }

    fn is_over(&self, total: Total, look: &Look<'_, '_>) -> bool {
        let by_count = self.plan.count.is_some_and(|count| total.captured >= count);
        // Without anybody who takes packets there is nothing left to do.
        let mut consumers = self.consumers.iter();
        let is_alone =
            self.guests.is_none() && !self.consumers.is_empty() && consumers.all(ConsumerSide::is_gone);
        by_count || is_alone || self.course.is_over(look)
    }
}

impl Active for ActiveCapture {
    type Summary = measure::CaptureSummary;

    fn ready(&mut self, look: &Look<'_, '_>) -> Option<String> {
        let mut told = String::new();
        if !self.generators.is_empty() {
            let pps = report::number::pps(generator::RATE_PPS);
            let _ = writeln!(
                told,
                "a generator in this process sends {pps} into each ring; --port captures from an interface"
            );
        }
        // Of ports that need a program on the interface, which gives them all that arrives.
        for open in look.ports.iter().filter(|open| open.traits().needs_program) {
            if let Some(interface) = open.uri.kind.interface() {
                let _ = writeln!(
                    told,
                    "note: port {} takes what arrives on its queues of {interface} away from the kernel: no other program here receives it until the end (not even ping); packet:{interface} leaves it there",
                    open.uri
                );
            }
        }
        let doing = self.link.as_ref().map_or("capturing from", |link| &link.what);
        // What came to ports before is thrown away, and what taps copied belongs to it.
        told += &self.course.begin(doing, look, || 0);
        if let Some(link) = &self.link {
            self.course.begun = link.since;
        }
        self.counted.begin(self.times_ns().0);
        Some(told)
    }

    fn step(&mut self, look: &Look<'_, '_>) -> Next {
        self.look_at_drops(look.ports);
        self.wall.look();
        let total = self.total();
        self.course.look(look, total.received);
        self.rows.look(&mut self.course, || total);
        let begun = self.ring.begun();
        self.consumers
            .iter_mut()
            .for_each(|consumer| consumer.look(begun));
        if let Some(guests) = &mut self.guests {
            guests.look(&self.ring, total.captured);
        }
        if self.link.is_some() {
            return self.step_attached(total, look);
        }
        if self.draining.is_none() && !self.is_over(total, look) {
            return Next::GoOn;
        }
        if self.generators.is_empty() {
            return Next::Stop;
        }
        let draining = self
            .draining
            .get_or_insert_with(|| Draining::new(look, total.received));
        let is_quiet = draining.is_quiet(total.received);
        let generators_know = draining.is_seen(look);
        let has_come = self
            .generated()
            .is_none_or(|generated| generated.received >= generated.sent);
        if (generators_know && has_come) || is_quiet || look.worker_died {
            Next::Stop
        } else {
            Next::Drain
        }
    }

    fn says(&mut self) -> Option<String> {
        let consumers = self.consumers.iter_mut().filter_map(ConsumerSide::says);
        let lines: String = consumers.chain(self.wall.says()).collect();
        Some(lines).filter(|lines| !lines.is_empty())
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
                captured: total.captured,
                received_bytes: total.bytes,
                ..Totals::default()
            },
            queues: self.queues(),
            consumers: self.levels(),
            ..State::default()
        };
        state.add_places([
            (RING_FULL, total.ring_full),
            (FILTERED, total.filtered),
            (SAMPLED_OUT, total.sampled_out),
            (UNWANTED, total.unwanted),
            (TAP_BUDGET, tapped[0]),
            (TAP_FULL, tapped[1]),
        ]);
        state
    }

    fn settle(&self, state: &mut State) {
        // What its interfaces fail to send is none of its frames.
        for place in [TX_DROPPED, TX_ERROR] {
            state.places.remove(place);
        }
        state.total.lost = state.lost();
    }

    fn stopped(&mut self) {
        self.course.end();
    }

    fn joined(&mut self, dir: &RunDir, ports: &[OpenPort<'_>]) {
        self.look_at_drops(ports);
        self.rows.end(&self.course, self.total(), dir);
    }

    fn received(&self) -> Vec<Received<'_>> {
        // The ports of a run that is looked into are not ours.
        let sides = self.sides.iter().filter(|_| self.link.is_none());
        let frames = |side: &CaptureSide| side.counters.received.frames.get();
        let received = |side: &CaptureSide| self.course.received(side.place, frames(side));
        sides.map(received).collect()
    }

    fn close(self, ending: Ending<'_>) -> measure::CaptureSummary {
        summary::summarise(self, ending)
    }
}
