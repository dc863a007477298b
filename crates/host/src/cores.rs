//! CPU cores: which ones this process may use, and which ones make good workers.

pub use crate::core_set::{Core, CoreListError, CoreSet};

use crate::cgroups::{Cpuset, cpuset};
use crate::threads::{Thread, running};
use crate::{Fix, Problem, Sys, partition};
use serde::Serialize;
use std::thread;
use std::time::Duration;

const CPUS: &str = "/sys/devices/system/cpu";
/// Cores from this number on are in no set of the C library (`CPU_SETSIZE`), by which threads are pinned, ours and DPDK's.
const PINNED_BELOW: Core = Core(1024);

/// The list of cores in a file.
pub fn list(sys: &Sys, path: &str) -> Option<CoreSet> {
    sys.text(path)?.parse().ok()
}

/// Cores that are switched on.
pub fn online(sys: &Sys) -> CoreSet {
    list(sys, &format!("{CPUS}/online")).unwrap_or_default()
}

/// Cores that the kernel was booted to isolate (`isolcpus=`): no kernel tells there what a cpuset isolates.
pub fn isolated_at_boot(sys: &Sys) -> CoreSet {
    list(sys, &format!("{CPUS}/isolated")).unwrap_or_default()
}

/// Isolated cores that this process may use: by `isolcpus=`, or in the partition of `tune`.
pub fn isolated(sys: &Sys) -> CoreSet {
    isolated_at_boot(sys).with(&partition::open_to_us(sys))
}

/// Cores that somebody keeps everything else off: isolated by `isolcpus=` or any cpuset, or tickless. Nothing is moved there.
pub fn set_apart(sys: &Sys) -> CoreSet {
    isolated_at_boot(sys)
        .with(&partition::isolated(sys))
        .with(&tickless(sys))
}

/// Cores without a timer tick while one thread runs (`nohz_full=`).
pub fn tickless(sys: &Sys) -> CoreSet {
    list(sys, &format!("{CPUS}/nohz_full")).unwrap_or_default()
}

/// Cores this process may run workers on: those that it may use and to which a thread can be pinned.
pub fn allowed(sys: &Sys) -> CoreSet {
    let allowed = allowed_by_kernel(sys);
    allowed.iter().filter(|core| *core < PINNED_BELOW).collect()
}

/// The kernel leaves isolated cores out of every process's affinity, but lets a process ask for them: they count
/// as allowed unless somebody narrowed the affinity further (`taskset`, a cpuset).
fn allowed_by_kernel(sys: &Sys) -> CoreSet {
    let online = online(sys);
    let ranges = sys.status().and_then(|status| status.cpus_allowed_list);
    let Some(ranges) = ranges else { return online };
    let affinity = CoreSet::of_ranges(&ranges);
    let affinity = if online.is_empty() {
        affinity
    } else {
        affinity.common(&online)
    };
    let isolated = isolated(sys).common(&online);
    if affinity == online.without(&isolated) {
        affinity.with(&isolated)
    } else {
        affinity
    }
}

