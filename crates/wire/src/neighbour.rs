//! Asks for a neighbour's MAC address and reads the answer: ARP (RFC 826) and IPv6 neighbour discovery (RFC
//! 4861).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bytes::try_array;
use crate::checksum::{self, ICMPV6};
use crate::headers::{self, Ip, Parsed, TYPE_ARP, TYPE_IPV6};
use crate::template_build::push_ethernet;
use crate::{FCS_LEN, Mac, VlanTag};

/// To everybody.
pub const BROADCAST: Mac = [0xFF; 6];
/// Bytes of an ARP packet for Ethernet and IPv4.
pub(crate) const ARP_LEN: usize = 28;
/// Hardware Ethernet, protocol IPv4, address lengths 6 and 4.
pub(crate) const ARP_ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
/// `ICMPv6` types and options of neighbour discovery (RFC 4861 sections 4.3, 4.4, 4.6).
pub(crate) const SOLICITATION: u8 = 135;
pub(crate) const ADVERTISEMENT: u8 = 136;
pub(crate) const SOURCE_LINK_LAYER: u8 = 1;
pub(crate) const TARGET_LINK_LAYER: u8 = 2;
/// Type, code, checksum, flags, target, and one link-layer address option.
pub(crate) const ADVERTISEMENT_LEN: usize = 32;
/// All nodes of the link (RFC 4291 section 2.7.1).
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);
/// Shortest frame without FCS.
const MIN_LEN: usize = 64 - FCS_LEN;

/// A broadcast question who has `target`, padded to the shortest Ethernet frame.
#[must_use]
pub fn arp_request(mac: Mac, ip: Ipv4Addr, target: Ipv4Addr, vlans: &[VlanTag]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MIN_LEN + 8);
    push_ethernet(&mut bytes, BROADCAST, mac, vlans, TYPE_ARP);
    bytes.extend_from_slice(&ARP_ETHERNET_IPV4);
    bytes.extend_from_slice(&[0, 1]);
    bytes.extend_from_slice(&mac);
    bytes.extend_from_slice(&ip.octets());
    bytes.extend_from_slice(&[0; 6]);
    bytes.extend_from_slice(&target.octets());
    bytes.resize(bytes.len().max(MIN_LEN), 0);
    bytes
}

/// A question for `target` to its solicited-node multicast group.
#[must_use]
pub fn neighbour_solicitation(mac: Mac, ip: Ipv6Addr, target: Ipv6Addr, vlans: &[VlanTag]) -> Vec<u8> {
    let message = message(SOLICITATION, 0, target, SOURCE_LINK_LAYER, mac);
    discovery(mac, ip, solicited_node(target), &message, vlans)
}

/// A discovery message with one link-layer address option, its checksum zero.
pub(crate) fn message(
    kind: u8,
    flags: u8,
    target: Ipv6Addr,
    option: u8,
    mac: Mac,
) -> [u8; ADVERTISEMENT_LEN] {
    let mut message = [0; ADVERTISEMENT_LEN];
    message[0] = kind;
    message[4] = flags;
    message[8..24].copy_from_slice(&target.octets());
    message[24] = option;
    message[25] = 1;
    message[26..].copy_from_slice(&mac);
    message
}

fn discovery(
    mac: Mac,
    ip: Ipv6Addr,
    to: Ipv6Addr,
    message: &[u8; ADVERTISEMENT_LEN],
    vlans: &[VlanTag],
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96);
    push_ethernet(&mut bytes, multicast_mac(to), mac, vlans, TYPE_IPV6);
    bytes.extend_from_slice(&discovery_packet(ip, to, message));
    bytes
}

/// IPv6 header and message, checksum filled in.
pub(crate) fn discovery_packet(
    from: Ipv6Addr,
    to: Ipv6Addr,
    message: &[u8; ADVERTISEMENT_LEN],
) -> [u8; headers::IPV6_LEN + ADVERTISEMENT_LEN] {
    const LEN: u8 = ADVERTISEMENT_LEN as u8;
    let mut addresses = [0; 32];
    addresses[..16].copy_from_slice(&from.octets());
    addresses[16..].copy_from_slice(&to.octets());
    let sum = checksum::pseudo_v6(&addresses, ICMPV6, u16::from(LEN)) + checksum::sum(message);
    let mut packet = [0; headers::IPV6_LEN + ADVERTISEMENT_LEN];
    // Hop limit 255 proves that no router was in between (RFC 4861 section 7.1).
    packet[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, LEN, ICMPV6, 255]);
    packet[8..40].copy_from_slice(&addresses);
    packet[40..].copy_from_slice(message);
    packet[42..44].copy_from_slice(&checksum::field(sum));
    packet
}

