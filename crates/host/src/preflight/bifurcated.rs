//! NICs whose DPDK driver works beside the kernel's: both drivers must be there.

use super::look::Look;
use crate::bifurcated::{Bifurcated, LIBRARY, LIBRARY_PACKAGES, has_library};
use crate::capability::Capability;
use crate::pci::PciDevice;
use crate::{Fix, Problem, bind};

/// It must be on its kernel driver, and the libraries and modules in between be there.
pub fn check(family: &Bifurcated, look: &Look<'_>, device: &PciDevice) -> Result<(), Problem> {
    let (sys, address) = (look.sys, device.address);
    let Bifurcated {
        kernel_driver,
        library,
        modules,
    } = family;
    match device.driver.as_deref() {
        Some(driver) if driver == *kernel_driver => {}
        Some(driver) => {
            let found =
                format!("it is bound to {driver}, and this NIC stays on its kernel driver {kernel_driver}");
            return Err(look.problem(found, bind::pci_unbind(address, driver, kernel_driver)));
        }
        None => {
            let found =
                format!("it is bound to no driver, and this NIC needs its kernel driver {kernel_driver}");
            let fix = Fix::one(format!("echo {address} > /sys/bus/pci/drivers_probe"))
                .after(Fix::one(format!("modprobe -a {modules}")));
            return Err(look.problem(found, fix));
        }
    }
    if !has_library(sys, LIBRARY) {
        let fix = Fix::one(format!("apt-get install -y {LIBRARY_PACKAGES}")).persistent();
        return Err(look.problem(
            "libibverbs, through which DPDK reaches this NIC, is not installed",
            fix,
        ));
    }
    look.driver(library)?;
    if sys
        .names("/sys/class/infiniband_verbs")
        .iter()
        .all(|name| !name.starts_with("uverbs"))
    {
        let fix = Fix::one(format!("modprobe -a {modules}"));
        return Err(look.problem(
            "no verbs device: the kernel's InfiniBand modules are not loaded",
            fix,
        ));
    }
    look.capabilities(&[Capability::NetRaw], "this NIC")
}
