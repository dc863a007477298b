//! Turns a UDP frame round in place: MAC addresses, IP addresses and ports change sides.
//!
//! A swap leaves every Internet checksum as it is, because addition does not mind the order. Nothing is verified: a damaged
//! packet goes back damaged, and its sender counts it.

use crate::bytes::{be16, le16, le32, le64, put_le32, put_le64, try_array};
use crate::checksum::UDP;
use crate::headers::{self, Ip, Parsed};
use crate::probe::{MAGIC, PROBE_LEN};

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

/// Ethernet 14, IPv4 20, UDP 8 and the magic's 2.
const PLAIN_LEN: usize = 44;

/// Swaps both ends of a UDP frame in place, or says why it must not go back; then it is untouched.
#[inline]
pub fn reflect(frame: &mut [u8], only_ours: bool) -> Result<(), DropReason> {
    let frame_len = frame.len();
    if let Some(head) = frame.first_chunk_mut::<PLAIN_LEN>() {
        if is_plain(head, frame_len, only_ours) {
            swap_macs(head);
            let addresses = le64(head, 26);
            let ports = le32(head, 34);
            put_le64(head, 26, addresses.rotate_left(32));
            put_le32(head, 34, ports.rotate_left(16));
            return Ok(());
        }
    }
    reflect_any(frame, only_ours)
}

/// Destination 0..6 and source 6..12 change places.
#[inline]
fn swap_macs<const N: usize>(head: &mut [u8; N]) {
    let destination = le64(head, 0);
    let source = le64(head, 6);
    put_le64(head, 0, (source & 0xFFFF_FFFF_FFFF) | destination << 48);
    put_le32(head, 8, (destination >> 16) as u32);
}

/// Whether this is returnable IPv4 without tags and options; says no in doubt, the slow path knows better.
#[inline]
fn is_plain(head: &[u8; PLAIN_LEN], frame_len: usize, only_ours: bool) -> bool {
    let total_len = usize::from(be16(head, 16));
    let shape = (le32(head, 12) & 0x00FF_FFFF) ^ 0x0045_0008;
    let fragment = u32::from(le16(head, 20) & 0xFF3F);
    let protocol = u32::from(head[23] ^ UDP);
    let group = u32::from((head[0] | head[6]) & 1);
    let magic = if only_ours {
        u32::from(be16(head, 42) ^ MAGIC)
    } else {
        0
    };
    let udp_len = usize::from(be16(head, 38));
    let needed = if only_ours {
        headers::UDP_LEN + PROBE_LEN
    } else {
        headers::UDP_LEN
    };
    (shape | fragment | protocol | group | magic) == 0
        && total_len + 14 <= frame_len
        && udp_len + 20 <= total_len
        && udp_len >= needed
        && is_host_v4(head[26])
        && is_host_v4(head[30])
        && le32(head, 26) != le32(head, 30)
        && le16(head, 34) != 0
}

/// First byte of an IPv4 address that one host may have: not "this network", not multicast, reserved or broadcast.
#[inline]
const fn is_host_v4(first: u8) -> bool {
    first.wrapping_sub(1) < 223
}

#[cold]
#[inline(never)]
fn reflect_any(frame: &mut [u8], only_ours: bool) -> Result<(), DropReason> {
    let ip = match headers::parse(frame) {
        Parsed::Ip(ip) => ip,
        Parsed::Truncated => return Err(DropReason::Truncated),
        Parsed::Malformed => return Err(DropReason::BadLength),
        Parsed::Arp(_) | Parsed::Other => return Err(DropReason::NotIp),
    };
    if ip.fragment {
        return Err(DropReason::Fragment);
    }
    if ip.protocol != UDP {
        return Err(DropReason::NotUdp);
    }
    check_lengths(frame, &ip)?;
    check_addresses(frame, &ip)?;
    if only_ours {
        check_ours(frame, &ip)?;
    }
    swap_any(frame, &ip).ok_or(DropReason::Truncated)
}

fn check_lengths(frame: &[u8], ip: &Ip) -> Result<(), DropReason> {
    if ip.end > frame.len() {
        return Err(DropReason::BadLength);
    }
    let header = try_array::<{ headers::UDP_LEN }>(frame, ip.transport).ok_or(DropReason::Truncated)?;
    let len = usize::from(be16(header, 4));
    if len < headers::UDP_LEN || ip.transport + len > ip.end {
        return Err(DropReason::BadLength);
    }
    if be16(header, 0) == 0 {
        return Err(DropReason::NoReplyPort);
    }
    Ok(())
}

fn check_addresses(frame: &[u8], ip: &Ip) -> Result<(), DropReason> {
    let (source, destination): (&[u8], &[u8]) = if ip.v6 {
        let both = try_array::<32>(frame, ip.at + 8).ok_or(DropReason::Truncated)?;
        both.split_at(16)
    } else {
        let both = try_array::<8>(frame, ip.at + 12).ok_or(DropReason::Truncated)?;
        both.split_at(4)
    };
    let is_group = |mac_at: usize| frame.get(mac_at).is_none_or(|first| first & 1 == 1);
    let is_host = |address: &[u8]| match address.first() {
        Some(&first) if ip.v6 => first != 0xFF && address.iter().any(|&byte| byte != 0),
        Some(&first) => is_host_v4(first),
        None => false,
    };
    if is_group(0) || !is_host(destination) {
        return Err(DropReason::Multicast);
    }
    if is_group(6) || !is_host(source) {
        return Err(DropReason::BadSource);
    }
    if source == destination {
        return Err(DropReason::SameAddress);
    }
    Ok(())
}

fn check_ours(frame: &[u8], ip: &Ip) -> Result<(), DropReason> {
    let header = try_array::<{ headers::UDP_LEN + 2 }>(frame, ip.transport).ok_or(DropReason::NotOurs)?;
    if be16(header, 8) != MAGIC || usize::from(be16(header, 4)) < headers::UDP_LEN + PROBE_LEN {
        return Err(DropReason::NotOurs);
    }
    Ok(())
}

fn swap_any(frame: &mut [u8], ip: &Ip) -> Option<()> {
    swap_macs(frame.first_chunk_mut::<14>()?);
    let (at, len) = if ip.v6 { (ip.at + 8, 16) } else { (ip.at + 12, 4) };
    let (source, destination) = frame.get_mut(at..at + 2 * len)?.split_at_mut(len);
    source.swap_with_slice(destination);
    frame.get_mut(ip.transport..ip.transport + 4)?.rotate_left(2);
    Some(())
}
