//! What the kernel does on every core by the clock: watchdogs, statistics of memory, timers of others.

use crate::{Change, Finding, Remedy, Subject};
use host::cores::{self, CoreSet};

const NMI: &str = "/proc/sys/kernel/nmi_watchdog";
const WATCHDOG: &str = "/proc/sys/kernel/watchdog";
const WATCHDOG_CORES: &str = "/proc/sys/kernel/watchdog_cpumask";
const STATISTICS: &str = "/proc/sys/vm/stat_interval";
const MIGRATION: &str = "/proc/sys/kernel/timer_migration";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    vec![watchdog(subject), statistics(subject), migration(subject)]
}

/// The NMI watchdog takes a performance counter and an NMI, the soft one a timer and a thread.
fn watchdog(subject: &Subject<'_>) -> Finding {
    let (sys, finding) = (subject.sys, Finding::of("watchdog"));
    let (nmi, soft) = (sys.text(NMI), sys.text(WATCHDOG));
    if nmi.is_none() && soft.is_none() {
        return finding.cannot_tell(format!("neither {NMI} nor {WATCHDOG} can be read"));
    }
    let cores = sys.text(WATCHDOG_CORES);
    let set: CoreSet = cores
        .as_deref()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let open = set.common(&subject.workers);
    let mut changes = Vec::new();
    let mut parts = Vec::new();
    if nmi.as_deref() == Some("1") {
        parts.push("the NMI watchdog is on".to_owned());
        changes.push((Change::new(NMI, "0"), "1".to_owned()));
    }
    if soft.as_deref() == Some("1") && !open.is_empty() {
        parts.push(format!("a watchdog's timer runs on {}", open.in_words()));
        if let (Some(old), false) = (cores.clone(), subject.housekeeping.is_empty()) {
            changes.push((
                Change::new(WATCHDOG_CORES, subject.housekeeping.kept_of(&set).to_string()),
                old,
            ));
        }
    }
    let read = [(NMI, nmi), (WATCHDOG, soft), (WATCHDOG_CORES, cores)];
    let finding = finding.read_all(read.into_iter().filter_map(|(file, value)| Some((file, value?))));
    if parts.is_empty() {
        return finding.good(format!("no watchdog runs on {}", subject.workers.in_words()));
    }
    finding
        .warning(parts.join(", and "))
        .costs("1 to 10 us every 4 s on each core")
        .remedy((!changes.is_empty()).then(|| Remedy::now(changes)))
}

/// vmstat folds the counters of each core every so many seconds, from a work item on that core.
fn statistics(subject: &Subject<'_>) -> Finding {
    const NAME: &str = "vmstat";
    const WANTED: u32 = 10;
    let Some(seconds) = subject.sys.number::<u32>(STATISTICS) else {
        return Finding::unreadable(NAME, STATISTICS);
    };
    let finding = Finding::of(NAME).read(STATISTICS, seconds.to_string());
    if seconds >= WANTED {
        return finding.good(format!("memory statistics are gathered every {seconds} s"));
    }
    finding
        .warning(format!(
            "memory statistics are gathered on each core every {seconds} s"
        ))
        .costs("2 to 10 us each")
        .remedy(Remedy::write(STATISTICS, WANTED.to_string(), seconds.to_string()))
}

/// Timers of idle cores move to busy ones, and none is as busy as one that polls; tickless cores are spared
/// (kernel/time/timer.c, `get_nohz_timer_target`).
fn migration(subject: &Subject<'_>) -> Finding {
    const NAME: &str = "timer-migration";
    let Some(value) = subject.sys.text(MIGRATION) else {
        return Finding::unreadable(NAME, MIGRATION);
    };
    let finding = Finding::of(NAME).read(MIGRATION, &value);
    if value == "0" {
        return finding.good("timers stay on the cores that set them");
    }
    if subject.workers.without(&cores::tickless(subject.sys)).is_empty() {
        return finding
            .good("timers of idle cores move to busy ones, but not to tickless ones such as these");
    }
    finding
        .warning("timers of idle cores move to busy ones, and a polling core is always busy")
        .costs("2 to 20 us for each timer of another core")
        .remedy(Remedy::write(MIGRATION, "0", value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
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
        let narrow = [(WATCHDOG, "1"), (WATCHDOG_CORES, "1-2")];
        assert_eq!(self::findings(&narrow)[0].changed(), [(WATCHDOG_CORES, "1")]);
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
