//! IP: addresses, ports, fragments, and what it carries.

use wire::Ip;
use wire::checksum::{ICMP, ICMPV6, TCP, UDP};

use super::{icmp, icmp6, tcp};
use crate::bytes::{array, be16, be32};
use crate::names;
use crate::text::Text;

#[inline]
pub fn line(text: &mut Text, data: &[u8], ip: &Ip) {
    text.put(if ip.v6 { "IP6 " } else { "IP " });
    let Some((source, destination)) = ip.addresses(data) else {
        text.put("[|ip]");
        return;
    };
    if let Some((from, to)) = ip.ports(data) {
        text.address(source).byte(b'.').number(from).put(" > ");
        text.address(destination).byte(b'.').number(to).put(": ");
    } else {
        text.address(source).put(" > ").address(destination).put(": ");
    }
    let len = ip.end.saturating_sub(ip.transport);
    match ip.protocol {
        _ if ip.later_fragment => other(text, ip.protocol, len),
        TCP => tcp::line(text, data, ip.transport, len),
        UDP => udp(text, data, ip.transport),
        ICMP if !ip.v6 => icmp::line(text, data, ip.transport, len),
        ICMPV6 if ip.v6 => icmp6::line(text, data, ip.transport, len),
        protocol => other(text, protocol, len),
    }
    if ip.fragment {
        fragment(text, data, ip);
    }
}

#[inline]
fn udp(text: &mut Text, data: &[u8], at: usize) {
    match array::<8>(data, at) {
        Some(header) => {
            let len = be16(header, 4);
            text.put("UDP, length ").number(len.saturating_sub(8))
        }
        None => text.put("[|udp]"),
    };
}

#[cold]
fn other(text: &mut Text, protocol: u8, len: usize) {
    match names::protocol(protocol) {
        Some(name) => text.put(name),
        None => text.put("ip-proto-").number(protocol),
    };
    text.put(", length ").number(len);
}

/// Which packet it is a part of, how long it is and where; `+` says that more follow.
#[cold]
fn fragment(text: &mut Text, data: &[u8], ip: &Ip) {
    let (begin, id, field) = if ip.v6 {
        // RFC 8200 section 4.5: headers behind this one are a part of the first fragment, as its length has them.
        let at = ip.fragment_at;
        let field = be16(data, at + 2);
        (at + 8, be32(data, at + 4), (field & 0xFFF8, field & 1 != 0))
    } else {
        // RFC 791 section 3.1.
        let field = be16(data, ip.at + 6);
        (
            ip.transport,
            u32::from(be16(data, ip.at + 4)),
            ((field & 0x1FFF) << 3, field & 0x2000 != 0),
        )
    };
    let (offset, is_followed) = field;
    let len = ip.end.saturating_sub(begin);
    text.put(" (frag ").number(id).byte(b':').number(len);
    text.byte(b'@')
        .number(offset)
        .put(if is_followed { "+)" } else { ")" });
}
