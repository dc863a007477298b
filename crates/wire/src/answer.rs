//! Answers what an ordinary host asks of its neighbour: ARP, IPv6 neighbour solicitations, ICMP and `ICMPv6`
//! echo.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Mac;
use crate::bytes::try_array;
use crate::checksum::{self, ICMP, ICMPV6};
use crate::headers::{self, Ip, Parsed};
use crate::neighbour::{self, ADVERTISEMENT, ALL_NODES, ARP_ETHERNET_IPV4, ARP_LEN, SOLICITATION};

/// Time to live of what we send ourselves (RFC 1700).
const TTL: u8 = 64;

/// The addresses that are answered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Our MAC address.
    pub mac: Mac,
    /// Our IP addresses.
    pub ips: Vec<IpAddr>,
}

impl Addresses {
    fn has(&self, ip: impl Into<IpAddr>) -> bool {
        self.ips.contains(&ip.into())
    }
}

/// Turns a request for one of our addresses into its reply, in place, VLAN tags kept.
///
/// The frame is the first `len` bytes of `room`; some replies are longer than their requests and use the room
/// behind it. Returns the reply's length in bytes, or `None` (and leaves the frame alone) if there is nothing
/// to answer.
pub fn answer(room: &mut [u8], len: usize, me: &Addresses) -> Option<usize> {
    let frame = room.get(..len)?;
    // Nobody asks from a group address.
    if frame.get(6)? & 1 == 1 {
        return None;
    }
    match headers::parse(frame) {
        Parsed::Arp(at) => answer_arp(room.get_mut(..len)?, at, me).map(|()| len),
        Parsed::Ip(ip) if ip.fragment => None,
        Parsed::Ip(ip)
            if ip.v6 && frame.get(ip.transport) == Some(&SOLICITATION) && ip.protocol == ICMPV6 =>
        {
            answer_solicitation(room, len, &ip, me)
        }
        Parsed::Ip(ip) => answer_echo(room.get_mut(..len)?, &ip, me).map(|()| len),
        _ => None,
    }
}

fn answer_arp(frame: &mut [u8], at: usize, me: &Addresses) -> Option<()> {
    let arp = try_array::<ARP_LEN>(frame, at)?;
    let (asker_mac, asker_ip) = (*arp[8..].first_chunk::<6>()?, *arp[14..].first_chunk::<4>()?);
    let target = *arp[24..].first_chunk::<4>()?;
    let is_request = arp.starts_with(&ARP_ETHERNET_IPV4) && arp[6..8] == [0, 1];
    // An announcement of an address, ours or another, wants no answer.
    if !is_request || asker_ip == target || asker_mac[0] & 1 == 1 || !me.has(Ipv4Addr::from(target)) {
        return None;
    }
    let arp = frame.get_mut(at..at + ARP_LEN)?;
    arp[7] = 2;
    arp[8..14].copy_from_slice(&me.mac);
    arp[14..18].copy_from_slice(&target);
    arp[18..24].copy_from_slice(&asker_mac);
    arp[24..28].copy_from_slice(&asker_ip);
    let asker = *frame[6..].first_chunk::<6>()?;
    address_ethernet(frame, asker, me.mac);
    Some(())
}

fn address_ethernet(frame: &mut [u8], to: Mac, from: Mac) {
    if let Some(macs) = frame.first_chunk_mut::<12>() {
        macs[..6].copy_from_slice(&to);
        macs[6..].copy_from_slice(&from);
    }
}

fn answer_solicitation(room: &mut [u8], len: usize, ip: &Ip, me: &Addresses) -> Option<usize> {
    const SOLICITED: u8 = 0x40;
    const OVERRIDE: u8 = 0x20;
    let frame = room.get(..len)?;
    let message = neighbour::discovery_message(frame, ip, SOLICITATION)?;
    let target = Ipv6Addr::from(*message.get(8..)?.first_chunk::<16>()?);
    let (IpAddr::V6(asker), IpAddr::V6(destination)) = ip.addresses(frame)? else {
        return None;
    };
    let source_option = neighbour::option(message.get(24..)?, neighbour::SOURCE_LINK_LAYER).ok()?;
    if !me.has(target)
        || asker.is_multicast()
        || (destination != target && destination != neighbour::solicited_node(target))
    {
        return None;
    }
    // Somebody checks whether the address is taken: everybody is told (RFC 4861 section 7.2.4).
    let is_detection = asker.is_unspecified();
    if is_detection && (source_option.is_some() || destination == target) {
        return None;
    }
    let (to_ip, to_mac, flags) = if is_detection {
        (ALL_NODES, neighbour::multicast_mac(ALL_NODES), OVERRIDE)
    } else {
        (asker, *frame.get(6..)?.first_chunk::<6>()?, SOLICITED | OVERRIDE)
    };
    let reply = neighbour::message(ADVERTISEMENT, flags, target, neighbour::TARGET_LINK_LAYER, me.mac);
    let packet = neighbour::discovery_packet(target, to_ip, &reply);
    let end = ip.at + packet.len();
    room.get_mut(ip.at..end)?.copy_from_slice(&packet);
    address_ethernet(room, to_mac, me.mac);
    Some(end)
}

fn answer_echo(frame: &mut [u8], ip: &Ip, me: &Addresses) -> Option<()> {
    let message = frame.get(ip.transport..ip.end)?;
    let (request, reply, sum) = match (ip.v6, ip.protocol) {
        (false, ICMP) => (8, 0, checksum::sum(message)),
        (true, ICMPV6) => (128, 129, ip.transport_sum(frame, ICMPV6)?),
        _ => return None,
    };
    let is_request = message.len() >= 8 && message[0] == request && message[1] == 0;
    if !is_request || !checksum::is_valid(sum) || !ip.header_is_valid(frame) || !is_for_us(frame, ip, me) {
        return None;
    }
    let old_field = u16::from_le_bytes([message[2], message[3]]);
    // The sum without the field, and with the type replaced (RFC 1624 does it in one formula).
    let rest = u64::from(!old_field) + u64::from(reply) + u64::from(!u16::from(request));
    let message = frame.get_mut(ip.transport..ip.end)?;
    message[0] = reply;
    message[2..4].copy_from_slice(&checksum::field(rest));
    turn_round(frame, ip, me)
}

/// Whether the packet is from one host to one of our addresses.
fn is_for_us(frame: &[u8], ip: &Ip, me: &Addresses) -> bool {
    ip.addresses(frame).is_some_and(|(from, to)| {
        let is_broadcast = from == IpAddr::V4(Ipv4Addr::BROADCAST);
        me.has(to) && from != to && !from.is_multicast() && !from.is_unspecified() && !is_broadcast
    })
}

/// Swaps the IP addresses, renews the time to live and addresses the frame to its sender.
fn turn_round(frame: &mut [u8], ip: &Ip, me: &Addresses) -> Option<()> {
    let (ttl_at, at, len) = if ip.v6 { (7, 8, 16) } else { (8, 12, 4) };
    let header = frame.get_mut(ip.at..ip.transport)?;
    let (from, to) = header.get_mut(at..at + 2 * len)?.split_at_mut(len);
    from.swap_with_slice(to);
    *header.get_mut(ttl_at)? = TTL;
    if !ip.v6 {
        header.get_mut(10..12)?.fill(0);
        let field = checksum::field(checksum::sum(header));
        header.get_mut(10..12)?.copy_from_slice(&field);
    }
    let asker = *frame.get(6..)?.first_chunk::<6>()?;
    address_ethernet(frame, asker, me.mac);
    Some(())
}
