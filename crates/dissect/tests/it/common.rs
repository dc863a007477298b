//! Packets made by hand.

use capture::input::{Interface, LinkType, Packet, Resolution};

/// An interface of a kind of link.
pub fn interface(link: LinkType) -> Interface {
    Interface {
        id: 0,
        name: "eth0".into(),
        link,
        snap_len: 0,
        resolution: Resolution::MICROSECOND,
        offset_s: 0,
    }
}

/// A packet that was not cut.
pub fn packet<'p>(interface: &'p Interface, data: &'p [u8], time_ns: Option<i64>) -> Packet<'p> {
    Packet {
        interface,
        interface_index: 0,
        interface_count: 1,
        time_ns,
        original_len: data.len() as u32,
        data,
        direction: None,
        dropped: None,
        queue: None,
        comment: None,
    }
}

/// A frame of Ethernet.
pub fn ethernet(tags: &[u8], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(tags);
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2, of which `field` says how it was fragmented.
pub fn ipv4(protocol: u8, field: u16, payload: &[u8]) -> Vec<u8> {
    between([10, 0, 0, 1], [10, 0, 0, 2], protocol, field, payload)
}

/// The same between others.
pub fn between(from: [u8; 4], to: [u8; 4], protocol: u8, field: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0x12, 0x67]);
    packet.extend(field.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(from);
    packet.extend(to);
    packet.extend(payload);
    packet
}

/// An IPv6 packet from `2001:db8::1` to `2001:db8::2`.
pub fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    for last in [1, 2] {
        packet.extend([0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(payload);
    packet
}

/// A datagram of UDP.
pub fn udp(from: u16, to: u16, len: u16) -> Vec<u8> {
    let mut datagram = Vec::new();
    for word in [from, to, 8 + len, 0] {
        datagram.extend(word.to_be_bytes());
    }
    datagram.resize(usize::from(8 + len), 0);
    datagram
}

/// A segment of TCP from port 1000 to 80.
pub fn tcp(flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0x03, 0xE8, 0, 80, 0, 0, 0, 10, 0, 0, 0, 20];
    segment.extend([((5 + options.len() / 4) << 4) as u8, flags, 1, 0, 0, 0, 0, 7]);
    segment.extend(options);
    segment.extend(payload);
    segment
}
