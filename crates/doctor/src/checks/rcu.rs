//! RCU: callbacks of the kernel's that run on the core that queued them, unless they are handed to threads elsewhere.

use crate::{Finding, Remedy, Subject, When, command_line, look};
use host::cores;
use host::threads::{Thread, threads};

const NAME: &str = "rcu";
const COMMAND_LINE: &str = "/proc/cmdline";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (sys, watched, workers) = (subject.sys, &subject.watched, &subject.workers);
    let Some(arguments) = command_line::values(sys, "rcu_nocbs") else {
        return Finding::unreadable(NAME, COMMAND_LINE);
    };
    let argument = if arguments.is_empty() {
        "no rcu_nocbs".to_owned()
    } else {
        format!("rcu_nocbs={}", arguments.join(" "))
    };
    let on = workers.in_words();
    let count: u64 = workers
        .iter()
        .flat_map(|core| watched.after.softirqs.since(&watched.before.softirqs, core))
        .filter(|delta| delta.line == "RCU")
        .map(|delta| delta.count)
        .sum();
    let counted = watched.is_there() && !watched.after.softirqs.is_empty();
    let rate = watched.per_second(count);
    let finding = Finding::of(NAME)
        .read(COMMAND_LINE, argument)
        .read_all(counted.then(|| ("/proc/softirqs", format!("RCU on {on}: {rate:.1} /s"))));
    let cost = "5 to 100 us where many callbacks wait";
    // A tickless core is offloaded without being asked (kernel/rcu/tree_nocb.h, rcu_init_nohz).
    let offloaded = command_line::cores_of(sys, "rcu_nocbs").with(&cores::tickless(sys));
    let open = workers.without(&offloaded);
    let has_housekeeping = !subject.housekeeping.is_empty();
    if !open.is_empty() {
        let finding = if counted && count > 0 {
            finding.bad(format!("RCU works on {on} {rate:.0} times a second"))
        } else {
            finding.warning(format!(
                "RCU callbacks will run on {} as soon as some are queued there",
                open.in_words()
            ))
        };
        let offload = || Remedy::boot([command_line::besides(sys, "rcu_nocbs", workers)]);
        return finding.costs(cost).remedy(has_housekeeping.then(offload));
    }
    // rcuop/N and rcuog/N run the callbacks of core N.
    let is_offloading = |task: &Thread| task.name.starts_with("rcuo");
    let all: Vec<_> = threads(sys).filter(is_offloading).collect();
    if let Some(why) = look::why_unseen(sys, !all.is_empty()) {
        return finding.cannot_tell(why);
    }
    if all.is_empty() {
        let advice = "a kernel with CONFIG_RCU_NOCB_CPU, which this one seems to lack";
        return finding
            .warning("rcu_nocbs= is given, and the kernel has no threads for it")
            .costs(cost)
            .remedy(Remedy::advice(When::Boot, advice));
    }
    let is_near = |task: &Thread| !task.allowed.common(workers).is_empty();
    let near: Vec<_> = all.into_iter().filter(is_near).collect();
    if near.is_empty() {
        return finding.good(format!("callbacks of {on} run elsewhere"));
    }
    finding
        .warning(format!("{} RCU threads may run on {on}", near.len()))
        .costs(cost)
        .remedy(look::moved(&near, &subject.housekeeping))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;
    use crate::look::tests::{write_kthreadd, write_task};

    const BEFORE: &str = " CPU0 CPU1 CPU2 CPU3\n RCU: 1 1 1 1\n";

    fn machine(line: &str, after: &str) -> Machine {
        Machine::with(&[("/proc/cmdline", line), ("/proc/softirqs", BEFORE)])
            .watched(&[("/proc/softirqs", after)])
    }

    #[test]
    fn work_on_a_worker_is_bad() {
        let finding = machine("quiet", &BEFORE.replace("1 1 1 1", "9 9 9 1")).finding(check);
        assert_eq!(
            (finding.verdict, finding.booted()),
            (Verdict::Bad, vec!["rcu_nocbs=2,3"])
        );
        assert_eq!(machine("quiet", BEFORE).verdict(check), Verdict::Warning);
    }

    #[test]
    fn offloaded_callbacks_run_on_threads_that_can_be_moved() {
        let machine = machine("rcu_nocbs=2-3", &BEFORE.replace("1 1 1 1", "9 9 9 1"));
        assert_eq!(machine.verdict(check), Verdict::CannotTell);
        write_kthreadd(&machine);
        write_task(&machine, 29, "rcuop/3", "0-1", true, 0);
        assert_eq!(machine.verdict(check), Verdict::Good);
        write_task(&machine, 30, "rcuop/2", "0-3", true, 0);
        let finding = machine.finding(check);
        assert_eq!(finding.verdict, Verdict::Warning);
        assert_eq!(finding.remedies[0].fix.commands, ["taskset -pc 0,1 30"]);
        assert_eq!(finding.remedies[0].fix.undo, ["taskset -pc 0-3 30"]);
    }

    /// A kernel that was built without it takes the argument for one that is none of its own.
    #[test]
    fn an_argument_without_threads_offloads_nothing() {
        let machine = machine("rcu_nocbs=2-3", BEFORE);
        write_kthreadd(&machine);
        let finding = machine.finding(check);
        assert_eq!(finding.verdict, Verdict::Warning);
        assert!(finding.says.contains("no threads for it"), "{}", finding.says);
    }

    #[test]
    fn nothing_to_read_is_said() {
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
