//! The kernel's interfaces, used through `AF_XDP` or `AF_PACKET`.

use super::carrier::{Carrier, CarrierKind, Usable, usable};
use crate::interface::{Interface, Sort};
use crate::roles::in_words;
use crate::{Fix, PortKind, PortUri, Role, Sys, XdpMode, check};
use std::collections::{BTreeMap, BTreeSet};

/// Every interface; those that carry nothing are listed with the reason.
pub fn list(sys: &Sys, interfaces: &[Interface], roles: &BTreeMap<String, BTreeSet<Role>>) -> Vec<Carrier> {
    let carrier = |interface: &Interface| {
        let roles = roles.get(&interface.name).cloned().unwrap_or_default();
        let (uri, usable) = best_port(sys, interface, roles.is_empty());
        let usable = with_roles(usable, &roles);
        Carrier {
            driver: interface.driver.clone(),
            description: describe(interface),
            numa_node: interface.numa_node,
            roles,
            ..Carrier::new(CarrierKind::Interface, &interface.name, &uri, usable).with(interface)
        }
    };
    interfaces.iter().map(carrier).collect()
}

/// `AF_XDP` where it works and takes nothing that the kernel needs, else `AF_PACKET`; sorts that lead nowhere are refused here though a socket would open.
fn best_port(sys: &Sys, interface: &Interface, free: bool) -> (String, Usable) {
    let name = interface.name.clone();
    let xdp = PortUri::new(PortKind::Xdp {
        interface: name.clone(),
        start: None,
        mode: XdpMode::Auto,
    });
    let packet = PortUri::new(PortKind::Packet {
        interface: name,
        qdisc_bypass: false,
    });
    if interface.sort == Sort::Ifb {
        let why = "an ifb is a place for traffic shaping: it leads nowhere".to_owned();
        let fix = Fix::advice("choose another interface");
        return (packet.to_string(), Usable::No { why, fix });
    }
    // On the loopback a capture sees what goes between processes: nothing to be taken away from them.
    let may_take = free && interface.sort != Sort::Loopback;
    match check(&xdp, sys) {
        Ok(prepared) if may_take => (xdp.to_string(), usable(Ok(prepared))),
        _ => (packet.to_string(), usable(check(&packet, sys))),
    }
}

/// A refusal for another reason must not hide what the interface carries: its fix would be taken for advice.
fn with_roles(usable: Usable, roles: &BTreeSet<Role>) -> Usable {
    match usable {
        Usable::No { why, fix } if !roles.is_empty() => Usable::No {
            why: format!("it carries {} of this machine; {why}", in_words(roles)),
            fix,
        },
        other => other,
    }
}

fn describe(interface: &Interface) -> String {
    let lower = interface.lower.join(", ");
    match interface.sort {
        Sort::Device => {
            let bus = interface.pci.map(|address| format!("pci:{address}"));
            let bus = bus.or_else(|| interface.vmbus.as_ref().map(|id| format!("vmbus:{id}")));
            bus.map_or_else(
                || "a device of this machine".to_owned(),
                |bus| format!("the kernel's interface on {bus}"),
            )
        }
        Sort::Loopback => "the loopback".to_owned(),
        Sort::Paired if lower.is_empty() => {
            "one end of a veth pair or the like: software in this kernel, no NIC".to_owned()
        }
        Sort::Paired => format!("stacked on {lower}"),
        Sort::Tap => "a TAP interface: frames go to the process that holds it".to_owned(),
        Sort::Bridge if lower.is_empty() => "a bridge of no ports".to_owned(),
        Sort::Bridge => format!("a bridge of {lower}"),
        Sort::Bond if lower.is_empty() => "a bond of no interfaces".to_owned(),
        Sort::Bond => format!("a bond of {lower}"),
        Sort::Vlan => format!("a VLAN on {lower}"),
        Sort::Ifb => "an intermediate functional block".to_owned(),
        Sort::Virtual => "an interface made in software".to_owned(),
        Sort::NotEthernet => "no Ethernet: a tunnel, TUN or another sort of link".to_owned(),
    }
}