/// The group in which `ip`'s owner listens for solicitations (RFC 4291 section 2.7.1).
#[must_use]
pub fn solicited_node(ip: Ipv6Addr) -> Ipv6Addr {
    let group = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 1, 0xFF00, 0);
    Ipv6Addr::from_bits(group.to_bits() | (ip.to_bits() & 0x00FF_FFFF))
}

/// The MAC address of an IPv6 multicast group (RFC 2464 section 7).
#[must_use]
pub fn multicast_mac(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

/// The MAC address of `asked`, if this frame is its answer: an ARP reply, or a neighbour advertisement with a
/// good checksum.
#[must_use]
pub fn parse_reply(frame: &[u8], asked: IpAddr) -> Option<Mac> {
    match (headers::parse(frame), asked) {
        (Parsed::Arp(at), IpAddr::V4(asked)) => parse_arp_reply(try_array(frame, at)?, asked),
        (Parsed::Ip(ip), IpAddr::V6(asked)) if ip.v6 && ip.protocol == ICMPV6 && !ip.fragment => {
            parse_advertisement(frame, &ip, asked)
        }
        _ => None,
    }
}

fn parse_arp_reply(arp: &[u8; ARP_LEN], asked: Ipv4Addr) -> Option<Mac> {
    let is_reply =
        arp.starts_with(&ARP_ETHERNET_IPV4) && arp[6..8] == [0, 2] && arp[14..18] == asked.octets();
    if is_reply { host_mac(arp.get(8..14)?) } else { None }
}

fn parse_advertisement(frame: &[u8], ip: &Ip, asked: Ipv6Addr) -> Option<Mac> {
    let message = discovery_message(frame, ip, ADVERTISEMENT)?;
    if message.get(8..24)? != asked.octets() {
        return None;
    }
    match option(message.get(24..)?, TARGET_LINK_LAYER) {
        Ok(Some(mac)) => host_mac(mac),
        // An answer to a unicast question may leave the option out: then it came from the address itself.
        Ok(None) => host_mac(frame.get(6..12)?),
        Err(BadOption) => None,
    }
}

/// A MAC address that a single host may have.
fn host_mac(bytes: &[u8]) -> Option<Mac> {
    let mac = *bytes.first_chunk::<6>()?;
    (mac[0] & 1 == 0 && mac != [0; 6]).then_some(mac)
}

/// The message, if it is of this kind and passes the checks every discovery message must (RFC 4861 section
/// 7.1).
pub(crate) fn discovery_message<'f>(frame: &'f [u8], ip: &Ip, kind: u8) -> Option<&'f [u8]> {
    let message = frame.get(ip.transport..ip.end)?;
    let is_kind = message.len() >= 24 && message[0] == kind && message[1] == 0;
    let is_local = frame.get(ip.at + 7) == Some(&255);
    let is_intact = ip.transport_sum(frame, ICMPV6).is_some_and(checksum::is_valid);
    let is_unicast = message.get(8).is_some_and(|&first| first != 0xFF);
    (is_kind && is_local && is_intact && is_unicast).then_some(message)
}

/// An option of length zero, or one beyond the message: the whole message must be thrown away.
pub(crate) struct BadOption;

/// Looks for a link-layer address option.
pub(crate) fn option(mut options: &[u8], kind: u8) -> Result<Option<&[u8]>, BadOption> {
    let mut found = None;
    while let [found_kind, units, ..] = *options {
        let len = usize::from(units) * 8;
        let Some((this, rest)) = options.split_at_checked(len) else {
            return Err(BadOption);
        };
        if len == 0 {
            return Err(BadOption);
        }
        if found_kind == kind {
            found = this.get(2..8);
        }
        options = rest;
    }
    if options.is_empty() {
        Ok(found)
    } else {
        Err(BadOption)
    }
}
