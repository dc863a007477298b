//! The libraries of NICs that stay on their kernel driver (mlx4, mlx5, MANA): without them DPDK does not see the NIC.

use crate::{Finding, Patient, Remedy, Verdict, When, look};
use host::Fix;
use host::bifurcated::Bifurcated;

const NAME: &str = "driver-library";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let sys = patient.sys;
    let families = look::taken_functions(patient).into_iter();
    let families: Vec<_> = families
        .filter_map(|device| Some((Bifurcated::of(sys, &device)?, device)))
        .collect();
    if families.is_empty() {
        let sentence = "no NIC here needs libibverbs (mlx4, mlx5, MANA)";
        return vec![
            Finding::new(NAME, Verdict::Good, sentence).read("/sys/bus/pci/devices", "none of these NICs"),
        ];
    }
    let look = |(family, device): (&Bifurcated, host::PciDevice)| {
        let packages = family.missing_packages(sys);
        let from = format!("/sys/bus/pci/devices/{}", device.address);
        if packages.is_empty() {
            let sentence = format!("{} finds the libraries it needs", device.address);
            return Finding::new(NAME, Verdict::Good, sentence).read(from, device.identifiers());
        }
        let install = format!("apt-get install -y {}", packages.join(" "));
        let undo = format!("apt-get remove -y {}", packages.join(" "));
        let sentence = format!(
            "{} is present, and {} is not installed",
            device.address,
            packages.join(" ")
        );
        Finding::new(NAME, Verdict::Bad, sentence)
            .read(from, device.identifiers())
            .costs("DPDK does not see the NIC")
            .remedy(Remedy::by_hand(
                When::Now,
                Fix::one(install).persistent().undone_by([undo]),
            ))
    };
    families.into_iter().map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
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
