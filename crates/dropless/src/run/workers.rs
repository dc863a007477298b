//! Worker threads: which core polls what, and how they are started, stopped and joined.

use std::sync::Arc;
use std::thread::Scope;

use anyhow::{Result, anyhow};
use dataplane::Task;
use dataplane::stall::{StallLog, StallRecord, Stalls};
use dataplane::worker::{Control, WorkerCounters};
use doctor::noise::spin::this_core;
use dpdk::Eal;
use measure::units::format_duration;
use measure::{Clock, Note, Stall, Ticks, WorkerSummary};

use crate::plan::MachinePlan;
use crate::run::clock::now;
use crate::run::placement;
use crate::run::privileges::Kept;

/// One worker to be: a core and what it polls.
pub struct Worker<'a> {
    pub core: usize,
    /// What its tasks do, for the report.
    pub roles: Vec<&'static str>,
    /// The tasks, in polling order.
    pub tasks: Vec<Box<dyn Task + 'a>>,
}

impl<'a> Worker<'a> {
    pub fn new(core: usize) -> Self {
        Self {
            core,
            roles: Vec::new(),
            tasks: Vec::new(),
        }
    }

    pub fn add(&mut self, role: &'static str, task: Box<dyn Task + 'a>) {
        if !self.roles.contains(&role) {
            self.roles.push(role);
        }
        self.tasks.push(task);
    }
}

