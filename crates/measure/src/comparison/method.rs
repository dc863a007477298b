//! The ways that are compared: what each is called, and what it costs those who run it.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

/// A way for packets between a program and a wire, the least work for those who run it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// UDP sockets, a call a packet.
    Kernel,
    /// UDP sockets, a call a burst.
    KernelMmsg,
    /// UDP sockets through `io_uring`.
    KernelUring,
    /// `AF_PACKET`.
    Packet,
    /// `AF_XDP`.
    Xdp,
    /// DPDK on shared memory between two processes: no wire.
    Memif,
    /// The user's own pair of ports.
    Ports,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Kernel,
        Self::KernelMmsg,
        Self::KernelUring,
        Self::Packet,
        Self::Xdp,
        Self::Memif,
        Self::Ports,
    ];

    /// Its word on the command line and in `compare.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::KernelMmsg => "kernel-mmsg",
            Self::KernelUring => "kernel-uring",
            Self::Packet => "packet",
            Self::Xdp => "xdp",
            Self::Memif => "memif",
            Self::Ports => "ports",
        }
    }

    /// What it is, in the middle of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Kernel => "kernel sockets, one call a packet",
            Self::KernelMmsg => "kernel sockets with sendmmsg and recvmmsg",
            Self::KernelUring => "kernel sockets with io_uring",
            Self::Packet => "AF_PACKET",
            Self::Xdp => "AF_XDP",
            Self::Memif => "DPDK over shared memory (memif)",
            Self::Ports => "DPDK on your ports",
        }
    }

    /// What it costs in operations.
    pub fn cost(self) -> &'static str {
        match self {
            Self::Kernel => {
                "nothing: no privileges, and routing, firewall, tcpdump and every tool you have go on working"
            }
            Self::KernelMmsg => {
                "a changed send and receive loop, no privileges; everything else of the kernel goes on working"
            }
            Self::KernelUring => {
                "a changed program and a recent kernel (6.0), and io_uring is switched off on some hardened hosts; everything else of the kernel goes on working"
            }
            Self::Packet => {
                "CAP_NET_RAW, headers and ARP of your own, and the kernel still sees (and may answer) the same packets; firewall rules are passed by"
            }
            Self::Xdp => {
                "root to load a program, locked memory, headers and ARP of your own, queues that belong to you; the firewall and tcpdump do not see these packets, but the NIC stays with the kernel, and ethtool and ip go on working"
            }
            Self::Memif | Self::Ports => {
                "hugepages, polling cores that are always busy, headers and ARP of your own, and (but for a few drivers) a NIC that the kernel no longer sees: no ip, ethtool, firewall, tcpdump on it"
            }
        }
    }

    /// Whether it goes through the kernel's network stack, firewall rules and all.
    pub fn is_sockets(self) -> bool {
        self <= Self::KernelUring
    }

    /// Whether it takes a wire between two of the kernel's interfaces.
    pub fn needs_a_wire(self) -> bool {
        self <= Self::Xdp
    }

    /// Whether there is a network behind it. Shared memory reaches a process of the same machine.
    pub fn reaches_a_network(self) -> bool {
        self != Self::Memif
    }
}

/// A word that names no way.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no way called '{0}'; ways are {all}", all = Method::ALL.map(Method::name).join(", "))]
pub struct UnknownMethod(pub String);

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        let found = Self::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| UnknownMethod(text.to_owned()))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
