//! The one parser of headers: finds the way through VLAN tags, IPv4 with options, IPv6 with extension headers, and UDP.
//!
//! Every offset handed out lies within the frame; claimed ends may lie beyond it and are to be checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bytes::{be16, try_array, try_be16};
use crate::checksum::{self, SCTP, TCP, UDP};
use crate::vlan::{MAX_VLANS, TPID_CUSTOMER, TPID_SERVICE, VlanTag};

pub(crate) const ETHERNET_LEN: usize = 14;
pub(crate) const IPV4_LEN: usize = 20;
pub(crate) const IPV6_LEN: usize = 40;
pub(crate) const UDP_LEN: usize = 8;
/// Ether type of IPv4.
pub const TYPE_IPV4: u16 = 0x0800;
/// Ether type of IPv6.
pub const TYPE_IPV6: u16 = 0x86DD;
/// Ether type of ARP.
pub const TYPE_ARP: u16 = 0x0806;

/// Where the ether type is without tags.
pub(crate) const TYPE_AT: usize = 12;

/// The IPv4 field of flags and fragment offset: more-fragments or an offset; "don't fragment" is neither.
const ANY_FRAGMENT: u16 = 0x3FFF;
const FRAGMENT_OFFSET: u16 = 0x1FFF;

/// More extension headers than anybody sends; keeps the walk bounded.
const MAX_EXTENSIONS: usize = 8;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// IPv4 or IPv6, with all its headers.
    Ip(Ip),
    /// ARP, its payload at this offset (which may be the frame's end).
    Arp(usize),
    /// Another ether type, an 802.3 length, or more than [`MAX_VLANS`] tags.
    Other,
    /// The frame ends before the headers do.
    Truncated,
    /// An IP header that contradicts itself or its ether type.
    Malformed,
}

/// An IP packet whose headers are all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// IPv6, else IPv4.
    pub v6: bool,
    /// Offset of the IP header: what comes before is Ethernet and its tags.
    pub at: usize,
    /// Offset of what follows the IP header and its extensions.
    pub transport: usize,
    /// What that is, by its IANA number; of a later fragment, what its header says that the whole packet has there.
    pub protocol: u8,
    /// Where the packet ends according to its IP header; may lie beyond the frame.
    pub end: usize,
    /// One of several fragments.
    pub fragment: bool,
    /// A fragment that is not the first: at `transport` there is no header.
    pub later_fragment: bool,
    /// Offset of the Fragment header of IPv6, of the last if there are several; 0 without.
    pub fragment_at: usize,
}

/// A UDP datagram that lies wholly within its frame and whose lengths agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Offset of the UDP header.
    pub at: usize,
    /// Where its payload ends.
    pub end: usize,
}

/// Finds the headers of `frame`. Never panics, whatever the bytes.
#[inline]
pub fn parse(frame: &[u8]) -> Parsed {
    match parse_plain(frame) {
        Some(ip) => Parsed::Ip(ip),
        None => parse_apart(frame),
    }
}

/// IPv4 without tags and options, which is most of what there is: the same, sooner. Who goes on with it in line knows where
/// everything is when it is compiled.
#[inline]
pub fn parse_plain(frame: &[u8]) -> Option<Ip> {
    let head: &[u8; ETHERNET_LEN + IPV4_LEN] = frame.first_chunk()?;
    let total_len = usize::from(be16(head, 16));
    let fragment = be16(head, 20) & ANY_FRAGMENT;
    (be16(head, 12) == TYPE_IPV4 && head[14] == 0x45 && total_len >= IPV4_LEN).then_some(Ip {
        v6: false,
        at: ETHERNET_LEN,
        transport: ETHERNET_LEN + IPV4_LEN,
        protocol: head[23],
        end: ETHERNET_LEN + total_len,
        fragment: fragment != 0,
        later_fragment: fragment & FRAGMENT_OFFSET != 0,
        fragment_at: 0,
    })
}

