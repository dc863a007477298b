//! The time stamp counter: whether the kernel trusts the clock that packets are stamped with.

use crate::{Change, Finding, Patient, Remedy, Verdict};
use host::facts::cpu_field;

const NAME: &str = "tsc";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let sys = patient.sys;
    let current_file = format!("{CLOCK}/current_clocksource");
    let Some(current) = sys.text(&current_file) else {
        return vec![Finding::new(
            NAME,
            Verdict::CannotTell,
            format!("{current_file} cannot be read"),
        )];
    };
    let cpuinfo = sys.text("/proc/cpuinfo").unwrap_or_default();
    let Some(flags) = cpu_field(&cpuinfo, "flags") else {
        let sentence =
            "the processor's flags are unknown: it is not an x86 processor, or /proc/cpuinfo cannot be read";
        return vec![Finding::new(NAME, Verdict::CannotTell, sentence).read(current_file, current)];
    };
    let has = |wanted: &&str| flags.split_whitespace().any(|flag| flag == *wanted);
    let missing: Vec<&str> = ["constant_tsc", "nonstop_tsc"]
        .into_iter()
        .filter(|flag| !has(flag))
        .collect();
    let finding =
        |verdict, sentence: String| Finding::new(NAME, verdict, sentence).read(&current_file, &current);
    if current == "tsc" && missing.is_empty() {
        return vec![finding(
            Verdict::Good,
            "the kernel itself uses it as its clock source".to_owned(),
        )];
    }
    if current == "tsc" {
        let sentence = format!(
            "the kernel uses it as its clock source, but the processor does not guarantee {}",
            missing.join(" and ")
        );
        return vec![
            finding(Verdict::Warning, sentence).costs("latencies are wrong whenever its rate changes"),
        ];
    }
    let available = sys
        .text(format!("{CLOCK}/available_clocksource"))
        .unwrap_or_default();
    let offered = available.split_whitespace().any(|name| name == "tsc");
    let sentence = format!(
        "the kernel's clock source is {current}, not the TSC{}",
        if offered {
            ""
        } else {
            ", which it considers unreliable"
        }
    );
    let found = finding(if offered { Verdict::Warning } else { Verdict::Bad }, sentence)
        .read(format!("{CLOCK}/available_clocksource"), &available)
        .costs("reading the time is slow, and latencies may be wrong where the TSC drifts");
    let remedy = if offered {
        Remedy::now(vec![(Change::new(&current_file, "tsc"), current.clone())])
    } else {
        // Only for who has proven it: it takes the kernel's own watch over the TSC away.
        let mut remedy = Remedy::boot(["tsc=reliable"]);
        remedy.fix.advice = remedy
            .fix
            .advice
            .map(|advice| format!("{advice}, if the TSC is known to be reliable"));
        remedy
    };
    vec![found.remedy(remedy)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    const FLAGS: &str = "flags : constant_tsc nonstop_tsc\n";

    fn machine(current: &str, available: &str, cpu: &str) -> Machine {
        Machine::with(&[
            (&format!("{CLOCK}/current_clocksource"), current),
            (&format!("{CLOCK}/available_clocksource"), available),
            ("/proc/cpuinfo", cpu),
        ])
    }

    #[test]
    fn the_kernel_s_own_judgement_counts() {
        assert_eq!(machine("tsc", "tsc hpet", FLAGS).verdict(check), Verdict::Good);
        assert_eq!(
            machine("tsc", "tsc", "flags : constant_tsc\n").verdict(check),
            Verdict::Warning
        );
        let offered = machine("kvm-clock", "kvm-clock tsc", FLAGS).finding(check);
        assert_eq!(
            offered.changed(),
            [(format!("{CLOCK}/current_clocksource").as_str(), "tsc")]
        );
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
