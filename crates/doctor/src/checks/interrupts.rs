//! Interrupts: which devices interrupt the cores that shall poll.

use super::tick;
use crate::{Change, Finding, Remedy, Subject, command_line, look};
use host::Sys;
use host::cores::{self, CoreSet};
use host::interrupts::Delta;
use itertools::Itertools as _;

const NAME: &str = "irq";
const DEFAULT: &str = "/proc/irq/default_smp_affinity";

/// Where debugfs tells of each interrupt.
pub(super) const DEBUG: &str = "/sys/kernel/debug/irq/irqs";

/// An interrupt and where it may and does go.
pub(super) struct Line {
    pub number: String,
    /// What was asked for, as it stands in the file.
    pub asked: String,
    /// Where it goes.
    pub goes: CoreSet,
}

impl Line {
    pub fn file(&self) -> String {
        format!("/proc/irq/{}/smp_affinity_list", self.number)
    }

    fn effective_file(&self) -> String {
        format!("/proc/irq/{}/effective_affinity_list", self.number)
    }
}

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (sys, watched, finding) = (subject.sys, &subject.watched, Finding::of(NAME));
    if sys.names("/proc/irq").is_empty() && watched.after.interrupts.is_empty() {
        return finding.cannot_tell("neither /proc/irq nor /proc/interrupts can be read");
    }
    let on = subject.workers.in_words();
    let lines = on_workers(subject);
    let cores = subject.workers.iter();
    let counted: Vec<Delta> = cores.flat_map(|core| devices(subject, core)).collect();
    let default = sys.text(DEFAULT);
    if counted.is_empty() && lines.is_empty() {
        let default = default.unwrap_or_else(|| "unreadable".to_owned());
        let none = finding.good(format!("no device interrupts {on}"));
        return none.read(DEFAULT, default);
    }
    let finding = if counted.is_empty() {
        let numbers = look::few(lines.iter().map(|line| &line.number));
        let quiet = if watched.is_there() {
            ", though none arrived while watching"
        } else {
            ""
        };
        finding.warning(format!("interrupts {numbers} go to {on}{quiet}"))
    } else {
        let total = watched.per_second(counted.iter().map(|delta| delta.count).sum());
        let names = named(&counted);
        finding.bad(format!("devices interrupt {on}: {names} ({total:.0} a second)"))
    };
    let counts = counted
        .iter()
        .map(|Delta { line, name, count }| ("/proc/interrupts", format!("{line} ({name}): +{count}")));
    let finding = finding
        .read_all(counts)
        .read_all(lines.iter().map(|line| (line.effective_file(), line.goes.to_string())))
        .costs("2 to 50 us each, with the softirq that follows it; elsewhere moving them brought the loss from 1 in 2,275 packets to 1 in 16 million");
    let away = &subject.housekeeping;
    if away.is_empty() {
        return finding;
    }
    let mut changes: Vec<(Change, String)> = lines
        .iter()
        .filter(|line| !is_managed(sys, &line.number))
        .map(|line| {
            let asked = line.asked.parse().unwrap_or_default();
            let value = subject.housekeeping.kept_of(&asked).to_string();
            let change = Change::new(line.file(), value).effective_in(line.effective_file());
            (change, line.asked.clone())
        })
        .collect();
    changes.extend(default.and_then(|mask| {
        let cores = CoreSet::from_mask(&mask)?;
        let reaches_workers = !cores.common(&subject.workers).is_empty();
        reaches_workers.then(|| {
            (
                Change::new(DEFAULT, subject.housekeeping.kept_of(&cores).mask()),
                mask,
            )
        })
    }));
    finding
        .remedy((!changes.is_empty()).then(|| Remedy::now(changes)))
        .remedy(Remedy::boot([command_line::interrupts_on(sys, away)]))
}

/// Interrupts of devices that came to `core` while we watched.
fn devices(subject: &Subject<'_>, core: cores::Core) -> Vec<Delta> {
    let watched = &subject.watched;
    if !watched.is_there() {
        return Vec::new();
    }
    let mut all = watched.after.interrupts.since(&watched.before.interrupts, core);
    // The others (LOC, RES, TLB) are the kernel's own, and have checks or causes of their own.
    let is_device = |line: &str| line.bytes().all(|byte| byte.is_ascii_digit());
    all.retain(|delta| is_device(&delta.line) && !tick::is_timer(&delta.line, &delta.name));
    all
}

