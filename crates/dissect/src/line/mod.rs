//! A packet as one line, as `tcpdump -n` has it.

mod arp;
mod icmp;
mod icmp6;
mod ip;
mod tcp;

pub(crate) use tcp::flags as tcp_flags;

use capture::input::{LinkType, Packet};
use capture::pcapng::Direction;

use crate::bytes::behind;
use crate::clock::Clock;
use crate::foreign::{As, foreign};
use crate::names;
use crate::text::Text;
use crate::view::{Network, View};

/// What a line has besides time and headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Show {
    /// The addresses of Ethernet, and the length of the frame.
    pub ethernet: bool,
}

/// Writes lines.
#[derive(Debug)]
pub struct Printer {
    clock: Clock,
    show: Show,
}

impl Printer {
    /// Writes times by `clock`.
    pub fn new(clock: Clock, show: Show) -> Self {
        Self { clock, show }
    }

    /// Writes one packet, and ends the line. Its interface is named where there are several.
    #[inline]
    pub fn line(&mut self, text: &mut Text, packet: &Packet<'_>) {
        let view = View::of(packet);
        self.clock
            .write(text, packet.time_ns, packet.interface.resolution.digits());
        text.byte(b' ');
        if packet.interface_count > 1 {
            interface(text, packet);
        }
        if let Some(direction) = packet.direction.or_else(|| view.direction()) {
            text.put(match direction {
                Direction::In => "In ",
                Direction::Out => "Out ",
            });
        }
        if self.show.ethernet {
            ethernet(text, packet, &view);
        }
        for tag in view.vlans() {
            text.put("vlan ")
                .number(tag.id)
                .put(", p ")
                .number(tag.pcp)
                .put(", ");
        }
        network(text, packet, &view);
        if let Some(comment) = packet.comment {
            text.put(" # ");
            foreign(text, comment, As::Line);
        }
        text.byte(b'\n');
    }
}

fn interface(text: &mut Text, packet: &Packet<'_>) {
    match packet.interface.name.as_str() {
        "" => text.byte(b'#').number(packet.interface_index),
        name => text.put(name),
    };
    text.byte(b' ');
}

fn ethernet(text: &mut Text, packet: &Packet<'_>, view: &View<'_>) {
    if let Some((destination, source)) = view.macs() {
        text.mac(source).put(" > ").mac(destination).put(", length ");
        text.number(packet.original_len).put(": ");
    }
}

#[inline]
fn network(text: &mut Text, packet: &Packet<'_>, view: &View<'_>) {
    match view.network {
        Network::Ip(ip) => ip::line(text, view.data, &ip),
        Network::Arp(at) => arp::line(text, view.data, at, packet.original_len),
        other => rest(text, packet, view, other),
    }
}

#[cold]
fn rest(text: &mut Text, packet: &Packet<'_>, view: &View<'_>, network: Network) {
    match network {
        Network::Other(ether_type, at) => {
            if let Some((destination, source)) = view.macs() {
                text.mac(source).put(" > ").mac(destination).put(", ");
            }
            match names::ether_type(ether_type) {
                // A length takes the place of a type (IEEE 802.3).
                None if ether_type < 1536 && view.link == LinkType::Ethernet => text.put("802.3"),
                Some(name) => text.put(name),
                None => text.put("ethertype ").hex16(ether_type),
            };
            text.put(", length ").number(behind(packet.original_len, at));
        }
        Network::Unknown(link) => {
            text.put("link type ").number(link);
            text.put(", length ").number(packet.original_len);
        }
        Network::Malformed => {
            text.put("IP, malformed header, length ")
                .number(packet.original_len);
        }
        _ => {
            text.put("truncated, length ").number(packet.original_len);
        }
    }
}
