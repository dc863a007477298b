//! Why packets were missed: the stalls of our own workers, what the kernel did meanwhile, and the counters of the ports,
//! put on one clock for `measure::stalls`.

use std::sync::Arc;

use dataplane::stall::{StallRecord, Stalls};
use dataplane::worker::WorkerCounters;
use doctor::noise::attribute::Span;
use doctor::noise::record::{Record, Recorder};
use doctor::noise::summary::{events_lost_note, moved_note};
use doctor::noise::tally::Labels;
use host::Sys;
use host::cores::{self, Core, CoreSet};
use measure::stalls::{self, MissedPackets, StallBurst, WorkerStall};
use measure::{Clock, Explanation, Hole, Note, Stall, Ticks};

use crate::plan::MachinePlan;
use crate::run::clock::now;
use crate::run::open::OpenPort;
use crate::run::workers::Stalled;

/// Misses that can be told apart, 32 MiB: more are missed all the time, and the others stay unexplained.
const MISSED_MAX: usize = 1 << 20;

/// Watches what a run will want to explain.
pub struct Explainer {
    recorder: Option<Recorder>,
    untraced: Option<String>,
    polled: Vec<Polled>,
    /// Of each port what it has received and missed so far, and when that was read.
    last: Vec<(Ticks, [u64; 2])>,
    missed: Vec<MissedPackets>,
    /// All of them.
    missed_count: u64,
    threshold_ns: u64,
    looks: u64,
    began: Ticks,
}

/// Who received from a port, and how fast.
pub struct Received<'h> {
    pub port: usize,
    pub core: usize,
    pub rate_pps: f64,
    /// No more can come to all of the run's together.
    pub most_pps: f64,
    /// Frames that it received, and how long it waited for more at the end, ns; where its stalls are judged by that.
    pub came: Option<(u64, u64)>,
    /// Sequence numbers that it found missing.
    pub holes: &'h [Hole],
}

/// All that a full ring holds is received afterwards: of one of `room` that never gave so much, only what came at the end can
/// be missing.
fn bears_ns(holds_ns: u64, room: u32, came: Option<(u64, u64)>) -> u64 {
    match came {
        Some((frames, waited_ns)) if holds_ns > 0 && frames < room.into() => holds_ns.max(waited_ns),
        _ => holds_ns,
    }
}

