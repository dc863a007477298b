//! DAMON: the kernel's thread that samples which memory is used, and moves or reclaims the rest, by the clock.

use crate::{Finding, Subject, look};
use host::threads::{Thread, threads};

const NAME: &str = "damon";
/// Where the thread of each context is told (Documentation/admin-guide/mm/damon/usage.rst).
const CONTEXTS: &str = "/sys/kernel/mm/damon/admin/kdamonds";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (sys, workers) = (subject.sys, &subject.workers);
    let is_near = |task: &Thread| {
        task.is_kernel && task.name.starts_with("kdamond.") && !task.allowed.common(workers).is_empty()
    };
    let near: Vec<_> = threads(sys).filter(is_near).collect();
    let states = sys.names(CONTEXTS).into_iter().filter_map(|context| {
        let file = format!("{CONTEXTS}/{context}/state");
        sys.text(&file).map(|state| (file, state))
    });
    let finding = Finding::of(NAME).read_all(states);
    if let Some(why) = look::why_unseen(sys, !near.is_empty()) {
        return finding.cannot_tell(why);
    }
    if near.is_empty() {
        return finding.good(format!("no thread of DAMON runs on {}", workers.in_words()));
    }
    let threads = near
        .iter()
        .map(|task| (format!("/proc/{}/status", task.id), task.name.clone()));
    finding
        .read_all(threads)
        .warning(format!(
            "{} of DAMON may run on {}: it samples memory by the clock",
            if near.len() == 1 { "a thread" } else { "threads" },
            workers.in_words()
        ))
        .costs("up to some milliseconds at a time")
        .remedy(look::moved(&near, &subject.housekeeping))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;
    use crate::look::tests::{write_kthreadd, write_task};

    #[test]
    fn its_thread_is_moved_to_other_cores() {
        let machine = Machine::with(&[("/sys/kernel/mm/damon/admin/kdamonds/0/state", "on\n")]);
        assert_eq!(machine.verdict(check), Verdict::CannotTell);
        write_kthreadd(&machine);
        assert_eq!(machine.verdict(check), Verdict::Good);
        write_task(&machine, 77, "kdamond.0", "0-3", true, 0);
        // A program may call itself so.
        write_task(&machine, 78, "kdamond.1", "0-3", false, 0);
        let finding = machine.finding(check);
        assert_eq!(finding.verdict, Verdict::Warning);
        assert_eq!(finding.remedies[0].fix.commands, ["taskset -pc 0,1 77"]);
        assert_eq!(finding.remedies[0].fix.undo, ["taskset -pc 0-3 77"]);
        write_task(&machine, 77, "kdamond.0", "1-2", true, 0);
        let narrow = machine.finding(check);
        assert_eq!(narrow.remedies[0].fix.commands, ["taskset -pc 1 77"]);
    }

    #[test]
    fn one_that_runs_elsewhere_is_good() {
        let machine = Machine::with(&[]);
        write_kthreadd(&machine);
        write_task(&machine, 77, "kdamond.0", "0-1", true, 0);
        assert_eq!(machine.verdict(check), Verdict::Good);
    }
}
