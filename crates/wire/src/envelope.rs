//! Headers for the payload of a socket, so that it is judged and turned round like any frame; and what of a frame goes to a
//! socket.
//!
//! The kernel took the real headers off, after it had looked at them. These say what it told: both ends and the length.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::bytes::put_be16;
use crate::checksum::{self, UDP};
use crate::headers::{self, ETHERNET_LEN, IPV4_LEN, IPV6_LEN, Parsed, TYPE_IPV4, TYPE_IPV6, UDP_LEN};
use crate::probe::MAGIC;

const V4_LEN: usize = ETHERNET_LEN + IPV4_LEN + UDP_LEN;
const V6_LEN: usize = ETHERNET_LEN + IPV6_LEN + UDP_LEN;
/// Who the two ends of a socket are below IP, where nobody looks.
const US: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// The identification of what is no probe: a reflector that remembers the headers of probes looks twice.
const NO_PROBE: [u8; 2] = [0, 1];

/// How long the headers before a socket's payload are.
pub const fn envelope_len(ipv6: bool) -> usize {
    if ipv6 { V6_LEN } else { V4_LEN }
}

/// Makes a frame of a payload that lies in `room` behind [`envelope_len`] bytes; returns its length, or `None` if it does
/// not fit.
///
/// Checksums are left out where the payload begins like a probe, unless `sealed`: the kernel has verified them, and whoever
/// judges the frame must be told not to. Everything else gets true ones.
pub fn wrap(
    room: &mut [u8],
    from: SocketAddr,
    to: SocketAddr,
    payload_len: usize,
    sealed: bool,
) -> Option<usize> {
    let udp_len = u16::try_from(UDP_LEN + payload_len).ok()?;
    let v6 = from.is_ipv6();
    let end = envelope_len(v6) + payload_len;
    let (head, payload) = room.get_mut(..end)?.split_at_mut(envelope_len(v6));
    let is_probe = payload.first_chunk::<2>() == Some(&MAGIC.to_be_bytes());
    let sealed = sealed || !is_probe;
    head[..6].copy_from_slice(&US);
    head[6..12].copy_from_slice(&PEER);
    let pseudo = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let head = head.first_chunk_mut::<V4_LEN>()?;
            v4(
                head,
                from,
                to,
                udp_len,
                if is_probe { [0; 2] } else { NO_PROBE },
                sealed,
            )
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let head = head.first_chunk_mut::<V6_LEN>()?;
            v6_header(head, from, to, udp_len)
        }
        _ => return None,
    };
    let at = envelope_len(v6) - UDP_LEN;
    let udp = head[at..].first_chunk_mut::<UDP_LEN>()?;
    put_be16(udp, 0, from.port());
    put_be16(udp, 2, to.port());
    put_be16(udp, 4, udp_len);
    put_be16(udp, 6, 0);
    if sealed {
        let sum = pseudo + checksum::sum(&udp[..]) + checksum::sum(payload);
        udp[6..].copy_from_slice(&checksum::udp_field(sum));
    }
    Some(end)
}

fn v4(head: &mut [u8; V4_LEN], from: Ipv4Addr, to: Ipv4Addr, udp_len: u16, id: [u8; 2], sealed: bool) -> u64 {
    put_be16(head, 12, TYPE_IPV4);
    head[14..16].copy_from_slice(&[0x45, 0]);
    put_be16(head, 16, IPV4_LEN as u16 + udp_len);
    head[18..20].copy_from_slice(&id);
    head[20..26].copy_from_slice(&[0x40, 0, 64, UDP, 0, 0]);
    head[26..30].copy_from_slice(&from.octets());
    head[30..34].copy_from_slice(&to.octets());
    if !sealed {
        return 0;
    }
    let field = checksum::field(checksum::sum(&head[14..34]));
    head[24..26].copy_from_slice(&field);
    let mut addresses = [0; 8];
    addresses.copy_from_slice(&head[26..34]);
    checksum::pseudo_v4(&addresses, UDP, udp_len)
}

