//! Managed interrupts: those that the kernel spreads over the cores itself, and lets nobody move.

use super::interrupts::{self, DEBUG, is_managed};
use super::isolation;
use crate::{Finding, Patient, Remedy, Verdict, look};

const NAME: &str = "managed-irq";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let sys = patient.sys;
    let lines = interrupts::on_workers(patient);
    if sys.names("/proc/irq").is_empty() {
        return vec![Finding::new(
            NAME,
            Verdict::CannotTell,
            "/proc/irq cannot be read",
        )];
    }
    let told = !sys.names(DEBUG).is_empty();
    let mut managed = Vec::new();
    let mut finding = Finding::new(NAME, Verdict::Good, "");
    for line in &lines {
        let name = patient
            .watched
            .after
            .interrupts
            .name(&line.number)
            .unwrap_or_default();
        let name = name.split_whitespace().next_back().unwrap_or("?");
        let file = format!("{DEBUG}/{}", line.number);
        let flagged = is_managed(sys, &line.number);
        if flagged || (!told && is_like_managed(name)) {
            let from = if flagged {
                file
            } else {
                "/proc/interrupts".to_owned()
            };
            finding = finding.read(from, format!("{} ({name})", line.number));
            managed.push(format!("{} ({name})", line.number));
        }
    }
    let covered = look::boot_arguments(sys, "isolcpus").unwrap_or_default();
    let covered = covered
        .iter()
        .any(|value| value.split(',').any(|word| word == "managed_irq"))
        && patient
            .workers
            .without(&look::boot_cores(sys, "isolcpus"))
            .is_empty();
    (finding.verdict, finding.says) = if managed.is_empty() && (told || lines.is_empty()) {
        (Verdict::Good, format!("none on {}", patient.workers.in_words()))
    } else if managed.is_empty() {
        let why = "only an attempt to move one (as dropless tune makes) or reading debugfs as root tells for certain";
        (
            Verdict::CannotTell,
            format!("none, judged by their names, but {why}"),
        )
    } else if covered {
        let why = "isolcpus=managed_irq keeps them off these cores as long as housekeeping cores do the I/O";
        (Verdict::Good, format!("{}: {why}", look::few(&managed)))
    } else {
        let on = patient.workers.in_words();
        let few = look::few(&managed);
        let sentence = if told {
            format!("the kernel refuses to move {few} off {on}")
        } else {
            // Not a word more: the check of interrupts says how to try it.
            format!("judged by their names, the kernel may refuse to move {few} off {on}")
        };
        (Verdict::Warning, sentence)
    };
    if finding.verdict == Verdict::Warning {
        finding =
            finding.costs("each I/O that a worker's core starts is answered by an interrupt on that core");
        if !patient.housekeeping.is_empty() {
            finding = finding.remedy(Remedy::boot([isolation::argument(patient)]));
        }
    }
    vec![finding]
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
