//! What rules ask of a packet.

use wire::checksum::{ICMP, ICMPV6, SCTP, TCP, UDP};
use wire::headers::{TYPE_IPV4, TYPE_IPV6, behind_tags, parse_plain};
use wire::{Ip, Parsed, parse};

use crate::Malformed;

const IPV6_LEN: usize = 40;
const TCP_LEN: usize = 20;
const UDP_LEN: usize = 8;
const ICMP_LEN: usize = 8;
const PORTS_LEN: usize = 4;

/// What a packet is below its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layer {
    /// Neither IPv4 nor IPv6.
    Other = 0,
    /// IPv4.
    V4 = 1,
    /// IPv6.
    V6 = 2,
}

/// What part of an IP packet a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Part {
    /// All of it.
    Whole = 0,
    /// The first fragment.
    First = 1,
    /// A fragment that is not the first: there are no ports in it.
    Later = 2,
}

/// What the transport header tells beside ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detail {
    /// Nothing that rules ask for.
    None,
    /// The flags of TCP: CWR, ECE, URG, ACK, PSH, RST, SYN, FIN from the highest bit.
    Flags(u8),
    /// The type of ICMP or `ICMPv6`.
    Type(u8),
}

/// What a well-formed packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The outermost VLAN.
    pub vlan: Option<u16>,
    /// The ether type behind the tags.
    pub ether_type: u16,
    /// What is behind it.
    pub layer: Layer,
    /// The IP protocol; 0 if it is none.
    pub protocol: u8,
    /// Whole, or a fragment.
    pub part: Part,
    /// IPv6 addresses, or IPv4 ones in the upper 32 bits; 0 if it is neither.
    pub source: u128,
    /// As `source`.
    pub destination: u128,
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
    /// Flags or type.
    pub detail: Detail,
}

/// What is asked of every packet beside its structure, since some rule names it: sums and comparisons that cost time.
pub const ON_REQUEST: u16 = Malformed::IpChecksum.bit() | Malformed::Land.bit() | Malformed::TcpFlags.bit();

/// Looks at a frame of `len` bytes, of which at least the headers are in `frame`. `asked` are reasons that rules name: those of [`ON_REQUEST`] are looked for only then, all others
/// always, since what they spoil cannot be believed.
///
/// # Errors
///
/// Why the packet is malformed.
#[inline(always)]
#[allow(clippy::inline_always, reason = "per packet: must vanish into the loops")]
pub fn look(frame: &[u8], len: usize, asked: u16) -> Result<Facts, Malformed> {
    match parse_plain(frame) {
        Some(ip) => look_at(frame, &ip, None, (len, asked)),
        None => look_apart(frame, len, asked),
    }
}

/// Whether nothing can be said of a packet of `len` bytes whose capture has only `frame`, in which [`look`] `found` this: what
/// is wrong with it, or that it has no ports, may be since a part of its headers was not captured. What is wrong with the part
/// that was captured is wrong with the packet.
pub fn is_cut(frame: &[u8], len: usize, found: &Result<Facts, Malformed>) -> bool {
    if frame.len() >= len {
        return false;
    }
    match parse(frame) {
        Parsed::Truncated => true,
        // Reasons before that one are of IP headers, which are all there.
        Parsed::Ip(ip) if !matches!(found, Err(reason) if *reason < Malformed::TinyFragment) => {
            let behind = ip.transport
                + if ip.later_fragment {
                    0
                } else {
                    looked_at(ip.protocol)
                };
            frame.len() < behind && behind <= ip.end
        }
        _ => false,
    }
}

/// Bytes of a transport header without which nothing is known of a packet.
const fn looked_at(protocol: u8) -> usize {
    match protocol {
        TCP => TCP_LEN,
        UDP => UDP_LEN,
        ICMP | ICMPV6 => ICMP_LEN,
        SCTP => PORTS_LEN,
        _ => 0,
    }
}

/// [`look`] at what is not plain, out of line so that plain frames do not pay for it.
#[inline(never)]
fn look_apart(frame: &[u8], len: usize, asked: u16) -> Result<Facts, Malformed> {
    if let Some(ether_type) = plainly_other(frame) {
        return Ok(other(None, ether_type));
    }
    match parse(frame) {
        Parsed::Ip(ip) => look_at(frame, &ip, vlan(frame), (len, asked)),
        parsed => not_ip(frame, parsed),
    }
}

/// [`look`] at an IP packet.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "where all is of a plain packet is known when this is compiled"
)]
fn look_at(frame: &[u8], ip: &Ip, vlan: Option<u16>, (len, asked): (usize, u16)) -> Result<Facts, Malformed> {
    if ip.end > len {
        return Err(Malformed::IpLength);
    }
    if ip.transport > ip.end {
        return Err(Malformed::Extensions);
    }
    let asks = |reason: Malformed| asked & reason.bit() != 0;
    if asks(Malformed::IpChecksum) && !ip.header_is_valid(frame) {
        return Err(Malformed::IpChecksum);
    }
    let (source, destination) = addresses(frame, ip).ok_or(Malformed::IpHeader)?;
    if asks(Malformed::Land) && source == destination {
        return Err(Malformed::Land);
    }
    let part = match (ip.fragment, ip.later_fragment) {
        (false, _) => Part::Whole,
        (true, false) => Part::First,
        (true, true) => Part::Later,
    };
    let detail = transport(frame, ip, part, asks(Malformed::TcpFlags))?;
    Ok(Facts {
        vlan,
        ether_type: if ip.v6 { TYPE_IPV6 } else { TYPE_IPV4 },
        layer: if ip.v6 { Layer::V6 } else { Layer::V4 },
        protocol: ip.protocol,
        part,
        source,
        destination,
        ports: ip.ports(&frame[..ip.end.min(frame.len())]),
        detail,
    })
}

