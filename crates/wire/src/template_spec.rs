//! What a template is made from, and why some specifications cannot be sent.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::headers::{ETHERNET_LEN, IPV4_LEN, IPV6_LEN, UDP_LEN};
use crate::probe::PROBE_LEN;
use crate::vlan::{VlanError, VlanTag};
use crate::{FCS_LEN, Mac};

/// Largest frame, FCS included: what the usual NICs call their jumbo limit fits well below.
pub const MAX_FRAME_SIZE: usize = 16_128;
/// No Ethernet frame is smaller, FCS included.
const MIN_FRAME_SIZE: usize = 64;

/// Everything that is the same in all packets of one stream and size, and how flows differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateSpec {
    /// Source MAC address.
    pub src_mac: Mac,
    /// Destination MAC address.
    pub dst_mac: Mac,
    /// VLAN tags, outermost first; at most two.
    pub vlans: Vec<VlanTag>,
    /// Source address and port of flow 0.
    pub src: SocketAddr,
    /// Destination address; its port is the first of `dst_ports`, the port given here is not looked at.
    pub dst: SocketAddr,
    /// Bytes of the frame, FCS included.
    pub frame_size: usize,
    /// IPv4 time to live or IPv6 hop limit.
    pub ttl: u8,
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// The run that receivers will count the packets for.
    pub run: u8,
    /// Sequence space of the packets.
    pub lane: u16,
    /// How many flows there are, at least 1.
    pub flows: u32,
    /// Destination ports; flows go through them first, then through source ports, then through source
    /// addresses, past that of the destination: see [`TemplateSpec::last_source`].
    pub dst_ports: RangeInclusive<u16>,
}

/// Why a template cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// The frame cannot hold the headers and a probe.
    #[error(
        "frame size {found} is below the probe: {stack} needs at least {minimum} bytes (FCS included); use --size {minimum}"
    )]
    TooSmall {
        /// Size asked for.
        found: usize,
        /// Smallest size possible for these headers.
        minimum: usize,
        /// The headers in words.
        stack: String,
    },
    /// Beyond [`MAX_FRAME_SIZE`].
    #[error(
        "frame size {found} is too large: at most {MAX_FRAME_SIZE} bytes (FCS included) can be sent; use --size {MAX_FRAME_SIZE}"
    )]
    TooLarge {
        /// Size asked for.
        found: usize,
    },
    /// IPv4 on one side, IPv6 on the other.
    #[error(
        "source {source_ip} and destination {destination_ip} are of different IP versions; give --from and --to of one version"
    )]
    MixedVersions {
        /// Source address.
        source_ip: std::net::IpAddr,
        /// Destination address.
        destination_ip: std::net::IpAddr,
    },
    /// `flows` is 0.
    #[error("no flow to send; use --flows 1 or more")]
    NoFlows,
    /// The range has no port in it.
    #[error("destination ports {first}-{last} are none; give the lower port first")]
    NoPorts {
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
    /// Six bits.
    #[error("DSCP {found} does not exist; code points go from 0 to 63")]
    Dscp {
        /// The code point asked for.
        found: u8,
    },
    /// The VLAN tags cannot be sent.
    #[error(transparent)]
    Vlan(#[from] VlanError),
}

impl TemplateSpec {
    /// One flow of probes of run 0 and lane 0, without tags, between two addresses of those for benchmarks (RFC 2544, C.2.2) and
    /// two locally administered MAC addresses, to the echo port.
    pub fn plain(frame_size: usize) -> Self {
        Self {
            src_mac: [2, 0, 0, 0, 0, 1],
            dst_mac: [2, 0, 0, 0, 0, 2],
            vlans: Vec::new(),
            src: ([198, 18, 0, 1], 49152).into(),
            dst: ([198, 18, 0, 2], 7).into(),
            frame_size,
            ttl: 64,
            dscp: 0,
            run: 0,
            lane: 0,
            flows: 1,
            dst_ports: 7..=7,
        }
    }

    /// Checks everything that could be wrong.
    pub fn check(&self) -> Result<(), TemplateError> {
        VlanTag::check(&self.vlans)?;
        if self.src.is_ipv4() != self.dst.is_ipv4() {
            let (source_ip, destination_ip) = (self.src.ip(), self.dst.ip());
            return Err(TemplateError::MixedVersions {
                source_ip,
                destination_ip,
            });
        }
        let minimum = minimum_frame_size(self.dst.is_ipv6(), self.vlans.len());
        if self.frame_size < minimum {
            return Err(TemplateError::TooSmall {
                found: self.frame_size,
                minimum,
                stack: self.stack_in_words(),
            });
        }
        if self.frame_size > MAX_FRAME_SIZE {
            return Err(TemplateError::TooLarge {
                found: self.frame_size,
            });
        }
        if self.flows == 0 {
            return Err(TemplateError::NoFlows);
        }
        if self.dst_ports.is_empty() {
            return Err(TemplateError::NoPorts {
                first: *self.dst_ports.start(),
                last: *self.dst_ports.end(),
            });
        }
        if self.dscp > 63 {
            return Err(TemplateError::Dscp { found: self.dscp });
        }
        Ok(())
    }

    fn stack_in_words(&self) -> String {
        let version = if self.dst.is_ipv6() { "IPv6" } else { "IPv4" };
        match self.vlans.len() {
            0 => format!("a probe over {version}"),
            1 => format!("a probe over {version} with a VLAN tag"),
            tags => format!("a probe over {version} with {tags} VLAN tags"),
        }
    }
}

/// Bytes of the headers before the probe.
pub(crate) const fn headers_len(ipv6: bool, vlans: usize) -> usize {
    ETHERNET_LEN + 4 * vlans + if ipv6 { IPV6_LEN } else { IPV4_LEN } + UDP_LEN
}

/// Smallest frame, FCS included, that can carry a probe under these headers.
pub(crate) const fn minimum_frame_size(ipv6: bool, vlans: usize) -> usize {
    let needed = headers_len(ipv6, vlans) + PROBE_LEN + FCS_LEN;
    if needed < MIN_FRAME_SIZE {
        MIN_FRAME_SIZE
    } else {
        needed
    }
}
