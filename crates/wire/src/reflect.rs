//! Turns a UDP frame round in place: MAC addresses, IP addresses and ports change sides.
//!
//! A swap leaves every Internet checksum as it is, because addition does not mind the order. Nothing is
//! verified: a damaged packet goes back damaged, and its sender counts it.

use crate::DropReason;
use crate::bytes::{be16, le16, le32, le64, le128, put_le16, put_le32, put_le64, put_le128, try_array};
use crate::checksum::UDP;
use crate::headers::{self, Ip, Parsed, TYPE_AT};
use crate::plain;
use crate::probe::{MAGIC, PROBE_LEN};

/// From the ether type to the end of a probe: type 2, header, UDP 8, probe 18. No Ethernet frame is shorter.
const V4_LEN: usize = 48;
const V6_LEN: usize = 68;
/// Where UDP begins, from the ether type.
const V4_UDP: usize = 22;
const V6_UDP: usize = 42;

/// Swaps both ends of a UDP frame in place, or says why it must not go back; then it is untouched.
#[inline]
pub fn reflect(frame: &mut [u8], only_ours: bool) -> Result<(), DropReason> {
    let len = frame.len();
    if let Some(head) = frame.first_chunk_mut::<{ TYPE_AT + V4_LEN }>() {
        let is_unicast = (head[0] | head[6]) & 1 == 0;
        if is_unicast
            && head
                .last_chunk_mut()
                .is_some_and(|tail| swap_v4(tail, len - TYPE_AT, only_ours))
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
    let Some((at, _)) = headers::behind_tags(frame) else {
        return Err(DropReason::Truncated);
    };
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
    // Each store takes two bytes too many, which the next one puts right: fewer instructions than masking.
    let (destination, source, ether_type) = (le64(head, 0), le64(head, 6), le16(head, 12));
    put_le64(head, 0, source);
    put_le64(head, 6, destination);
    put_le16(head, 12, ether_type);
}

/// Swaps addresses and ports of IPv4 without options that may go back; `false` in doubt, the slow path knows
/// better.
///
/// `head` begins with the ether type and is part of `room` bytes.
#[inline]
fn swap_v4(head: &mut [u8; V4_LEN], room: usize, only_ours: bool) -> bool {
    let (addresses, ports) = (le64(head, 14), le32(head, V4_UDP));
    let udp_len = be16(head, 26);
    let swapped = addresses.rotate_left(32);
    let is_returnable = plain::is_v4_udp(head)
        && be16(head, 4).wrapping_sub(20) == udp_len
        && fits(udp_len, room - V4_UDP, only_ours)
        && NO_HOST[usize::from(head[14])] | NO_HOST[usize::from(head[18])] == 0
        && ports & 0xFFFF != 0
        && swapped != addresses
        && (!only_ours || be16(head, 30) == MAGIC);
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
    let (udp_len, ports) = (be16(head, 46), le32(head, V6_UDP));
    let is_returnable = plain::is_v6_udp(head)
        && be16(head, 6) == udp_len
        && fits(udp_len, room - V6_UDP, only_ours)
        && ports & 0xFFFF != 0
        && (!only_ours || be16(head, 50) == MAGIC)
        && source != destination
        && source != 0
        && destination != 0
        && source & 0xFF != 0xFF
        && destination & 0xFF != 0xFF;
    if is_returnable {
        put_le128(head, 10, destination);
        put_le128(head, 26, source);
        put_le32(head, 42, ports.rotate_left(16));
    }
    is_returnable
}

/// Whether a UDP length holds what must be there, and the frame's `room`, enough for a probe, holds that
/// length.
#[inline]
fn fits(udp_len: u16, room: usize, only_ours: bool) -> bool {
    // One comparison for both ends: a length below what is needed wraps to one far beyond the room.
    let needed = if only_ours {
        headers::UDP_LEN + PROBE_LEN
    } else {
        headers::UDP_LEN
    };
    usize::from(udp_len).wrapping_sub(needed) <= room - needed
}

/// First byte of an IPv4 address that one host may have: not "this network", not multicast, reserved or
/// broadcast.
#[inline]
const fn is_host_v4(first: u8) -> bool {
    first.wrapping_sub(1) < 223
}

/// [`is_host_v4`] the other way round as a table: two of its answers are put together with one instruction.
static NO_HOST: [u8; 256] = {
    let mut table = [0; 256];
    let mut first = 0;
    while first < 256 {
        table[first] = !is_host_v4(first as u8) as u8;
        first += 1;
    }
    table
};

#[cold]
#[inline(never)]
pub(crate) fn reflect_any(frame: &mut [u8], only_ours: bool) -> Result<(), DropReason> {
    let ip = match headers::parse_any(frame) {
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
