//! Services on these cores: threads that somebody has pinned where we are to poll.

use crate::{Finding, Remedy, Subject, When, look};
use host::cores::{self, CoreSet};
use host::cpuset;
use host::threads::{Thread, ancestors, threads};

const NAME: &str = "service";
const FROM: &str = "/proc/*/task/*/status, Cpus_allowed_list";

/// Threads that may run on these cores and not on most others; without those who started this process, and without all whom
/// nothing keeps here but the cpuset that we are in, too: but in one of a single core somebody's poller looks like that.
pub(crate) fn pinned(subject: &Subject<'_>, to: &CoreSet) -> Vec<Thread> {
    let (online, ours, cpuset) = (
        cores::online(subject.sys),
        ancestors(subject.sys, None),
        cpuset(subject.sys).filter(|set| set.cores.len() > 1),
    );
    let tasks = threads(subject.sys);
    tasks
        .filter(|task| !task.is_kernel && !task.allowed.common(to).is_empty())
        .filter(|task| !ours.contains(&task.process))
        .filter(|task| cpuset.as_ref().is_none_or(|set| task.allowed != set.cores))
        // Whoever may run on all cores, or on all but a few, was not put here.
        .filter(|task| task.allowed.len() * 2 <= online.len())
        .collect()
}

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (on, finding) = (subject.workers.in_words(), Finding::of(NAME));
    let pinned = pinned(subject, &subject.workers);
    if let Some(why) = look::why_unseen(subject.sys, !pinned.is_empty()) {
        return finding.cannot_tell(why);
    }
    if pinned.is_empty() {
        return finding
            .good(format!("no thread is pinned to {on}"))
            .read(FROM, "none");
    }
    let described =
        |task: &Thread| format!("{} (thread {}, {})", task.name, task.id, task.allowed.in_words());
    let (names, count) = (look::few(pinned.iter().map(described)), pinned.len());
    let free = subject.housekeeping.iter().next_back();
    let example = free.map_or_else(String::new, |core| format!(", for example {core}"));
    let advice = format!("choose other --cores{example}, or end that service first");
    finding
        .bad(format!("pinned to {on} already: {names}"))
        .read(FROM, format!("{count} thread(s)"))
        .costs("two pollers on a core take turns: each is away for 3 to 10 ms at a time")
        .remedy(Remedy::advice(When::Restart, advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;
    use crate::look::tests::{write_kthreadd, write_parent, write_task};

    #[test]
    fn who_is_pinned_here_is_named() {
        let machine = Machine::with(&[]);
        assert_eq!(machine.verdict(check), Verdict::CannotTell);
        write_task(&machine, 7, "cron", "0-3", false, 0);
        write_task(&machine, 8, "ksoftirqd/2", "2", true, 0);
        write_task(&machine, 9, "elsewhere", "0", false, 0);
        assert_eq!(machine.verdict(check), Verdict::CannotTell, "in a PID namespace");
        write_kthreadd(&machine);
        assert_eq!(machine.verdict(check), Verdict::Good);
        // In a container with two cores, where the shell of this process is bound to one of them.
        machine.write("/proc/self/cgroup", "0::/\n");
        machine.write("/sys/fs/cgroup/cpuset.cpus.effective", "1-2\n");
        write_task(&machine, 11, "worker", "1-2", false, 0);
        write_task(&machine, 12, "sh", "2", false, 0);
        write_parent(&machine, 12);
        assert_eq!(machine.verdict(check), Verdict::Good);
        write_task(&machine, 10, "vpp", "2", false, 0);
        let finding = machine.finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(!finding.says.contains("sh ("), "{}", finding.says);
        assert!(
            finding.says.contains("vpp (thread 10, core 2)"),
            "{}",
            finding.says
        );
        machine.write("/sys/fs/cgroup/cpuset.cpus.effective", "2\n");
        assert!(
            machine.finding(check).says.contains("vpp"),
            "the only core is polled"
        );
    }
}
