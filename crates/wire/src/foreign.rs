//! Names for what arrives and is not a probe of this run.

/// Kinds of foreign frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Foreign {
    /// Neither IPv4, IPv6 nor ARP.
    NotIp,
    /// ARP of any kind.
    Arp,
    /// IPv6 neighbour discovery (RFC 4861): solicitations, advertisements, redirects.
    Ndp,
    /// Echo request or reply, ICMP or `ICMPv6`.
    IcmpEcho,
    /// An ICMP or `ICMPv6` error about somebody else's packet.
    IcmpError,
    /// An ICMP or `ICMPv6` error about one of this run's probes: somebody refused it.
    IcmpErrorOurs,
    /// Any other ICMP or `ICMPv6`, multicast listener reports included.
    IcmpOther,
    /// UDP with a good checksum that is no probe.
    OtherUdp,
    /// IPv4 or IPv6 with another protocol.
    OtherIp,
    /// What a reflector counted, as this run asked it to tell.
    ReflectorCounters,
    /// A probe of another run.
    OtherRun,
    /// A fragment of an IP packet.
    Fragment,
    /// Ends before its headers do.
    Truncated,
    /// A stranger's UDP without a checksum, as IPv4 allows and VXLAN does (RFC 7348).
    NoChecksum,
    /// A stranger's, with a wrong checksum, wrong lengths or a broken IP header.
    Damaged,
}

impl Foreign {
    /// Number of kinds.
    pub const COUNT: usize = Self::ALL.len();

    /// Every kind, in the order of [`Foreign::index`].
    pub const ALL: [Self; 15] = [
        Self::NotIp,
        Self::Arp,
        Self::Ndp,
        Self::IcmpEcho,
        Self::IcmpError,
        Self::IcmpErrorOurs,
        Self::IcmpOther,
        Self::OtherUdp,
        Self::OtherIp,
        Self::ReflectorCounters,
        Self::OtherRun,
        Self::Fragment,
        Self::Truncated,
        Self::NoChecksum,
        Self::Damaged,
    ];

    /// Position in [`Foreign::ALL`], for tables of counters.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Name of its counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not_ip",
            Self::Arp => "arp",
            Self::Ndp => "ndp",
            Self::IcmpEcho => "icmp_echo",
            Self::IcmpError => "icmp_error",
            Self::IcmpErrorOurs => "icmp_error_ours",
            Self::IcmpOther => "icmp_other",
            Self::OtherUdp => "other_udp",
            Self::OtherIp => "other_ip",
            Self::ReflectorCounters => "account",
            Self::OtherRun => "other_run",
            Self::Fragment => "fragment",
            Self::Truncated => "truncated",
            Self::NoChecksum => "no_checksum",
            Self::Damaged => "damaged",
        }
    }
}
