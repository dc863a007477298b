//! Why a packet is malformed: reasons that rules can name.

/// What is wrong with a packet. The first reason found counts, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Malformed {
    /// The frame ends within its Ethernet header or VLAN tags.
    Ethernet,
    /// An IP header that the frame does not hold, that contradicts itself or its ether type.
    IpHeader,
    /// The IP packet is longer than the frame.
    IpLength,
    /// IPv6 extension headers that the frame does not hold, or more than seven.
    Extensions,
    /// A wrong IPv4 header checksum.
    IpChecksum,
    /// Source and destination address are the same ("LAND").
    Land,
    /// A fragment of TCP that cuts its header: the first one without the whole of it, or one at offset 8 (RFC 1858, 3128).
    TinyFragment,
    /// A TCP header that the packet does not hold, or of less than 20 bytes.
    TcpHeader,
    /// TCP flags that no host sends: none, SYN with FIN or RST, FIN without ACK (RFC 9293 section 3.10.7).
    TcpFlags,
    /// A UDP length that is below 8 or not that of the packet.
    UdpLength,
    /// An ICMP message of less than 8 bytes.
    IcmpLength,
}

impl Malformed {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::Ethernet,
        Self::IpHeader,
        Self::IpLength,
        Self::Extensions,
        Self::IpChecksum,
        Self::Land,
        Self::TinyFragment,
        Self::TcpHeader,
        Self::TcpFlags,
        Self::UdpLength,
        Self::IcmpLength,
    ];

    /// As rules name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::IpHeader => "ip-header",
            Self::IpLength => "ip-length",
            Self::Extensions => "extensions",
            Self::IpChecksum => "ip-checksum",
            Self::Land => "land",
            Self::TinyFragment => "tiny-fragment",
            Self::TcpHeader => "tcp-header",
            Self::TcpFlags => "tcp-flags",
            Self::UdpLength => "udp-length",
            Self::IcmpLength => "icmp-length",
        }
    }

    /// Its bit in a set of reasons.
    pub const fn bit(self) -> u16 {
        1 << self as u16
    }
}