/// Whether all of `wanted` are there, on, and allowed.
pub fn check(sys: &Sys, wanted: &CoreSet) -> Result<(), Problem> {
    let what = format!("cores {wanted}");
    let (online, allowed) = (online(sys), allowed(sys));
    let choose = || Fix::advice(format!("choose from --cores {allowed}"));
    let present = list(sys, &format!("{CPUS}/present")).unwrap_or_else(|| online.clone());
    if wanted.is_empty() {
        return Err(Problem::new("cores", "the list is empty", choose()));
    }
    // Where /sys is not mounted nobody knows which there are: the affinity alone decides.
    let absent = wanted.without(&present);
    if !absent.is_empty() && !present.is_empty() {
        let found = format!("this machine has no core {absent} (it has {present})");
        return Err(Problem::new(what, found, choose()));
    }
    let off = wanted.without(&online);
    if let Some(core) = off.iter().next().filter(|_| !online.is_empty()) {
        let fix = off.iter().map(|core| format!("echo 1 > {CPUS}/cpu{core}/online"));
        let undo = off.iter().map(|core| format!("echo 0 > {CPUS}/cpu{core}/online"));
        let found = if off.len() == 1 {
            format!("core {core} is switched off")
        } else {
            format!("cores {off} are switched off")
        };
        return Err(Problem::new(what, found, Fix::all(fix).undone_by(undo)));
    }
    let high: CoreSet = wanted.iter().filter(|core| *core >= PINNED_BELOW).collect();
    if !high.is_empty() {
        let found = format!(
            "no thread can be pinned to {}: the C library's sets of cores end below {PINNED_BELOW} (CPU_SETSIZE)",
            high.in_words()
        );
        return Err(Problem::new(what, found, choose()));
    }
    let forbidden = wanted.without(&allowed);
    let closed = forbidden.common(&partition::cores(sys));
    if !closed.is_empty() {
        return Err(partition::closed(&closed, partition::ONLY_ROOT));
    }
    if let Some(Cpuset { file, cores }) = cpuset(sys).filter(|set| !forbidden.without(&set.cores).is_empty())
    {
        let found = format!(
            "{} is outside this process's cpuset ({file}: {cores})",
            forbidden.in_words()
        );
        let fix = Fix::advice(format!(
            "choose from --cores {allowed}, or widen the cpuset (docker update --cpuset-cpus, AllowedCPUs= of its unit)"
        ));
        return Err(Problem::new(what, found, fix));
    }
    if !forbidden.is_empty() {
        let found = format!(
            "{} is outside this process's affinity or cpuset ({allowed})",
            forbidden.in_words()
        );
        let fix = Fix::one(format!("taskset -pc {} $$", wanted.with(&allowed)));
        return Err(Problem::new(what, found, fix));
    }
    Ok(())
}

/// Which cores do what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// One per worker, best first.
    pub workers: Vec<Core>,
    /// For the control thread and everything else.
    pub housekeeping: Core,
    /// A worker runs on the housekeeping core, as there are too few that nobody polls.
    pub shared: bool,
}

/// A core that somebody polls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Polled {
    /// The core.
    pub core: Core,
    /// Who polls it.
    pub by: Thread,
}

/// Between two looks at who runs, and how many there are at most.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const LOOKS: u32 = 10;
/// Who runs for so long without waiting polls, ns.
const POLLED_NS: u64 = 3_000_000;

/// Cores that others poll: those of threads that run without ever waiting, and may run nowhere else. Where we may run on one
/// core only, nothing sets such a thread apart from all others.
pub fn polled(sys: &Sys) -> Vec<Polled> {
    if allowed(sys).len() < 2 {
        return Vec::new();
    }
    // Each with what it had run when it was first seen.
    let mut found: Vec<_> = pinned(sys)
        .into_iter()
        .map(|polled| (polled.by.ran_ns, polled))
        .collect();
    for _ in 0..LOOKS {
        let polls = |(first, polled): &(u64, Polled)| polled.by.ran_ns.saturating_sub(*first) >= POLLED_NS;
        if found.iter().all(polls) {
            break;
        }
        thread::sleep(LOOK_AGAIN);
        // Who only happened to run waits before long, once it has the core: such as the control of another run, which may
        // run on one core only where there are two. Who did not get the core in all that time may as well poll.
        let now = pinned(sys);
        found.retain_mut(|(_, polled)| {
            let it = |now: &&Polled| (now.by.id, now.by.waits) == (polled.by.id, polled.by.waits);
            let Some(still) = now.iter().find(it) else {
                return false;
            };
            polled.by.ran_ns = still.by.ran_ns;
            true
        });
    }
    found.into_iter().map(|(_, polled)| polled).collect()
}

/// The threads that run now and have one core.
fn pinned(sys: &Sys) -> Vec<Polled> {
    let pinned = running(sys).filter(|thread| !thread.is_kernel && thread.allowed.len() == 1);
    let cores = pinned.filter_map(|by| {
        let core = by.allowed.iter().next()?;
        Some(Polled { core, by })
    });
    cores.collect()
}

