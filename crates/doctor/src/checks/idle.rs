//! Idle states: a core that sleeps deeply takes its time to wake.

use crate::look::cpu;
use crate::{Change, Finding, Remedy, Subject, When};
use host::{Fix, facts};

const NAME: &str = "c-states";
/// From here on waking takes longer than a burst.
const DEEP_US: u32 = 20;

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (sys, watched, finding) = (subject.sys, &subject.watched, Finding::of(NAME));
    let mut deep = Vec::new();
    let mut states = 0;
    for core in subject.workers.iter() {
        for state in sys.names(format!("{}/cpuidle", cpu(core))) {
            let folder = format!("{}/cpuidle/{state}", cpu(core));
            let Some(latency) = sys.number::<u32>(format!("{folder}/latency")) else {
                continue;
            };
            states += 1;
            let disabled = sys.text(format!("{folder}/disable"));
            if latency >= DEEP_US && disabled.as_deref() != Some("1") {
                let count =
                    |sample: &crate::Sample| sample.idle.get(&core).and_then(|of| of.get(&state)).copied();
                let entered = count(&watched.after).zip(count(&watched.before));
                let entered = entered.map(|(after, before)| after.saturating_sub(before));
                let name = sys.text(format!("{folder}/name")).unwrap_or(state);
                deep.push((core, folder, name, latency, entered, disabled));
            }
        }
    }
    if states == 0 {
        return finding.cannot_tell(if facts::is_virtual(sys) {
            "the hypervisor decides how deeply its cores sleep (no cpuidle here)"
        } else {
            "the kernel has no cpuidle, or does not show it"
        });
    }
    let worst = deep
        .iter()
        .max_by_key(|(_, _, _, latency, entered, _)| (*entered > Some(0), entered.is_none(), *latency));
    let Some((core, folder, name, latency, entered, _)) = worst else {
        let on = subject.workers.in_words();
        return finding
            .good(format!(
                "{on}: no idle state that is open takes {DEEP_US} us to wake from"
            ))
            .read("cpuidle/state*/latency", format!("{states} states"));
    };
    let finding = finding
        .read_all(entered.map(|entered| (format!("{folder}/usage"), format!("+{entered}"))))
        .read(format!("{folder}/latency"), latency.to_string());
    let Some(entered) = entered else {
        return finding.cannot_tell(format!(
            "core {core} may sleep in {name}: {latency} us to wake; how often was not counted"
        ));
    };
    if *entered == 0 {
        return finding.good(format!(
            "core {core} may sleep in {name}: {latency} us to wake; a core that polls never sleeps"
        ));
    }
    let changes = deep.iter().filter_map(|(_, folder, _, _, _, disabled)| {
        Some((Change::new(format!("{folder}/disable"), "1"), disabled.clone()?))
    });
    let hold = Fix::one("sh -c 'exec 3> /dev/cpu_dma_latency; printf 0x00000000 >&3; sleep infinity'")
        .or("any program that keeps /dev/cpu_dma_latency open at 0; the request ends with the program");
    finding
        .warning(format!(
            "core {core} slept in {name} {:.0} times a second: {latency} us to wake",
            watched.per_second(*entered)
        ))
        .costs(
            "the first packets after an idle time wait that long; a loop that never sleeps is not affected",
        )
        .remedy(Remedy::now(changes.collect()))
        .remedy(Remedy::by_hand(When::Now, hold))
        .remedy(Remedy::boot([
            "processor.max_cstate=1",
            "intel_idle.max_cstate=1",
        ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const STATE: &str = "/sys/devices/system/cpu/cpu2/cpuidle/state3";

    fn machine(latency: &str, disable: &str) -> Machine {
        Machine::with(&[
            (&format!("{STATE}/latency"), latency),
            (&format!("{STATE}/name"), "C6"),
            (&format!("{STATE}/usage"), "100"),
            (&format!("{STATE}/disable"), disable),
        ])
    }

    #[test]
    fn deep_sleep_is_counted() {
        let later = format!("{STATE}/usage");
        let finding = machine("133", "0").watched(&[(&later, "140")]).finding(check);
        assert_eq!(finding.verdict, Verdict::Warning);
        assert!(
            finding.says.contains("C6 40 times a second: 133 us"),
            "{}",
            finding.says
        );
        assert_eq!(finding.changed(), [(format!("{STATE}/disable").as_str(), "1")]);
        assert_eq!(machine("133", "0").watched(&[]).verdict(check), Verdict::Good);
        assert_eq!(
            machine("133", "0").verdict(check),
            Verdict::CannotTell,
            "--watch 0"
        );
        assert_eq!(
            machine("133", "1").watched(&[(&later, "140")]).verdict(check),
            Verdict::Good
        );
        assert_eq!(
            machine("2", "0").watched(&[(&later, "140")]).verdict(check),
            Verdict::Good
        );
    }

    #[test]
    fn a_guest_does_not_know() {
        let finding = Machine::with(&[("/proc/cpuinfo", "flags : hypervisor\n")]).finding(check);
        assert!(finding.verdict == Verdict::CannotTell && finding.says.contains("hypervisor"));
    }
}
