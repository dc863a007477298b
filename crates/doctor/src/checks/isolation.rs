//! Scheduler isolation: whether the scheduler may put other tasks on the cores that shall poll.

use crate::{Finding, Remedy, Subject, When, command_line};
use host::partition;
use host::threads::threads;
use host::{Fix, cores};

const NAME: &str = "isolation";
const FILE: &str = "/sys/devices/system/cpu/isolated";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (sys, workers, watched) = (subject.sys, &subject.workers, subject.watched.is_there());
    if !sys.exists(FILE) {
        return Finding::unreadable(NAME, FILE);
    }
    let (at_boot, by_cpuset) = (cores::isolated_at_boot(sys), partition::isolated(sys));
    let cpusets = (!by_cpuset.is_empty()).then(|| ("isolated cpuset partitions", by_cpuset.to_string()));
    let finding = Finding::of(NAME)
        .read(FILE, at_boot.to_string())
        .read_all(cpusets);
    let open = workers.without(&at_boot).without(&by_cpuset);
    if open.is_empty() {
        return finding.good(format!(
            "the scheduler keeps other tasks off {}",
            workers.in_words()
        ));
    }
    // A quick look does not read every thread of the machine.
    let tasks = if watched {
        threads(sys).collect()
    } else {
        Vec::new()
    };
    let strangers = tasks
        .iter()
        .filter(|task| !task.is_kernel && !task.allowed.common(&open).is_empty())
        .count();
    let there = open.in_words();
    let finding = match (strangers, watched) {
        (0, true) => finding.warning(format!(
            "not isolated: {there}, though no other task may run there now"
        )),
        (_, true) => finding.bad(format!(
            "not isolated: {there}, where {strangers} other threads may run"
        )),
        (_, false) => finding.bad(format!("not isolated: {there}, where other tasks may run")),
    };
    let threads = (!tasks.is_empty()).then(|| format!("{strangers} threads may run on {there}"));
    let finding = finding
        .costs("a time slice of 1 to 10 ms whenever another task wakes there")
        .read_all(threads.map(|threads| ("/proc/*/task/*/status", threads)));
    // Isolating every core isolates none.
    if subject.housekeeping.is_empty() {
        return finding;
    }
    let partition = partition::root(sys).ok().map(|_| {
        let apply = Fix::one(format!("dropless tune --cores {workers} --apply"));
        Remedy::by_hand(When::Now, apply.undone_by(["dropless tune --undo"]))
    });
    finding
        .remedy(partition)
        .remedy(Remedy::boot([command_line::isolating(sys, workers)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;
    use crate::look::tests::write_task;

    #[test]
    fn strangers_are_counted() {
        let machine = Machine::with(&[(FILE, "\n")]).watched(&[]);
        assert_eq!(machine.verdict(check), Verdict::Warning);
        write_task(&machine, 8, "kworker", "0-3", true, 0);
        assert_eq!(machine.verdict(check), Verdict::Warning);
        write_task(&machine, 7, "cron", "0-3", false, 0);
        write_task(&machine, 9, "moved", "0-1", false, 0);
        let finding = machine.finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(finding.says.contains("where 1 other"), "{}", finding.says);
        assert_eq!(finding.booted(), ["isolcpus=managed_irq,domain,2,3"]);
    }

    #[test]
    fn isolated_by_boot_or_by_cpuset_is_the_same() {
        assert_eq!(Machine::with(&[(FILE, "1-3\n")]).verdict(check), Verdict::Good);
        let machine = Machine::with(&[(FILE, "3\n")]);
        assert_eq!(machine.verdict(check), Verdict::Bad);
        machine.partition("2");
        assert_eq!(machine.verdict(check), Verdict::Good);
    }

    #[test]
    fn an_old_kernel_does_not_say() {
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
