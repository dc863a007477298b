//! PCI functions and `VMBus` devices.

use super::carrier::{Carrier, CarrierKind, usable};
use crate::drivers::drivers;
use crate::interface::Interface;
use crate::pci::{PciDevice, network_functions};
use crate::vmbus::network_channels;
use crate::{PortKind, PortUri, Role, Sys, check};
use std::collections::{BTreeMap, BTreeSet};

type Roles = BTreeMap<String, BTreeSet<Role>>;

/// Every PCI network function.
pub fn pci(sys: &Sys, interfaces: &[Interface], roles: &Roles) -> Vec<Carrier> {
    let functions = network_functions(sys);
    // One reading serves all devices; it is a megabyte.
    let names = if functions.is_empty() {
        String::new()
    } else {
        pci_ids(sys)
    };
    let carrier = |device: &PciDevice| {
        let address = device.address;
        let pmd = drivers(sys).claiming(device.claimed_by());
        let pmd = pmd.map_or_else(String::new, |pmd| format!(", DPDK driver {}", pmd.name));
        let maker = product(&names, device).map_or_else(String::new, |name| format!("{name} "));
        let uri = PortUri::new(PortKind::Pci { address });
        let carrier = Carrier::new(
            CarrierKind::Pci,
            &address.to_string(),
            &uri.to_string(),
            usable(check(&uri, sys)),
        );
        Carrier {
            driver: device.driver.clone(),
            description: format!("{maker}[{}]{pmd}", device.identifiers()),
            numa_node: device.numa_node,
            ..with_interfaces(carrier, &device.interfaces(interfaces), roles)
        }
    };
    functions.iter().map(carrier).collect()
}

/// Every `VMBus` network device.
pub fn vmbus(sys: &Sys, interfaces: &[Interface], roles: &Roles) -> Vec<Carrier> {
    let channels = network_channels(sys);
    let carriers = channels.iter().map(|device| {
        let id = device.id.clone();
        let uri = PortUri::new(PortKind::Vmbus { id });
        let carrier = Carrier::new(
            CarrierKind::Vmbus,
            device.id.as_str(),
            &uri.to_string(),
            usable(check(&uri, sys)),
        );
        Carrier {
            driver: device.driver.clone(),
            description: "Hyper-V network device, DPDK driver net_netvsc".to_owned(),
            numa_node: device.numa_node,
            ..with_interfaces(carrier, &device.interfaces(interfaces), roles)
        }
    });
    carriers.collect()
}

/// What a device's interfaces tell of it while the kernel drives it.
fn with_interfaces(carrier: Carrier, interfaces: &[&Interface], roles: &Roles) -> Carrier {
    let Some(first) = interfaces.first() else {
        return carrier;
    };
    let addresses = interfaces
        .iter()
        .flat_map(|interface| interface.addresses.clone());
    let roles = interfaces
        .iter()
        .filter_map(|interface| roles.get(&interface.name));
    Carrier {
        addresses: addresses.collect(),
        roles: roles.flatten().copied().collect(),
        ..carrier.with(first)
    }
}

/// The table of names that pciutils installs.
fn pci_ids(sys: &Sys) -> String {
    let files = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"];
    files.iter().find_map(|file| sys.text(file)).unwrap_or_default()
}

/// The device's name, else its maker's.
fn product(table: &str, device: &PciDevice) -> Option<String> {
    let vendor = format!("{:04x}  ", device.vendor);
    let id = format!("\t{:04x}  ", device.device);
    let mut lines = table.lines().skip_while(|line| !line.starts_with(&vendor));
    let maker = lines.next()?.strip_prefix(&vendor)?;
    let name = lines
        .take_while(|line| line.starts_with('\t'))
        .find_map(|line| line.strip_prefix(&id));
    Some(name.unwrap_or(maker).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_right_maker() {
        let table = "1af3  Other\n\t1041  Wrong\n1af4  Red Hat\n\t1000  Net\n\t1041  Virtio 1.0 net\n\t\t1af4 0001  Sub\n1af5  Next\n\t9999  X";
        let mut device = PciDevice {
            address: "0:0.0".parse().unwrap(),
            class: 0x02_0000,
            vendor: 0x1af4,
            device: 0x1041,
            subsystem_vendor: 0,
            subsystem_device: 0,
            driver: None,
            numa_node: None,
            iommu_group: None,
            is_virtual_function: false,
        };
        assert_eq!(product(table, &device).as_deref(), Some("Virtio 1.0 net"));
        device.device = 0x9999;
        assert_eq!(product(table, &device).as_deref(), Some("Red Hat"));
        device.vendor = 0x1234;
        assert_eq!(product(table, &device), None);
    }
}
