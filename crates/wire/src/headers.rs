//! Finds the way through any header stack: VLAN tags, IPv4 with options, IPv6 with extension headers, UDP.
//!
//! Every offset handed out lies within the frame; claimed ends may lie beyond it and are to be checked.

use crate::bytes::{try_array, try_be16};
use crate::checksum::{self, UDP};
use crate::vlan::{MAX_VLANS, TPID_CUSTOMER, TPID_SERVICE};

pub(crate) const ETHERNET_LEN: usize = 14;
pub(crate) const IPV4_LEN: usize = 20;
pub(crate) const IPV6_LEN: usize = 40;
pub(crate) const UDP_LEN: usize = 8;
pub(crate) const TYPE_IPV4: u16 = 0x0800;
pub(crate) const TYPE_IPV6: u16 = 0x86DD;
pub(crate) const TYPE_ARP: u16 = 0x0806;

/// More extension headers than anybody sends; keeps the walk bounded.
const MAX_EXTENSIONS: usize = 8;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Ip(Ip),
    /// ARP, its payload at this offset (which may be the frame's end).
    Arp(usize),
    /// Another ether type, or an 802.3 length.
    Other,
    /// The frame ends before the headers do.
    Truncated,
    /// An IP header that contradicts itself or its ether type.
    Malformed,
}

/// An IP packet whose headers are all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ip {
    pub v6: bool,
    /// Offset of the IP header.
    pub at: usize,
    /// Offset of what follows the IP header and its extensions.
    pub transport: usize,
    pub protocol: u8,
    /// Where the packet ends according to its IP header; may lie beyond the frame.
    pub end: usize,
    pub fragment: bool,
}

/// A UDP datagram that lies wholly within its frame and whose lengths agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Udp {
    /// Offset of the UDP header.
    pub at: usize,
    pub end: usize,
}

pub(crate) fn parse(frame: &[u8]) -> Parsed {
    let mut at = 12;
    for _ in 0..=MAX_VLANS {
        let Some(ether_type) = try_be16(frame, at) else {
            return Parsed::Truncated;
        };
        match ether_type {
            TPID_CUSTOMER | TPID_SERVICE => at += 4,
            TYPE_IPV4 => return parse_v4(frame, at + 2),
            TYPE_IPV6 => return parse_v6(frame, at + 2),
            TYPE_ARP => return Parsed::Arp(at + 2),
            _ => return Parsed::Other,
        }
    }
    Parsed::Other
}

fn parse_v4(frame: &[u8], at: usize) -> Parsed {
    let Some(header) = try_array::<IPV4_LEN>(frame, at) else {
        return Parsed::Truncated;
    };
    let header_len = usize::from(header[0] & 0x0F) * 4;
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[0] >> 4 != 4 || header_len < IPV4_LEN || total_len < header_len {
        return Parsed::Malformed;
    }
    if frame.len() < at + header_len {
        return Parsed::Truncated;
    }
    Parsed::Ip(Ip {
        v6: false,
        at,
        transport: at + header_len,
        protocol: header[9],
        end: at + total_len,
        // More-fragments flag or an offset; "don't fragment" is neither.
        fragment: u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0,
    })
}

fn parse_v6(frame: &[u8], at: usize) -> Parsed {
    let Some(header) = try_array::<IPV6_LEN>(frame, at) else {
        return Parsed::Truncated;
    };
    if header[0] >> 4 != 6 {
        return Parsed::Malformed;
    }
    let end = at + IPV6_LEN + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let mut ip = Ip {
        v6: true,
        at,
        transport: at + IPV6_LEN,
        protocol: header[6],
        end,
        fragment: false,
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
        ip.fragment |= ip.protocol == 44;
        ip.protocol = next;
        ip.transport += first + unit * usize::from(len);
        if ip.transport > frame.len() {
            return Parsed::Truncated;
        }
        if ip.fragment {
            return Parsed::Ip(ip);
        }
    }
    Parsed::Malformed
}

impl Ip {
    /// Whether the IPv4 header checksum is right; IPv6 has none and always passes.
    pub(crate) fn header_is_valid(&self, frame: &[u8]) -> bool {
        self.v6
            || frame
                .get(self.at..self.transport)
                .is_some_and(|header| checksum::is_valid(checksum::sum(header)))
    }

    /// The UDP datagram within, if its length fills the IP packet exactly and the frame holds all of it.
    pub(crate) fn udp(&self, frame: &[u8]) -> Option<Udp> {
        let header = try_array::<UDP_LEN>(frame, self.transport)?;
        let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let fits = len >= UDP_LEN && self.transport + len == self.end && self.end <= frame.len();
        (self.protocol == UDP && fits).then_some(Udp {
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