#[cold]
fn not_ip(frame: &[u8], parsed: Parsed) -> Result<Facts, Malformed> {
    let (at, ether_type) = behind_tags(frame).ok_or(Malformed::Ethernet)?;
    match parsed {
        // A version that is no 6 makes the header wrong, not what follows it.
        Parsed::Truncated | Parsed::Malformed => {
            let header = frame.get(at + 2..).unwrap_or_default();
            let is_v6 = ether_type == TYPE_IPV6 && header.len() >= IPV6_LEN && header[0] >> 4 == 6;
            Err(if is_v6 {
                Malformed::Extensions
            } else {
                Malformed::IpHeader
            })
        }
        _ => Ok(other(vlan(frame), ether_type)),
    }
}

/// The ether type of what has no tag and is not IP: that is all there is to know of it.
#[inline]
fn plainly_other(frame: &[u8]) -> Option<u16> {
    let ether_type = u16::from_be_bytes(*frame.get(12..)?.first_chunk()?);
    // IPv4 first: it is most of what there is.
    let may_be_ip =
        ether_type == TYPE_IPV4 || matches!(ether_type, TYPE_IPV6 | wire::TPID_CUSTOMER | wire::TPID_SERVICE);
    (!may_be_ip).then_some(ether_type)
}

#[inline]
const fn other(vlan: Option<u16>, ether_type: u16) -> Facts {
    Facts {
        vlan,
        ether_type,
        layer: Layer::Other,
        protocol: 0,
        part: Part::Whole,
        source: 0,
        destination: 0,
        ports: None,
        detail: Detail::None,
    }
}

#[inline]
fn vlan(frame: &[u8]) -> Option<u16> {
    let tag = frame.get(12..16)?.first_chunk::<4>()?;
    let tpid = u16::from_be_bytes([tag[0], tag[1]]);
    (tpid == wire::TPID_CUSTOMER || tpid == wire::TPID_SERVICE)
        .then(|| u16::from_be_bytes([tag[2], tag[3]]) & 0x0FFF)
}

#[inline]
fn addresses(frame: &[u8], ip: &Ip) -> Option<(u128, u128)> {
    if ip.v6 {
        let both = frame.get(ip.at + 8..)?.first_chunk::<32>()?;
        let (source, destination) = both.split_first_chunk::<16>()?;
        Some((
            u128::from_be_bytes(*source),
            u128::from_be_bytes(*destination.first_chunk()?),
        ))
    } else {
        let both = frame.get(ip.at + 12..)?.first_chunk::<8>()?;
        let both = u64::from_be_bytes(*both);
        Some((u128::from(both >> 32) << 96, u128::from(both & 0xFFFF_FFFF) << 96))
    }
}

/// Checks the transport header, of what has one.
#[inline]
fn transport(frame: &[u8], ip: &Ip, part: Part, asks_flags: bool) -> Result<Detail, Malformed> {
    let payload = &frame[ip.transport..ip.end.min(frame.len())];
    let payload_len = ip.end - ip.transport;
    if part == Part::Later {
        // At offset 8 the flags of a TCP header can be written anew.
        let is_second = fragment_offset(frame, ip) == 1;
        return if ip.protocol == TCP && is_second {
            Err(Malformed::TinyFragment)
        } else {
            Ok(Detail::None)
        };
    }
    let cut = |reason| {
        if part == Part::First {
            Malformed::TinyFragment
        } else {
            reason
        }
    };
    match ip.protocol {
        TCP => {
            let len = payload.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
            if len < TCP_LEN || payload.len() < TCP_LEN {
                return Err(if payload.len() < TCP_LEN {
                    cut(Malformed::TcpHeader)
                } else {
                    Malformed::TcpHeader
                });
            }
            if len > payload_len {
                return Err(cut(Malformed::TcpHeader));
            }
            let flags = payload[13];
            let (fin, syn, rst, ack) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0, flags & 16 != 0);
            let is_odd = flags << 2 == 0 || (syn && (fin || rst)) || (fin && !ack);
            if asks_flags && is_odd {
                return Err(Malformed::TcpFlags);
            }
            Ok(Detail::Flags(flags))
        }
        UDP => {
            let Some(&[high, low]) = payload.get(4..).and_then(<[u8]>::first_chunk::<2>) else {
                return Err(cut(Malformed::UdpLength));
            };
            let len = usize::from(u16::from_be_bytes([high, low]));
            // The first fragment's length is that of the whole datagram.
            let fits = payload.len() >= UDP_LEN
                && if part == Part::First {
                    len >= payload_len
                } else {
                    len == payload_len
                };
            if fits && len >= UDP_LEN {
                Ok(Detail::None)
            } else if payload.len() < UDP_LEN {
                Err(cut(Malformed::UdpLength))
            } else {
                Err(Malformed::UdpLength)
            }
        }
        ICMP | ICMPV6 => match payload {
            [kind, ..] if payload.len() >= ICMP_LEN => Ok(Detail::Type(*kind)),
            _ => Err(cut(Malformed::IcmpLength)),
        },
        _ => Ok(Detail::None),
    }
}

/// The offset of a fragment, in units of eight bytes.
fn fragment_offset(frame: &[u8], ip: &Ip) -> u16 {
    let (at, shift) = if ip.v6 {
        (ip.fragment_at + 2, 3)
    } else {
        (ip.at + 6, 0)
    };
    let field = frame.get(at..).and_then(<[u8]>::first_chunk::<2>);
    field.map_or(0, |field| (u16::from_be_bytes(*field) >> shift) & 0x1FFF)
}
