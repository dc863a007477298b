//! NICs whose DPDK driver works beside the kernel's, through libibverbs: mlx4, mlx5, MANA.

use crate::Sys;
use crate::drivers::drivers;
use crate::pci::PciDevice;

/// Between DPDK and the kernel.
pub(crate) const LIBRARY: &str = "libibverbs.so.1";
/// Debian's packages of it.
pub(crate) const LIBRARY_PACKAGES: &str = "libibverbs1 ibverbs-providers";

/// A family of NICs whose DPDK driver works beside the kernel's, through libibverbs.
#[derive(Debug)]
pub struct Bifurcated {
    pub(crate) kernel_driver: &'static str,
    pub(crate) library: &'static str,
    pub(crate) modules: &'static str,
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
        let claiming = drivers(sys).claiming(device.claimed_by());
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
        if drivers(sys).has(self.library) == Some(false) {
            packages.push(drivers(sys).package(self.library));
        }
        packages
    }
}

pub(crate) fn has_library(sys: &Sys, name: &str) -> bool {
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