/// The core of each worker, and what it does there.
pub type Roles = Vec<(usize, Vec<&'static str>)>;

/// A worker that does not poll for less does its own work, as far as anybody can tell, ns. Longer stalls are kept for the
/// verdict, whether they are to be told or not.
pub const STALL_NS: u64 = 1_000_000;

/// Stalls kept of a worker; their memory is touched before it polls.
const STALLS_MAX: usize = 1 << 16;

/// Room for the stalls of each of `workers`, which others read while they poll.
pub fn rooms(workers: usize) -> Vec<Arc<Stalls>> {
    (0..workers)
        .map(|_| Arc::new(Stalls::with_room(STALLS_MAX)))
        .collect()
}

/// From which length on stalls are kept, ticks.
#[derive(Debug, Clone, Copy)]
pub struct Thresholds {
    /// Longer ones are told: `--pause`.
    pub told: u64,
    /// Longer ones are judged: `STALL_NS`.
    pub judged: u64,
}

impl Thresholds {
    /// Of workers whose stalls longer than `pause_ns` are told.
    pub fn new(pause_ns: u64, clock: &Clock) -> Self {
        // Where none is told, workers rest between their polls.
        let judged_ns = if pause_ns == MachinePlan::RESTS {
            pause_ns
        } else {
            STALL_NS
        };
        Self {
            told: clock.ticks_from_ns(pause_ns),
            judged: clock.ticks_from_ns(judged_ns),
        }
    }
}

/// The stalls of one worker.
pub struct Stalled {
    pub core: usize,
    pub roles: Vec<&'static str>,
    pub thread: u32,
    /// All that were kept.
    pub stalls: Vec<StallRecord>,
    pub thresholds: Thresholds,
    /// Stalls to be told that found no room.
    pub dropped: u64,
    /// Stalls to be judged that found no room.
    pub long_dropped: u64,
    /// The core that it ended on.
    ended_on: usize,
    /// What a packet costs it, ticks.
    pub packet_ticks: f64,
}

impl Stalled {
    /// Where it was found when it was not on its core.
    pub fn moved_to(&self) -> Option<usize> {
        let after = self.stalls.iter().map(|stall| stall.core as usize);
        after.chain([self.ended_on]).find(|core| *core != self.core)
    }

    /// The stalls to be told.
    pub fn told(&self) -> impl Iterator<Item = &StallRecord> {
        let told = |stall: &&StallRecord| stall.to.since(stall.from) > self.thresholds.told;
        self.stalls.iter().filter(told)
    }

    /// Whether all stalls longer than so many ticks were kept.
    pub fn has_all_of(&self, ticks: u64) -> bool {
        let Thresholds { told, judged } = self.thresholds;
        self.long_dropped == 0 && (ticks >= judged || (ticks >= told && self.dropped == 0))
    }

    /// What the worker itself knows of one of its stalls, in a run that began at `start`.
    pub fn stall(&self, stall: &StallRecord, clock: &Clock, start: Ticks) -> Stall {
        Stall {
            core: self.core as u32,
            role: self.roles.join(" "),
            at_ns: clock.ns(stall.to).since(clock.ns(start)),
            gap_ns: clock.ns_from_ticks(stall.to.since(stall.from)),
            moved: stall.moved.into(),
            next: stall.next.map_or(0, u64::from),
            ..Stall::default()
        }
    }
}

/// What workers leave.
#[derive(Default)]
pub struct Left {
    pub stalled: Vec<Stalled>,
    pub died: Option<anyhow::Error>,
}

impl Left {
    /// How many stalls to be told the worker of `core` had, where it lived to tell, and for how many of them there was no
    /// room.
    pub fn stalls_of(&self, core: usize) -> (Option<u64>, u64) {
        match self.stalled.iter().find(|stalled| stalled.core == core) {
            Some(stalled) => {
                let dropped = stalled.dropped;
                (Some(stalled.told().count() as u64 + dropped), dropped)
            }
            // It had nothing to do.
            None => (self.died.is_none().then_some(0), 0),
        }
    }

    /// All stalls that were kept, in a run that began at `start`.
    pub fn kept_stalls(&self, clock: &Clock, start: Ticks) -> Vec<Stall> {
        let workers = self.stalled.iter();
        let stalls = workers.flat_map(|worker| {
            worker
                .stalls
                .iter()
                .map(|stall| worker.stall(stall, clock, start))
        });
        stalls.collect()
    }

    /// That the verdict does not know of all.
    pub fn unjudged_note(&self) -> Option<Note> {
        let dropped: u64 = self.stalled.iter().map(|stalled| stalled.long_dropped).sum();
        let text = format!(
            "for lack of room the verdict knows no more of {} longer than {} than how long the longest was: it may lay what they cost to something else",
            report::number::counted(dropped, "stall"),
            format_duration(STALL_NS),
        );
        (dropped > 0).then(|| Note::new("stalls_unjudged", text))
    }

    /// That some are only counted.
    pub fn dropped_note(&self, is_explained: bool) -> Option<Note> {
        let dropped: u64 = self.stalled.iter().map(|stalled| stalled.dropped).sum();
        let text = format!(
            "{} are only counted, for lack of room{}: give a longer --pause",
            report::number::counted(dropped, "stall"),
            if is_explained {
                ", and what they cost is not explained"
            } else {
                ""
            },
        );
        (dropped > 0).then(|| Note::new("stalls_dropped", text))
    }
}

type Handle<'s> = dpdk::Worker<'s, Stalled>;

/// Workers under way.
pub struct Running<'s> {
    handles: Vec<(usize, Handle<'s>)>,
    counters: Vec<&'s Arc<WorkerCounters>>,
}

impl<'s> Running<'s> {
    /// Starts the workers that have tasks, known to `eal` where there is one, without rights but those of `rights`.
    /// Where one cannot be started, whoever called stops the others by `control`.
    /// `counters` and `rooms` have a place for each of `workers`.
    pub fn start<'a: 's>(
        scope: &'s Scope<'s, '_>,
        (eal, rights): (Option<&'s Eal>, Kept),
        workers: Vec<Worker<'a>>,
        control: &'s Control,
        counters: &'s [Arc<WorkerCounters>],
        (rooms, thresholds): (&'s [Arc<Stalls>], Thresholds),
    ) -> Result<Self> {
        let (mut handles, mut kept) = (Vec::new(), Vec::new());
        let cores: Vec<usize> = workers.iter().map(|worker| worker.core).collect();
        let stay = placement::visit(&cores)?;
        for ((worker, counters), stalls) in workers.into_iter().zip(counters).zip(rooms) {
            if worker.tasks.is_empty() {
                counters.rest();
                continue;
            }
            let core = worker.core;
            let name = format!("dropless-{core}");
            let Worker { tasks, roles, .. } = worker;
            let body = move || {
                rights.drop_in_worker();
                let log = StallLog::new(stalls, thresholds.told, this_core).with_long(thresholds.judged);
                dataplane::worker::run(tasks, control, counters, &log, now);
                Stalled {
                    core,
                    roles,
                    thread: nix::unistd::gettid().as_raw() as u32,
                    stalls: stalls.after(0).collect(),
                    thresholds,
                    dropped: stalls.dropped(),
                    long_dropped: stalls.long_dropped(),
                    ended_on: this_core() as usize,
                    packet_ticks: counters.moved_ticks.get() as f64 / counters.moved.get().max(1) as f64,
                }
            };
            match dpdk::spawn_worker(scope, eal, core, &name, body) {
                Ok(handle) => {
                    handles.push((core, handle));
                    kept.push(counters);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if stay.is_some() {
            drop(stay);
            placement::leave_to_workers(&cores);
        }
        Ok(Self {
            handles,
            counters: kept,
        })
    }

    pub fn rounds(&self) -> Vec<u64> {
        self.counters
            .iter()
            .map(|counters| counters.polls.get())
            .collect()
    }

    pub fn count(&self) -> usize {
        self.handles.len()
    }

    /// The cores of those for whom something may wait that came before they polled. Once there are none, what comes from now on
    /// comes in the time from now on.
    pub fn behind(&self) -> Vec<usize> {
        let workers = self.handles.iter().zip(&self.counters);
        let behind = workers.filter(|(_, counters)| !counters.is_caught_up());
        behind.map(|((core, _), _)| *core).collect()
    }

    /// The core of a worker that ended although nobody told it to.
    pub fn ended_early(&self) -> Option<usize> {
        self.handles
            .iter()
            .find(|(_, handle)| handle.is_finished())
            .map(|(core, _)| *core)
    }

    /// Waits for all; a panic in one is an error that names its core.
    pub fn join(self) -> Left {
        let mut left = Left::default();
        for (core, handle) in self.handles {
            match handle.join() {
                Ok(stalled) => left.stalled.push(stalled),
                Err(_) => left.died = Some(anyhow!("the worker on core {core} died")),
            }
        }
        left
    }
}

/// What the report says of a worker.
pub fn summary(
    core: usize,
    roles: &[&'static str],
    counters: &WorkerCounters,
    clock: &Clock,
) -> WorkerSummary {
    let gaps = counters.gap_ticks.snapshot();
    let polls = counters.polls.get();
    WorkerSummary {
        core: core as u32,
        roles: roles.iter().map(ToString::to_string).collect(),
        polls,
        busy_share: counters.busy.get() as f64 / polls.max(1) as f64,
        poll_gap_ns_max: clock.ns_from_ticks(gaps.max().unwrap_or(0)),
        poll_gap_ns_p999: clock.ns_from_ticks(gaps.percentile(99.9).unwrap_or(0)),
        ..WorkerSummary::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUDGED: u64 = 50;

    /// A worker with one stall of 9 ticks and one of 90.
    fn stalled(core: usize, told: u64, [dropped, long_dropped]: [u64; 2]) -> Stalled {
        let stall = |ticks| StallRecord {
            from: Ticks(0),
            to: Ticks(ticks),
            moved: 0,
            next: Some(0),
            core: 1,
        };
        Stalled {
            core,
            roles: vec!["receive"],
            thread: 0,
            stalls: vec![stall(9), stall(90)],
            thresholds: Thresholds { told, judged: JUDGED },
            dropped,
            long_dropped,
            ended_on: core,
            packet_ticks: 0.0,
        }
    }

    #[test]
    fn what_is_told_changes_nothing_of_what_is_judged() {
        let clock = Clock::from_calibration(0, 0, 1e9);
        for (told, rows) in [(5, 2), (9, 1), (1000, 0)] {
            let left = Left {
                stalled: vec![stalled(1, told, [0, 0])],
                died: None,
            };
            assert_eq!(left.stalls_of(1), (Some(rows), 0));
            let kept = left.kept_stalls(&clock, Ticks(10));
            let kept: Vec<_> = kept.iter().map(|stall| (stall.gap_ns, stall.at_ns)).collect();
            assert_eq!(kept, [(9, 0), (90, 80)]);
            assert!(left.stalled[0].has_all_of(JUDGED));
        }
        let has_all = |told, dropped, ticks| stalled(1, told, dropped).has_all_of(ticks);
        assert!(
            has_all(5, [0, 0], 5) && !has_all(5, [0, 0], 4),
            "shorter ones are not kept"
        );
        assert!(
            has_all(5, [7, 0], JUDGED) && !has_all(5, [7, 0], 5),
            "only short ones are missing"
        );
        assert!(!has_all(5, [7, 1], JUDGED));
        assert!(
            !has_all(1000, [0, 1], 1000),
            "long ones are missing that were not to be told"
        );
    }

    #[test]
    fn workers_that_rest_have_no_stalls() {
        let clock = Clock::from_calibration(0, 0, 1e9);
        let thresholds = |pause_ns| {
            let Thresholds { told, judged } = Thresholds::new(pause_ns, &clock);
            told.min(judged)
        };
        let ticks = [1_000, 2_000_000_000].map(thresholds);
        assert!(ticks[0] <= 1_000 && ticks[1] <= STALL_NS, "{ticks:?}");
        assert!(thresholds(MachinePlan::RESTS) > 1 << 60);
    }

    #[test]
    fn stalls_without_room_are_counted_and_told() {
        let mut left = Left {
            stalled: vec![stalled(1, 5, [0, 0]), stalled(2, 5, [5, 3])],
            died: None,
        };
        assert_eq!(
            [1, 2, 3].map(|core| left.stalls_of(core)),
            [(Some(2), 0), (Some(7), 5), (Some(0), 0)]
        );
        let note = left.dropped_note(false).unwrap();
        assert_eq!(note.code, "stalls_dropped");
        assert!(note.text.starts_with("5 stalls"), "{}", note.text);
        let note = left.unjudged_note().unwrap();
        assert_eq!(note.code, "stalls_unjudged");
        assert!(
            note.text.contains("no more of 3 stalls longer than 1."),
            "{}",
            note.text
        );
        left.stalled.pop();
        assert!(left.dropped_note(true).is_none() && left.unjudged_note().is_none());
        left.died = Some(anyhow!("it died"));
        assert_eq!(left.stalls_of(2), (None, 0), "nobody knows");
    }
}