/// How much each core can do, as far as a hybrid machine tells: of most all the same. Its kind comes first: on x86 the
/// capacity is missing before Linux 6.12, and is the same of all where SMT is on.
fn strength(sys: &Sys, core: Core) -> (bool, u64) {
    let weak = list(sys, "/sys/devices/cpu_atom/cpus");
    let is_weak = weak.is_some_and(|weak| weak.contains(core));
    // Of the strongest 1024 (kernel: `SCHED_CAPACITY_SCALE`).
    let capacity = sys.number(format!("{CPUS}/cpu{core}/cpu_capacity"));
    (!is_weak, capacity.unwrap_or(1024))
}

/// Chooses cores for `workers` workers: isolated ones first, then the strongest, then the highest numbers; those near `node`
/// before others, and a physical core of one's own before a sibling thread. The lowest core keeps the house. Those that are `taken`
/// come last: even beside the house a worker is better off than beside another poller.
pub fn pick(sys: &Sys, workers: usize, node: Option<u32>, taken: &[Polled]) -> Result<Choice, Problem> {
    let (allowed, isolated) = (allowed(sys), isolated(sys));
    let open = allowed.without(&isolated);
    let Some(housekeeping) = open.iter().chain(allowed.iter()).next() else {
        let found = format!("no list of cores in {CPUS}/online");
        let fix = Fix::one("mount -t sysfs sysfs /sys");
        return Err(Problem::new("worker cores", found, fix));
    };
    if workers > allowed.len() {
        let count = allowed.len();
        let found = format!("{workers} workers need a core each, and {count} may be used ({allowed})");
        let fix = Fix::advice("use fewer ports or queues (--tx-queues, --rx-queues)");
        return Err(Problem::new("worker cores", found, fix));
    }
    let near = node.and_then(|node| list(sys, &format!("/sys/devices/system/node/node{node}/cpulist")));
    let mut ranked: Vec<Core> = allowed.iter().filter(|core| *core != housekeeping).collect();
    ranked.sort_by_cached_key(|core| {
        let far = near.as_ref().is_some_and(|near| !near.contains(*core));
        let best = std::cmp::Reverse((strength(sys, *core), *core));
        (far, !isolated.contains(*core), best)
    });
    let mut chosen = first_threads_first(sys, housekeeping, ranked);
    chosen.push(housekeeping);
    // Stable: among the free and among the taken the order stays.
    chosen.sort_by_key(|core| taken.iter().any(|polled| polled.core == *core));
    chosen.truncate(workers);
    let shared = chosen.contains(&housekeeping);
    Ok(Choice {
        workers: chosen,
        housekeeping,
        shared,
    })
}

/// The same cores in their order, but those that share a physical core with `other` or one before them come last.
pub fn first_threads_first(sys: &Sys, other: Core, cores: impl IntoIterator<Item = Core>) -> Vec<Core> {
    let mut taken = siblings(sys, other);
    let (mut own, mut second) = (Vec::new(), Vec::new());
    for core in cores {
        if taken.contains(core) {
            second.push(core);
        } else {
            taken = taken.with(&siblings(sys, core));
            own.push(core);
        }
    }
    own.extend(second);
    own
}

/// The threads of a core's physical core, itself included.
pub fn siblings(sys: &Sys, core: Core) -> CoreSet {
    list(sys, &format!("{CPUS}/cpu{core}/topology/thread_siblings_list"))
        .unwrap_or_else(|| [core].into_iter().collect())
}

/// The numbers of the NUMA nodes; none on kernels without NUMA.
pub fn numa_nodes(sys: &Sys) -> Vec<u32> {
    let names = sys.names("/sys/devices/system/node").into_iter();
    names
        .filter_map(|name| name.strip_prefix("node")?.parse().ok())
        .collect()
}
