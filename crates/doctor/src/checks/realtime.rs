//! The limit of real-time tasks: a poller of `SCHED_FIFO` is stopped for 50 ms of each second by default.

use crate::{Change, Finding, Remedy, Subject, look};
use host::threads::{Thread, threads};

const NAME: &str = "rt-limit";
const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
/// Since 6.12 a server task that stands in for the fair class takes the place of the limit (kernel/sched/deadline.c).
const FAIR_SERVER: (u32, u32) = (6, 12);

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let sys = subject.sys;
    // Who may run elsewhere, too, is hardly a poller: multipathd, for one, sleeps wherever it likes.
    let on_workers = |task: &Thread| {
        task.is_real_time && !task.is_kernel && task.allowed.without(&subject.workers).is_empty()
    };
    let tasks = threads(sys).filter(on_workers);
    let pollers: Vec<String> = tasks.map(|task| task.name).collect();
    let has_server = sys.kernel_version().is_some_and(|version| version >= FAIR_SERVER);
    let (files, off) = if has_server {
        let file = |core| format!("/sys/kernel/debug/sched/fair_server/cpu{core}/runtime");
        (subject.workers.iter().map(file).collect(), "0")
    } else {
        (vec![RUNTIME.to_owned()], "-1")
    };
    let held: Vec<(String, Option<String>)> = files
        .into_iter()
        .map(|file| (file.clone(), sys.text(file)))
        .collect();
    let finding = Finding::of(NAME).read_all(
        held.iter()
            .map(|(file, value)| (file, value.as_deref().unwrap_or("cannot be read"))),
    );
    let limiting: Vec<_> = held
        .iter()
        .filter(|(_, value)| value.as_deref() != Some(off))
        .collect();
    if limiting.is_empty() {
        return finding.good("real-time tasks are not limited");
    }
    if let Some(why) = look::why_unseen(sys, !pollers.is_empty()) {
        return finding.cannot_tell(why);
    }
    if pollers.is_empty() {
        return finding.good(
            "real-time tasks are limited, but none belongs to these cores (dropless's workers are not real-time tasks)",
        );
    }
    let run = format!("{} run(s) as real-time task", look::few(&pollers));
    if held.iter().any(|(_, value)| value.is_none()) {
        return finding.cannot_tell(format!("{run}, and {} cannot be read", held[0].0));
    }
    let changes = limiting
        .iter()
        .map(|(file, value)| (Change::new(file, off), value.clone().unwrap_or_default()));
    finding
        .bad(format!("{run}, and will be stopped"))
        .costs("up to 50 ms of each second, when anything else wants the core")
        .remedy(Remedy::now(changes.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;
    use crate::look::tests::{write_kthreadd, write_task};

    const RELEASE: &str = "/proc/sys/kernel/osrelease";
    const SERVER: &str = "/sys/kernel/debug/sched/fair_server/cpu2/runtime";

    #[test]
    fn a_limit_hurts_only_who_is_limited() {
        let machine = Machine::with(&[(RELEASE, "6.1.0-18-amd64"), (RUNTIME, "950000")]);
        write_task(&machine, 7, "migration/2", "2", true, 1);
        assert_eq!(machine.verdict(check), Verdict::CannotTell, "in a PID namespace");
        write_kthreadd(&machine);
        assert_eq!(machine.verdict(check), Verdict::Good);
        write_task(&machine, 6, "multipathd", "0-3", false, 2);
        assert_eq!(machine.verdict(check), Verdict::Good, "a sleeper of all cores");
        write_task(&machine, 8, "poller", "2", false, 1);
        let finding = machine.finding(check);
        assert_eq!(
            (finding.verdict, finding.changed()),
            (Verdict::Bad, vec![(RUNTIME, "-1")])
        );
        machine.write(RUNTIME, "-1");
        assert_eq!(machine.verdict(check), Verdict::Good);
    }

    #[test]
    fn a_newer_kernel_has_a_server_instead() {
        let machine = Machine::with(&[(RELEASE, "6.18.44"), (RUNTIME, "950000")]).workers("2");
        write_task(&machine, 8, "poller", "2", false, 2);
        assert_eq!(machine.verdict(check), Verdict::CannotTell);
        machine.write(SERVER, "50000000");
        assert_eq!(machine.finding(check).changed(), [(SERVER, "0")]);
    }
}
