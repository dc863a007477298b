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
        let found = "libibverbs, through which DPDK reaches this NIC, is not installed";
        return Err(look.problem(found, fix));
    }
    look.driver(library)?;
    let verbs = sys.names("/sys/class/infiniband_verbs");
    if !verbs.iter().any(|name| name.starts_with("uverbs")) {
        let found = "no verbs device: the kernel's InfiniBand modules are not loaded";
        return Err(look.problem(found, Fix::one(format!("modprobe -a {modules}"))));
    }
    look.capabilities(&[Capability::NetRaw], "this NIC")
}
