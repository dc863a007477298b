//! `ICMPv6` (RFC 4443) with neighbour discovery (RFC 4861) and multicast listeners (RFC 3810).

use std::net::Ipv6Addr;

use wire::Parsed;
use wire::headers::parse_ip;

use super::icmp;
use crate::bytes::{array, be16, be32};
use crate::text::Text;

const HEADER: usize = 8;

/// The message at `at`, of `len` bytes.
pub fn line(text: &mut Text, data: &[u8], at: usize, len: usize) {
    text.put("ICMP6, ");
    let Some(header) = array::<HEADER>(data, at) else {
        text.put("[|icmp6]");
        return;
    };
    let (kind, code) = (header[0], header[1]);
    let name = match (kind, code) {
        (1, 0) => "destination unreachable, unreachable route ",
        (1, 1) => "destination unreachable, unreachable prohibited ",
        (1, 3) => "destination unreachable, unreachable address ",
        (1, 4) => "destination unreachable, unreachable port, ",
        (1, _) => "destination unreachable, code ",
        (2, _) => "packet too big, mtu ",
        (3, 0) => "time exceeded in-transit",
        (3, _) => "reassembly time exceeded",
        (4, _) => "parameter problem",
        (128, _) => "echo request, id ",
        (129, _) => "echo reply, id ",
        (130, _) => "multicast listener query",
        (131, _) => "multicast listener report",
        (132, _) => "multicast listener done",
        (133, _) => "router solicitation",
        (134, _) => "router advertisement",
        (135, _) => "neighbor solicitation, who has ",
        (136, _) => "neighbor advertisement, tgt is ",
        (137, _) => "redirect",
        (143, _) => "multicast listener report v2",
        _ => "type ",
    };
    text.put(name);
    match kind {
        1 => unreachable(text, data, at + HEADER, code),
        2 => {
            text.number(be32(header, 4));
        }
        128 | 129 => {
            text.number(be16(header, 4)).put(", seq ").number(be16(header, 6));
        }
        135 | 136 => match array::<16>(data, at + HEADER) {
            Some(target) => {
                text.v6(Ipv6Addr::from(*target));
            }
            None => {
                text.put("[|icmp6]");
            }
        },
        3 | 4 | 130..=134 | 137 | 143 => {}
        other => {
            text.number(other).put(" code ").number(code);
        }
    }
    text.put(", length ").number(len);
}

/// What was to be delivered stands behind the header, as far as it was sent back.
fn unreachable(text: &mut Text, data: &[u8], inner: usize, code: u8) {
    if !matches!(code, 0 | 1 | 3 | 4) {
        text.number(code);
        return;
    }
    let Parsed::Ip(ip) = parse_ip(data, inner, true) else {
        text.put("[|icmp6]");
        return;
    };
    if let Some((_, destination)) = ip.addresses(data) {
        text.address(destination);
    }
    if code == 4 {
        icmp::port(text, data, &ip);
    }
}
