//! The IOMMU: VFIO hands a device over only behind one, or when told to do without.

use crate::{Finding, Remedy, Subject, When, look};
use host::bifurcated::Bifurcated;
use host::{Fix, bind, facts, pci};

const NAME: &str = "iommu";
const GROUPS: &str = "/sys/kernel/iommu_groups";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let sys = subject.sys;
    if pci::has_iommu(sys) {
        let groups = format!("{} groups", sys.names(GROUPS).len());
        let is_on = Finding::of(NAME).good(format!("it is on, with {groups}"));
        let mut findings = vec![is_on.read(GROUPS, groups)];
        findings.extend(shared(subject));
        return findings;
    }
    absent(subject).into()
}

fn absent(subject: &Subject<'_>) -> Finding {
    let (sys, finding) = (subject.sys, Finding::of(NAME).read(GROUPS, "no groups"));
    let functions = look::taken_functions(subject);
    let needs: Vec<String> = functions
        .iter()
        .filter(|device| Bifurcated::of(sys, device).is_none())
        .map(|device| device.address.to_string())
        .collect();
    if needs.is_empty() {
        return finding.good("it is off or absent, and no planned port needs one");
    }
    let needs = look::few(&needs);
    if subject.ports.is_empty() {
        return finding.cannot_tell(format!(
            "it is off or absent; whether that matters depends on the port (--port): {needs} would need it"
        ));
    }
    if pci::vfio_without_iommu(sys) {
        return finding
            .warning(format!(
                "VFIO runs without an IOMMU: {needs} may write anywhere in memory"
            ))
            .read(bind::NO_IOMMU, "Y")
            .costs("no packets, but memory is not protected from the device");
    }
    let remedy = match sys.text(bind::NO_IOMMU) {
        Some(old) => Remedy::write(bind::NO_IOMMU, "1", old),
        None => Remedy::by_hand(
            When::Now,
            Fix::one("modprobe vfio enable_unsafe_noiommu_mode=1").undone_by(["modprobe -r vfio-pci vfio"]),
        ),
    };
    // The firmware of a virtual machine's host decides whether a guest has one.
    let may_boot_with = !facts::is_virtual(sys);
    finding
        .bad(format!("it is off or absent, and VFIO needs one for {needs}"))
        .costs("vfio-pci cannot drive the device, so the port does not start")
        .remedy(remedy)
        .remedy(may_boot_with.then(|| Remedy::boot(pci::iommu_arguments(sys).iter().copied())))
}

/// A group goes to VFIO as a whole.
fn shared(subject: &Subject<'_>) -> Vec<Finding> {
    let ports = look::behind(subject).into_iter().filter_map(|behind| behind.pci);
    let with_others = ports.filter_map(|device| {
        let (group, address) = (device.iommu_group?, device.address);
        let others = pci::blocking_group(subject.sys, group, address).into_iter();
        let names: Vec<String> = others
            .map(|(address, driver)| format!("{address} ({driver})"))
            .collect();
        (!names.is_empty()).then(|| {
            let others = look::few(&names);
            Finding::of(NAME)
                .warning(format!("{address} shares its group {group} with {others}"))
                .read(format!("{GROUPS}/{group}/devices"), names.join(" "))
                .costs("VFIO drives the device only together with those")
        })
    });
    with_others.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const NIC: &str = "/sys/bus/pci/devices/0000:3b:00.0/class";

    fn machine(cpu: &str) -> Machine {
        Machine::with(&[(NIC, "0x020000"), ("/proc/cpuinfo", cpu)])
    }

    #[test]
    fn only_a_pci_port_needs_it() {
        let finding = machine("vendor_id : GenuineIntel\nflags : x\n")
            .port("pci:0000:3b:00.0")
            .finding(check);
        assert_eq!(
            (finding.verdict, finding.booted()),
            (Verdict::Bad, vec!["intel_iommu=on", "iommu=pt"])
        );
        assert_eq!(machine("").port("ring").verdict(check), Verdict::Good);
        assert_eq!(machine("").verdict(check), Verdict::CannotTell);
    }

    #[test]
    fn a_guest_can_do_without() {
        let machine = machine("flags : hypervisor\n").port("pci:0000:3b:00.0");
        machine.write(bind::NO_IOMMU, "N\n");
        let finding = machine.finding(check);
        assert_eq!(
            (finding.changed(), finding.booted()),
            (vec![(bind::NO_IOMMU, "1")], vec![])
        );
        machine.write(bind::NO_IOMMU, "Y\n");
        assert_eq!(machine.verdict(check), Verdict::Warning);
    }

    #[test]
    fn groups_prove_it() {
        let machine = machine("");
        machine.write("/sys/kernel/iommu_groups/1/type", "DMA");
        assert_eq!(machine.verdict(check), Verdict::Good);
    }
}
