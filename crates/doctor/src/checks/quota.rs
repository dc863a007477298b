//! The CPU quota of this process's cgroup: who has used it up is stopped.

use std::path::PathBuf;

use crate::ambient::cpu_limit;
use crate::{Finding, Remedy, Subject};
use host::cgroup_folders;

const NAME: &str = "cpu-quota";
const CGROUP: &str = "/proc/self/cgroup";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let sys = subject.sys;
    let Some(membership) = sys.text(CGROUP) else {
        return Finding::unreadable(NAME, CGROUP);
    };
    let finding = Finding::of(NAME);
    let (file, limit, none) = if let Some((file, limit)) = cpu_limit(sys) {
        (file.display().to_string(), limit, "max")
    } else if let Some((file, limit)) = version_1(subject) {
        (file, limit, "-1")
    } else if let Some(why) = why_unseen(subject) {
        return finding
            .cannot_tell(why)
            .read(CGROUP, membership.replace('\n', " "));
    } else {
        let sentence = "nothing limits the CPU time of this session";
        return finding.good(sentence).read(CGROUP, membership.replace('\n', " "));
    };
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let statistics = sys.text(format!("{folder}/cpu.stat")).unwrap_or_default();
    let throttled = statistics
        .lines()
        .find_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok());
    let stopped = match throttled {
        Some(0) => "it has not been stopped yet".to_owned(),
        Some(times) => format!("it has been stopped {times} times so far"),
        None => "how often it has been stopped is unknown".to_owned(),
    };
    finding
        .bad(format!(
            "CPU time is limited ({limit}), and a poller uses all of it: {stopped}"
        ))
        .read(&file, &limit)
        .costs("the rest of each period (100 ms) once the quota is used up")
        .remedy(Remedy::write(file, none, limit))
}

/// Why a limit may be where nobody here sees it. Every cgroup of version 2 has a type, but for the machine's own (kernel:
/// `Documentation/admin-guide/cgroup-v2.rst`): one that has is below others, also where a namespace shows none above it.
fn why_unseen(subject: &Subject<'_>) -> Option<&'static str> {
    let folders = cgroup_folders(subject.sys, "cpu");
    let has = |folder: &PathBuf, file: &str| subject.sys.exists(folder.join(file));
    let is_top = |folder: &PathBuf| {
        folders
            .iter()
            .all(|other| Some(other.as_path()) != folder.parent())
    };
    if !folders.iter().any(|folder| has(folder, "cgroup.procs")) {
        Some("the cgroups of this session are not below /sys/fs/cgroup")
    } else if folders
        .iter()
        .any(|folder| is_top(folder) && has(folder, "cgroup.type"))
    {
        Some("the cgroups above this container are not seen from within it")
    } else {
        None
    }
}

/// `cpu.cfs_quota_us` of version 1, if it limits.
fn version_1(subject: &Subject<'_>) -> Option<(String, String)> {
    cgroup_folders(subject.sys, "cpu").iter().find_map(|folder| {
        let file = folder.join("cpu.cfs_quota_us");
        let quota = subject.sys.text(&file).filter(|quota| !quota.starts_with('-'))?;
        Some((file.display().to_string(), quota))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const MAX: &str = "/sys/fs/cgroup/a/cpu.max";
    const QUOTA: &str = "/sys/fs/cgroup/cpu/b/cpu.cfs_quota_us";

    #[test]
    fn a_quota_of_a_parent_counts() {
        let machine = Machine::with(&[
            ("/proc/self/cgroup", "0::/a/b\n"),
            (MAX, "50000 100000\n"),
            ("/sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_throttled 7\n"),
        ]);
        let finding = machine.finding(check);
        assert_eq!(
            (finding.verdict, finding.changed()),
            (Verdict::Bad, vec![(MAX, "max")])
        );
        assert!(finding.says.contains("stopped 7 times"), "{}", finding.says);
        machine.write(MAX, "max 100000\n");
        assert_eq!(machine.verdict(check), Verdict::CannotTell, "an empty mount");
        machine.write("/sys/fs/cgroup/a/cgroup.procs", "");
        machine.write("/sys/fs/cgroup/a/cgroup.type", "domain\n");
        assert_eq!(machine.verdict(check), Verdict::Good);
        machine.write("/sys/fs/cgroup/cgroup.type", "domain\n");
        assert_eq!(machine.verdict(check), Verdict::CannotTell, "a container's");
    }

    #[test]
    fn version_1_has_another_file() {
        let machine = Machine::with(&[("/proc/self/cgroup", "3:cpu,cpuacct:/b\n"), (QUOTA, "20000\n")]);
        assert_eq!(machine.finding(check).changed(), [(QUOTA, "-1")]);
        machine.write(QUOTA, "-1\n");
        machine.write("/sys/fs/cgroup/cpu/b/cgroup.procs", "");
        assert_eq!(machine.verdict(check), Verdict::Good);
    }

    #[test]
    fn nothing_to_read_is_said() {
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
