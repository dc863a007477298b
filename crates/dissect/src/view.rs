//! Where a packet's headers are, behind any kind of link.

use capture::input::{LinkType, Packet};
use capture::pcapng::Direction;
use wire::headers::{TYPE_ARP, TYPE_IPV4, TYPE_IPV6, behind_tags, parse_ip, parse_without_length};
use wire::{Ip, Mac, Parsed, VlanTag};

use crate::bytes::array;

/// Bytes of the heads of Linux's "any" interface, and of those of a loopback.
const SLL: usize = 16;
const SLL2: usize = 20;
const LOOPBACK: usize = 4;

/// What a packet is behind its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4 or IPv6.
    Ip(Ip),
    /// ARP, which begins here.
    Arp(usize),
    /// Another ether type (or, below 1536, the length of IEEE 802.3), and where what it announces begins.
    Other(u16, usize),
    /// It ends before its headers do.
    Truncated,
    /// An IP header that contradicts itself.
    Malformed,
    /// A link that is not known here.
    Unknown(u16),
}

/// A packet, and where its headers are.
#[derive(Clone, Copy, Debug)]
pub struct View<'p> {
    /// Its bytes.
    pub data: &'p [u8],
    /// What they begin with.
    pub link: LinkType,
    /// What is behind that.
    pub network: Network,
}

impl<'p> View<'p> {
    /// Looks at a packet. Never panics, whatever its bytes.
    #[inline]
    pub fn new(link: LinkType, data: &'p [u8]) -> Self {
        let network = match link {
            LinkType::Ethernet => ethernet(data),
            _ => elsewhere(link, data),
        };
        Self { data, link, network }
    }

    /// Looks at a packet of a file. One of IPv4 that says that it is 0 bytes long is as long as its frame, as other programs
    /// take it.
    #[inline]
    pub fn of(packet: &Packet<'p>) -> Self {
        let mut view = Self::new(packet.interface.link, packet.data);
        if view.network == Network::Malformed {
            view.measure(packet.original_len as usize);
        }
        view
    }

    #[cold]
    fn measure(&mut self, frame_len: usize) {
        let begins = match self.link {
            LinkType::Ethernet => behind_tags(self.data).map(|(at, ether_type)| (at + 2, ether_type)),
            link => behind_link(link, self.data),
        };
        if let Some((at, TYPE_IPV4)) = begins {
            let len = frame_len.saturating_sub(at);
            self.network = of_ip(parse_without_length(self.data, at, len));
        }
    }

    /// Destination and source of Ethernet.
    pub fn macs(&self) -> Option<(Mac, Mac)> {
        let is_ethernet = self.link == LinkType::Ethernet;
        let (destination, rest) = self.data.split_first_chunk().filter(|_| is_ethernet)?;
        Some((*destination, *rest.first_chunk()?))
    }

    /// Its VLAN tags, outermost first.
    pub fn vlans(&self) -> impl Iterator<Item = VlanTag> + use<'p> {
        let end = match self.network {
            Network::Ip(ip) => ip.at,
            Network::Arp(at) | Network::Other(_, at) => at,
            _ => 0,
        };
        let end = if self.link == LinkType::Ethernet { end } else { 0 };
        let tags = self.data.get(12..end.saturating_sub(2)).unwrap_or_default();
        tags.chunks_exact(4)
            .filter_map(|tag| tag.first_chunk().map(VlanTag::from_bytes))
    }

    /// Which way it went, by what Linux says in front of it.
    pub fn direction(&self) -> Option<Direction> {
        let kind = match self.link {
            LinkType::Sll => self.data.get(1)?,
            LinkType::Sll2 => self.data.get(10)?,
            _ => return None,
        };
        // if_packet.h: to this host, to all, to many; what it sent. All else was for others.
        match kind {
            0..=2 => Some(Direction::In),
            4 => Some(Direction::Out),
            _ => None,
        }
    }
}

#[inline]
fn ethernet(data: &[u8]) -> Network {
    match wire::parse(data) {
        Parsed::Ip(ip) => Network::Ip(ip),
        Parsed::Arp(at) => Network::Arp(at),
        Parsed::Other => match behind_tags(data) {
            Some((at, ether_type)) => Network::Other(ether_type, at + 2),
            None => Network::Truncated,
        },
        Parsed::Truncated => Network::Truncated,
        Parsed::Malformed => Network::Malformed,
    }
}

/// Where what follows the head of another kind of link begins, and its ether type, if the packet is as long.
fn behind_link(link: LinkType, data: &[u8]) -> Option<(usize, u16)> {
    let (at, ether_type) = match link {
        LinkType::Raw => (0, version(data, 0)),
        // The family's number is another one on every system; IP says itself which it is.
        LinkType::Null | LinkType::Loopback => (LOOPBACK, version(data, LOOPBACK)),
        LinkType::Sll => (SLL, ether_type(data, SLL - 2)),
        LinkType::Sll2 => (SLL2, ether_type(data, 0)),
        LinkType::Ethernet | LinkType::Other(_) => return None,
    };
    (data.len() >= at).then_some((at, ether_type?))
}

#[cold]
fn elsewhere(link: LinkType, data: &[u8]) -> Network {
    if let LinkType::Other(number) = link {
        return Network::Unknown(number);
    }
    match behind_link(link, data) {
        None => Network::Truncated,
        Some((at, TYPE_ARP)) => Network::Arp(at),
        Some((at, ether_type @ (TYPE_IPV4 | TYPE_IPV6))) => {
            of_ip(parse_ip(data, at, ether_type == TYPE_IPV6))
        }
        Some((at, other)) => Network::Other(other, at),
    }
}

fn of_ip(parsed: Parsed) -> Network {
    match parsed {
        Parsed::Ip(ip) => Network::Ip(ip),
        Parsed::Truncated => Network::Truncated,
        _ => Network::Malformed,
    }
}

/// The ether type of the IP packet at `at`, by its version.
fn version(data: &[u8], at: usize) -> Option<u16> {
    Some(if data.get(at)? >> 4 == 6 {
        TYPE_IPV6
    } else {
        TYPE_IPV4
    })
}

fn ether_type(data: &[u8], at: usize) -> Option<u16> {
    array(data, at).map(|bytes| u16::from_be_bytes(*bytes))
}
