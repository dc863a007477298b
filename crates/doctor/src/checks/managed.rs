//! Managed interrupts: those that the kernel spreads over the cores itself, and lets nobody move.

use super::interrupts::{self, DEBUG, Line, is_managed};
use crate::{Finding, Remedy, Subject, command_line, look};

const NAME: &str = "managed-irq";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (sys, on) = (subject.sys, subject.workers.in_words());
    if sys.names("/proc/irq").is_empty() {
        return Finding::unreadable(NAME, "/proc/irq");
    }
    let lines = interrupts::on_workers(subject);
    let is_told = !sys.names(DEBUG).is_empty();
    let managed = lines.iter().filter_map(|Line { number, .. }| {
        let name = subject.watched.after.interrupts.name(number).unwrap_or_default();
        let name = name.split_whitespace().next_back().unwrap_or("?");
        let from = if is_managed(sys, number) {
            format!("{DEBUG}/{number}")
        } else if !is_told && is_like_managed(name) {
            "/proc/interrupts".to_owned()
        } else {
            return None;
        };
        Some((from, format!("{number} ({name})")))
    });
    let managed: Vec<(String, String)> = managed.collect();
    let names: Vec<String> = managed.iter().map(|(_, name)| name.clone()).collect();
    let few = look::few(&names);
    let finding = Finding::of(NAME).read_all(managed);
    if names.is_empty() && (is_told || lines.is_empty()) {
        return finding.good(format!("none on {on}"));
    }
    if names.is_empty() {
        return finding.cannot_tell("none, judged by their names, but only an attempt to move one (as dropless tune makes) or reading debugfs as root tells for certain");
    }
    let arguments = command_line::values(sys, "isolcpus").unwrap_or_default();
    let mut words = arguments.iter().flat_map(|value| value.split(','));
    let isolated = command_line::cores_of(sys, "isolcpus");
    if words.any(|word| word == "managed_irq") && subject.workers.without(&isolated).is_empty() {
        let why = "isolcpus=managed_irq keeps them off these cores as long as housekeeping cores do the I/O";
        return finding.good(format!("{few}: {why}"));
    }
    let spared = !subject.housekeeping.is_empty();
    finding
        .warning(if is_told {
            format!("the kernel refuses to move {few} off {on}")
        } else {
            // Not a word more: the check of interrupts says how to try it.
            format!("judged by their names, the kernel may refuse to move {few} off {on}")
        })
        .costs("each I/O that a worker's core starts is answered by an interrupt on that core")
        .remedy(spared.then(|| Remedy::boot([command_line::isolating(sys, &subject.workers)])))
}

/// The queues of `NVMe`, virtio block and RAID drivers: they ask for managed vectors (`PCI_IRQ_AFFINITY`). Only a guess.
fn is_like_managed(name: &str) -> bool {
    let queue =
        |rest: Option<&str>| rest.is_some_and(|rest| rest.parse::<u32>().is_ok_and(|queue| queue > 0));
    let is_nvme = name.starts_with("nvme") && queue(name.split_once('q').map(|(_, queue)| queue));
    let virtio = name.starts_with("virtio") && name.contains("-req.");
    is_nvme || virtio || name.starts_with("mpt3sas") || name.starts_with("megasas")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::Watched;
    use crate::fixture::Machine;

    fn machine(name: &str) -> Machine {
        Machine::with(&[
            ("/proc/irq/36/smp_affinity_list", "2"),
            (
                "/proc/interrupts",
                &format!(" CPU0 CPU1 CPU2 CPU3\n 36: 0 0 7 0 PCI-MSIX 1-edge {name}\n"),
            ),
        ])
    }

    #[test]
    fn the_kernel_tells_in_debugfs() {
        let told = machine("eth0").watched(&[("/sys/kernel/debug/irq/irqs/36", "IRQD_AFFINITY_MANAGED")]);
        let finding = told.finding(check);
        assert_eq!(finding.verdict, Verdict::Warning);
        assert_eq!(finding.booted(), ["isolcpus=managed_irq,domain,2,3"]);
        told.write("/proc/cmdline", "isolcpus=managed_irq,domain,2-3");
        assert_eq!(told.verdict(check), Verdict::Good);
        let free = machine("nvme0q3").watched(&[("/sys/kernel/debug/irq/irqs/36", "IRQD_LEVEL")]);
        assert_eq!(free.verdict(check), Verdict::Good);
    }

    #[test]
    fn it_does_not_take_a_watch_to_know_which_are_in_use() {
        let mut unused = Machine::with(&[
            ("/proc/irq/36/smp_affinity_list", "2"),
            (
                "/proc/interrupts",
                " CPU0 CPU1 CPU2 CPU3\n 36: 0 0 0 0 PCI-MSIX 1-edge nvme0q3\n",
            ),
            ("/sys/kernel/debug/irq/irqs/36", "IRQD_AFFINITY_MANAGED"),
        ]);
        unused.watched = Watched::at_a_glance(&unused.sys);
        assert!(!unused.watched.is_there());
        let glanced = unused.finding(check);
        assert_eq!(glanced.verdict, Verdict::Good, "{glanced:?}");
        assert_eq!(glanced, unused.watched(&[]).finding(check));
    }

    #[test]
    fn without_it_the_name_is_a_hint() {
        assert_eq!(machine("nvme0q3").watched(&[]).verdict(check), Verdict::Warning);
        assert_eq!(
            machine("nvme0q0").watched(&[]).verdict(check),
            Verdict::CannotTell
        );
        assert_eq!(
            machine("virtio1-req.0").watched(&[]).verdict(check),
            Verdict::Warning
        );
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
