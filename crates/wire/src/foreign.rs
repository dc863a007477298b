//! Names for what arrives and is not a probe of this run.

crate::counted::counted! {
    /// Kinds of foreign frames.
    pub enum Foreign {
        /// Neither IPv4, IPv6 nor ARP.
        NotIp = "not_ip",
        /// ARP of any kind.
        Arp = "arp",
        /// IPv6 neighbour discovery (RFC 4861): solicitations, advertisements, redirects.
        Ndp = "ndp",
        /// Echo request or reply, ICMP or `ICMPv6`.
        IcmpEcho = "icmp_echo",
        /// An ICMP or `ICMPv6` error about somebody else's packet.
        IcmpError = "icmp_error",
        /// An ICMP or `ICMPv6` error about one of this run's probes: somebody refused it.
        IcmpErrorOurs = "icmp_error_ours",
        /// Any other ICMP or `ICMPv6`, multicast listener reports included.
        IcmpOther = "icmp_other",
        /// UDP with a good checksum that is no probe.
        OtherUdp = "other_udp",
        /// IPv4 or IPv6 with another protocol.
        OtherIp = "other_ip",
        /// What a reflector counted, as this run asked it to tell.
        ReflectorCounters = "account",
        /// A probe of another run.
        OtherRun = "other_run",
        /// A fragment of an IP packet.
        Fragment = "fragment",
        /// Ends before its headers do.
        Truncated = "truncated",
        /// A stranger's UDP without a checksum, as IPv4 allows and VXLAN does (RFC 7348).
        NoChecksum = "no_checksum",
        /// A stranger's, with a wrong checksum, wrong lengths or a broken IP header.
        Damaged = "damaged",
    }
}
