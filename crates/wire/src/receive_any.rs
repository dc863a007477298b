//! Judges any frame through any header stack: the path that alone decides what is damaged and what is
//! foreign.

use crate::bytes::try_array;
use crate::checksum::{self, ICMPV6, UDP};
use crate::headers::{self, Ip, Parsed, Udp};
use crate::probe::{PROBE_LEN, Probe};
use crate::receive::{Class, Verify};
use crate::{Foreign, pattern, reflector_counters};

#[cold]
#[inline(never)]
pub(crate) fn classify_any(frame: &[u8], run: u8, verify: Verify) -> Class {
    match headers::parse_any(frame) {
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
        let payload = frame.get(udp.at + headers::UDP_LEN..udp.end);
        return Class::Foreign(if payload.is_some_and(reflector_counters::is_answer) {
            Foreign::ReflectorCounters
        } else {
            Foreign::OtherUdp
        });
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
        // Unreachable, source quench, redirect, time exceeded, parameter problem; ICMPv6: all errors are
        // below 128.
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
        let quoted = headers::parse_ip(frame.get(..ip.end)?, ip.transport + 8, ip.v6);
        peek_ip(frame.get(..ip.end)?, quoted)
    };
    probe().is_some_and(|probe| probe.run == run)
}

#[cold]
#[inline(never)]
pub(crate) fn peek_any(frame: &[u8]) -> Option<Probe> {
    peek_ip(frame, headers::parse_any(frame))
}

fn peek_ip(frame: &[u8], parsed: Parsed) -> Option<Probe> {
    let Parsed::Ip(ip) = parsed else { return None };
    if ip.fragment || ip.protocol != UDP {
        return None;
    }
    Probe::read(try_array(frame, ip.transport + headers::UDP_LEN)?)
}
