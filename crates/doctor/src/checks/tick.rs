//! The timer tick: how often it interrupts the cores that shall poll.

use crate::{Finding, Remedy, Subject, Verdict, When, command_line};
use host::cores;
use host::cores::Core;
use host::interrupts::Interrupts;

const NAME: &str = "tick";
const FILE: &str = "/sys/devices/system/cpu/nohz_full";
/// More than the one a second that a tickless core keeps.
const PER_SECOND_MAX: f64 = 2.0;

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let watched = &subject.watched;
    let tickless = cores::tickless(subject.sys);
    let is_tickless = subject.workers.without(&tickless).is_empty();
    let have_polled = watched.ticks.keys().copied().collect();
    let unproven = subject.workers.without(&tickless).without(&have_polled);
    let rates = subject.workers.iter().map(|core| {
        let idle = || watched.per_second(count(&watched.before.interrupts, &watched.after.interrupts, core));
        (core, watched.ticks.get(&core).copied().unwrap_or_else(idle))
    });
    let Some((core, worst)) = rates.max_by(|one, other| one.1.total_cmp(&other.1)) else {
        return Vec::new();
    };
    let counted = watched.is_there() && !watched.after.interrupts.is_empty();
    if counted && count(&Interrupts::default(), &watched.after.interrupts, core) == 0 {
        let says = format!("no line of /proc/interrupts counts the timer of core {core}");
        return Finding::of(NAME).cannot_tell(says).into();
    }
    let polled = watched.ticks.contains_key(&core);
    let busy = if polled { " while it polls" } else { "" };
    let ticks = format!("timer on core {core}{busy}: {worst:.1} /s");
    let knows = subject.sys.exists(FILE);
    let shown = if knows {
        tickless.to_string()
    } else {
        "absent".to_owned()
    };
    let finding = Finding::of(NAME)
        .read_all(counted.then_some(("/proc/interrupts", ticks)))
        .read(FILE, shown);
    // An idle core has no tick either: only `nohz_full` keeps it away from a busy one.
    let finding = match (counted, is_tickless) {
        (true, _) if worst > PER_SECOND_MAX => finding.bad(format!(
            "the timer interrupts core {core} {worst:.0} times a second{busy}"
        )),
        (true, _) if !unproven.is_empty() => finding.warning(format!(
            "no tick while idle, but {} will have one while polling",
            unproven.in_words()
        )),
        (true, _) if polled => finding.good(format!("core {core} has no tick{busy}")),
        (true, _) => finding.good("the cores are tickless, and have no tick"),
        (false, true) => finding.cannot_tell("the cores are tickless; ticks were not counted"),
        (false, false) => finding.warning("a polling core will be interrupted by the timer tick"),
    };
    if finding.verdict < Verdict::Warning {
        return finding.into();
    }
    let finding = finding.costs("1 to 5 us a tick, and each one moves cache lines out");
    // Something keeps the tick on a tickless core: a second task, a timer, a perf event. One core must keep its tick.
    if is_tickless || subject.housekeeping.is_empty() {
        return finding.into();
    }
    let (sys, workers) = (subject.sys, &subject.workers);
    let arguments = [
        command_line::tickless(sys, workers),
        command_line::besides(sys, "rcu_nocbs", workers),
    ];
    // drivers/base/cpu.c has the file only with this option.
    let remedy = if knows {
        Remedy::boot(arguments)
    } else {
        let words = arguments.join(" ");
        let advice = format!("a kernel with CONFIG_NO_HZ_FULL, which this one lacks, booted with {words}");
        Remedy::advice(When::Boot, advice)
    };
    finding.remedy(remedy).into()
}

/// The ticks of a core from one look to the next.
pub(crate) fn count(before: &Interrupts, after: &Interrupts, core: Core) -> u64 {
    let deltas = after.since(before, core);
    let ticks = deltas.iter().filter(|delta| is_timer(&delta.line, &delta.name));
    ticks.map(|delta| delta.count).sum()
}