/// [`parse_any`] out of line, so that plain frames do not pay for it.
#[inline(never)]
fn parse_apart(frame: &[u8]) -> Parsed {
    parse_any(frame)
}

/// [`parse`] by the whole way.
#[inline]
pub(crate) fn parse_any(frame: &[u8]) -> Parsed {
    let Some((at, ether_type)) = behind_tags(frame) else {
        return Parsed::Truncated;
    };
    match ether_type {
        TYPE_IPV4 => parse_ip(frame, at + 2, false),
        TYPE_IPV6 => parse_ip(frame, at + 2, true),
        TYPE_ARP => Parsed::Arp(at + 2),
        _ => Parsed::Other,
    }
}

/// Where the ether type behind the VLAN tags is, and which: that of a tag if there are more than [`MAX_VLANS`]. `None` if
/// the frame ends before.
#[inline]
pub fn behind_tags(frame: &[u8]) -> Option<(usize, u16)> {
    let mut at = TYPE_AT;
    for _ in 0..MAX_VLANS {
        match try_be16(frame, at)? {
            TPID_CUSTOMER | TPID_SERVICE => at += 4,
            ether_type => return Some((at, ether_type)),
        }
    }
    Some((at, try_be16(frame, at)?))
}

/// Finds the headers of the IP packet that begins at `at`, behind whatever kind of link.
pub fn parse_ip(frame: &[u8], at: usize, v6: bool) -> Parsed {
    if v6 {
        parse_v6(frame, at)
    } else {
        parse_v4(frame, at)
    }
}

/// Finds the headers of an IPv4 packet at `at` that says that it is 0 bytes long: of `len` bytes, then. So are packets that
/// a kernel hands to its card in one to be cut (TSO), or has joined (GRO), where they were captured.
pub fn parse_without_length(frame: &[u8], at: usize, len: usize) -> Parsed {
    match try_be16(frame, at + 2) {
        Some(0) => parse_v4_of(frame, at, |_| len),
        _ => Parsed::Malformed,
    }
}

fn parse_v4(frame: &[u8], at: usize) -> Parsed {
    parse_v4_of(frame, at, |header| usize::from(be16(header, 2)))
}

#[inline]
fn parse_v4_of(frame: &[u8], at: usize, total_len: impl FnOnce(&[u8; IPV4_LEN]) -> usize) -> Parsed {
    let Some(header) = try_array::<IPV4_LEN>(frame, at) else {
        return Parsed::Truncated;
    };
    let header_len = usize::from(header[0] & 0x0F) * 4;
    let total_len = total_len(header);
    if header[0] >> 4 != 4 || header_len < IPV4_LEN || total_len < header_len {
        return Parsed::Malformed;
    }
    if frame.len() < at + header_len {
        return Parsed::Truncated;
    }
    let fragment = be16(header, 6) & ANY_FRAGMENT;
    Parsed::Ip(Ip {
        v6: false,
        at,
        transport: at + header_len,
        protocol: header[9],
        end: at + total_len,
        fragment: fragment != 0,
        later_fragment: fragment & FRAGMENT_OFFSET != 0,
        fragment_at: 0,
    })
}

