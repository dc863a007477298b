//! An independent, slow reading of the same formats, and generators of specifications and frames.
#![allow(clippy::unwrap_used, reason = "a helper of tests")]
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod vectors;

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use wire::{BurstStamp, TPID_CUSTOMER, TPID_SERVICE, Template, TemplateSpec, VlanTag};

/// RFC 1071, one byte after another with the carry brought round at once.
pub fn slow_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for (index, &byte) in bytes.iter().enumerate() {
        sum += if index % 2 == 0 {
            u32::from(byte) << 8
        } else {
            u32::from(byte)
        };
        if sum > 0xFFFF {
            sum = (sum & 0xFFFF) + 1;
        }
    }
    sum as u16
}

pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// A UDP frame taken apart, after every length and checksum in it was found right.
#[derive(Debug, PartialEq, Eq, Clone)]
pub struct Datagram {
    pub dst_mac: Vec<u8>,
    pub src_mac: Vec<u8>,
    pub tags: Vec<(u16, u16)>,
    pub traffic_class: u8,
    pub ttl: u8,
    pub src: SocketAddr,
    pub dst: SocketAddr,
    pub udp_at: usize,
    pub payload: Vec<u8>,
    /// The pseudo header, for those who want to know.
    pub pseudo: Vec<u8>,
}

/// Takes a frame without options and extension headers apart; does not look at the UDP checksum.
pub fn dissect_without_udp_checksum(frame: &[u8]) -> Result<Datagram, String> {
    let mut at = 12;
    let mut tags = Vec::new();
    while [TPID_CUSTOMER, TPID_SERVICE].contains(&be16(frame, at)) {
        tags.push((be16(frame, at), be16(frame, at + 2)));
        at += 4;
    }
    let ip = &frame[at + 2..];
    let (src_ip, dst_ip, header_len, total_len, traffic_class, ttl, protocol): (
        IpAddr,
        IpAddr,
        _,
        _,
        _,
        _,
        _,
    ) = match be16(frame, at) {
        0x0800 => {
            if ip[0] != 0x45 || slow_sum(&ip[..20]) != 0xFFFF || be16(ip, 6) & 0x3FFF != 0 {
                return Err("IPv4 header".into());
            }
            let src: [u8; 4] = ip[12..16].try_into().unwrap();
            let dst: [u8; 4] = ip[16..20].try_into().unwrap();
            (
                src.into(),
                dst.into(),
                20,
                usize::from(be16(ip, 2)),
                ip[1],
                ip[8],
                ip[9],
            )
        }
        0x86DD => {
            let src: [u8; 16] = ip[8..24].try_into().unwrap();
            let dst: [u8; 16] = ip[24..40].try_into().unwrap();
            let class = (be16(ip, 0) >> 4) as u8;
            if ip[0] >> 4 != 6 {
                return Err("IPv6 version".into());
            }
            (
                src.into(),
                dst.into(),
                40,
                40 + usize::from(be16(ip, 4)),
                class,
                ip[7],
                ip[6],
            )
        }
        other => return Err(format!("ether type {other:#x}")),
    };
    let udp = ip.get(header_len..total_len).ok_or("IP length")?;
    if protocol != 17 || usize::from(be16(udp, 4)) != udp.len() {
        return Err("UDP length".into());
    }
    let mut pseudo = match (src_ip, dst_ip) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => [src.octets(), dst.octets()].concat(),
        (IpAddr::V6(src), IpAddr::V6(dst)) => [src.octets(), dst.octets()].concat(),
        _ => unreachable!(),
    };
    pseudo.extend_from_slice(&[0, 17]);
    pseudo.extend_from_slice(&(udp.len() as u16).to_be_bytes());
    Ok(Datagram {
        dst_mac: frame[..6].to_vec(),
        src_mac: frame[6..12].to_vec(),
        tags,
        traffic_class,
        ttl,
        src: (src_ip, be16(udp, 0)).into(),
        dst: (dst_ip, be16(udp, 2)).into(),
        udp_at: at + 2 + header_len,
        payload: udp[8..].to_vec(),
        pseudo,
    })
}

