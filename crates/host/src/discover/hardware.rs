//! PCI functions and `VMBus` devices.

use super::carrier::{Carrier, CarrierKind, Queues, usable};
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
        let uri = PortUri::new(PortKind::Pci {
            address: device.address,
        });
        let pmd = drivers(sys)
            .claiming(device.claimed_by())
            .map(|pmd| format!(", DPDK driver {}", pmd.name));
        let ids = device.identifiers();
        let maker = product(&names, device)
            .map(|name| format!("{name} "))
            .unwrap_or_default();
        Carrier {
            name: device.address.to_string(),
            kind: CarrierKind::Pci,
            driver: device.driver.clone(),
            description: format!("{maker}[{ids}]{}", pmd.unwrap_or_default()),
            numa_node: device.numa_node,
            ..of_interfaces(&uri, &device.interfaces(interfaces), roles, sys)
        }
    };
    functions.iter().map(carrier).collect()
}

/// Every `VMBus` network device.
pub fn vmbus(sys: &Sys, interfaces: &[Interface], roles: &Roles) -> Vec<Carrier> {
    let channels = network_channels(sys);
    let carriers = channels.iter().map(|device| {
        let uri = PortUri::new(PortKind::Vmbus {
            id: device.id.clone(),
        });
        Carrier {
            name: device.id.to_string(),
            kind: CarrierKind::Vmbus,
            driver: device.driver.clone(),
            description: "Hyper-V network device, DPDK driver net_netvsc".to_owned(),
            numa_node: device.numa_node,
            ..of_interfaces(&uri, &device.interfaces(interfaces), roles, sys)
        }
    });
    carriers.collect()
}

/// What a device's interfaces tell of it while the kernel drives it.
fn of_interfaces(uri: &PortUri, interfaces: &[&Interface], roles: &Roles, sys: &Sys) -> Carrier {
    let first = interfaces.first();
    Carrier {
        name: String::new(),
        kind: CarrierKind::Pci,
        uri: uri.to_string(),
        driver: None,
        description: String::new(),
        numa_node: None,
        link: first.and_then(|interface| interface.link),
        queues: first.map(|interface| Queues {
            rx: interface.rx_queues,
            tx: interface.tx_queues,
        }),
        mac: first.and_then(|interface| interface.mac),
        addresses: interfaces
            .iter()
            .flat_map(|interface| interface.addresses.clone())
            .collect(),
        usable: usable(check(uri, sys)),
        roles: interfaces
            .iter()
            .filter_map(|interface| roles.get(&interface.name))
            .flatten()
            .copied()
            .collect(),
    }
}

/// The table of names that pciutils installs.
fn pci_ids(sys: &Sys) -> String {
    let files = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"];
    files.iter().find_map(|file| sys.text(file)).unwrap_or_default()
}

/// The device's name, else its maker's.
fn product(table: &str, device: &PciDevice) -> Option<String> {
    let (vendor, id) = (
        format!("{:04x}  ", device.vendor),
        format!("\t{:04x}  ", device.device),
    );
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
