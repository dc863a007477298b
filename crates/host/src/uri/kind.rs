//! The kinds of port, and a port of one.

use super::names::{MacAddress, PciAddress, VmbusId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

/// A port as the user names it: `kind:target,option=value,...`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PortUri {
    /// What carries the packets.
    pub kind: PortKind,
    /// `queues=N`: how many receive and transmit queues; `None` lets the run decide.
    pub queues: Option<NonZeroU16>,
}

/// What carries the packets of a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PortKind {
    /// `ring[:NAME][,direct][,size=N]`: a loop inside this process.
    Ring {
        /// Tells several rings of one run apart.
        name: Option<String>,
        /// What is sent comes back unchanged; otherwise it passes the in-process reflector.
        direct: bool,
        /// Slots of the ring, a power of two.
        size: Option<u32>,
    },
    /// `null[:NAME][,size=N]`: swallows what is sent and makes frames from nothing.
    Null {
        /// Tells several null ports of one run apart.
        name: Option<String>,
        /// Length in bytes of the frames it makes.
        size: Option<u32>,
    },
    /// `pci:0000:3b:00.0`.
    Pci {
        /// The function.
        address: PciAddress,
    },
    /// `vmbus:UUID`.
    Vmbus {
        /// The device.
        id: VmbusId,
    },
    /// `mac:aa:bb:cc:dd:ee:ff`: whichever device has this address.
    Mac {
        /// The address.
        address: MacAddress,
    },
    /// `xdp:IF[,start=N][,mode=copy|auto]`: `AF_XDP`.
    Xdp {
        /// Kernel name of the interface.
        interface: String,
        /// First queue of the interface to take.
        start: Option<u16>,
        /// Whether the driver may share its buffers.
        mode: XdpMode,
    },
    /// `packet:IF[,qdisc-bypass]`: `AF_PACKET`.
    Packet {
        /// Kernel name of the interface.
        interface: String,
        /// Send past the kernel's queueing discipline.
        qdisc_bypass: bool,
    },
    /// `tap:NAME[,mac=..]`: a new interface of this kernel.
    Tap {
        /// Name of the interface to create.
        name: String,
        /// Its address.
        mac: Option<MacAddress>,
    },
    /// `memif:PATH[,server][,id=N][,zero-copy][,size=N]`.
    Memif {
        /// The socket; a leading `@` means the abstract name space.
        path: PathBuf,
        /// Serve the socket; otherwise connect to it.
        server: bool,
        /// Interface id, the same at both ends.
        id: u32,
        /// Share the packet buffers (client only).
        zero_copy: bool,
        /// log2 of the slots of a ring.
        size_log2: Option<u8>,
    },
    /// `vhost:PATH[,client]`: the host's end of a vhost-user socket.
    Vhost {
        /// The socket.
        path: PathBuf,
        /// Connect to the socket; otherwise serve it.
        client: bool,
    },
    /// `virtio-user:PATH[,server]`: the guest's end of a vhost-user socket.
    VirtioUser {
        /// The socket.
        path: PathBuf,
        /// Serve the socket; otherwise connect to it.
        server: bool,
    },
    /// `pcap:IN[,OUT]`: files; `-` for none.
    Pcap {
        /// Frames to receive.
        input: Option<PathBuf>,
        /// Where sent frames are written.
        output: Option<PathBuf>,
    },
    /// `kernel:ADDR[:PORT][,io=call|mmsg|uring]`: plain UDP sockets of the kernel.
    Kernel {
        /// Local address.
        address: IpAddr,
        /// Local UDP port; `None` lets the run choose.
        port: Option<u16>,
        /// How packets pass between us and the kernel.
        io: KernelIo,
    },
    /// `vdev:ARGS`: any other DPDK virtual device, handed to `--vdev` as it is.
    Vdev {
        /// DPDK's own arguments: `net_null0,size=128`.
        arguments: String,
    },
}

/// How packets pass between a `kernel:` port and the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KernelIo {
    /// A system call for each packet: `sendto` and `recvfrom`.
    #[default]
    Call,
    /// A system call for a burst: `sendmmsg` and `recvmmsg`.
    Mmsg,
    /// `io_uring`.
    Uring,
}

impl KernelIo {
    /// Its word in a URI.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Mmsg => "mmsg",
            Self::Uring => "uring",
        }
    }
}

/// How `AF_XDP` shares buffers with the driver. There is no mode that insists on zero copy: DPDK's driver falls back to
/// copying where the interface's has none, and cannot be told not to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum XdpMode {
    /// Zero copy where the driver can, else copy.
    #[default]
    Auto,
    /// Always copy.
    Copy,
}

impl XdpMode {
    /// Its word in a URI.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Copy => "copy",
        }
    }
}

impl PortUri {
    /// A port of this kind with the default number of queues.
    pub fn new(kind: PortKind) -> Self {
        Self { kind, queues: None }
    }
}
