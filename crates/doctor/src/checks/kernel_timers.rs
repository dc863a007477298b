//! What the kernel does on every core by the clock: watchdogs, statistics of memory, timers of others.

use crate::{Change, Finding, Patient, Reading, Remedy, Verdict};
use host::cores::{self, CoreSet};

const NMI: &str = "/proc/sys/kernel/nmi_watchdog";
const WATCHDOG: &str = "/proc/sys/kernel/watchdog";
const WATCHDOG_CORES: &str = "/proc/sys/kernel/watchdog_cpumask";
const STATISTICS: &str = "/proc/sys/vm/stat_interval";
const MIGRATION: &str = "/proc/sys/kernel/timer_migration";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    vec![watchdog(patient), statistics(patient), migration(patient)]
}

/// The NMI watchdog takes a performance counter and an NMI, the soft one a timer and a thread.
fn watchdog(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "watchdog";
    let sys = patient.sys;
    let (nmi, soft) = (sys.text(NMI), sys.text(WATCHDOG));
    let cores = sys.text(WATCHDOG_CORES);
    let set: CoreSet = cores
        .as_deref()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let open = set.common(&patient.workers);
    if nmi.is_none() && soft.is_none() {
        return Finding::new(
            NAME,
            Verdict::CannotTell,
            format!("neither {NMI} nor {WATCHDOG} can be read"),
        );
    }
    let mut changes = Vec::new();
    let mut parts = Vec::new();
    if nmi.as_deref() == Some("1") {
        parts.push("the NMI watchdog is on".to_owned());
        changes.push((Change::new(NMI, "0"), "1".to_owned()));
    }
    if soft.as_deref() == Some("1") && !open.is_empty() {
        parts.push(format!("a watchdog's timer runs on {}", open.in_words()));
        if let (Some(old), false) = (cores.clone(), patient.housekeeping.is_empty()) {
            changes.push((Change::new(WATCHDOG_CORES, patient.housekeeping.to_string()), old));
        }
    }
    let verdict = if parts.is_empty() {
        Verdict::Good
    } else {
        Verdict::Warning
    };
    let quiet = format!("no watchdog runs on {}", patient.workers.in_words());
    let said = if parts.is_empty() {
        quiet
    } else {
        parts.join(", and ")
    };
    let mut finding = Finding::new(NAME, verdict, said);
    for (file, value) in [(NMI, nmi), (WATCHDOG, soft), (WATCHDOG_CORES, cores)] {
        finding.read.extend(value.map(|value| Reading {
            from: file.to_owned(),
            value,
        }));
    }
    if verdict == Verdict::Warning {
        finding = finding.costs("1 to 10 us every 4 s on each core");
    }
    if changes.is_empty() {
        finding
    } else {
        finding.remedy(Remedy::now(changes))
    }
}

/// vmstat folds the counters of each core every so many seconds, from a work item on that core.
fn statistics(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "vmstat";
    const WANTED: u32 = 10;
    let Some(seconds) = patient.sys.number::<u32>(STATISTICS) else {
        return Finding::new(NAME, Verdict::CannotTell, format!("{STATISTICS} cannot be read"));
    };
    let finding = |verdict, sentence: String| {
        Finding::new(NAME, verdict, sentence).read(STATISTICS, seconds.to_string())
    };
    if seconds >= WANTED {
        return finding(
            Verdict::Good,
            format!("memory statistics are gathered every {seconds} s"),
        );
    }
    finding(
        Verdict::Warning,
        format!("memory statistics are gathered on each core every {seconds} s"),
    )
    .costs("2 to 10 us each")
    .remedy(Remedy::now(vec![(
        Change::new(STATISTICS, WANTED.to_string()),
        seconds.to_string(),
    )]))
}

/// Timers of idle cores move to busy ones, and none is as busy as one that polls; tickless cores are spared
/// (kernel/time/timer.c, `get_nohz_timer_target`).
fn migration(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "timer-migration";
    let Some(value) = patient.sys.text(MIGRATION) else {
        return Finding::new(NAME, Verdict::CannotTell, format!("{MIGRATION} cannot be read"));
    };
    let tickless = patient.workers.without(&cores::tickless(patient.sys)).is_empty();
    let finding = |verdict, sentence: &str| Finding::new(NAME, verdict, sentence).read(MIGRATION, &value);
    if value == "0" {
        finding(Verdict::Good, "timers stay on the cores that set them")
    } else if tickless {
        finding(
            Verdict::Good,
            "timers of idle cores move to busy ones, but not to tickless ones such as these",
        )
    } else {
        finding(
            Verdict::Warning,
            "timers of idle cores move to busy ones, and a polling core is always busy",
        )
        .costs("2 to 20 us for each timer of another core")
        .remedy(Remedy::now(vec![(Change::new(MIGRATION, "0"), value.clone())]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    fn findings(files: &[(&str, &str)]) -> Vec<Finding> {
        Machine::with(files).run(check)
    }

    fn verdicts(files: &[(&str, &str)]) -> Vec<Verdict> {
        findings(files).iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn defaults_are_changed_and_can_be_taken_back() {
        let files = [
            (NMI, "1"),
            (WATCHDOG, "1"),
            (WATCHDOG_CORES, "0-3"),
            (STATISTICS, "1"),
            (MIGRATION, "1"),
        ];
        let findings = findings(&files);
        let changed: Vec<_> = findings.iter().flat_map(Finding::changed).collect();
        assert_eq!(
            changed,
            [
                (NMI, "0"),
                (WATCHDOG_CORES, "0,1"),
                (STATISTICS, "10"),
                (MIGRATION, "0")
            ]
        );
        let undo = &findings[0].remedies[0].fix.undo;
        assert_eq!(undo[0], format!("echo 0-3 > {WATCHDOG_CORES}"));
    }

    #[test]
    fn a_quiet_machine_is_good() {
        let quiet = [
            (NMI, "0"),
            (WATCHDOG, "1"),
            (WATCHDOG_CORES, "0-1"),
            (STATISTICS, "10"),
            (MIGRATION, "0"),
        ];
        assert_eq!(verdicts(&quiet), [Verdict::Good; 3]);
        let tickless = [
            (NMI, "0"),
            (STATISTICS, "60"),
            (MIGRATION, "1"),
            ("/sys/devices/system/cpu/nohz_full", "2-3"),
        ];
        assert_eq!(verdicts(&tickless), [Verdict::Good; 3]);
    }

    #[test]
    fn nothing_to_read_is_said() {
        assert_eq!(verdicts(&[]), [Verdict::CannotTell; 3]);
    }
}
