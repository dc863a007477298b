//! The time stamp counter: whether the kernel trusts the clock that packets are stamped with.

use crate::{Finding, Remedy, Subject};
use host::cpu;

const NAME: &str = "tsc";
const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let sys = subject.sys;
    let Some(current) = sys.text(CURRENT) else {
        return Finding::unreadable(NAME, CURRENT);
    };
    let finding = Finding::of(NAME).read(CURRENT, &current);
    if cpu::flags(sys).is_none() {
        return finding.cannot_tell(
            "the processor's flags are unknown: it is not an x86 processor, or /proc/cpuinfo cannot be read",
        );
    }
    if current == "tsc" {
        let mut missing = vec!["constant_tsc", "nonstop_tsc"];
        missing.retain(|flag| !cpu::has_flag(sys, flag));
        if missing.is_empty() {
            return finding.good("the kernel itself uses it as its clock source");
        }
        return finding
            .warning(format!(
                "the kernel uses it as its clock source, but the processor does not guarantee {}",
                missing.join(" and ")
            ))
            .costs("latencies are wrong whenever its rate changes");
    }
    let available = sys.text(AVAILABLE).unwrap_or_default();
    let is_offered = available.split_whitespace().any(|name| name == "tsc");
    let finding = finding
        .read(AVAILABLE, available)
        .costs("reading the time is slow, and latencies may be wrong where the TSC drifts");
    let sentence = format!("the kernel's clock source is {current}, not the TSC");
    if is_offered {
        return finding
            .warning(sentence)
            .remedy(Remedy::write(CURRENT, "tsc", current));
    }
    // Only for who has proven it: it takes the kernel's own watch over the TSC away.
    let mut remedy = Remedy::boot(["tsc=reliable"]);
    if let Some(advice) = &mut remedy.fix.advice {
        advice.push_str(", if the TSC is known to be reliable");
    }
    finding
        .bad(format!("{sentence}, which it considers unreliable"))
        .remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const FLAGS: &str = "flags : constant_tsc nonstop_tsc\n";

    fn machine(current: &str, available: &str, cpu: &str) -> Machine {
        Machine::with(&[(CURRENT, current), (AVAILABLE, available), ("/proc/cpuinfo", cpu)])
    }

    #[test]
    fn the_kernel_s_own_judgement_counts() {
        assert_eq!(machine("tsc", "tsc hpet", FLAGS).verdict(check), Verdict::Good);
        assert_eq!(
            machine("tsc", "tsc", "flags : constant_tsc\n").verdict(check),
            Verdict::Warning
        );
        let offered = machine("kvm-clock", "kvm-clock tsc", FLAGS).finding(check);
        assert_eq!(offered.changed(), [(CURRENT, "tsc")]);
        let distrusted = machine("hpet", "hpet acpi_pm", FLAGS).finding(check);
        assert_eq!(
            (distrusted.verdict, distrusted.booted()),
            (Verdict::Bad, vec!["tsc=reliable"])
        );
    }

    #[test]
    fn nothing_to_read_is_said() {
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
        assert_eq!(
            machine("arch_sys_counter", "", "").verdict(check),
            Verdict::CannotTell
        );
    }
}