/// Whether a line counts the timer of each core: that of the APIC (`LOC`), of Hyper-V (`HVS`), of Xen (`timer0`), or of an Arm
/// core (`arch_timer`). `timer` alone is the machine's, which ticks for nobody any more.
pub(super) fn is_timer(line: &str, name: &str) -> bool {
    let driver = name.split_whitespace().next_back().unwrap_or_default();
    let of_xen = driver
        .strip_prefix("timer")
        .is_some_and(|core| core.parse::<u32>().is_ok());
    ["LOC", "HVS"].contains(&line) || of_xen || driver == "arch_timer"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    const BEFORE: &str = " CPU0 CPU1 CPU2 CPU3\nLOC: 5 5 5 5 Local timer interrupts\n";

    fn machine(tickless: &str, after: &str) -> Machine {
        Machine::with(&[(FILE, tickless), ("/proc/interrupts", BEFORE)])
            .watched(&[("/proc/interrupts", after)])
    }

    #[test]
    fn ticks_are_counted_on_the_workers_only() {
        let bad = machine("", &BEFORE.replace("5 5 5 5", "5 5 255 5")).finding(check);
        assert_eq!(bad.verdict, Verdict::Bad);
        assert!(bad.says.contains("core 2 250 times"), "{}", bad.says);
        assert_eq!(bad.booted(), ["nohz_full=2,3", "rcu_nocbs=2,3"]);
        let elsewhere = machine("2-3", &BEFORE.replace("5 5 5 5", "255 255 5 6"));
        assert_eq!(elsewhere.verdict(check), Verdict::Good);
    }

    /// Hyper-V, Xen and Arm have timers of their own.
    #[test]
    fn the_timer_of_the_machine_is_the_one_that_counts() {
        let of = |line: &str| {
            let before = format!(" CPU0 CPU1 CPU2 CPU3\nLOC: 0 0 0 0 Local timer interrupts\n{line}\n");
            let machine = Machine::with(&[(FILE, ""), ("/proc/interrupts", &before)]);
            machine.watched(&[("/proc/interrupts", &before.replace("5 5 5 5", "5 5 5 255"))])
        };
        for line in [
            "HVS: 5 5 5 5 Hyper-V stimer0 interrupts",
            "52: 5 5 5 5 xen-percpu -virq timer3",
            "11: 5 5 5 5 GICv3 27 Level arch_timer",
        ] {
            assert_eq!(of(line).verdict(check), Verdict::Bad, "{line}");
        }
        let none = of("0: 5 5 5 5 IO-APIC 2-edge timer").finding(check);
        assert_eq!((none.verdict, none.booted().len()), (Verdict::CannotTell, 0));
    }

    #[test]
    fn an_idle_core_is_not_a_tickless_one() {
        assert_eq!(machine("3", BEFORE).verdict(check), Verdict::Warning);
    }

    #[test]
    fn a_core_that_polled_proves_it() {
        let mut idle_had_none = machine("", BEFORE);
        idle_had_none.watched.ticks = [(Core(2), 0.5), (Core(3), 250.0)].into();
        let finding = idle_had_none.finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(
            finding.says.ends_with("core 3 250 times a second while it polls"),
            "{}",
            finding.says
        );
        idle_had_none.watched.ticks = [(Core(2), 0.5), (Core(3), 1.0)].into();
        assert_eq!(idle_had_none.verdict(check), Verdict::Good);
        // The loop could not run on the other one.
        idle_had_none.watched.ticks = [(Core(2), 0.5)].into();
        let finding = idle_had_none.finding(check);
        assert_eq!(finding.verdict, Verdict::Warning);
        assert!(finding.says.contains("core 3 will have one"), "{}", finding.says);
    }

    #[test]
    fn a_kernel_that_cannot_is_named() {
        let machine = Machine::with(&[("/proc/interrupts", BEFORE)]).watched(&[]);
        let finding = machine.finding(check);
        assert!(finding.remedies[0].fix.to_string().contains("CONFIG_NO_HZ_FULL"));
        assert_eq!(finding.booted().len(), 0);
    }

    #[test]
    fn without_counters_a_tickless_core_is_not_proven() {
        assert_eq!(
            Machine::with(&[(FILE, "2-3")]).verdict(check),
            Verdict::CannotTell
        );
    }
}
