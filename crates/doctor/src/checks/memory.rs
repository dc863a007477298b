//! Memory management in the background: each of these remaps pages, and tells every core of the process by an interrupt.

use crate::{Finding, Remedy, Subject};

/// A setting and what it should be.
struct Setting {
    name: &'static str,
    file: &'static str,
    is_good: fn(&str) -> bool,
    wanted: &'static str,
    good: &'static str,
    bad: &'static str,
}

const SETTINGS: [Setting; 4] = [
    Setting {
        name: "thp",
        file: "/sys/kernel/mm/transparent_hugepage/enabled",
        // `madvise` concerns only those who ask.
        is_good: |value| value != "always",
        wanted: "madvise",
        good: "transparent huge pages are made only on request (madvise)",
        bad: "transparent huge pages are made for every process: khugepaged moves memory",
    },
    Setting {
        name: "ksm",
        file: "/sys/kernel/mm/ksm/run",
        is_good: |value| value != "1",
        wanted: "0",
        good: "the kernel does not merge equal pages",
        bad: "the kernel looks for equal pages to merge (KSM)",
    },
    Setting {
        name: "numa-balancing",
        file: "/proc/sys/kernel/numa_balancing",
        is_good: |value| value == "0",
        wanted: "0",
        good: "the kernel does not move memory between NUMA nodes",
        bad: "the kernel unmaps memory to sample its use, and moves it between NUMA nodes",
    },
    Setting {
        name: "compaction",
        file: "/proc/sys/vm/compaction_proactiveness",
        is_good: |value| value == "0",
        wanted: "0",
        good: "memory is compacted only when needed",
        bad: "memory is compacted in advance, page by page",
    },
];

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let of_setting = |setting| of_setting(subject, setting);
    SETTINGS.iter().map(of_setting).collect()
}

fn of_setting(subject: &Subject<'_>, setting: &Setting) -> Finding {
    let (file, finding) = (setting.file, Finding::of(setting.name));
    let Some(text) = subject.sys.text(file) else {
        return finding.cannot_tell(format!(
            "{file} cannot be read: the kernel was built without it, or does not show it"
        ));
    };
    // A choice is shown as "always [madvise] never".
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let value = chosen.map_or(text.as_str(), |(value, _)| value);
    let finding = finding.read(file, value);
    if (setting.is_good)(value) {
        return finding.good(setting.good);
    }
    finding
        .warning(setting.bad)
        .costs("5 to 50 us whenever a page of the poller's process moves, and a TLB shootdown")
        .remedy(Remedy::write(file, setting.wanted, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    fn verdicts(values: [&str; 4]) -> Vec<Verdict> {
        let files: Vec<_> = SETTINGS.iter().map(|setting| setting.file).zip(values).collect();
        Machine::with(&files)
            .run(check)
            .iter()
            .map(|finding| finding.verdict)
            .collect()
    }

    #[test]
    fn each_setting_is_judged() {
        assert_eq!(
            verdicts(["[always] madvise never", "1", "1", "20"]),
            [Verdict::Warning; 4]
        );
        assert_eq!(
            verdicts(["always [madvise] never", "0", "0", "0"]),
            [Verdict::Good; 4]
        );
        let unread: Vec<_> = Machine::with(&[])
            .run(check)
            .iter()
            .map(|finding| finding.verdict)
            .collect();
        assert_eq!(unread, [Verdict::CannotTell; 4]);
    }

    #[test]
    fn a_choice_goes_back_to_the_plain_word() {
        let machine = Machine::with(&[(SETTINGS[0].file, "[always] madvise never")]);
        let finding = machine.run(check).remove(0);
        assert_eq!(finding.changed(), [(SETTINGS[0].file, "madvise")]);
        assert_eq!(
            finding.remedies[0].fix.undo,
            [format!("echo always > {}", SETTINGS[0].file)]
        );
    }
}
