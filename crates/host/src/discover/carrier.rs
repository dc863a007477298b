//! Something that could carry packets, as a listing shows it.

use crate::interface::Interface;
use crate::{Fix, Link, MacAddress, Prepared, Problem, Role};
use itertools::Itertools as _;
use serde::Serialize;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What sort of thing carries the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CarrierKind {
    /// A PCI network function.
    Pci,
    /// A `VMBus` network device.
    Vmbus,
    /// An interface of the kernel.
    Interface,
    /// A kind of port made in software.
    Virtual,
}

/// Receive and transmit queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Queues {
    /// Receive queues.
    pub rx: u16,
    /// Transmit queues.
    pub tx: u16,
}

/// Whether dropless can use a carrier as things are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Usable {
    /// Yes.
    Yes,
    /// Yes, but read this first.
    Caution {
        /// What to know.
        why: String,
    },
    /// No.
    No {
        /// Why.
        why: String,
        /// What changes it.
        fix: Fix,
    },
}

/// Something that could carry packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Carrier {
    /// Its name: PCI address, UUID, interface or kind.
    pub name: String,
    /// What sort of thing it is.
    pub kind: CarrierKind,
    /// The port to write to use it; capital words are for the user to fill in.
    pub uri: String,
    /// Kernel driver, or DPDK's for virtual kinds.
    pub driver: Option<String>,
    /// What it is, in a few words.
    pub description: String,
    /// NUMA node.
    pub numa_node: Option<u32>,
    /// State of its link, where there is one.
    pub link: Option<Link>,
    /// Its queues, where known before it is opened.
    pub queues: Option<Queues>,
    /// Its address.
    pub mac: Option<MacAddress>,
    /// IP addresses the kernel has on it.
    pub addresses: Vec<IpAddr>,
    /// Whether it can be used.
    pub usable: Usable,
    /// What this machine is reached by through it.
    pub roles: BTreeSet<Role>,
}

impl Carrier {
    /// One of which nothing is known but what it is, and whether it can be used.
    pub(super) fn new(kind: CarrierKind, name: &str, uri: &str, usable: Usable) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            uri: uri.to_owned(),
            driver: None,
            description: String::new(),
            numa_node: None,
            link: None,
            queues: None,
            mac: None,
            addresses: Vec::new(),
            usable,
            roles: BTreeSet::new(),
        }
    }

    /// What the interface tells of it.
    pub(super) fn with(self, interface: &Interface) -> Self {
        Self {
            link: interface.link,
            queues: Some(Queues {
                rx: interface.rx_queues,
                tx: interface.tx_queues,
            }),
            mac: interface.mac,
            addresses: interface.addresses.clone(),
            ..self
        }
    }
}

/// A check's outcome, as a listing shows it.
pub(super) fn usable(outcome: Result<Prepared, Problem>) -> Usable {
    match outcome {
        Err(Problem { found, fix, .. }) => Usable::No {
            why: found,
            fix: *fix,
        },
        Ok(prepared) if prepared.notes.is_empty() => Usable::Yes,
        Ok(prepared) => Usable::Caution {
            why: prepared.notes.iter().join("; "),
        },
    }
}
