//! Judges what arrived: a probe of ours, a damaged packet, or something foreign.
//!
//! A plain IPv4 probe is recognised and verified at fixed offsets; everything else takes the slow path, which alone decides
//! what is damaged and what is foreign.

use crate::bytes::{be16, le16, le32, le64, try_array};
use crate::checksum::{self, ICMPV6, UDP, halves};
use crate::headers::{self, Ip, Parsed, Udp};
use crate::probe::{MAGIC, PROBE_LEN, Probe};
use crate::{Foreign, pattern};

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
    /// UDP with a wrong checksum, without one, with wrong lengths, or with a wrong pattern; or a broken IP header.
    Corrupt,
    /// Not ours.
    Foreign(Foreign),
}

/// Headers and probe of a plain frame: Ethernet 14, IPv4 20, UDP 8, probe 18.
const PLAIN_LEN: usize = 60;
const PLAIN_PROBE: usize = 42;

/// Judges one frame (without FCS, perhaps padded) for the run `run`.
///
/// Whether addresses and ports come back swapped makes no difference. Never panics, whatever the bytes.
#[inline]
pub fn classify(frame: &[u8], run: u8, verify: Verify) -> Class {
    if let Some(head) = frame.first_chunk::<PLAIN_LEN>() {
        if is_plain_probe(head, frame.len()) && head[44] == run && plain_is_intact(frame, head, verify) {
            return Class::Probe(plain_probe(head));
        }
    }
    classify_any(frame, run, verify)
}

/// Reads a frame's probe through any header stack without verifying anything but that it is there.
#[inline]
pub fn peek(frame: &[u8]) -> Option<Probe> {
    if let Some(head) = frame.first_chunk::<PLAIN_LEN>() {
        if is_plain_probe(head, frame.len()) {
            return Some(plain_probe(head));
        }
    }
    peek_any(frame)
}

/// IPv4 without options, not a fragment, UDP, lengths that agree with each other and the frame, our magic.
#[inline]
fn is_plain_probe(head: &[u8; PLAIN_LEN], frame_len: usize) -> bool {
    let total_len = usize::from(be16(head, 16));
    // Little-endian views: ether type 08 00 and 45; flags and offset without "don't fragment".
    let shape = (le32(head, 12) & 0x00FF_FFFF) ^ 0x0045_0008;
    let fragment = u32::from(le16(head, 20) & 0xFF3F);
    let protocol = u32::from(head[23] ^ UDP);
    let magic = u32::from(be16(head, PLAIN_PROBE) ^ MAGIC);
    (shape | fragment | protocol | magic) == 0
        && usize::from(be16(head, 38)) + 20 == total_len
        && total_len + 14 <= frame_len
        && total_len + 14 >= PLAIN_LEN
}

#[inline]
fn plain_probe(head: &[u8; PLAIN_LEN]) -> Probe {
    Probe {
        run: head[44],
        lag: head[45],
        lane: be16(head, 46),
        sequence: crate::bytes::be64(head, 46) & 0xFFFF_FFFF_FFFF,
        time_ns: crate::bytes::be64(head, 52) & 0xFFFF_FFFF_FFFF,
    }
}

#[inline]
fn plain_is_intact(frame: &[u8], head: &[u8; PLAIN_LEN], verify: Verify) -> bool {
    if verify == Verify::None {
        return true;
    }
    let addresses = halves(le64(head, 26));
    let ip = addresses + halves(le64(head, 14)) + u64::from(le32(head, 22));
    // The length counts twice: in the pseudo header and in the UDP header.
    let udp = addresses
        + (u64::from(UDP) << 8)
        + u64::from(le16(head, 38))
        + halves(le64(head, 34))
        + halves(le64(head, 42))
        + halves(le64(head, 50))
        + u64::from(le16(head, 58));
    let end = usize::from(be16(head, 16)) + 14;
    let rest = if end == PLAIN_LEN {
        Some(0)
    } else {
        rest_sum(frame, head, end, verify)
    };
    let Some(rest) = rest else { return false };
    checksum::is_valid(ip) && checksum::is_valid(udp + rest) && le16(head, 40) != 0
}

/// Sum of the payload after the probe; `None` if its pattern is wrong.
#[inline]
fn rest_sum(frame: &[u8], head: &[u8; PLAIN_LEN], end: usize, verify: Verify) -> Option<u64> {
    let rest = frame.get(PLAIN_LEN..end)?;
    if verify == Verify::Checksum {
        return Some(checksum::sum(rest));
    }
    let (run, lane) = (head[44], be16(head, 46));
    if pattern::expected(run, lane, rest.len())? != rest {
        return None;
    }
    pattern::expected_sum(run, lane, rest.len())
}

