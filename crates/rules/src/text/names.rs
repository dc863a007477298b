//! Names of the field, and what is near to a word that is none.

use wire::checksum::{ICMP, ICMPV6, SCTP, TCP, UDP};
use wire::headers::TYPE_ARP;

use super::Told;
use super::lex::Word;

/// IP protocols that have a name here; all others by number (IANA "Protocol Numbers").
pub(super) const PROTOCOLS: [(&str, u8); 13] = [
    ("tcp", TCP),
    ("udp", UDP),
    ("icmp", ICMP),
    ("icmp6", ICMPV6),
    ("sctp", SCTP),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("igmp", 2),
    ("ipip", 4),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
];

/// TCP flags by their bits.
pub(super) const FLAGS: [(&str, u8); 8] = [
    ("fin", 1),
    ("syn", 2),
    ("rst", 4),
    ("psh", 8),
    ("ack", 16),
    ("urg", 32),
    ("ece", 64),
    ("cwr", 128),
];

/// Types of ICMP (RFC 792) and of `ICMPv6` (RFC 4443, 4861), where both have one or one has.
pub(super) const TYPES: [(&str, Option<u8>, Option<u8>); 11] = [
    ("echo-request", Some(8), Some(128)),
    ("echo-reply", Some(0), Some(129)),
    ("unreachable", Some(3), Some(1)),
    ("too-big", None, Some(2)),
    ("time-exceeded", Some(11), Some(3)),
    ("parameter-problem", Some(12), Some(4)),
    ("redirect", Some(5), Some(137)),
    ("router-solicitation", Some(10), Some(133)),
    ("router-advertisement", Some(9), Some(134)),
    ("neighbor-solicitation", None, Some(135)),
    ("neighbor-advertisement", None, Some(136)),
];

/// Ether types that have a name here.
pub(super) const ETHER_TYPES: [(&str, u16); 5] = [
    ("arp", TYPE_ARP),
    ("lldp", 0x88CC),
    ("mpls", 0x8847),
    ("pppoe", 0x8864),
    ("macsec", 0x88E5),
];

/// The name that a word was perhaps meant to be.
pub(super) fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let near = names
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .min()?;
    (near.0 <= 2 && near.0 < word.chars().count()).then_some(near.1)
}

/// Whether a set may be called so.
pub(super) fn check(name: Word<'_>) -> Told<()> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_quoted && name.text.chars().all(is_good) {
        Ok(())
    } else {
        Err((
            name.column,
            format!(
                "`{}` is no name: letters, digits, `-`, `_` and `.` make one",
                name.text
            ),
        ))
    }
}