/// The interrupts in use that go to a worker.
pub(super) fn on_workers(subject: &Subject<'_>) -> Vec<Line> {
    let sys = subject.sys;
    let numbers = sys.names("/proc/irq").into_iter();
    let mut lines: Vec<Line> = numbers
        .filter_map(|number| {
            number.parse::<u32>().ok()?;
            let asked = sys.text(format!("/proc/irq/{number}/smp_affinity_list"))?;
            let effective = cores::list(sys, &format!("/proc/irq/{number}/effective_affinity_list"));
            // Without the effective one (no CONFIG_GENERIC_IRQ_EFFECTIVE_AFF_MASK) it may go wherever it may.
            let goes = effective
                .filter(|cores| !cores.is_empty())
                .or_else(|| asked.parse().ok())?;
            Some(Line { number, asked, goes })
        })
        .filter(|line| !line.goes.common(&subject.workers).is_empty())
        .filter(|line| {
            // One that never came since boot will not begin now.
            let interrupts = &subject.watched.after.interrupts;
            interrupts.is_empty() || interrupts.is_used(&line.number)
        })
        .collect();
    lines.sort_by_key(|line| line.number.parse::<u32>().unwrap_or(0));
    lines
}

/// Whether the kernel says so of an interrupt: to move it would be refused.
pub(super) fn is_managed(sys: &Sys, number: &str) -> bool {
    sys.text(format!("{DEBUG}/{number}"))
        .is_some_and(|text| text.contains("IRQD_AFFINITY_MANAGED"))
}

fn named(deltas: &[Delta]) -> String {
    let names = deltas.iter().map(|Delta { line, name, .. }| {
        // "PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0": the last word is the driver's.
        format!("{line} ({})", name.split_whitespace().next_back().unwrap_or("?"))
    });
    look::few(names.unique())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const HEAD: &str = "  CPU0 CPU1 CPU2 CPU3\n";

    fn machine(count: u32) -> Machine {
        Machine::with(&[
            ("/proc/irq/default_smp_affinity", "f\n"),
            ("/proc/irq/38/smp_affinity_list", "0-3\n"),
            ("/proc/irq/38/effective_affinity_list", "2\n"),
            ("/proc/irq/39/smp_affinity_list", "0-3\n"),
            ("/proc/irq/39/effective_affinity_list", "1\n"),
            (
                "/proc/interrupts",
                &format!("{HEAD} 38: 0 0 {count} 0 PCI-MSIX 1-edge eth0-rx-0\n"),
            ),
        ])
    }

    #[test]
    fn a_device_that_interrupts_a_worker_is_moved_away() {
        let finding = machine(5)
            .watched(&[(
                "/proc/interrupts",
                &format!("{HEAD} 38: 0 0 9 0 PCI-MSIX 1-edge eth0-rx-0\n"),
            )])
            .finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(finding.says.contains("38 (eth0-rx-0)"), "{}", finding.says);
        let expected = [("/proc/irq/38/smp_affinity_list", "0,1"), (DEFAULT, "3")];
        assert_eq!(finding.changed(), expected);
        let undo = &finding.remedies[0].fix.undo;
        assert_eq!(undo[1], "echo 0-3 > /proc/irq/38/smp_affinity_list");
        assert_eq!(finding.booted(), ["irqaffinity=0,1"]);
        let narrow = machine(5);
        narrow.write("/proc/irq/38/smp_affinity_list", "1-2");
        narrow.write(DEFAULT, "d");
        let expected = [("/proc/irq/38/smp_affinity_list", "1"), (DEFAULT, "1")];
        assert_eq!(narrow.finding(check).changed(), expected, "no core comes in");
    }

    #[test]
    fn one_that_the_kernel_manages_is_not_tried() {
        let machine = machine(5).watched(&[("/sys/kernel/debug/irq/irqs/38", "IRQD_AFFINITY_MANAGED")]);
        assert_eq!(machine.finding(check).changed(), [(DEFAULT, "3")]);
    }

    #[test]
    fn one_that_stays_silent_may_still_come() {
        assert_eq!(machine(5).watched(&[]).verdict(check), Verdict::Warning);
        assert_eq!(machine(5).verdict(check), Verdict::Warning);
    }

    #[test]
    fn one_that_never_came_or_goes_elsewhere_is_none() {
        assert_eq!(machine(0).watched(&[]).verdict(check), Verdict::Good);
        assert_eq!(machine(5).workers("3").watched(&[]).verdict(check), Verdict::Good);
    }

    #[test]
    fn nothing_to_read_is_said() {
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
