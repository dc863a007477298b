//! Names for why a frame is not reflected.

crate::counted::counted! {
    /// Why a frame was not returned.
    pub enum DropReason {
        /// Ends before its headers do.
        Truncated = "truncated",
        /// Neither IPv4 nor IPv6.
        NotIp = "not_ip",
        /// An IP header that contradicts itself, or a length beyond the frame.
        BadLength = "bad_length",
        /// IP, but not UDP.
        NotUdp = "not_udp",
        /// A fragment, which has no ports to swap (or only its first has).
        Fragment = "fragment",
        /// Sent to a broadcast or multicast address: an answer could multiply.
        Multicast = "multicast",
        /// Sent from an address that nothing may be sent to: multicast, broadcast, unspecified.
        BadSource = "bad_source",
        /// Source and destination are the same address: returning it would loop.
        SameAddress = "same_address",
        /// Source port 0: the sender wants no answer (RFC 768).
        NoReplyPort = "no_reply_port",
        /// Not a probe, and only probes were to be returned.
        NotOurs = "not_ours",
        /// Sent to another host of a shared link: not ours to answer, and a second reflector there would answer for ever.
        OtherHost = "other_host",
    }
}
