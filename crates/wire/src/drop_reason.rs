//! Names for why a frame is not reflected.

/// Why a frame was not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// Ends before its headers do.
    Truncated,
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// An IP header that contradicts itself, or a length beyond the frame.
    BadLength,
    /// IP, but not UDP.
    NotUdp,
    /// A fragment, which has no ports to swap (or only its first has).
    Fragment,
    /// Sent to a broadcast or multicast address: an answer could multiply.
    Multicast,
    /// Sent from an address that nothing may be sent to: multicast, broadcast, unspecified.
    BadSource,
    /// Source and destination are the same address: returning it would loop.
    SameAddress,
    /// Source port 0: the sender wants no answer (RFC 768).
    NoReplyPort,
    /// Not a probe, and only probes were to be returned.
    NotOurs,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = Self::ALL.len();

    /// Every reason, in the order of [`DropReason::index`].
    pub const ALL: [Self; 10] = [
        Self::Truncated,
        Self::NotIp,
        Self::BadLength,
        Self::NotUdp,
        Self::Fragment,
        Self::Multicast,
        Self::BadSource,
        Self::SameAddress,
        Self::NoReplyPort,
        Self::NotOurs,
    ];

    /// Position in [`DropReason::ALL`], for tables of counters.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Name of its counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::NotIp => "not_ip",
            Self::BadLength => "bad_length",
            Self::NotUdp => "not_udp",
            Self::Fragment => "fragment",
            Self::Multicast => "multicast",
            Self::BadSource => "bad_source",
            Self::SameAddress => "same_address",
            Self::NoReplyPort => "no_reply_port",
            Self::NotOurs => "not_ours",
        }
    }
}