#[cold]
#[inline(never)]
fn classify_any(frame: &[u8], run: u8, verify: Verify) -> Class {
    match headers::parse(frame) {
        Parsed::Ip(ip) => classify_ip(frame, &ip, run, verify),
        Parsed::Malformed => Class::Corrupt,
        Parsed::Arp(_) => Class::Foreign(Foreign::Arp),
        Parsed::Other => Class::Foreign(Foreign::NotIp),
        Parsed::Truncated => Class::Foreign(Foreign::Truncated),
    }
}

fn classify_ip(frame: &[u8], ip: &Ip, run: u8, verify: Verify) -> Class {
    if verify != Verify::None && !ip.header_is_valid(frame) {
        return Class::Corrupt;
    }
    if ip.fragment {
        return Class::Foreign(Foreign::Fragment);
    }
    if ip.protocol == UDP {
        return match ip.udp(frame) {
            Some(udp) => classify_udp(frame, ip, udp, run, verify),
            None => Class::Corrupt,
        };
    }
    Class::Foreign(if ip.end > frame.len() {
        Foreign::Truncated
    } else {
        other_protocol(frame, ip, run)
    })
}

fn classify_udp(frame: &[u8], ip: &Ip, udp: Udp, run: u8, verify: Verify) -> Class {
    if verify != Verify::None && !udp_is_intact(frame, ip, udp) {
        return Class::Corrupt;
    }
    let Some((probe, rest)) = probe_and_rest(frame, udp) else {
        return Class::Foreign(Foreign::OtherUdp);
    };
    if probe.run != run {
        return Class::Foreign(Foreign::OtherRun);
    }
    if verify == Verify::Payload && pattern::expected(run, probe.lane, rest.len()) != Some(rest) {
        return Class::Corrupt;
    }
    Class::Probe(probe)
}

fn udp_is_intact(frame: &[u8], ip: &Ip, udp: Udp) -> bool {
    // A zero checksum means "none", which we never send.
    let has_checksum = try_array::<2>(frame, udp.at + 6).is_some_and(|field| *field != [0, 0]);
    has_checksum && ip.transport_sum(frame, UDP).is_some_and(checksum::is_valid)
}

fn probe_and_rest(frame: &[u8], udp: Udp) -> Option<(Probe, &[u8])> {
    let payload = frame.get(udp.at + headers::UDP_LEN..udp.end)?;
    let (probe, rest) = payload.split_first_chunk::<PROBE_LEN>()?;
    Some((Probe::read(probe)?, rest))
}

fn other_protocol(frame: &[u8], ip: &Ip, run: u8) -> Foreign {
    let Some(&kind) = frame.get(ip.transport) else {
        return Foreign::OtherIp;
    };
    match (ip.v6, ip.protocol, kind) {
        (false, 1, 0 | 8) | (true, ICMPV6, 128 | 129) => Foreign::IcmpEcho,
        // Unreachable, source quench, redirect, time exceeded, parameter problem; ICMPv6: all errors are below 128.
        (false, 1, 3 | 4 | 5 | 11 | 12) | (true, ICMPV6, 0..=127) if quotes_probe(frame, ip, run) => {
            Foreign::IcmpErrorOurs
        }
        (false, 1, 3 | 4 | 5 | 11 | 12) | (true, ICMPV6, 0..=127) => Foreign::IcmpError,
        (true, ICMPV6, 133..=137) => Foreign::Ndp,
        (false, 1, _) | (true, ICMPV6, _) => Foreign::IcmpOther,
        _ => Foreign::OtherIp,
    }
}

/// Whether the packet quoted in an ICMP error, from its ninth byte on, is a probe of this run.
fn quotes_probe(frame: &[u8], ip: &Ip, run: u8) -> bool {
    let probe = || {
        let quoted = frame.get(ip.transport + 8..ip.end)?;
        let header_len = if ip.v6 {
            headers::IPV6_LEN
        } else {
            usize::from(quoted.first()? & 0x0F) * 4
        };
        let protocol = *quoted.get(if ip.v6 { 6 } else { 9 })?;
        let bytes = try_array(quoted, header_len + headers::UDP_LEN)?;
        if protocol == UDP { Probe::read(bytes) } else { None }
    };
    probe().is_some_and(|probe| probe.run == run)
}

#[cold]
#[inline(never)]
fn peek_any(frame: &[u8]) -> Option<Probe> {
    let Parsed::Ip(ip) = headers::parse(frame) else {
        return None;
    };
    if ip.fragment || ip.protocol != UDP {
        return None;
    }
    Probe::read(try_array(frame, ip.transport + headers::UDP_LEN)?)
}
