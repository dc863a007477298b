//! Time that the kernel counts as taken, beside its events: by the hypervisor (steal), and by the quota of a cgroup.
//!
//! Both counters only say how much, not when: they are read now and then, and what they grew by is charged to the longest
//! stalls since, as far as nothing that the kernel saw explains them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::attribute::AttributedStall;
use super::cause::Cause;
use crate::sample;
use host::Sys;
use host::cores::{Core, CoreSet};
use host::cpu::USER_HZ;

/// Between two looks: `/proc/stat` is dear on large machines.
const LOOK: Duration = Duration::from_millis(50);
/// What is kept of one counter, which bounds the memory of a long run: three and a half hours of looks that all saw it grow. In a
/// longer run what is older is kept in longer stretches.
const GROWTHS_MAX: usize = 1 << 18;
const USER_TICK_NS: u64 = 1_000_000_000 / USER_HZ;
/// Shorter stretches outside the kernel are not the hypervisor's scheduler, but what it does within a tick of its own, s.
const STEAL_MIN_S: f64 = 100e-6;

/// How much a counter of time grew between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// From when on what it counts can have happened, ticks.
    pub from: u64,
    /// The look that saw it, ticks.
    pub to: u64,
    /// Time, ns.
    pub ns: u64,
    /// The time between looks that saw it grow, ticks: all of it, unless several were put together.
    pub looked: u64,
}

/// What the counters said so far.
#[derive(Debug, Default)]
pub struct Counted {
    /// What the hypervisor took of each core.
    pub steal: BTreeMap<Core, Vec<Growth>>,
    /// What the quota took of all of this process's threads.
    pub throttled: Vec<Growth>,
    stolen: BTreeMap<Core, (u64, u64)>,
    quotas: BTreeMap<PathBuf, u64>,
    looked: Option<(Instant, u64)>,
}

impl Counted {
    /// Reads the counters, if that is due or `now_or_never`.
    pub fn look(&mut self, sys: &Sys, cores: &CoreSet, clock: fn() -> u64, now_or_never: bool) {
        let last = self.looked;
        if last.is_some_and(|(last, _)| last.elapsed() < LOOK) && !now_or_never {
            return;
        }
        let before = clock();
        for (core, ticks) in sample::steal(&sys.text("/proc/stat").unwrap_or_default()) {
            if cores.contains(core) {
                let (since, last) = self.stolen.entry(core).or_insert((before, ticks));
                // What is less than a tick is counted with what comes later.
                let growth = Growth::new(*since, clock(), ticks.saturating_sub(*last) * USER_TICK_NS);
                if growth.ns > 0 {
                    (*since, *last) = (growth.to, ticks);
                    push(self.steal.entry(core).or_default(), growth);
                }
            }
        }
        let quotas = throttled(sys);
        let grown = quotas.iter().filter_map(|(folder, ns)| {
            let before = self.quotas.get(folder)?;
            Some(ns.saturating_sub(*before))
        });
        let growth = Growth::new(last.map_or(before, |(_, at)| at), clock(), grown.sum());
        if growth.ns > 0 {
            push(&mut self.throttled, growth);
        }
        self.quotas = quotas;
        self.looked = Some((Instant::now(), before));
    }

    /// Gives what was counted to the stalls of a core, which are in order. `hz` is what makes ticks seconds.
    pub fn charge(&self, core: Core, named: &mut [AttributedStall], hz: f64) {
        for growth in &self.throttled {
            // The count is of all cores together: one of them was kept from running for no longer than the time there was.
            let (stalls, mut left) = (within(named, growth), growth.ticks(hz).min(growth.looked));
            for stall in &mut *stalls {
                // Where nobody ran there is no other reason.
                let idle = stall.reassign(|cause| *cause == Cause::NotRunnable, &Cause::Quota, u64::MAX);
                left = left.saturating_sub(idle);
            }
            // Others may run while the program must not.
            let tasks = |stall: &AttributedStall| stall.time_of(is_task);
            give(stalls, 1, left, tasks, |stall, ticks| {
                stall.reassign(is_task, &Cause::Quota, ticks)
            });
        }
        let shortest = (STEAL_MIN_S * hz) as u64;
        for growth in self.steal.get(&core).into_iter().flatten() {
            let stalls = within(named, growth);
            give(stalls, shortest, growth.ticks(hz), not_seen, |stall, ticks| {
                let mut given = stall.reassign(|cause| *cause == Cause::Outside, &Cause::Stolen, ticks);
                for (cause, stretch) in std::mem::take(&mut stall.doubtful) {
                    let most = stretch.min(ticks - given);
                    given += stall.reassign(|other| *other == cause, &Cause::Stolen, most);
                }
                given
            });
        }
    }
}

