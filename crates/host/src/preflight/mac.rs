//! `mac:`: finds the device that has the address.

use super::look::Look;
use crate::interface::{Interface, Sort};
use crate::{Fix, MacAddress, PortKind, PortUri, Problem, pci, vmbus};
use itertools::Itertools as _;

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
    let interfaces = look
        .interfaces
        .iter()
        .filter(|interface| any_but_loopback(interface));
    let list = interfaces
        .filter_map(|interface| Some(format!("{} {}", interface.name, interface.mac?)))
        .join(", ");
    let found = format!("no device has the address {address} (there are: {list})");
    let functions = pci::network_functions(look.sys);
    let functions = functions
        .iter()
        .filter(|device| device.interfaces(&look.interfaces).is_empty() && device.driver.is_some())
        .map(|device| format!("pci:{}", device.address));
    let channels = vmbus::network_channels(look.sys);
    let channels = channels
        .iter()
        .filter(|device| device.interfaces(&look.interfaces).is_empty())
        .map(|device| format!("vmbus:{}", device.id));
    let hidden: Vec<String> = functions.chain(channels).collect();
    if hidden.is_empty() {
        return look.problem(found, Fix::one("dropless ports"));
    }
    let devices = hidden.join(", ");
    let advice = format!("name the device itself: {}", hidden.join(" or "));
    let found = format!("{found}; the kernel does not see the address of {devices}");
    look.problem(found, Fix::advice(advice))
}
