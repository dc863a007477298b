//! DPDK's drivers, and which devices each of them claims.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::OnceLock;

/// In a driver's table of PCI identifiers: matches any.
const ANY: u32 = 0xffff;

/// A DPDK poll mode driver, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pmd {
    /// DPDK's name: `net_ena`.
    pub name: String,
    /// The kernel modules it works with: `* igb_uio | uio_pci_generic | vfio-pci`.
    #[serde(default)]
    pub kmod: String,
    /// Vendor, device, subsystem vendor, subsystem device.
    #[serde(default)]
    pub pci_ids: Vec<[u32; 4]>,
}

impl Pmd {
    /// Whether the device stays on its kernel driver while DPDK uses it (mlx4, mlx5, MANA).
    pub fn is_bifurcated(&self) -> bool {
        self.kmod.contains('&') && !self.kmod.contains("vfio-pci")
    }

    /// Whether one of its entries matches these identifiers.
    fn claims(&self, found: [u32; 4]) -> bool {
        let matches = |(wanted, found): (&u32, u32)| *wanted == ANY || *wanted == found;
        self.pci_ids.iter().any(|ids| ids.iter().zip(found).all(matches))
    }
}

/// The driver libraries installed on a machine.
#[derive(Debug, Default)]
pub struct Drivers {
    /// The directories DPDK loads drivers from; none found means we cannot tell what is installed.
    pub directories: Vec<PathBuf>,
    /// File names without version: `librte_net_ena.so`.
    pub libraries: Vec<String>,
    /// Those of network drivers, to be read.
    pub(crate) files: Vec<PathBuf>,
    /// What they say of themselves, once somebody asks.
    pub(crate) pmds: OnceLock<Vec<Pmd>>,
}

impl Drivers {
    /// Whether `librte_net_NAME.so` is installed; `None` if there is no directory to tell from.
    pub fn has(&self, name: &str) -> Option<bool> {
        let library = format!("librte_net_{name}.so");
        (!self.directories.is_empty()).then(|| self.libraries.contains(&library))
    }

    /// The driver that claims the PCI device with these identifiers: vendor, device, and both of the subsystem.
    pub fn claiming(&self, identifiers: [u32; 4]) -> Option<&Pmd> {
        self.pmds().iter().find(|pmd| pmd.claims(identifiers))
    }

    /// The Debian and Ubuntu package of `librte_net_NAME.so`: the ABI version is in the directory's name.
    pub fn package(&self, name: &str) -> String {
        let abi = self.directories.iter().find_map(|directory| {
            let version = directory.file_name()?.to_str()?.strip_prefix("pmds-")?;
            version.split('.').next().map(str::to_owned)
        });
        let name = name.replace('_', "-");
        let joint = if name.ends_with(|c: char| c.is_ascii_digit()) {
            "-"
        } else {
            ""
        };
        match abi {
            Some(abi) => format!("librte-net-{name}{joint}{abi}"),
            None => format!("'librte-net-{name}*'"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_as_debian_names_them() {
        let drivers = Drivers {
            directories: vec!["/usr/lib/x/dpdk/pmds-23.0".into()],
            ..Drivers::default()
        };
        assert_eq!(drivers.package("af_xdp"), "librte-net-af-xdp23");
        assert_eq!(drivers.package("mlx5"), "librte-net-mlx5-23");
        assert_eq!(Drivers::default().package("ena"), "'librte-net-ena*'");
    }
}