impl Growth {
    fn new(from: u64, to: u64, ns: u64) -> Self {
        let looked = to.saturating_sub(from);
        Self { from, to, ns, looked }
    }

    /// Both in one, unless so much lies between them that it would be taken for theirs.
    fn and(self, later: Self) -> Option<Self> {
        let looked = self.looked + later.looked;
        let near = later.from.saturating_sub(self.to) <= looked;
        near.then_some(Self {
            from: self.from,
            to: later.to,
            ns: self.ns + later.ns,
            looked,
        })
    }

    fn ticks(&self, hz: f64) -> u64 {
        (self.ns as f64 / 1e9 * hz) as u64
    }
}

fn is_task(cause: &Cause) -> bool {
    matches!(cause, Cause::Task { .. })
}

/// The time of which the kernel saw nothing, or that no interrupt takes.
fn not_seen(stall: &AttributedStall) -> u64 {
    let doubtful: u64 = stall.doubtful.iter().map(|(_, ticks)| ticks).sum();
    stall.time_of(|cause| *cause == Cause::Outside) + doubtful
}

/// The stalls of the time in which a counter grew.
fn within<'n>(named: &'n mut [AttributedStall], growth: &Growth) -> &'n mut [AttributedStall] {
    let begin = named.partition_point(|one| one.stall.to < growth.from);
    let end = named.partition_point(|one| one.stall.from <= growth.to);
    named.get_mut(begin..end).unwrap_or_default()
}

/// Gives up to `left` ticks to the stalls of which at least `shortest` is `open` to them, the longest first. `take` gives
/// a stall up to so many, and says how many it took.
fn give(
    stalls: &mut [AttributedStall],
    shortest: u64,
    mut left: u64,
    open: fn(&AttributedStall) -> u64,
    take: impl Fn(&mut AttributedStall, u64) -> u64,
) {
    let mut longest: Vec<&mut AttributedStall> =
        stalls.iter_mut().filter(|one| open(one) >= shortest).collect();
    longest.sort_by_key(|one| std::cmp::Reverse(open(one)));
    for stall in longest {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(take(stall, left));
    }
}

/// Keeps a growth. Where too many are kept each two become one, over the time of both; if all lie too far apart for that, what is
/// new is not kept.
fn push(growths: &mut Vec<Growth>, growth: Growth) {
    if growths.len() == GROWTHS_MAX {
        *growths = growths.chunks(2).flat_map(in_one).collect();
    }
    if growths.len() < GROWTHS_MAX {
        growths.push(growth);
    }
}

fn in_one(some: &[Growth]) -> Vec<Growth> {
    match *some {
        [first, second] => first.and(second).map_or_else(|| some.to_vec(), |both| vec![both]),
        _ => some.to_vec(),
    }
}

/// How long each cgroup of this process has been kept from running by its quota, ns.
fn throttled(sys: &Sys) -> BTreeMap<PathBuf, u64> {
    let of = |folder: PathBuf| {
        let text = sys.text(folder.join("cpu.stat"))?;
        let ns = text.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            let value: u64 = value.parse().ok()?;
            match name {
                "throttled_usec" => Some(value.saturating_mul(1000)),
                "throttled_time" => Some(value),
                _ => None,
            }
        })?;
        Some((folder, ns))
    };
    host::cgroup_folders(sys, "cpu")
        .into_iter()
        .filter_map(of)
        .collect()
}

#[cfg(test)]
mod tests;
