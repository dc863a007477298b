//! Lays a template's bytes out: Ethernet, VLAN tags, IP, UDP, probe, pattern.

use std::net::SocketAddr;

use crate::checksum::{self, UDP};
use crate::headers::{IPV4_LEN, TYPE_IPV4, TYPE_IPV6, UDP_LEN};
use crate::probe::{PROBE_LEN, Probe};
use crate::template_spec::headers_len;
use crate::{FCS_LEN, Mac, TemplateSpec, VlanTag, pattern};

/// A frame and the sums that patching starts from, folded, in network order.
pub(crate) struct Built {
    pub bytes: Vec<u8>,
    /// Pseudo header, UDP header without ports and checksum, payload with sequence, time and lag zero.
    pub udp_sum_portless: u16,
    /// IPv4 header without its checksum; meaningless for IPv6.
    pub ip_sum: u16,
}

pub(crate) fn build(spec: &TemplateSpec) -> Built {
    let mut bytes = Vec::with_capacity(spec.frame_size);
    let headers_len = headers_len(spec.dst.is_ipv6(), spec.vlans.len());
    let payload_len = spec.frame_size - FCS_LEN - headers_len;
    let udp_len = (UDP_LEN + payload_len) as u16;
    let ether_type = if spec.dst.is_ipv6() { TYPE_IPV6 } else { TYPE_IPV4 };
    push_ethernet(&mut bytes, spec.dst_mac, spec.src_mac, &spec.vlans, ether_type);
    let ip_at = bytes.len();
    push_ip(&mut bytes, spec, udp_len);
    let ip_sum = network_fold(checksum::sum(&bytes[ip_at..]));
    if !spec.dst.is_ipv6() {
        let field = (!ip_sum).to_be_bytes();
        bytes[ip_at + 10..ip_at + 12].copy_from_slice(&field);
    }
    // Ports and checksum come last: the sum is wanted without them.
    bytes.extend_from_slice(&[0, 0, 0, 0]);
    bytes.extend_from_slice(&udp_len.to_be_bytes());
    bytes.extend_from_slice(&[0, 0]);
    push_payload(&mut bytes, spec, payload_len);
    let udp_at = headers_len - UDP_LEN;
    let pseudo = u64::from(pseudo_sum(&bytes, udp_at, spec.dst.is_ipv6()).swap_bytes());
    let portless = pseudo + checksum::sum(&bytes[udp_at..]);
    let ports = [
        spec.src.port().to_be_bytes(),
        spec.dst_ports.start().to_be_bytes(),
    ];
    bytes[udp_at..udp_at + 4].copy_from_slice(ports.as_flattened());
    let field = checksum::udp_field(portless + checksum::sum(ports.as_flattened()));
    bytes[udp_at + 6..udp_at + 8].copy_from_slice(&field);
    Built {
        bytes,
        udp_sum_portless: network_fold(portless),
        ip_sum,
    }
}

/// Destination, source, tags, ether type.
pub(crate) fn push_ethernet(bytes: &mut Vec<u8>, to: Mac, from: Mac, vlans: &[VlanTag], ether_type: u16) {
    bytes.extend_from_slice(&to);
    bytes.extend_from_slice(&from);
    for tag in vlans {
        bytes.extend_from_slice(&tag.to_bytes());
    }
    bytes.extend_from_slice(&ether_type.to_be_bytes());
}

fn push_ip(bytes: &mut Vec<u8>, spec: &TemplateSpec, udp_len: u16) {
    match (spec.src, spec.dst) {
        (SocketAddr::V6(src), SocketAddr::V6(dst)) => {
            let class = u32::from(spec.dscp) << 2;
            bytes.extend_from_slice(&(6 << 28 | class << 20).to_be_bytes());
            bytes.extend_from_slice(&udp_len.to_be_bytes());
            bytes.extend_from_slice(&[UDP, spec.ttl]);
            bytes.extend_from_slice(&src.ip().octets());
            bytes.extend_from_slice(&dst.ip().octets());
        }
        (SocketAddr::V4(src), SocketAddr::V4(dst)) => {
            bytes.extend_from_slice(&[0x45, spec.dscp << 2]);
            bytes.extend_from_slice(&(udp_len + IPV4_LEN as u16).to_be_bytes());
            // Identification 0 with "don't fragment" (RFC 6864 section 4.1); the checksum follows.
            bytes.extend_from_slice(&[0, 0, 0x40, 0, spec.ttl, UDP, 0, 0]);
            bytes.extend_from_slice(&src.ip().octets());
            bytes.extend_from_slice(&dst.ip().octets());
        }
        // TemplateSpec::check has refused this.
        _ => {}
    }
}

fn push_payload(bytes: &mut Vec<u8>, spec: &TemplateSpec, payload_len: usize) {
    let mut probe = [0; PROBE_LEN];
    Probe {
        run: spec.run,
        lag: 0,
        lane: spec.lane,
        sequence: 0,
        time_ns: 0,
    }
    .write(&mut probe);
    bytes.extend_from_slice(&probe);
    bytes.extend_from_slice(pattern::expected(spec.run, spec.lane, payload_len - PROBE_LEN).unwrap_or(&[]));
}

/// The pseudo header's sum, folded, in network order: what a NIC that completes UDP checksums wants in the
/// field.
pub(crate) fn pseudo_sum(frame: &[u8], udp_at: usize, ipv6: bool) -> u16 {
    let (headers, udp) = frame.split_at(udp_at);
    let len = udp.len() as u16;
    let sum = if ipv6 {
        headers
            .last_chunk()
            .map(|addresses| checksum::pseudo_v6(addresses, UDP, len))
    } else {
        headers
            .last_chunk()
            .map(|addresses| checksum::pseudo_v4(addresses, UDP, len))
    };
    network_fold(sum.unwrap_or(0))
}

fn network_fold(sum: u64) -> u16 {
    u16::from_be_bytes(checksum::fold(sum).to_le_bytes())
}
