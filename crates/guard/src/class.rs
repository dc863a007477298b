//! Kinds of traffic whose rates are watched, each by itself.

use rules::{Detail, Facts, ICMP, ICMPV6, Layer, Part, TCP, UDP};
use serde::{Deserialize, Serialize};

const SYN: u8 = 2;
const ACK: u8 = 16;

/// A kind of traffic. A packet may be of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(usize)]
pub enum Class {
    /// UDP from a port whose service answers more than it was asked.
    Amplification,
    /// TCP that opens a connection.
    Syn,
    /// Fragments.
    Fragment,
    /// ICMP of either family.
    Icmp,
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// Any other IP protocol.
    Other,
    /// All IP packets.
    All,
    /// Packets that contradict themselves: counted for all destinations together, since their addresses are not believed.
    Malformed,
}

/// How many there are.
pub const CLASSES: usize = 9;

impl Class {
    /// The narrow ones first.
    pub const ALL: [Self; CLASSES] = [
        Self::Amplification,
        Self::Syn,
        Self::Fragment,
        Self::Icmp,
        Self::Udp,
        Self::Tcp,
        Self::Other,
        Self::All,
        Self::Malformed,
    ];

    /// Its name in a threshold.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amplification => "amplification",
            Self::Syn => "syn",
            Self::Fragment => "fragment",
            Self::Icmp => "icmp",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Other => "other",
            Self::All => "all",
            Self::Malformed => "malformed",
        }
    }

    /// Whether a well-formed packet is of it.
    pub fn holds(self, facts: &Facts) -> bool {
        let is_ip = facts.layer != Layer::Other;
        is_ip
            && match self {
                Self::All => true,
                Self::Malformed => false,
                Self::Fragment => facts.part != Part::Whole,
                Self::Icmp => facts.protocol == ICMP || facts.protocol == ICMPV6,
                Self::Udp => facts.protocol == UDP,
                Self::Tcp => facts.protocol == TCP,
                Self::Syn => matches!(facts.detail, Detail::Flags(flags) if flags & (SYN | ACK) == SYN),
                Self::Other => ![ICMP, TCP, UDP, ICMPV6].contains(&facts.protocol),
                Self::Amplification => {
                    facts.protocol == UDP && facts.ports.is_some_and(|(source, _)| amplifies(source))
                }
            }
    }
}

/// Whether a service on this port of UDP is known to answer strangers with more than they sent (US-CERT alert TA14-017A,
/// and those found since).
pub const fn amplifies(port: u16) -> bool {
    matches!(
        port,
        17 | 19
            | 53
            | 69
            | 111
            | 123
            | 137
            | 161
            | 389
            | 427
            | 520
            | 1434
            | 1900
            | 3283
            | 3702
            | 5353
            | 5683
            | 10001
            | 11211
    )
}
