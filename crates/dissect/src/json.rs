//! A packet as one JSON object a line, for scripts.

use capture::input::Packet;
use capture::pcapng::Direction;
use wire::Ip;
use wire::checksum::TCP;

use crate::bytes::{array, be16, be32};
use crate::clock::Clock;
use crate::foreign::{As, foreign};
use crate::line::tcp_flags;
use crate::names;
use crate::text::Text;
use crate::view::{Network, View};

/// Writes one packet, and ends the line. What is not known is left out; a time is `null`.
pub fn json(text: &mut Text, clock: &mut Clock, packet: &Packet<'_>) {
    let view = View::of(packet);
    text.put("{\"time\":");
    if packet.time_ns.is_some() {
        text.byte(b'"');
        clock.write(text, packet.time_ns, 9);
        text.byte(b'"');
    } else {
        text.put("null");
    }
    text.put(",\"interface\":\"");
    foreign(text, packet.interface.name.as_bytes(), As::Json);
    text.put("\",\"length\":").number(packet.original_len);
    text.put(",\"captured\":").number(packet.data.len());
    if let Some(direction) = packet.direction.or_else(|| view.direction()) {
        text.put(match direction {
            Direction::In => ",\"direction\":\"in\"",
            Direction::Out => ",\"direction\":\"out\"",
        });
    }
    if let Some(queue) = packet.queue {
        text.put(",\"queue\":").number(queue);
    }
    if let Some(dropped) = packet.dropped {
        text.put(",\"dropped_before\":").number(dropped);
    }
    if let Some((destination, source)) = view.macs() {
        text.put(",\"mac_source\":\"").mac(source);
        text.put("\",\"mac_destination\":\"").mac(destination).byte(b'"');
    }
    vlans(text, &view);
    match view.network {
        Network::Ip(ip) => of_ip(text, view.data, &ip),
        Network::Arp(_) => {
            text.put(",\"network\":\"arp\"");
        }
        Network::Other(ether_type, _) => {
            text.put(",\"ether_type\":").number(ether_type);
        }
        Network::Truncated => {
            text.put(",\"network\":\"truncated\"");
        }
        Network::Malformed => {
            text.put(",\"network\":\"malformed\"");
        }
        Network::Unknown(link) => {
            text.put(",\"link_type\":").number(link);
        }
    }
    if let Some(comment) = packet.comment {
        text.put(",\"comment\":\"");
        foreign(text, comment, As::Json);
        text.byte(b'"');
    }
    text.put("}\n");
}

fn vlans(text: &mut Text, view: &View<'_>) {
    let mut separator = ",\"vlans\":[";
    for tag in view.vlans() {
        text.put(separator).number(tag.id);
        separator = ",";
    }
    if separator == "," {
        text.byte(b']');
    }
}

fn of_ip(text: &mut Text, data: &[u8], ip: &Ip) {
    text.put(if ip.v6 {
        ",\"network\":\"ipv6\""
    } else {
        ",\"network\":\"ipv4\""
    });
    if let Some((source, destination)) = ip.addresses(data) {
        text.put(",\"source\":\"").address(source);
        text.put("\",\"destination\":\"").address(destination).byte(b'"');
    }
    text.put(",\"protocol\":").number(ip.protocol);
    if let Some(name) = names::protocol(ip.protocol) {
        text.put(",\"protocol_name\":\"").put(name).byte(b'"');
    }
    if let Some((source, destination)) = ip.ports(data) {
        text.put(",\"source_port\":").number(source);
        text.put(",\"destination_port\":").number(destination);
    }
    text.put(",\"payload\":")
        .number(ip.end.saturating_sub(ip.transport));
    if ip.fragment {
        text.put(if ip.later_fragment {
            ",\"fragment\":\"later\""
        } else {
            ",\"fragment\":\"first\""
        });
    }
    if ip.protocol == TCP && !ip.later_fragment {
        tcp(text, data, ip.transport);
    }
}

fn tcp(text: &mut Text, data: &[u8], at: usize) {
    let Some(header) = array::<20>(data, at) else {
        return;
    };
    text.put(",\"tcp\":{\"flags\":\"");
    tcp_flags(text, header[13]);
    text.put("\",\"seq\":").number(be32(header, 4));
    text.put(",\"ack\":").number(be32(header, 8));
    text.put(",\"window\":").number(be16(header, 14)).byte(b'}');
}
