//! The threads of this machine, and where they may run.

use procfs_core::FromRead as _;
use procfs_core::process::{Schedstat, Stat, StatFlags, Status};
use serde::Serialize;

use crate::Sys;
use crate::core_set::CoreSet;

/// More processes have never started one another.
const ANCESTORS_MAX: usize = 64;

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its id.
    pub id: u32,
    /// The process that it belongs to.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// The cores that it may run on.
    pub allowed: CoreSet,
    /// Whether it is the kernel's own.
    pub is_kernel: bool,
    /// Scheduled as `SCHED_FIFO`, `SCHED_RR` or `SCHED_DEADLINE`.
    pub is_real_time: bool,
    /// How often it waited for something, as the kernel counts: `voluntary_ctxt_switches` of proc(5).
    pub waits: u64,
    /// How long it has run, ns, as of the last tick of its core; 0 where the kernel does not tell (`CONFIG_SCHED_INFO`).
    pub ran_ns: u64,
}

/// Whether we see the processes of the whole machine, by the numbers that the kernel has for them. In a PID namespace (a
/// container) we do not: `kthreadd`, always process 2, is not there, or we have a number of our own in it, too.
pub fn sees_all(sys: &Sys) -> bool {
    let numbers = sys.status().and_then(|status| status.nspid);
    sys.text("/proc/2/comm").as_deref() == Some("kthreadd") && numbers.is_none_or(|numbers| numbers.len() < 2)
}

/// The processes that started the process `of`, or this one, the closest first: a shell, sudo, sshd.
pub fn ancestors(sys: &Sys, of: Option<u32>) -> Vec<u32> {
    let parent = |of: Option<u32>| {
        let of = of.map_or("self".to_owned(), |process| process.to_string());
        let status = Status::from_file(sys.path(format!("/proc/{of}/status"))).ok()?;
        u32::try_from(status.ppid).ok().filter(|process| *process > 0)
    };
    let above = std::iter::successors(parent(of), |process| parent(Some(*process)));
    // A bound, should numbers be given anew meanwhile.
    above.take(ANCESTORS_MAX).collect()
}

/// Every thread that we can see, but our own.
pub fn threads(sys: &Sys) -> impl Iterator<Item = Thread> {
    stats(sys).filter_map(|found| found.thread(sys))
}

/// Whether this process is of a real-time class (`chrt`), and what it starts with it.
pub fn is_real_time(sys: &Sys) -> bool {
    Stat::from_file(sys.path("/proc/self/stat")).is_ok_and(|stat| of_real_time(&stat))
}

/// `SCHED_FIFO`, `SCHED_RR` and `SCHED_DEADLINE` of linux/sched.h.
fn of_real_time(stat: &Stat) -> bool {
    matches!(stat.policy, Some(1 | 2 | 6))
}

/// Those of them that run now.
pub fn running(sys: &Sys) -> impl Iterator<Item = Thread> {
    let running = stats(sys).filter(|found| found.stat.state == 'R');
    running.filter_map(|found| found.thread(sys))
}

/// A thread of which only the state has been read: most are left at that.
struct Found {
    directory: String,
    process: u32,
    stat: Stat,
}

fn stats(sys: &Sys) -> impl Iterator<Item = Found> {
    let own = sys.status().map(|status| status.pid as u32);
    let processes = sys.processes().into_iter().filter_map(|name| name.parse().ok());
    let others = processes.filter(move |process: &u32| Some(*process) != own);
    others.flat_map(move |process| {
        let all = format!("/proc/{process}/task");
        sys.names(&all).into_iter().filter_map(move |thread| {
            let directory = format!("{all}/{thread}");
            let stat = Stat::from_file(sys.path(format!("{directory}/stat"))).ok()?;
            Some(Found {
                directory,
                process,
                stat,
            })
        })
    })
}

impl Found {
    fn thread(self, sys: &Sys) -> Option<Thread> {
        let status = Status::from_file(sys.path(format!("{}/status", self.directory))).ok()?;
        let flags = StatFlags::from_bits_truncate(self.stat.flags);
        let is_real_time = of_real_time(&self.stat);
        let ran = Schedstat::from_file(sys.path(format!("{}/schedstat", self.directory)));
        Some(Thread {
            id: self.stat.pid as u32,
            process: self.process,
            name: self.stat.comm,
            allowed: CoreSet::of_ranges(&status.cpus_allowed_list?),
            is_kernel: flags.contains(StatFlags::PF_KTHREAD),
            is_real_time,
            waits: status.voluntary_ctxt_switches.unwrap_or(0),
            ran_ns: ran.map_or(0, |ran| ran.sum_exec_runtime),
        })
    }
}
