//! `mac:`: finds the device that has the address.

use super::look::Look;
use crate::interface::{Interface, Sort};
use crate::{Fix, MacAddress, PortKind, PortUri, Problem, pci, vmbus};

/// The device that has the address: a `VMBus` or PCI device, or the interface itself.
pub fn device(look: &Look<'_>, address: MacAddress) -> Result<PortUri, Problem> {
    let having = |sort: fn(&Interface) -> bool| {
        look.interfaces
            .iter()
            .find(move |interface| interface.mac == Some(address) && sort(interface))
    };
    // A virtual function has the address of the VMBus device it stands in for; bonds and VLANs that of a NIC.
    let found = having(|i| i.vmbus.is_some())
        .or_else(|| having(|i| i.pci.is_some()))
        .or_else(|| having(any_but_loopback));
    let Some(interface) = found else {
        return Err(nobody(look, address));
    };
    let kind = match (&interface.vmbus, interface.pci) {
        (Some(id), _) => PortKind::Vmbus { id: id.clone() },
        (None, Some(address)) => PortKind::Pci { address },
        (None, None) => PortKind::Packet {
            interface: interface.name.clone(),
            qdisc_bypass: false,
        },
    };
    Ok(PortUri {
        kind,
        queues: look.uri.queues,
    })
}

fn any_but_loopback(interface: &Interface) -> bool {
    interface.sort != Sort::Loopback
}

/// Nobody has it; devices that the kernel does not drive hide theirs.
fn nobody(look: &Look<'_>, address: MacAddress) -> Problem {
    let having = look
        .interfaces
        .iter()
        .filter(|interface| interface.sort != Sort::Loopback);
    let list: Vec<String> = having
        .filter_map(|interface| Some(format!("{} {}", interface.name, interface.mac?)))
        .collect();
    let hidden: Vec<String> = pci::network_functions(look.sys)
        .iter()
        .filter(|device| device.interfaces(&look.interfaces).is_empty() && device.driver.is_some())
        .map(|device| format!("pci:{}", device.address))
        .chain(
            vmbus::network_channels(look.sys)
                .iter()
                .filter(|device| device.interfaces(&look.interfaces).is_empty())
                .map(|device| format!("vmbus:{}", device.id)),
        )
        .collect();
    let found = format!(
        "no device has the address {address} (there are: {})",
        list.join(", ")
    );
    if hidden.is_empty() {
        return look.problem(found, Fix::one("dropless ports"));
    }
    let found = format!(
        "{found}; the kernel does not see the address of {}",
        hidden.join(", ")
    );
    look.problem(
        found,
        Fix::advice(format!("name the device itself: {}", hidden.join(" or "))),
    )
}