/// As above, and the UDP checksum must be there and right.
pub fn dissect(frame: &[u8]) -> Result<Datagram, String> {
    let datagram = dissect_without_udp_checksum(frame)?;
    let udp = &frame[datagram.udp_at..datagram.udp_at + 8 + datagram.payload.len()];
    let whole = [&datagram.pseudo, udp].concat();
    if be16(udp, 6) == 0 || slow_sum(&whole) != 0xFFFF {
        return Err(format!(
            "UDP checksum {:#06x}, sum {:#06x}",
            be16(udp, 6),
            slow_sum(&whole)
        ));
    }
    Ok(datagram)
}

prop_compose! {
    pub fn tag()(tpid in prop_oneof![Just(TPID_CUSTOMER), Just(TPID_SERVICE)], id in 0_u16..4095, pcp in 0_u8..8) -> VlanTag {
        VlanTag { tpid, id, pcp }
    }
}

fn addresses() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    prop_oneof![
        any::<([u8; 4], u16, [u8; 4], u16)>().prop_map(|(a, b, c, d)| ((a, b).into(), (c, d).into())),
        any::<([u8; 16], u16, [u8; 16], u16)>().prop_map(|(a, b, c, d)| ((a, b).into(), (c, d).into())),
    ]
}

prop_compose! {
    pub fn spec()(
        (src, dst) in addresses(),
        vlans in prop::collection::vec(tag(), 0..=2),
        macs in any::<([u8; 6], [u8; 6])>(),
        extra in prop_oneof![Just(0_usize), 0_usize..8, 0_usize..200, 0_usize..9000],
        (ttl, dscp, run, lane) in (any::<u8>(), 0_u8..64, any::<u8>(), any::<u16>()),
        flows in prop_oneof![Just(1_u32), 1_u32..2000, 1_u32..=u32::MAX],
        ports in any::<(u16, u16)>(),
    ) -> TemplateSpec {
        let frame_size = Template::minimum_frame_size(dst.is_ipv6(), vlans.len()) + extra;
        let dst_ports = ports.0.min(ports.1)..=ports.0.max(ports.1);
        TemplateSpec { src_mac: macs.0, dst_mac: macs.1, vlans, src, dst, frame_size, ttl, dscp, run, lane, flows, dst_ports }
    }
}

/// A plain specification with unicast addresses on both sides.
pub fn plain_spec(ipv6: bool, tags: usize, frame_size: usize) -> TemplateSpec {
    let (src, dst) = if ipv6 {
        ("[2001:db8::1]:4000", "[2001:db8::2]:5000")
    } else {
        ("10.0.0.1:4000", "10.0.0.2:5000")
    };
    let stack = [
        VlanTag {
            tpid: TPID_SERVICE,
            id: 100,
            pcp: 5,
        },
        VlanTag {
            tpid: TPID_CUSTOMER,
            id: 7,
            pcp: 0,
        },
    ];
    TemplateSpec {
        vlans: stack[2 - tags..].to_vec(),
        src: src.parse().unwrap(),
        dst: dst.parse().unwrap(),
        run: 0xA7,
        lane: 0x1234,
        flows: 1_000_000,
        dst_ports: 5000..=5000,
        ..TemplateSpec::plain(frame_size.max(Template::minimum_frame_size(ipv6, tags)))
    }
}

/// Every header stack there is, as (IPv6, tags).
pub const STACKS: [(bool, usize); 6] = [
    (false, 0),
    (false, 1),
    (false, 2),
    (true, 0),
    (true, 1),
    (true, 2),
];

/// One packet of a template.
pub fn packet(template: &Template, time_ns: u64, lag: u8, sequence: u64, flow: u32) -> Vec<u8> {
    let mut room = vec![0xEE; template.room_needed()];
    template.write(
        &mut room,
        &BurstStamp::new(time_ns, lag),
        sequence,
        Some(&template.flow(flow)),
    );
    room.truncate(template.frame_len());
    room
}

/// Bytes from hexadecimal text with any white space.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
