//! The libraries of NICs that stay on their kernel driver (mlx4, mlx5, MANA): without them DPDK does not see the NIC.

use crate::{Finding, Remedy, Subject, When, look};
use host::bifurcated::Bifurcated;
use host::{Fix, PciDevice};

const NAME: &str = "driver-library";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let devices = look::taken_functions(subject).into_iter();
    let findings: Vec<Finding> = devices.filter_map(|device| of_device(subject, &device)).collect();
    if findings.is_empty() {
        let none = Finding::of(NAME).good("no NIC here needs libibverbs (mlx4, mlx5, MANA)");
        return none.read("/sys/bus/pci/devices", "none of these NICs").into();
    }
    findings
}

/// Nothing of a NIC that is not one of these.
fn of_device(subject: &Subject<'_>, device: &PciDevice) -> Option<Finding> {
    let address = device.address;
    let packages = Bifurcated::of(subject.sys, device)?.missing_packages(subject.sys);
    let finding = Finding::of(NAME).read(format!("/sys/bus/pci/devices/{address}"), device.identifiers());
    if packages.is_empty() {
        return Some(finding.good(format!("{address} finds the libraries it needs")));
    }
    let packages = packages.join(" ");
    let install = Fix::one(format!("apt-get install -y {packages}"))
        .persistent()
        .undone_by([format!("apt-get remove -y {packages}")]);
    let finding = finding
        .bad(format!("{address} is present, and {packages} is not installed"))
        .costs("DPDK does not see the NIC");
    Some(finding.remedy(Remedy::by_hand(When::Now, install)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    #[test]
    fn a_mellanox_nic_wants_its_library() {
        let machine = Machine::with(&[
            ("/sys/bus/pci/devices/0000:3b:00.0/class", "0x020000"),
            ("/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x15b3"),
        ]);
        let finding = machine.finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(finding.remedies[0].fix.commands[0].contains("libibverbs1"));
        machine.write("/usr/lib64/libibverbs.so.1", "");
        assert_eq!(machine.verdict(check), Verdict::Good);
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::Good);
    }
}
