//! The DPDK drivers that are installed here, read from the driver libraries themselves.

use crate::Sys;
use crate::pmd::{Drivers, Pmd};
use memchr::memmem;
use std::fs;
use std::path::{Path, PathBuf};

/// Every DPDK driver carries its description behind this mark (what `dpdk-pmdinfo` reads).
const MARK: &[u8] = b"PMD_INFO_STRING= ";

/// The DPDK drivers installed; looked for once.
pub fn drivers(sys: &Sys) -> &Drivers {
    sys.drivers.get_or_init(|| read(sys))
}

impl Drivers {
    /// What the drivers say of themselves. Whoever asks first waits for the reading of every driver's file: some 30 MB.
    pub fn pmds(&self) -> &[Pmd] {
        self.pmds.get_or_init(|| {
            let libraries = self.files.iter().filter_map(|file| fs::read(file).ok());
            libraries.flat_map(|bytes| descriptions(&bytes)).collect()
        })
    }
}

/// Finds every driver library below the usual library directories.
fn read(sys: &Sys) -> Drivers {
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
                drivers.files.push(sys.path(directory.join(library)));
            }
        }
        drivers.directories.push(directory);
    }
    drivers
}

fn directories(sys: &Sys) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for prefix in ["/usr/local/lib", "/usr/lib", "/usr/lib64", "/usr/local/lib64"] {
        let mut places = sys.names(prefix);
        places.retain(|name| name.contains("-linux-"));
        places.push(String::new());
        for place in places
            .iter()
            .map(|place| Path::new(prefix).join(place).join("dpdk"))
        {
            let names = sys.names(&place).into_iter();
            let pmds = names.filter(|name| name.starts_with("pmds-"));
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
}
