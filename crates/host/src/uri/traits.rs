//! What a port of each kind can do, lose and count: the one place that is asked about it.

use super::kind::PortKind;
use crate::capability::Capability;
use std::path::Path;

/// What carries the packets of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// The memory of this process.
    Process,
    /// A NIC that DPDK drives itself; its driver needs hugepages.
    Nic,
    /// An interface that the kernel goes on using.
    SharedInterface,
    /// An interface that is made for the run.
    OwnInterface,
    /// Another process, behind a Unix socket; it may come late, and leave.
    Peer,
    /// Files, which have no pace of their own.
    Files,
    /// UDP sockets of the kernel, without DPDK.
    Sockets,
    /// Whatever the user's own arguments name.
    Unknown,
}

impl Medium {
    /// Whether it may be of a speed that somebody can tell.
    pub fn may_have_speed(self) -> bool {
        !matches!(self, Self::Process | Self::Peer | Self::Files)
    }

    /// Whether somebody else takes packets from a full transmit queue: not our worker at the far end of an embedded ring, nor
    /// the kernel, which sends in our worker's own system calls unless the interface has queues of its own.
    pub fn is_emptied_by_others(self) -> bool {
        matches!(self, Self::Nic | Self::Peer)
    }
}

/// Which rights of root are kept while a port is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptRights {
    /// All, in every thread: its driver may want anything.
    All,
    /// Those that its end needs, in the thread that closes it.
    Only(&'static [Capability]),
}

/// The stamps that a driver gives to what it receives, counted from the epoch of Unix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverStamps {
    /// Whose clock it is.
    pub clock: &'static str,
    /// Their unit in nanoseconds.
    pub unit_ns: u64,
}

/// Buffers that DPDK's driver of `AF_XDP` gives the kernel to receive into, and gives again one for one, whatever descriptors it
/// was asked for (`ETH_AF_XDP_DFLT_NUM_DESCS` of `rte_eth_af_xdp.c`).
pub const XDP_FILL: u32 = 2048;

/// The answers for one kind of port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct PortTraits {
    /// The word before the colon.
    pub name: &'static str,
    /// What carries its packets.
    pub medium: Medium,
    /// Its driver is in DPDK's library `librte_net_DRIVER.so`, where that does not hang on the device.
    pub driver: Option<&'static str>,
    /// Descriptors a queue, where the user does not say.
    pub descriptors_default: u16,
    /// The most queues that its driver makes in a direction.
    pub queues_max: u16,
    /// What to do where more are wanted.
    pub more_queues: &'static str,
    /// Each queue is a socket on a queue of the interface, which must have as many.
    pub is_socket_per_queue: bool,
    /// The kernel spreads what arrives over all of its sockets, those made for sending among them.
    pub sends_through_receivers: bool,
    /// No more frames wait to be received in a queue, whatever descriptors it was given.
    pub rx_room_max: u32,
    /// A receiver that stalls makes senders wait, instead of making the port lose packets silently.
    pub pushes_back: bool,
    /// The driver counts as errors what it refused to take, and so left to us.
    pub counts_refusals: bool,
    /// It is counted by hardware: frames that its queues have not handed over yet, and those sent only when they have left.
    pub counts_on_wire: bool,
    /// Received frames are in no cache of the receiving core, because a device or another core wrote them.
    pub frames_are_cold: bool,
    /// A kernel at the other end leaves checksums to hardware that is not there.
    pub loses_checksums: bool,
    /// Everything sent comes back through the reflector in this process.
    pub is_reflected: bool,
    /// What is sent is gone: nothing comes back.
    pub swallows: bool,
    /// What is sent stays in the port until this run receives it, so that a run that only sends fills it up.
    pub holds_sent: bool,
    /// Its other end has a MAC address that can be asked for.
    pub has_neighbours: bool,
    /// A PCI function is taken from the kernel: the bus is scanned, and vfio-pci needs the IOMMU.
    pub takes_pci: bool,
    /// Without a BPF program on the interface, which anybody may take away, it receives nothing.
    pub needs_program: bool,
    /// The other end posts receive buffers after the link is up, and throws away what it finds in them until then
    /// (`virtio_dev_start` of DPDK's `net/virtio`).
    pub peer_posts_late: bool,
    /// The clock of the stamps that its driver gives to what it receives.
    pub stamps: Option<DriverStamps>,
    /// The rights that are kept once it is open.
    pub keeps: KeptRights,
    /// It must call for its other end, which its driver does only when it is started.
    pub calls: bool,
    /// It cannot call again: the driver closes the files of the memory it shares, which it would have to show to the
    /// next server (seen with DPDK 22.11).
    pub calls_once: bool,
}

/// A port of which nothing good is known.
const PLAIN: PortTraits = PortTraits {
    name: "",
    medium: Medium::Unknown,
    driver: None,
    descriptors_default: 1024,
    queues_max: u16::MAX,
    more_queues: "use fewer",
    is_socket_per_queue: false,
    sends_through_receivers: false,
    rx_room_max: u32::MAX,
    pushes_back: false,
    counts_refusals: false,
    counts_on_wire: false,
    frames_are_cold: true,
    loses_checksums: false,
    is_reflected: false,
    swallows: false,
    holds_sent: false,
    has_neighbours: true,
    takes_pci: false,
    needs_program: false,
    peer_posts_late: false,
    stamps: None,
    keeps: KeptRights::Only(&[]),
    calls: false,
    calls_once: false,
};

/// A port whose drivers wait for each other, and count what they refused.
const PUSHES_BACK: PortTraits = PortTraits {
    pushes_back: true,
    counts_refusals: true,
    ..PLAIN
};

