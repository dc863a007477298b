//! The IOMMU: VFIO hands a device over only behind one, or when told to do without.

use crate::{Change, Finding, Patient, Remedy, Verdict, When, look};
use host::bifurcated::Bifurcated;
use host::{Fix, bind, facts, pci};

const NAME: &str = "iommu";
const GROUPS: &str = "/sys/kernel/iommu_groups";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let sys = patient.sys;
    let groups = sys.names(GROUPS).len();
    if pci::has_iommu(sys) {
        let sentence = format!("it is on, with {groups} groups");
        let mut findings =
            vec![Finding::new(NAME, Verdict::Good, sentence).read(GROUPS, format!("{groups} groups"))];
        findings.extend(shared(patient));
        return findings;
    }
    let functions = look::taken_functions(patient);
    let needs: Vec<String> = functions
        .iter()
        .filter(|device| Bifurcated::of(sys, device).is_none())
        .map(|device| device.address.to_string())
        .collect();
    let finding = |verdict, sentence: String| Finding::new(NAME, verdict, sentence).read(GROUPS, "no groups");
    if needs.is_empty() {
        return vec![finding(
            Verdict::Good,
            "it is off or absent, and no planned port needs one".to_owned(),
        )];
    }
    if patient.ports.is_empty() {
        let sentence = format!(
            "it is off or absent; whether that matters depends on the port (--port): {} would need it",
            look::few(&needs)
        );
        return vec![finding(Verdict::CannotTell, sentence)];
    }
    if pci::vfio_without_iommu(sys) {
        let sentence = format!(
            "VFIO runs without an IOMMU: {} may write anywhere in memory",
            look::few(&needs)
        );
        return vec![
            finding(Verdict::Warning, sentence)
                .read(bind::NO_IOMMU, "Y")
                .costs("no packets, but memory is not protected from the device"),
        ];
    }
    let found = finding(
        Verdict::Bad,
        format!(
            "it is off or absent, and VFIO needs one for {}",
            look::few(&needs)
        ),
    )
    .costs("vfio-pci cannot drive the device, so the port does not start");
    let found = if let Some(old) = sys.text(bind::NO_IOMMU) {
        found.remedy(Remedy::now(vec![(Change::new(bind::NO_IOMMU, "1"), old)]))
    } else {
        let fix =
            Fix::one("modprobe vfio enable_unsafe_noiommu_mode=1").undone_by(["modprobe -r vfio-pci vfio"]);
        found.remedy(Remedy::by_hand(When::Now, fix))
    };
    // The firmware of a virtual machine's host decides whether a guest has one.
    if facts::is_virtual(sys) {
        return vec![found];
    }
    vec![found.remedy(Remedy::boot(pci::iommu_arguments(sys).iter().copied()))]
}

/// A group goes to VFIO as a whole.
fn shared(patient: &Patient<'_>) -> Vec<Finding> {
    let ports = look::behind(patient).into_iter().filter_map(|behind| behind.pci);
    let with_others = ports.filter_map(|device| {
        let group = device.iommu_group?;
        let others = pci::blocking_group(patient.sys, group, device.address);
        let names: Vec<String> = others
            .iter()
            .map(|(address, driver)| format!("{address} ({driver})"))
            .collect();
        (!names.is_empty()).then(|| {
            let sentence = format!(
                "{} shares its group {group} with {}",
                device.address,
                look::few(&names)
            );
            Finding::new(NAME, Verdict::Warning, sentence)
                .read(format!("{GROUPS}/{group}/devices"), names.join(" "))
                .costs("VFIO drives the device only together with those")
        })
    });
    with_others.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
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
