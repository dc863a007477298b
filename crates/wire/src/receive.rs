//! Judges what arrived: a probe of ours, a damaged packet, or something foreign.
//!
//! Probes without IP options are recognised and verified at fixed offsets from their ether type. Whatever is
//! not accepted so takes the slow path, which alone decides what is damaged and what is foreign.

use crate::bytes::{be16, be64, le16, le32, le64};
use crate::checksum::{self, UDP, WideSum};
use crate::headers::{TYPE_AT, behind_tags};
use crate::probe::{LOW_48, PROBE_LEN, Probe};
use crate::receive_any::{classify_any, peek_any};
use crate::{Foreign, pattern, plain};

/// How much of an arriving packet is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Headers' lengths, magic and run only.
    None,
    /// IPv4 header checksum and the whole UDP checksum as well.
    Checksum,
    /// Checksums, and the payload pattern after the probe byte by byte.
    Payload,
}

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An undamaged probe of this run.
    Probe(Probe),
    /// UDP with a wrong checksum, without one, with wrong lengths, or with a wrong pattern; or a broken IP
    /// header.
    Corrupt,
    /// Not ours.
    Foreign(Foreign),
}

/// From the ether type to the end of the probe: type 2, header, UDP 8, probe 18.
const V4_LEN: usize = 48;
const V6_LEN: usize = 68;
/// Offsets of the probe from the ether type.
const V4_PROBE: usize = V4_LEN - PROBE_LEN;
const V6_PROBE: usize = V6_LEN - PROBE_LEN;
/// The UDP pseudo header's protocol as a little-endian word.
const PSEUDO_UDP: u64 = (UDP as u64) << 8;

/// Judges one frame (without FCS, perhaps padded) for the run `run`.
///
/// Whether addresses and ports come back swapped makes no difference. Never panics, whatever the bytes.
#[inline]
pub fn classify(frame: &[u8], run: u8, verify: Verify) -> Class {
    if let Some(probe) = frame.get(TYPE_AT..).and_then(|tail| v4_probe(tail, run, verify)) {
        return Class::Probe(probe);
    }
    classify_tagged(frame, run, verify)
}

/// Reads a frame's probe through any header stack without verifying anything but that it is there.
#[inline]
pub fn peek(frame: &[u8]) -> Option<Probe> {
    match frame.get(TYPE_AT..).and_then(|tail| tail.first_chunk::<V4_LEN>()) {
        Some(head) if plain::is_v4_udp(head) => Probe::read(head.last_chunk()?),
        _ => peek_any(frame),
    }
}

/// Tries the fixed offsets behind VLAN tags, and IPv6.
#[inline(never)]
fn classify_tagged(frame: &[u8], run: u8, verify: Verify) -> Class {
    let tail = behind_tags(frame).and_then(|(at, _)| frame.get(at..));
    let probe = tail.and_then(|tail| v4_probe(tail, run, verify).or_else(|| v6_probe(tail, run, verify)));
    probe.map_or_else(|| classify_any(frame, run, verify), Class::Probe)
}

/// Magic and run, at the start of the probe.
#[inline]
fn is_marked<const N: usize>(head: &[u8; N], probe_at: usize, run: u8) -> bool {
    le32(head, probe_at) & 0x00FF_FFFF == 0x01D7 | u32::from(run) << 16
}

/// The undamaged probe of a plain IPv4 packet that begins with its ether type.
#[inline]
fn v4_probe(tail: &[u8], run: u8, verify: Verify) -> Option<Probe> {
    let head = tail.first_chunk::<V4_LEN>()?;
    if !plain::is_v4_udp(head) || !is_marked(head, V4_PROBE, run) {
        return None;
    }
    let rest = rest(tail, V4_LEN, le16(head, 4), le16(head, 26), 20)?;
    if verify != Verify::None {
        let addresses = WideSum::new(le64(head, 14));
        let ip = addresses.add(le64(head, 2)).add(u64::from(le32(head, 10)));
        let udp = addresses
            .add(le64(head, 22))
            .add(le64(head, 30))
            .add(le64(head, 38))
            .add(PSEUDO_UDP + u64::from(le16(head, 26)) + u64::from(le16(head, 46)));
        // A zero checksum means "none", which we never send.
        if !ip.is_valid() || le16(head, 28) == 0 || !is_intact(udp, rest, run, be16(head, 34), verify) {
            return None;
        }
    }
    Some(read_probe(head, V4_PROBE))
}

/// The undamaged probe of an IPv6 packet without extension headers that begins with its ether type.
#[inline]
fn v6_probe(tail: &[u8], run: u8, verify: Verify) -> Option<Probe> {
    let head = tail.first_chunk::<V6_LEN>()?;
    if !plain::is_v6_udp(head) || !is_marked(head, V6_PROBE, run) {
        return None;
    }
    let rest = rest(tail, V6_LEN, le16(head, 6), le16(head, 46), 0)?;
    if verify != Verify::None {
        let udp = WideSum::new(PSEUDO_UDP + u64::from(le16(head, 46)) + u64::from(le16(head, 66)))
            .add(le64(head, 10))
            .add(le64(head, 18))
            .add(le64(head, 26))
            .add(le64(head, 34))
            .add(le64(head, 42))
            .add(le64(head, 50))
            .add(le64(head, 58));
        if le16(head, 48) == 0 || !is_intact(udp, rest, run, be16(head, 54), verify) {
            return None;
        }
    }
    Some(read_probe(head, V6_PROBE))
}

/// The payload after the probe, if both lengths agree and the frame holds it; `header_len` is what the IP
/// length counts more than the UDP length. Both lengths come as they are on the wire.
#[inline]
fn rest(tail: &[u8], head_len: usize, ip_len: u16, udp_len: u16, header_len: u16) -> Option<&[u8]> {
    const SHORTEST: u16 = 8 + PROBE_LEN as u16;
    if (ip_len, udp_len) == ((SHORTEST + header_len).swap_bytes(), SHORTEST.swap_bytes()) {
        return Some(&[]);
    }
    let udp_len = udp_len.swap_bytes();
    if ip_len.swap_bytes().wrapping_sub(header_len) != udp_len {
        return None;
    }
    tail.get(head_len..)?
        .get(..usize::from(udp_len.checked_sub(SHORTEST)?))
}

/// Whether the UDP checksum, summed up to the end of the probe, is right with the payload after it.
#[inline]
fn is_intact(sum: WideSum, rest: &[u8], run: u8, lane: u16, verify: Verify) -> bool {
    if rest.is_empty() {
        sum.is_valid()
    } else {
        is_rest_intact(sum.narrow(), rest, run, lane, verify)
    }
}

/// Out of line, so that short packets do not pay for its registers.
#[inline(never)]
fn is_rest_intact(sum: u64, rest: &[u8], run: u8, lane: u16, verify: Verify) -> bool {
    let rest_sum = if verify == Verify::Checksum {
        checksum::sum(rest)
    } else {
        match pattern::expected_sum(run, lane, rest.len()) {
            Some(sum) if pattern::expected(run, lane, rest.len()) == Some(rest) => sum,
            _ => return false,
        }
    };
    WideSum::new(sum).add(rest_sum).is_valid()
}

#[inline]
fn read_probe<const N: usize>(head: &[u8; N], at: usize) -> Probe {
    Probe {
        run: head[at + 2],
        lag: head[at + 3],
        lane: be16(head, at + 4),
        sequence: be64(head, at + 4) & LOW_48,
        time_ns: be64(head, at + 10) & LOW_48,
    }
}