fn v6_header(head: &mut [u8; V6_LEN], from: Ipv6Addr, to: Ipv6Addr, udp_len: u16) -> u64 {
    put_be16(head, 12, TYPE_IPV6);
    head[14..18].copy_from_slice(&[0x60, 0, 0, 0]);
    put_be16(head, 18, udp_len);
    head[20..22].copy_from_slice(&[UDP, 64]);
    head[22..38].copy_from_slice(&from.octets());
    head[38..54].copy_from_slice(&to.octets());
    let mut addresses = [0; 32];
    addresses.copy_from_slice(&head[22..54]);
    checksum::pseudo_v6(&addresses, UDP, udp_len)
}

/// Where a frame goes and what it carries, for a socket; `None` if it is not UDP.
#[inline]
pub fn unwrap(frame: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let Parsed::Ip(ip) = headers::parse(frame) else {
        return None;
    };
    let udp = ip.udp(frame)?;
    let ((_, to), (_, port)) = (ip.addresses(frame)?, ip.ports(frame)?);
    Some((SocketAddr::new(to, port), frame.get(udp.at + UDP_LEN..udp.end)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BurstStamp, Class, Template, TemplateSpec, Verify, classify, reflect};

    fn template(v6: bool, size: usize) -> Template {
        let ip = |last: u8| -> IpAddr {
            if v6 {
                format!("2001:2::{last}").parse().unwrap()
            } else {
                [198, 18, 0, last].into()
            }
        };
        Template::new(&TemplateSpec {
            src: (ip(1), 49152).into(),
            dst: (ip(2), 7).into(),
            run: 9,
            lane: 3,
            ..TemplateSpec::plain(size)
        })
        .unwrap()
    }

    /// What a socket carries of a probe becomes a frame that is judged as the probe, turned round, and goes back.
    #[test]
    fn a_probe_goes_through_a_socket_and_back() {
        for (v6, size) in [(false, 64), (true, 84), (false, 700), (true, 701)] {
            let mut room = [0; 2048];
            let template = template(v6, size);
            template.write(&mut room, &BurstStamp::new(77, 0), 5, None);
            let (to, payload) = unwrap(&room[..template.frame_len()]).unwrap();
            assert_eq!(to.port(), 7);
            let from: SocketAddr = if v6 {
                "[2001:2::1]:49152"
            } else {
                "198.18.0.1:49152"
            }
            .parse()
            .unwrap();
            for (sealed, verify) in [(false, Verify::None), (true, Verify::Payload)] {
                let mut frame = [0xA5; 2048];
                frame[envelope_len(v6)..][..payload.len()].copy_from_slice(payload);
                let len = wrap(&mut frame, from, to, payload.len(), sealed).unwrap();
                let frame = &mut frame[..len];
                let Class::Probe(probe) = classify(frame, 9, verify) else {
                    panic!("no probe")
                };
                assert_eq!((probe.sequence, probe.lane, probe.time_ns), (5, 3, 77));
                reflect(frame, true).unwrap();
                assert_eq!(unwrap(frame).unwrap(), (from, payload));
            }
        }
    }

    #[test]
    fn a_damaged_payload_is_seen_where_it_is_looked_for() {
        let template = template(false, 200);
        let mut room = [0; 2048];
        template.write(&mut room, &BurstStamp::new(77, 0), 5, None);
        let (to, payload) = unwrap(&room[..template.frame_len()]).unwrap();
        let mut frame = [0; 2048];
        frame[V4_LEN..][..payload.len()].copy_from_slice(payload);
        frame[150] ^= 4;
        let from = "198.18.0.1:49152".parse().unwrap();
        let len = wrap(&mut frame, from, to, payload.len(), true).unwrap();
        assert_eq!(classify(&frame[..len], 9, Verify::Payload), Class::Corrupt);
    }

    #[test]
    fn a_reflector_answers_a_question_that_came_through_a_socket() {
        let spec = TemplateSpec {
            run: 9,
            ..TemplateSpec::plain(0)
        };
        let question = crate::ReflectorCounters::question(&spec, 1).unwrap();
        let (to, payload) = unwrap(&question).unwrap();
        let mut frame = vec![0; 2048];
        frame[V4_LEN..][..payload.len()].copy_from_slice(payload);
        let len = wrap(&mut frame, spec.src, to, payload.len(), false).unwrap();
        assert!(crate::ReflectorCounters::default().answer(&mut frame[..len]));
        assert_eq!(unwrap(&frame[..len]).unwrap().0, spec.src);
    }
}