fn parse_v6(frame: &[u8], at: usize) -> Parsed {
    let Some(header) = try_array::<IPV6_LEN>(frame, at) else {
        return Parsed::Truncated;
    };
    if header[0] >> 4 != 6 {
        return Parsed::Malformed;
    }
    let end = at + IPV6_LEN + usize::from(be16(header, 4));
    let mut ip = Ip {
        v6: true,
        at,
        transport: at + IPV6_LEN,
        protocol: header[6],
        end,
        fragment: false,
        later_fragment: false,
        fragment_at: 0,
    };
    for _ in 0..MAX_EXTENSIONS {
        // RFC 8200 section 4 and RFC 4302: hop-by-hop, routing, destination options; fragment;
        // authentication.
        let (unit, first) = match ip.protocol {
            0 | 43 | 60 => (8, 8),
            44 => (0, 8),
            51 => (4, 8),
            _ => return Parsed::Ip(ip),
        };
        let Some(&[next, len]) = try_array::<2>(frame, ip.transport) else {
            return Parsed::Truncated;
        };
        if ip.protocol == 44 {
            ip.fragment = true;
            ip.fragment_at = ip.transport;
            // The upper 13 bits.
            ip.later_fragment = try_be16(frame, ip.transport + 2).is_none_or(|field| field >> 3 != 0);
        }
        ip.protocol = next;
        ip.transport += first + unit * usize::from(len);
        if ip.transport > frame.len() {
            return Parsed::Truncated;
        }
        // Headers go on in the first part, and hosts look for the transport behind them (RFC 7112).
        if ip.later_fragment {
            return Parsed::Ip(ip);
        }
    }
    Parsed::Malformed
}

impl Ip {
    /// The VLAN tags, outermost first. Only of a packet behind Ethernet.
    pub fn vlans<'f>(&self, frame: &'f [u8]) -> impl Iterator<Item = VlanTag> + use<'f> {
        let tags = frame.get(TYPE_AT..self.at.saturating_sub(2)).unwrap_or_default();
        tags.chunks_exact(4)
            .filter_map(|bytes| bytes.first_chunk().map(VlanTag::from_bytes))
    }

    /// Source and destination.
    pub fn addresses(&self, frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
        Some(if self.v6 {
            let both = try_array::<32>(frame, self.at + 8)?;
            let (source, destination) = both.split_at(16);
            (
                Ipv6Addr::from(*source.first_chunk::<16>()?).into(),
                Ipv6Addr::from(*destination.first_chunk::<16>()?).into(),
            )
        } else {
            let both = try_array::<8>(frame, self.at + 12)?;
            let (source, destination) = both.split_at(4);
            (
                Ipv4Addr::from(*source.first_chunk::<4>()?).into(),
                Ipv4Addr::from(*destination.first_chunk::<4>()?).into(),
            )
        })
    }

    /// Source and destination port of UDP, TCP or SCTP, which have them at one place; `None` where there are none, or not
    /// here.
    #[inline]
    pub fn ports(&self, frame: &[u8]) -> Option<(u16, u16)> {
        if self.later_fragment || !matches!(self.protocol, TCP | UDP | SCTP) {
            return None;
        }
        let both = try_array::<4>(frame, self.transport)?;
        Some((be16(both, 0), be16(both, 2)))
    }

    /// Whether the IPv4 header checksum is right; IPv6 has none and always passes.
    pub fn header_is_valid(&self, frame: &[u8]) -> bool {
        self.v6
            || frame
                .get(self.at..self.transport)
                .is_some_and(|header| checksum::is_valid(checksum::sum(header)))
    }

    /// The UDP datagram within, if it is no fragment, its length fills the IP packet exactly and the frame holds all of it.
    pub fn udp(&self, frame: &[u8]) -> Option<Udp> {
        let header = try_array::<UDP_LEN>(frame, self.transport)?;
        let len = usize::from(be16(header, 4));
        let fits = len >= UDP_LEN && self.transport + len == self.end && self.end <= frame.len();
        (self.protocol == UDP && !self.fragment && fits).then_some(Udp {
            at: self.transport,
            end: self.end,
        })
    }

    /// Unfolded sum of the pseudo header for `protocol` and the bytes from the transport header to `end`.
    pub(crate) fn transport_sum(&self, frame: &[u8], protocol: u8) -> Option<u64> {
        let bytes = frame.get(self.transport..self.end)?;
        let len = u16::try_from(bytes.len()).ok()?;
        let pseudo = if self.v6 {
            checksum::pseudo_v6(try_array(frame, self.at + 8)?, protocol, len)
        } else {
            checksum::pseudo_v4(try_array(frame, self.at + 12)?, protocol, len)
        };
        Some(pseudo + checksum::sum(bytes))
    }
}