impl Received<'_> {
    /// How long its ring holds at that rate, ns; 0 where it has none that overflows.
    pub fn ring_holds_ns(&self, ports: &[OpenPort<'_>]) -> u64 {
        ports[self.port].ring_holds_ns(self.rate_pps)
    }

    /// How long it may stall and lose nothing by that, ns; 0 where it has no ring that overflows.
    pub fn bears_ns(&self, ports: &[OpenPort<'_>]) -> u64 {
        bears_ns(self.ring_holds_ns(ports), ports[self.port].rx_room(), self.came)
    }
}

impl Explainer {
    /// Begins, if that was asked for; before the workers poll, as it interrupts every core. The workers are known by their
    /// cores, and by what they publish of themselves and of their stalls.
    pub fn start(
        plan: &MachinePlan,
        (cores, published, stalls): (&[usize], &[Arc<WorkerCounters>], &[Arc<Stalls>]),
        ports: &[OpenPort<'_>],
    ) -> Option<Self> {
        if !plan.explain {
            return None;
        }
        let sys = Sys::live();
        let workers: CoreSet = cores.iter().map(|core| Core(*core as u32)).collect();
        let others = cores::online(&sys).without(&workers);
        let (recorder, untraced) = match Recorder::start(&sys, &workers, &others, dpdk::tsc) {
            Ok(recorder) => (Some(recorder), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Some(Self {
            recorder,
            untraced,
            polled: cores.iter().zip(published).zip(stalls).map(Polled::new).collect(),
            last: ports
                .iter()
                .map(|open| (now(), open.received_and_missed()))
                .collect(),
            missed: Vec::new(),
            missed_count: 0,
            threshold_ns: plan.pause_ns,
            looks: 0,
            began: now(),
        })
    }

    /// Reads the ports' counters, and fetches the kernel's events. Often: what is missed between two looks is told apart
    /// by nothing.
    pub fn look(&mut self, ports: &[OpenPort<'_>]) {
        for (port, (open, last)) in ports.iter().zip(&mut self.last).enumerate() {
            // What was counted happened between the moment before the last reading and the one after this.
            let before = now();
            let total = open.received_and_missed();
            let [received, count] = [0, 1].map(|which| total[which].saturating_sub(last.1[which]));
            if count > 0 {
                self.missed_count += count;
                if self.missed.len() < MISSED_MAX {
                    self.missed.push(MissedPackets {
                        port,
                        from: last.0,
                        to: now(),
                        count,
                        received,
                    });
                }
            }
            *last = (before, total);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.collect();
            for polled in &mut self.polled {
                let (until, stalls) = polled.look(now());
                recorder.settle(polled.core, until.0, stalls);
            }
        }
        self.looks += 1;
    }

    fn finish(self, clock: &Clock) -> (Record, Explanation, Vec<MissedPackets>) {
        let took = clock.ns_from_ticks(now().since(self.began));
        let record = self.recorder.map(|recorder| recorder.finish(&Sys::live()));
        let explanation = Explanation {
            missed: self.missed_count,
            events_lost: record.as_ref().map_or(0, |record| record.missed),
            notes: record
                .as_ref()
                .map_or_else(Vec::new, |record| record.notes.clone()),
            threshold_ns: self.threshold_ns,
            granularity_ns: took / self.looks.max(1),
            untraced: self.untraced,
            ..Explanation::default()
        };
        (record.unwrap_or_default(), explanation, self.missed)
    }
}

/// A worker, as far as its stalls are known.
struct Polled {
    core: Core,
    counters: Arc<WorkerCounters>,
    stalls: Arc<Stalls>,
    polls: u64,
    /// Before that many polls were read.
    looked: Ticks,
    /// All stalls that began before are known at the next look.
    until: Ticks,
    /// How many stalls the recorder was told of.
    told: usize,
}

impl Polled {
    fn new(((core, counters), stalls): ((&usize, &Arc<WorkerCounters>), &Arc<Stalls>)) -> Self {
        Self {
            core: Core(*core as u32),
            counters: Arc::clone(counters),
            stalls: Arc::clone(stalls),
            polls: 0,
            looked: Ticks(0),
            until: Ticks(0),
            told: 0,
        }
    }

    /// Up to when its stalls are known, and those that were not before.
    fn look(&mut self, now: Ticks) -> (Ticks, Vec<Span>) {
        let (polls, until) = (self.counters.polls.get(), self.until);
        let stalls: Vec<Span> = self.stalls.after(self.told).map(|stall| span(&stall)).collect();
        self.told += stalls.len();
        // A stall is kept in the round after the one that it began in: with that over, too, all that began before `looked` are
        // kept. That they are seen is sure a look later only, since nothing orders the two for other processors.
        if polls >= self.polls + 2 || self.counters.has_ended() {
            self.until = self.looked;
            (self.polls, self.looked) = (polls, now);
        }
        (until, stalls)
    }
}

fn span(stall: &StallRecord) -> Span {
    Span {
        from: stall.from.0,
        to: stall.to.0,
        core: stall.core,
    }
}

/// What the user should know of workers that did not stay on their cores.
pub fn moved(stalled: &[Stalled]) -> impl Iterator<Item = Note> {
    stalled.iter().filter_map(|worker| {
        let to = worker.moved_to()?;
        Some(moved_note("worker", worker.core as u32, to as u32))
    })
}

/// What the user should know of an explanation.
pub fn notes(explanation: &Explanation) -> impl Iterator<Item = Note> + use<> {
    let lost = events_lost_note(explanation.events_lost);
    lost.into_iter().chain(explanation.notes.clone())
}

/// Names the stalls and charges them with what was missed: the rows of `stalls.csv`, and the sum where it was asked for.
pub fn explain(
    explainer: Option<Explainer>,
    stalled: &[Stalled],
    receivers: &[Received<'_>],
    ports: &[OpenPort<'_>],
    clock: &Clock,
    start: Ticks,
) -> (Vec<Stall>, Option<Explanation>) {
    let (record, mut explanation, missed) = match explainer {
        Some(explainer) => {
            let (record, explanation, missed) = explainer.finish(clock);
            (record, Some(explanation), missed)
        }
        None => (Record::default(), None, Vec::new()),
    };
    let traced = explanation
        .as_ref()
        .is_some_and(|explanation| explanation.untraced.is_none());
    let of_core = |core: usize| receivers.iter().filter(move |receiver| receiver.core == core);
    let mut polled = Vec::new();
    if let Some(explanation) = &mut explanation {
        explanation.dropped = stalled.iter().map(|worker| worker.dropped).sum();
    }
    for worker in stalled {
        let core = worker.core;
        let stalls: Vec<&StallRecord> = worker.told().collect();
        let spans: Vec<Span> = stalls.iter().copied().map(span).collect();
        let mut named = record.name(Core(core as u32), worker.thread, &spans);
        for (stall, named) in stalls.iter().zip(&mut named) {
            named.own_work((f64::from(stall.moved) * worker.packet_ticks) as u64);
        }
        let labels = Labels::of(&named);
        let losing = of_core(core).filter(|receiver| !ports[receiver.port].traits().pushes_back);
        let ring_holds_ns = losing.map(|receiver| receiver.ring_holds_ns(ports));
        let shortest_ns = ring_holds_ns.filter(|holds| *holds > 0).min().unwrap_or(0);
        let first = polled.len();
        for (stall, named) in stalls.iter().zip(&named) {
            polled.push(WorkerStall {
                from: stall.from,
                to: stall.to,
                ports: of_core(core).map(|receiver| receiver.port).collect(),
                waited: stall.next != Some(0),
                stall: Stall {
                    ring_holds_ns: shortest_ns,
                    cause: traced.then(|| labels.label(named.cause())),
                    ..worker.stall(stall, clock, start)
                },
                pile: StallBurst::default(),
            });
        }
        let arriving_pps: f64 = of_core(core).map(|receiver| receiver.rate_pps).sum();
        let arriving_pps = of_core(core).fold(arriving_pps, |pps, receiver| pps.min(receiver.most_pps));
        let packet_s = clock.ns_from_ticks(1_000) as f64 * worker.packet_ticks / 1e12;
        let speed = 1.0 / (arriving_pps * packet_s).max(1e-9);
        stalls::pile_up(&mut polled[first..], speed, clock);
    }
    stalls::charge(&mut polled, &missed);
    for worker in stalled {
        let holes = of_core(worker.core).flat_map(|receiver| receiver.holes);
        let mut holes: Vec<Hole> = holes.copied().collect();
        holes.sort_by_key(|hole| hole.at);
        stalls::name_sequences(&mut polled, worker.core as u32, &holes, clock);
    }
    if let Some(explanation) = &mut explanation {
        explanation.causes = stalls::by_cause(&polled);
        explanation.explained = explanation.causes.iter().map(|cause| cause.lost).sum();
    }
    let mut rows: Vec<Stall> = polled.into_iter().map(|one| one.stall).collect();
    rows.sort_by_key(|stall| stall.at_ns);
    (rows, explanation)
}

#[cfg(test)]
mod tests {
    use dataplane::stall::StallLog;

    use super::*;

    /// 64 packets within a microsecond fill no ring of 1024 places.
    #[test]
    fn a_ring_that_was_never_full_has_lost_nothing_to_a_stall() {
        let (burst_ns, drain_ns) = (5_000, 2_000_000_000);
        assert_eq!(bears_ns(burst_ns, 1024, Some((1023, drain_ns))), drain_ns);
        assert_eq!(bears_ns(burst_ns, 1024, Some((1024, drain_ns))), burst_ns);
        assert_eq!(bears_ns(burst_ns, 1024, None), burst_ns);
        assert_eq!(bears_ns(0, 1024, Some((1, drain_ns))), 0);
    }

    #[test]
    fn stalls_are_known_when_the_round_after_theirs_is_over() {
        let counters = Arc::<WorkerCounters>::default();
        let stalls = Arc::new(Stalls::with_room(8));
        let log = StallLog::new(&stalls, 10, || 1);
        let mut polled = Polled::new(((&1, &counters), &stalls));
        let mut look = |at| {
            let (until, stalls) = polled.look(Ticks(at));
            (until.0, stalls.len())
        };
        counters.polls.add(2);
        assert_eq!(look(120), (0, 0));
        // The round that was under way then is over, and the stall that began with it is not kept yet.
        counters.polls.add(1);
        assert_eq!(look(200), (0, 0));
        assert_eq!(look(300), (0, 0));
        log.record(Ticks(100), Ticks(310), 0);
        counters.polls.add(1);
        assert_eq!(look(400), (0, 1));
        assert_eq!(look(500), (120, 0));
        counters.polls.add(50);
        assert_eq!(look(600), (120, 0));
        assert_eq!(look(700), (400, 0));
        counters.rest();
        assert_eq!(look(800), (400, 0));
        assert_eq!(look(900), (600, 0));
        assert_eq!(look(1000), (800, 0));
    }
}
