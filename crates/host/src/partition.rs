//! An isolated cpuset partition (cgroup v2): cores that the scheduler gives to nobody but those who were moved there.
//!
//! Only threads in the partition may run on its cores. A run moves its workers there and keeps its control thread
//! outside, which cgroup v2 lets threads of one process do from the root alone: for the run the process is in the root, and
//! goes back to its own cgroup afterwards.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use crate::cgroups::cgroups;
use crate::core_set::CoreSet;
use crate::{Fix, Problem, Sys};

/// The partition's name below the root of cgroup v2.
pub const NAME: &str = "dropless";
/// Why most are turned away.
pub const ONLY_ROOT: &str = "only root may move threads into it";

/// The root of cgroup v2, where it has the cpuset controller; else why there can be no partition.
pub fn root(sys: &Sys) -> Result<String, String> {
    let mounts = sys.mounts("cgroup2");
    let root = mounts.into_iter().next().ok_or("cgroup v2 is not mounted")?;
    let controllers = sys.text(format!("{root}/cgroup.controllers")).unwrap_or_default();
    if controllers.split_whitespace().any(|name| name == "cpuset") {
        Ok(root)
    } else {
        Err("cgroup v2 has no cpuset controller here: cgroup v1 holds it".into())
    }
}

/// The cores of the partition; none where there is no valid one.
pub fn cores(sys: &Sys) -> CoreSet {
    let Ok(root) = root(sys) else {
        return CoreSet::default();
    };
    let read = |file: &str| sys.text(format!("{root}/{NAME}/{file}")).unwrap_or_default();
    if read("cpuset.cpus.partition") != "isolated" {
        return CoreSet::default();
    }
    read("cpuset.cpus").parse().unwrap_or_default()
}

/// The cores of all isolated partitions, whoever made them: kernels before 6.7 tell of ours only.
pub fn isolated(sys: &Sys) -> CoreSet {
    let all = root(sys)
        .ok()
        .and_then(|root| sys.text(format!("{root}/cpuset.cpus.isolated")));
    let all: CoreSet = all.and_then(|all| all.parse().ok()).unwrap_or_default();
    all.with(&cores(sys))
}

/// The cores of the partition, if this process may move threads there.
pub fn open_to_us(sys: &Sys) -> CoreSet {
    let cores = cores(sys);
    let Ok(root) = root(sys) else { return cores };
    let door = sys.path(format!("{root}/{NAME}/cgroup.threads"));
    if cores.is_empty() || OpenOptions::new().write(true).open(door).is_ok() {
        cores
    } else {
        CoreSet::default()
    }
}

/// Why `cores`, which are in the partition, are not for this process.
pub fn closed(cores: &CoreSet, why: &str) -> Problem {
    let found = format!("they belong to the partition of dropless tune, and {why}");
    let fix = Fix::one("sudo dropless <the same arguments>").or("sudo dropless tune --undo");
    Problem::new(format!("cores {cores}"), found, fix)
}

/// This thread's stay in the partition: those it starts meanwhile are born there, and remain.
#[derive(Debug)]
pub struct PartitionStay {
    way_out: PathBuf,
}

/// Where this process is at home among the cgroups; it goes back there when this is dropped.
///
/// [`enter`] takes it into the root, with all its threads, and going back takes all of them along: those in the partition
/// must have ended by then.
#[derive(Debug)]
pub struct CgroupHome {
    procs: PathBuf,
    own: PathBuf,
    cgroup: String,
}

/// Remembers where this process is at home; nothing where cgroup v2 has no cpuset, so that it stays there anyway.
pub fn home(sys: &Sys) -> Option<CgroupHome> {
    let root = root(sys).ok()?;
    let own = sys.path("/proc/self/cgroup");
    let cgroup = unified(&own)?;
    let folder = cgroup.trim_end_matches('/');
    Some(CgroupHome {
        procs: sys.path(format!("{root}{folder}/cgroup.procs")),
        own,
        cgroup,
    })
}

/// The cgroup of version 2 in a `/proc/PID/cgroup`.
fn unified(own: &Path) -> Option<String> {
    let mut all = cgroups(own).into_iter();
    Some(all.find(|cgroup| cgroup.hierarchy == 0)?.pathname)
}

impl Drop for CgroupHome {
    fn drop(&mut self) {
        if unified(&self.own).is_some_and(|now| now != self.cgroup) {
            // Where it fails, because somebody removed it meanwhile, the process ends its life in the root.
            let _ = write(&self.procs);
        }
    }
}

/// Moves this thread into the partition if one of `cores` is in it; until the result is dropped.
pub fn enter(sys: &Sys, cores: &CoreSet) -> Result<Option<PartitionStay>, Problem> {
    if self::cores(sys).common(cores).is_empty() {
        return Ok(None);
    }
    let Ok(root) = root(sys) else { return Ok(None) };
    let stay = PartitionStay {
        way_out: sys.path(format!("{root}/cgroup.threads")),
    };
    let moved = write(&sys.path(format!("{root}/cgroup.procs")))
        .and_then(|()| write(&sys.path(format!("{root}/{NAME}/cgroup.threads"))));
    match moved {
        Ok(()) => Ok(Some(stay)),
        Err(error) => Err(match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EACCES | Errno::EPERM) => closed(cores, ONLY_ROOT),
            _ => closed(cores, &error.to_string()),
        }),
    }
}

impl Drop for PartitionStay {
    fn drop(&mut self) {
        // Where it fails the thread stays on the workers' cores: slower, and not wrong.
        let _ = write(&self.way_out);
    }
}

/// Moves whoever writes, which is what 0 stands for.
fn write(path: &Path) -> io::Result<()> {
    fs::write(path, "0\n")
}