impl PortKind {
    /// What a port of this kind can do.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of port")]
    pub fn traits(&self) -> PortTraits {
        match self {
            Self::Ring { direct, .. } => PortTraits {
                name: "ring",
                driver: Some("ring"),
                medium: Medium::Process,
                // RTE_PMD_RING_MAX_RX_RINGS
                queues_max: 16,
                is_reflected: !direct,
                holds_sent: true,
                has_neighbours: false,
                ..PUSHES_BACK
            },
            Self::Null { .. } => PortTraits {
                name: "null",
                driver: Some("null"),
                medium: Medium::Process,
                frames_are_cold: false,
                swallows: true,
                has_neighbours: false,
                ..PUSHES_BACK
            },
            Self::Pci { .. } => PortTraits {
                name: "pci",
                counts_on_wire: true,
                medium: Medium::Nic,
                takes_pci: true,
                keeps: KeptRights::All,
                ..PLAIN
            },
            Self::Vmbus { .. } => PortTraits {
                name: "vmbus",
                driver: Some("netvsc"),
                counts_on_wire: true,
                medium: Medium::Nic,
                keeps: KeptRights::All,
                ..PLAIN
            },
            Self::Mac { .. } => PortTraits {
                name: "mac",
                counts_on_wire: true,
                medium: Medium::Nic,
                takes_pci: true,
                keeps: KeptRights::All,
                ..PLAIN
            },
            Self::Xdp { .. } => PortTraits {
                name: "xdp",
                driver: Some("af_xdp"),
                medium: Medium::SharedInterface,
                // The kernel takes a core for milliseconds at a time: the rings must hold that long.
                descriptors_default: 4096,
                is_socket_per_queue: true,
                rx_room_max: XDP_FILL,
                counts_refusals: true,
                loses_checksums: true,
                needs_program: true,
                // The program is asked for by its number, taken off the interface, and its map cleared.
                keeps: KeptRights::Only(&[Capability::NetAdmin, Capability::Bpf, Capability::SysAdmin]),
                ..PLAIN
            },
            Self::Packet { .. } => PortTraits {
                name: "packet",
                driver: Some("af_packet"),
                medium: Medium::SharedInterface,
                sends_through_receivers: true,
                frames_are_cold: false,
                loses_checksums: true,
                ..PLAIN
            },
            Self::Tap { .. } => PortTraits {
                name: "tap",
                driver: Some("tap"),
                medium: Medium::OwnInterface,
                // When it starts, its driver puts the file of every queue, of both directions, into a message with room for
                // 8 (RTE_MP_MAX_FD_NUM), and does not look at how many those are (DPDK 22.11).
                queues_max: 4,
                // The kernel's queue towards it (`tx_queue_len` of an interface of Ethernet).
                rx_room_max: 1000,
                counts_refusals: true,
                frames_are_cold: false,
                loses_checksums: true,
                // Its interface is taken down.
                keeps: KeptRights::Only(&[Capability::NetAdmin]),
                ..PLAIN
            },
            Self::Memif {
                server,
                zero_copy,
                size_log2,
                ..
            } => PortTraits {
                name: "memif",
                driver: Some("memif"),
                medium: Medium::Peer,
                // The driver takes those that a caller has not connected for its first ones (`memif_get_ring_from_queue` of
                // `rte_eth_memif.c`), and tells nobody how many he has.
                queues_max: if *server { 1 } else { u16::MAX },
                more_queues: if *server {
                    "where it serves it has no more: give each queue a memif of its own (id=N), or let this end call"
                } else {
                    PLAIN.more_queues
                },
                rx_room_max: 1 << size_log2.unwrap_or(10),
                // The driver copies frames on the receiving core, unless it shares them.
                frames_are_cold: *zero_copy,
                calls: !server,
                calls_once: !server && *zero_copy,
                ..PUSHES_BACK
            },
            Self::Vhost { .. } => PortTraits {
                name: "vhost",
                driver: Some("vhost"),
                medium: Medium::Peer,
                // It is the guest's ring, of 256 unless somebody asked for more.
                rx_room_max: 256,
                frames_are_cold: false,
                peer_posts_late: true,
                ..PLAIN
            },
            Self::VirtioUser { .. } => PortTraits {
                name: "virtio-user",
                driver: Some("virtio"),
                medium: Medium::Peer,
                // Its device is made so.
                rx_room_max: 1024,
                ..PLAIN
            },
            Self::Pcap { .. } => PortTraits {
                name: "pcap",
                driver: Some("pcap"),
                medium: Medium::Files,
                // `eth_pcap_rx` of DPDK's `net/pcap`.
                stamps: Some(DriverStamps {
                    clock: "file",
                    unit_ns: 1000,
                }),
                frames_are_cold: false,
                has_neighbours: false,
                ..PUSHES_BACK
            },
            Self::Kernel { .. } => PortTraits {
                name: "kernel",
                medium: Medium::Sockets,
                frames_are_cold: false,
                ..PLAIN
            },
            Self::Vdev { .. } => PortTraits {
                name: "vdev",
                counts_on_wire: true,
                keeps: KeptRights::All,
                ..PLAIN
            },
        }
    }

    /// The interface of the kernel that it works through, where its URI names one.
    pub fn interface(&self) -> Option<&str> {
        match self {
            Self::Xdp { interface, .. } | Self::Packet { interface, .. } => Some(interface),
            _ => None,
        }
    }

    /// The files that it reads, and that it writes.
    pub fn files(&self) -> (Option<&Path>, Option<&Path>) {
        match self {
            Self::Pcap { input, output } => (input.as_deref(), output.as_deref()),
            _ => (None, None),
        }
    }
}
