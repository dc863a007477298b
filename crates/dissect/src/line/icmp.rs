//! ICMP (RFC 792): what is asked, and what could not be delivered.

use std::net::Ipv4Addr;

use wire::headers::parse_ip;
use wire::{Ip, Parsed};

use crate::bytes::{array, be16};
use crate::names;
use crate::text::Text;

const HEADER: usize = 8;

/// The message at `at`, of `len` bytes.
pub fn line(text: &mut Text, data: &[u8], at: usize, len: usize) {
    text.put("ICMP ");
    let Some(header) = array::<HEADER>(data, at) else {
        text.put("[|icmp]");
        return;
    };
    match (header[0], header[1]) {
        (kind @ (0 | 8), _) => {
            text.put(if kind == 8 { "echo request" } else { "echo reply" });
            text.put(", id ")
                .number(be16(header, 4))
                .put(", seq ")
                .number(be16(header, 6));
        }
        (3, code) => unreachable(text, data, at + HEADER, code, be16(header, 6)),
        (5, code) => {
            let gateway = array::<4>(header, 4).map_or(Ipv4Addr::UNSPECIFIED, |a| Ipv4Addr::from(*a));
            text.put("redirect, code ").number(code).put(", to ").v4(gateway);
        }
        (11, 0) => {
            text.put("time exceeded in-transit");
        }
        (11, _) => {
            text.put("ip reassembly time exceeded");
        }
        (kind, code) => {
            text.put(match kind {
                4 => "source quench",
                9 => "router advertisement",
                10 => "router solicitation",
                12 => "parameter problem",
                13 => "time stamp query",
                14 => "time stamp reply",
                _ => "type ",
            });
            if !matches!(kind, 4 | 9 | 10 | 12..=14) {
                text.number(kind).put(" code ").number(code);
            }
        }
    }
    text.put(", length ").number(len);
}

/// What was to be delivered stands behind the header, as far as it was sent back.
fn unreachable(text: &mut Text, data: &[u8], inner: usize, code: u8, mtu: u16) {
    let ip = match parse_ip(data, inner, false) {
        Parsed::Ip(ip) => Some(ip),
        _ => None,
    };
    let destination = ip.and_then(|ip| Some(ip.addresses(data)?.1));
    let (Some(ip), Some(destination)) = (ip, destination) else {
        text.put("unreachable, code ").number(code);
        return;
    };
    match code {
        0 | 6 | 11 => text.put("net ").address(destination).put(" unreachable"),
        2 => {
            text.address(destination).put(" protocol ").number(ip.protocol);
            text.put(" unreachable")
        }
        3 => {
            text.address(destination);
            port(text, data, &ip);
            text.put(" unreachable")
        }
        4 => {
            text.address(destination).put(" unreachable - need to frag (mtu ");
            text.number(mtu).byte(b')')
        }
        9 | 10 | 13 => {
            text.put("host ").address(destination);
            text.put(" unreachable - admin prohibited")
        }
        _ => text.put("host ").address(destination).put(" unreachable"),
    };
}

/// The port, behind its protocol.
pub fn port(text: &mut Text, data: &[u8], ip: &Ip) {
    text.byte(b' ');
    match (ip.protocol, names::protocol(ip.protocol)) {
        (6, _) => text.put("tcp"),
        (17, _) => text.put("udp"),
        (_, Some(name)) => text.put(name),
        (number, None) => text.put("protocol ").number(number),
    };
    if let Some((_, port)) = ip.ports(data) {
        text.put(" port ").number(port);
    }
}
