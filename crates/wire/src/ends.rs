//! Whose a damaged frame was: of a stream of this run, or a stranger's, whose damage is no loss of ours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use crate::bytes::{try_array, try_be16};
use crate::headers::{IPV4_LEN, IPV6_LEN, TYPE_IPV4, TYPE_IPV6, UDP_LEN, behind_tags};
use crate::probe::MAGIC;
use crate::template_flow::SOURCE_PORTS;
use crate::{Foreign, TemplateSpec};

/// The two ends of a stream, by which its packets are known where no checksum can be believed.
#[derive(Clone, Debug)]
pub struct Ends {
    ours: RangeInclusive<IpAddr>,
    /// The first of our ports, and how many follow it, round from 65535 to 1024.
    own_ports: (u16, u32),
    far: IpAddr,
    far_ports: RangeInclusive<u16>,
}

impl Ends {
    /// Those of the packets of this specification, of all its flows.
    pub fn of(spec: &TemplateSpec) -> Self {
        let far_ports = u32::from(spec.dst_ports.end() - spec.dst_ports.start()) + 1;
        // Flows differ in their source ports where those of the far end do not suffice, and in their address after that.
        let turns = spec.flows.saturating_sub(1) / far_ports;
        let first = spec.src.ip();
        Self {
            ours: first..=spec.last_source().unwrap_or(first),
            own_ports: (spec.src.port(), turns.min(SOURCE_PORTS - 1)),
            far: spec.dst.ip(),
            far_ports: spec.dst_ports.clone(),
        }
    }

    fn is_own_port(&self, port: u16) -> bool {
        let (first, further) = self.own_ports;
        let (port, first) = (u32::from(port), u32::from(first));
        let after = port.checked_sub(first).unwrap_or(port + SOURCE_PORTS - first);
        after <= further
    }

    fn are(&self, from: (IpAddr, u16), to: (IpAddr, u16)) -> bool {
        let there = |(ours, far): ((IpAddr, u16), (IpAddr, u16))| {
            self.ours.contains(&ours.0)
                && self.is_own_port(ours.1)
                && far.0 == self.far
                && self.far_ports.contains(&far.1)
        };
        there((from, to)) || there((to, from))
    }
}

/// What a frame is that cannot be believed: `None` where it is a damaged probe of the run, which still shows the ends of a
/// stream (either way round) or the run's mark; else a stranger's frame, of this kind.
#[cold]
pub fn whose_damage(frame: &[u8], run: u8, ends: &[Ends]) -> Option<Foreign> {
    let stranger = |at: Option<usize>| match at.and_then(|at| try_be16(frame, at + 6)) {
        Some(0) => Foreign::NoChecksum,
        _ => Foreign::Damaged,
    };
    let Some((at, ether_type)) = behind_tags(frame) else {
        return Some(stranger(None));
    };
    let ip = at + 2;
    // The length of the header may be what is damaged: where it would be without options is tried, too.
    let (addresses, transports) = match ether_type {
        TYPE_IPV4 => {
            let told = frame.get(ip).map_or(0, |byte| usize::from(byte & 0x0F) * 4);
            (v4(frame, ip), [ip + IPV4_LEN, ip + told])
        }
        TYPE_IPV6 => (v6(frame, ip), [ip + IPV6_LEN; 2]),
        _ => (None, [ip; 2]),
    };
    let is_ours = |transport: usize| {
        let mark = try_array::<3>(frame, transport + UDP_LEN);
        let [high, low] = MAGIC.to_be_bytes();
        let ports = try_be16(frame, transport).zip(try_be16(frame, transport + 2));
        let shows_ends = addresses
            .zip(ports)
            .is_some_and(|((from, to), (from_port, to_port))| {
                ends.iter().any(|ends| ends.are((from, from_port), (to, to_port)))
            });
        shows_ends || mark == Some(&[high, low, run])
    };
    let is_ours = transports.into_iter().any(is_ours);
    (!is_ours).then(|| stranger(addresses.map(|_| transports[1])))
}

fn v4(frame: &[u8], ip: usize) -> Option<(IpAddr, IpAddr)> {
    let address = |at| Some(IpAddr::V4(Ipv4Addr::from(*try_array::<4>(frame, at)?)));
    address(ip + 12).zip(address(ip + 16))
}

fn v6(frame: &[u8], ip: usize) -> Option<(IpAddr, IpAddr)> {
    let address = |at| Some(IpAddr::V6(Ipv6Addr::from(*try_array::<16>(frame, at)?)));
    address(ip + 8).zip(address(ip + 24))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BurstStamp, Template, reflect};

    fn spec(flows: u32) -> TemplateSpec {
        TemplateSpec {
            dst: ([198, 18, 9, 2], 7).into(),
            run: 9,
            flows,
            dst_ports: 7..=8,
            ..TemplateSpec::plain(64)
        }
    }

    #[test]
    fn every_flow_is_known_by_its_ends_and_no_other_port() {
        let spec = spec(200_000);
        let (template, ends) = (Template::new(&spec).unwrap(), [Ends::of(&spec)]);
        let mut room = [0; 128];
        for flow in (0..200_000).step_by(97).chain([199_999]) {
            template.write(&mut room, &BurstStamp::new(1, 0), 1, Some(&template.flow(flow)));
            let frame = &mut room[..template.frame_len()];
            // Neither its mark nor its checksum is left.
            frame[40..].fill(0xEE);
            assert_eq!(whose_damage(frame, 9, &ends), None, "flow {flow}");
            reflect(frame, false).unwrap();
            assert_eq!(whose_damage(frame, 9, &ends), None, "flow {flow} reflected");
        }
    }

    #[test]
    fn a_stranger_between_the_same_hosts_is_a_stranger() {
        let (template, ends) = (Template::new(&spec(1)).unwrap(), [Ends::of(&spec(1))]);
        let mut frame = template.bytes().to_vec();
        frame[34..36].copy_from_slice(&33_333_u16.to_be_bytes());
        frame[40..42].fill(0);
        assert_eq!(whose_damage(&frame, 9, &ends), None, "it has our mark");
        frame[42] = 0;
        assert_eq!(whose_damage(&frame, 9, &ends), Some(Foreign::NoChecksum));
        frame[40] = 1;
        assert_eq!(whose_damage(&frame, 9, &ends), Some(Foreign::Damaged));
    }
}
