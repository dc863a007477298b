//! From a flow's number to its ports and source address, without a division.
//!
//! Flows go through the destination ports first, then through the source ports, then through source
//! addresses, of which the destination's is left out.

use std::net::IpAddr;

use crate::TemplateSpec;

/// Source ports that flows use: 1024 to 65535, from the given one on and round.
pub(crate) const SOURCE_PORTS: u32 = 64_512;

/// How the flows of a template differ.
#[derive(Clone, Debug)]
pub(crate) struct Flows {
    pub count: u32,
    src_port: u32,
    dst_port: u32,
    pub dst_ports: u32,
    /// 2^64 divided by `dst_ports`, rounded up; unused when that is 1.
    reciprocal: u64,
    source_low: u32,
    /// From this source address on, counted from the first, one more is added: it would be the destination's.
    passed_over: u32,
}

/// Where a flow lies among the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub src_port: u32,
    /// Source ports below this one are of the same address, and follow one another.
    pub src_end: u32,
    /// From the first destination port.
    pub dst_offset: u32,
    /// From the first source address, the destination's not counted.
    pub address: u32,
}

impl Flows {
    pub(crate) fn new(spec: &TemplateSpec) -> Self {
        let (first, last) = (
            u32::from(*spec.dst_ports.start()),
            u32::from(*spec.dst_ports.end()),
        );
        let dst_ports = last.saturating_sub(first) + 1;
        Self {
            count: spec.flows,
            src_port: u32::from(spec.src.port()),
            dst_port: first,
            dst_ports,
            reciprocal: (u64::MAX / u64::from(dst_ports)).wrapping_add(1),
            source_low: low(spec.src.ip()),
            passed_over: passed_over(spec),
        }
    }

    #[inline]
    pub(crate) fn place(&self, flow: u32) -> Place {
        let (turn, dst_offset) = if self.dst_ports == 1 {
            (flow, 0)
        } else {
            // Exact: the rounding error stays below 2^-32, and dst_ports is at most 2^16.
            let turn = ((u128::from(flow) * u128::from(self.reciprocal)) >> 64) as u32;
            (turn, flow - turn * self.dst_ports)
        };
        let src_port = self.src_port + turn % SOURCE_PORTS;
        let (src_port, src_end) = if src_port > 65535 {
            (src_port - SOURCE_PORTS, self.src_port)
        } else {
            (src_port, (self.src_port + SOURCE_PORTS).min(65536))
        };
        Place {
            src_port,
            src_end,
            dst_offset,
            address: turn / SOURCE_PORTS,
        }
    }

    /// Source port in the upper, destination port in the lower half.
    #[inline]
    pub(crate) const fn ports(&self, place: &Place) -> u32 {
        place.src_port << 16 | (self.dst_port + place.dst_offset)
    }

    /// Low 32 bits of the source address, and how much they grew from flow 0's, wrapping in 64 bits.
    #[inline]
    pub(crate) fn source(&self, place: &Place) -> (u32, u64) {
        let further = place.address + u32::from(place.address >= self.passed_over);
        let source_low = self.source_low.wrapping_add(further);
        (
            source_low,
            u64::from(source_low).wrapping_sub(u64::from(self.source_low)),
        )
    }
}

impl TemplateSpec {
    /// The source address of the last flow; `None` where flows count beyond the last address (of IPv6, beyond what the lower
    /// 32 bits hold).
    #[must_use]
    pub fn last_source(&self) -> Option<IpAddr> {
        let flows = Flows::new(self);
        let (last, _) = flows.source(&flows.place(self.flows.saturating_sub(1)));
        let further = last.checked_sub(flows.source_low)?;
        Some(match self.src.ip() {
            IpAddr::V4(_) => IpAddr::V4(last.into()),
            IpAddr::V6(first) => IpAddr::V6((first.to_bits() + u128::from(further)).into()),
        })
    }
}

/// How far above the first source address the destination is; more than flows get to where they never come to it.
fn passed_over(spec: &TemplateSpec) -> u32 {
    let (src, dst) = (spec.src.ip(), spec.dst.ip());
    let is_reached = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => src != dst,
        (IpAddr::V6(src), IpAddr::V6(dst)) => src != dst && src.to_bits() >> 32 == dst.to_bits() >> 32,
        _ => false,
    };
    if is_reached {
        low(dst).wrapping_sub(low(src))
    } else {
        u32::MAX
    }
}

/// The lower 32 bits.
fn low(ip: IpAddr) -> u32 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits(),
        IpAddr::V6(ip) => ip.to_bits() as u32,
    }
}
