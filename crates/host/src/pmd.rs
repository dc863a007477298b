//! Which DPDK drivers are installed, and which devices each of them claims, read from the driver libraries themselves.

use crate::Sys;
use crate::pci::PciDevice;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Every DPDK driver carries its description behind this mark (what `dpdk-pmdinfo` reads).
const MARK: &[u8] = b"PMD_INFO_STRING= ";
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

    fn claims(&self, device: &PciDevice) -> bool {
        let wanted = [
            device.vendor,
            device.device,
            device.subsystem_vendor,
            device.subsystem_device,
        ];
        self.pci_ids.iter().any(|ids| {
            ids.iter()
                .zip(wanted)
                .all(|(id, found)| *id == ANY || *id == found)
        })
    }
}

/// The driver libraries installed on a machine.
#[derive(Debug, Default)]
pub struct Drivers {
    /// The directories DPDK loads drivers from; none found means we cannot tell what is installed.
    pub directories: Vec<PathBuf>,
    /// File names without version: `librte_net_ena.so`.
    pub libraries: Vec<String>,
    /// What the libraries say of themselves.
    pub pmds: Vec<Pmd>,
}

impl Drivers {
    /// Whether `librte_net_NAME.so` is installed; `None` if there is no directory to tell from.
    pub fn has(&self, name: &str) -> Option<bool> {
        let library = format!("librte_net_{name}.so");
        (!self.directories.is_empty()).then(|| self.libraries.contains(&library))
    }

    /// The driver that claims a PCI device.
    pub fn claiming(&self, device: &PciDevice) -> Option<&Pmd> {
        self.pmds.iter().find(|pmd| pmd.claims(device))
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

/// Reads every driver library below the usual library directories.
pub fn read(sys: &Sys) -> Drivers {
    let mut drivers = Drivers::default();
    for directory in directories(sys) {
        let names = sys.names(&directory);
        for library in names.iter().filter(|name| {
            name.starts_with("librte_") && Path::new(name).extension().is_some_and(|e| e == "so")
        }) {
            if drivers.libraries.contains(library) {
                continue;
            }
            drivers.libraries.push(library.clone());
            if library.starts_with("librte_net_") {
                if let Ok(bytes) = fs::read(sys.path(directory.join(library))) {
                    drivers.pmds.extend(descriptions(&bytes));
                }
            }
        }
        drivers.directories.push(directory);
    }
    drivers
}

fn directories(sys: &Sys) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for prefix in ["/usr/local/lib", "/usr/lib", "/usr/lib64", "/usr/local/lib64"] {
        let triplets = sys
            .names(prefix)
            .into_iter()
            .filter(|name| name.contains("-linux-"));
        let places = triplets
            .map(|name| Path::new(prefix).join(name))
            .chain([PathBuf::from(prefix)]);
        for place in places.map(|place| place.join("dpdk")) {
            let pmds = sys
                .names(&place)
                .into_iter()
                .filter(|name| name.starts_with("pmds-"));
            found.extend(pmds.map(|name| place.join(name)));
        }
    }
    found
}

fn descriptions(library: &[u8]) -> Vec<Pmd> {
    let texts = memmem::find_iter(library, MARK).map(|at| &library[at + MARK.len()..]);
    let ended = texts.filter_map(|text| Some(&text[..memchr::memchr(0, text)?]));
    ended
        .filter_map(|text| serde_json::from_slice(text).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_read_and_broken_ones_are_not() {
        let mut library = b"\x7fELF\0PMD_INFO_STRING= {\"name\": \"net_ena\", \"params\": \"x\", ".to_vec();
        library.extend(b"\"kmod\": \"* vfio-pci\", \"pci_ids\": [[7439, 60448, 65535, 65535]]}\0rest");
        library.extend(b"PMD_INFO_STRING= {\"name\": \0PMD_INFO_STRING= {\"name\": \"cut");
        let found = descriptions(&library);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].pci_ids[0][1]),
            ("net_ena", 60448)
        );
        assert!(!found[0].is_bifurcated());
    }

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
