//! NICs whose DPDK driver works beside the kernel's, through libibverbs: mlx4, mlx5, MANA.

use super::Look;
use crate::capability::Capability;
use crate::pci::PciDevice;
use crate::{Fix, Problem, Sys, bind};

const LIBRARY: &str = "libibverbs.so.1";
const LIBRARY_PACKAGES: &str = "libibverbs1 ibverbs-providers";

/// A family of NICs whose DPDK driver works beside the kernel's, through libibverbs.
pub struct Bifurcated {
    kernel_driver: &'static str,
    library: &'static str,
    modules: &'static str,
}

impl Bifurcated {
    const FAMILIES: [Self; 3] = [
        Self {
            kernel_driver: "mlx5_core",
            library: "mlx5",
            modules: "mlx5_core mlx5_ib ib_uverbs",
        },
        Self {
            kernel_driver: "mlx4_core",
            library: "mlx4",
            modules: "mlx4_core mlx4_ib ib_uverbs",
        },
        Self {
            kernel_driver: "mana",
            library: "mana",
            modules: "mana mana_ib ib_uverbs",
        },
    ];

    /// By the driver it is bound to, by the DPDK driver that claims it, or by its maker.
    pub fn of(sys: &Sys, device: &PciDevice) -> Option<&'static Self> {
        let claiming = sys.drivers().claiming(device);
        let name = match (device.driver.as_deref(), claiming) {
            (Some(driver), _) if Self::FAMILIES.iter().any(|family| family.kernel_driver == driver) => driver,
            (_, Some(pmd)) if pmd.is_bifurcated() => {
                return Self::FAMILIES
                    .iter()
                    .find(|family| pmd.kmod.contains(family.kernel_driver));
            }
            (_, None) if device.vendor == 0x15b3 => "mlx5_core",
            (_, None) if device.identifiers() == "1414:00ba" => "mana",
            _ => return None,
        };
        Self::FAMILIES.iter().find(|family| family.kernel_driver == name)
    }

    /// The packages it lacks: the verbs library, DPDK's driver.
    pub fn missing_packages(&self, sys: &Sys) -> Vec<String> {
        let mut packages = Vec::new();
        if !has_library(sys, LIBRARY) {
            packages.push(LIBRARY_PACKAGES.to_owned());
        }
        if sys.drivers().has(self.library) == Some(false) {
            packages.push(sys.drivers().package(self.library));
        }
        packages
    }

    /// It must be on its kernel driver, and the libraries and modules in between be there.
    pub(super) fn check(&self, look: &Look<'_>, device: &PciDevice) -> Result<(), Problem> {
        let (sys, address) = (look.sys, device.address);
        let Self {
            kernel_driver,
            library,
            modules,
        } = self;
        match device.driver.as_deref() {
            Some(driver) if driver == *kernel_driver => {}
            Some(driver) => {
                let found = format!(
                    "it is bound to {driver}, and this NIC stays on its kernel driver {kernel_driver}"
                );
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
}

fn has_library(sys: &Sys, name: &str) -> bool {
    let triplets = sys
        .names("/usr/lib")
        .into_iter()
        .filter(|entry| entry.contains("-linux-"));
    let places = triplets.map(|triplet| format!("/usr/lib/{triplet}"));
    let fixed = ["/usr/lib64", "/usr/lib", "/usr/local/lib", "/lib64"].map(str::to_owned);
    places
        .chain(fixed)
        .any(|place| sys.exists(format!("{place}/{name}")))
}
