//! Turns a UDP frame round in place: MAC addresses, IP addresses and ports change sides.
//!
//! A swap leaves every Internet checksum as it is, because addition does not mind the order. Nothing is verified: a damaged
//! packet goes back damaged, and its sender counts it.

use crate::bytes::{be16, le32, le64, le128, put_le32, put_le64, put_le128, try_array, try_be16};
use crate::checksum::UDP;
use crate::headers::{self, Ip, Parsed};
use crate::plain;
use crate::probe::{MAGIC, PROBE_LEN};
use crate::vlan::{MAX_VLANS, TPID_CUSTOMER, TPID_SERVICE};

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

/// Where the ether type is without tags.
const TYPE_AT: usize = 12;
/// From the ether type to the magic: type 2, header, UDP 8, magic 2.
const V4_LEN: usize = 32;
const V6_LEN: usize = 52;

/// Swaps both ends of a UDP frame in place, or says why it must not go back; then it is untouched.
#[inline]
pub fn reflect(frame: &mut [u8], only_ours: bool) -> Result<(), DropReason> {
    let room = frame.len().saturating_sub(TYPE_AT);
    if let Some(head) = frame.first_chunk_mut::<{ TYPE_AT + V4_LEN }>() {
        let is_unicast = (head[0] | head[6]) & 1 == 0;
        if is_unicast
            && head
                .last_chunk_mut()
                .is_some_and(|tail| swap_v4(tail, room, only_ours))
        {
            swap_macs(head);
            return Ok(());
        }
    }
    reflect_tagged(frame, only_ours)
}

/// Tries the fixed offsets behind VLAN tags, and IPv6.
#[inline(never)]
fn reflect_tagged(frame: &mut [u8], only_ours: bool) -> Result<(), DropReason> {
    let mut at = TYPE_AT;
    for _ in 0..=MAX_VLANS {
        match try_be16(frame, at) {
            Some(TPID_CUSTOMER | TPID_SERVICE) => at += 4,
            Some(_) => break,
            None => return Err(DropReason::Truncated),
        }
    }
    let is_group = frame.iter().step_by(6).take(2).any(|first| first & 1 == 1);
    if let (false, Some(tail)) = (is_group, frame.get_mut(at..)) {
        let room = tail.len();
        let is_v4 = tail
            .first_chunk_mut()
            .is_some_and(|head| swap_v4(head, room, only_ours));
        if is_v4
            || tail
                .first_chunk_mut()
                .is_some_and(|head| swap_v6(head, room, only_ours))
        {
            if let Some(head) = frame.first_chunk_mut::<14>() {
                swap_macs(head);
                return Ok(());
            }
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
/// Swaps addresses and ports of IPv4 without options that may go back; `false` in doubt, the slow path knows better.
///
/// `head` begins with the ether type and is part of `room` bytes.
#[inline]
fn swap_v4(head: &mut [u8; V4_LEN], room: usize, only_ours: bool) -> bool {
    let (addresses, ports) = (le64(head, 14), le32(head, 22));
    let (total_len, udp_len) = (usize::from(be16(head, 4)), usize::from(be16(head, 26)));
    let swapped = addresses.rotate_left(32);
    let is_returnable = plain::is_v4_udp(head)
        && total_len + 2 <= room
        && udp_len + 20 == total_len
        && are_hosts_v4(addresses)
        && swapped != addresses
        && is_wanted(udp_len, ports, be16(head, 30), only_ours);
    if is_returnable {
        put_le64(head, 14, swapped);
        put_le32(head, 22, ports.rotate_left(16));
    }
    is_returnable
}

/// As [`swap_v4`], for IPv6 without extension headers.
#[inline]
fn swap_v6(head: &mut [u8; V6_LEN], room: usize, only_ours: bool) -> bool {
    let (source, destination) = (le128(head, 10), le128(head, 26));
    let (payload_len, udp_len) = (usize::from(be16(head, 6)), usize::from(be16(head, 46)));
    let ports = le32(head, 42);
    let is_returnable = plain::is_v6_udp(head)
        && payload_len + 42 <= room
        && udp_len == payload_len
        && source != destination
        && source != 0
        && destination != 0
        && source & 0xFF != 0xFF
        && destination & 0xFF != 0xFF
        && is_wanted(udp_len, ports, be16(head, 50), only_ours);
    if is_returnable {
        put_le128(head, 10, destination);
        put_le128(head, 26, source);
        put_le32(head, 42, ports.rotate_left(16));
    }
    is_returnable
}

/// Whether the UDP part may go back: a length that holds what must be there, a port to answer to, the magic if asked for.
#[inline]
fn is_wanted(udp_len: usize, ports: u32, magic: u16, only_ours: bool) -> bool {
    let needed = if only_ours {
        headers::UDP_LEN + PROBE_LEN
    } else {
        headers::UDP_LEN
    };
    udp_len >= needed && ports & 0xFFFF != 0 && (!only_ours || magic == MAGIC)
}

/// Whether both IPv4 addresses (little-endian, first bytes lowest) are of single hosts, as [`is_host_v4`], in one go.
#[inline]
const fn are_hosts_v4(addresses: u64) -> bool {
    let firsts = addresses & 0x0000_00FF_0000_00FF;
    // A first byte of 224 or more carries into bit 8, one of 0 borrows from it.
    let (high, zero) = (
        firsts + 0x0000_0020_0000_0020,
        firsts.wrapping_sub(0x0000_0001_0000_0001),
    );
    (high | zero) & 0x0000_0100_0000_0100 == 0
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
