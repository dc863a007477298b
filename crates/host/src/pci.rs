//! PCI network functions as sysfs shows them.

use crate::interface::{Interface, numa_node};
use crate::{PciAddress, Sys, cpu};
use std::path::{Path, PathBuf};

const DEVICES: &str = "/sys/bus/pci/devices";
/// Base class 2 of the PCI class code: network controllers.
const CLASS_NETWORK: u32 = 0x02;

/// A PCI function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciDevice {
    /// Where it is.
    pub address: PciAddress,
    /// 24-bit class code: 0x020000 is Ethernet.
    pub class: u32,
    /// Vendor identifier.
    pub vendor: u32,
    /// Device identifier.
    pub device: u32,
    /// Subsystem vendor identifier.
    pub subsystem_vendor: u32,
    /// Subsystem device identifier.
    pub subsystem_device: u32,
    /// The driver bound to it.
    pub driver: Option<String>,
    /// NUMA node; `None` on machines that have one.
    pub numa_node: Option<u32>,
    /// Its IOMMU group.
    pub iommu_group: Option<u32>,
    /// Whether it is a virtual function.
    pub is_virtual_function: bool,
}

impl PciDevice {
    /// Whether its class is network controller.
    pub fn is_network(&self) -> bool {
        self.class >> 16 == CLASS_NETWORK
    }

    /// What a driver's table of identifiers is matched against.
    pub fn claimed_by(&self) -> [u32; 4] {
        [
            self.vendor,
            self.device,
            self.subsystem_vendor,
            self.subsystem_device,
        ]
    }

    /// Vendor and device identifier as lspci prints them: `8086:1572`.
    pub fn identifiers(&self) -> String {
        format!("{:04x}:{:04x}", self.vendor, self.device)
    }

    /// The kernel's interfaces on this function.
    pub fn interfaces<'a>(&self, all: &'a [Interface]) -> Vec<&'a Interface> {
        all.iter()
            .filter(|interface| interface.pci == Some(self.address))
            .collect()
    }
}

/// One function, if it is there.
pub fn device(sys: &Sys, address: PciAddress) -> Option<PciDevice> {
    let base = Path::new(DEVICES).join(address.to_string());
    let hex = |file: &str| sys.hex(base.join(file));
    Some(PciDevice {
        address,
        class: hex("class")?,
        vendor: hex("vendor").unwrap_or(0),
        device: hex("device").unwrap_or(0),
        subsystem_vendor: hex("subsystem_vendor").unwrap_or(0),
        subsystem_device: hex("subsystem_device").unwrap_or(0),
        driver: sys.link_name(base.join("driver")),
        numa_node: numa_node(sys, &base),
        iommu_group: sys
            .link_name(base.join("iommu_group"))
            .and_then(|name| name.parse().ok()),
        is_virtual_function: sys.exists(base.join("physfn")),
    })
}

/// Every network function of this machine, by address.
pub fn network_functions(sys: &Sys) -> Vec<PciDevice> {
    let addresses = sys
        .names(DEVICES)
        .into_iter()
        .filter_map(|name| name.parse().ok());
    addresses
        .filter_map(|address| device(sys, address))
        .filter(PciDevice::is_network)
        .collect()
}

/// Other functions of an IOMMU group whose driver keeps VFIO from taking the group.
pub fn blocking_group(sys: &Sys, group: u32, except: PciAddress) -> Vec<(PciAddress, String)> {
    let directory: PathBuf = format!("/sys/kernel/iommu_groups/{group}/devices").into();
    let others = sys
        .names(directory)
        .into_iter()
        .filter_map(|name| name.parse().ok());
    others
        .filter(|address| *address != except)
        .filter_map(|address| Some((address, device(sys, address)?.driver?)))
        .filter(|(_, driver)| !matches!(driver.as_str(), "vfio-pci" | "pci-stub" | "pcieport"))
        .collect()
}

/// Whether this machine has a working IOMMU. Without one, VFIO makes up groups of its own.
pub fn has_iommu(sys: &Sys) -> bool {
    let made_up = |group: &String| {
        sys.text(format!("/sys/kernel/iommu_groups/{group}/name"))
            .is_some_and(|name| name == "vfio-noiommu")
    };
    sys.names("/sys/kernel/iommu_groups")
        .iter()
        .any(|group| !made_up(group))
}

/// Whether VFIO was told to work without an IOMMU.
pub fn vfio_without_iommu(sys: &Sys) -> bool {
    sys.text("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode")
        .is_some_and(|text| text == "Y" || text == "1")
}

/// Arguments of the kernel's command line that switch the IOMMU on.
pub fn iommu_arguments(sys: &Sys) -> &'static [&'static str] {
    if cpu::is_intel(sys) {
        &["intel_iommu=on", "iommu=pt"]
    } else {
        &["iommu=pt"]
    }
}
