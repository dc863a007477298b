//! What makes packets a flow.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rules::{Facts, Layer};

/// Words of a key in the table.
pub(super) const WORDS: usize = 5;

const HAS_PORTS: u64 = 1 << 63;
const IS_V6: u64 = 1 << 62;
const HAS_VLAN: u64 = 1 << 61;
/// Of every key, so that none is all zeros.
const IS_FLOW: u64 = 1 << 60;
const VLAN_SHIFT: u32 = 40;
const PROTOCOL_SHIFT: u32 = 32;

/// One way between two ends: packets with the same addresses, ports, IP protocol and outermost VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Where they come from.
    pub source: IpAddr,
    /// Where they go.
    pub destination: IpAddr,
    /// The protocol over IP (IANA).
    pub protocol: u8,
    /// Source and destination port, where there are any: not in fragments but the first.
    pub ports: Option<(u16, u16)>,
    /// The outermost VLAN.
    pub vlan: Option<u16>,
}

/// A key as it lies in the table.
pub(super) type Words = [u64; WORDS];

/// The key of a packet; `None` of one that is no IP.
#[inline]
pub(super) fn words(facts: &Facts) -> Option<Words> {
    let family = match facts.layer {
        Layer::Other => return None,
        Layer::V4 => 0,
        Layer::V6 => IS_V6,
    };
    let ports = facts
        .ports
        .map_or(0, |(from, to)| HAS_PORTS | u64::from(from) << 16 | u64::from(to));
    let vlan = facts
        .vlan
        .map_or(0, |vlan| HAS_VLAN | u64::from(vlan) << VLAN_SHIFT);
    let (source, destination) = (facts.source, facts.destination);
    Some([
        (source >> 64) as u64,
        source as u64,
        (destination >> 64) as u64,
        destination as u64,
        IS_FLOW | family | ports | vlan | u64::from(facts.protocol) << PROTOCOL_SHIFT,
    ])
}

impl FlowKey {
    /// The key of a packet; `None` of one that is no IP.
    pub fn of(facts: &Facts) -> Option<Self> {
        words(facts).map(|words| Self::from_words(&words))
    }

    pub(super) fn from_words(words: &Words) -> Self {
        let what = words[4];
        let address = |high: u64, low: u64| {
            if what & IS_V6 == 0 {
                IpAddr::V4(Ipv4Addr::from_bits((high >> 32) as u32))
            } else {
                IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)))
            }
        };
        Self {
            source: address(words[0], words[1]),
            destination: address(words[2], words[3]),
            protocol: (what >> PROTOCOL_SHIFT) as u8,
            ports: (what & HAS_PORTS != 0).then_some(((what >> 16) as u16, what as u16)),
            vlan: (what & HAS_VLAN != 0).then_some((what >> VLAN_SHIFT) as u16 & 0xFFF),
        }
    }
}

/// A number that who does not know the seed cannot aim at: sums of 128 bit products, folded (as wyhash does it).
#[inline]
pub(super) fn hash(words: &Words, seed: &[u64; 4]) -> u64 {
    let one = fold(words[0] ^ seed[0], words[1] ^ seed[1]);
    let other = fold(words[2] ^ seed[2], words[3] ^ seed[3]);
    // Both ends of one address would cancel one another.
    fold(one ^ other.rotate_left(29) ^ words[4], seed[1] | 1)
}

#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}
