//! The parser finds what the template wrote, and what other hosts write.
#![allow(clippy::unwrap_used, reason = "tests say what they expect")]

use super::common::{STACKS, packet, plain_spec};
use wire::{Ip, Parsed, Template, parse};

fn ip(frame: &[u8]) -> Ip {
    match parse(frame) {
        Parsed::Ip(ip) => ip,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn every_header_of_a_probe_is_where_its_template_put_it() {
    for (v6, tags) in STACKS {
        let spec = plain_spec(v6, tags, 200);
        let template = Template::new(&spec).unwrap();
        let frame = packet(&template, 5, 0, 1, 0);
        let ip = ip(&frame);
        assert_eq!((ip.v6, ip.at), (v6, template.l2_len()));
        assert_eq!(ip.transport, ip.at + template.l3_len());
        assert_eq!((ip.protocol, ip.end), (17, frame.len()));
        assert!(!ip.fragment && !ip.later_fragment && ip.header_is_valid(&frame));
        let udp = ip.udp(&frame).unwrap();
        assert_eq!((udp.at, udp.end), (ip.transport, ip.end));
        assert_eq!(ip.vlans(&frame).collect::<Vec<_>>(), spec.vlans);
        assert_eq!(ip.addresses(&frame).unwrap(), (spec.src.ip(), spec.dst.ip()));
        assert_eq!(ip.ports(&frame).unwrap(), (spec.src.port(), spec.dst.port()));
    }
}

#[test]
fn a_fragment_has_ports_in_its_first_part_only() {
    let probe = packet(&Template::new(&plain_spec(false, 0, 200)).unwrap(), 5, 0, 1, 0);
    // Flags and offset: "don't fragment", more fragments, more and an offset, the last one.
    for (field, fragment, later) in [
        ([0x40, 0], false, false),
        ([0x20, 0], true, false),
        ([0x20, 9], true, true),
        ([0, 9], true, true),
    ] {
        let mut frame = probe.clone();
        frame[20..22].copy_from_slice(&field);
        let ip = ip(&frame);
        assert_eq!((ip.fragment, ip.later_fragment), (fragment, later), "{field:?}");
        assert_eq!(ip.ports(&frame).is_none(), later);
        assert_eq!(ip.udp(&frame).is_none(), fragment);
    }
    let probe = packet(&Template::new(&plain_spec(true, 0, 200)).unwrap(), 5, 0, 1, 0);
    for (field, later) in [([0, 1], false), ([0, 8], true)] {
        // A fragment header before UDP (RFC 8200 section 4.5).
        let extension = [17, 0, field[0], field[1], 0, 0, 0, 7];
        let mut frame = [&probe[..54], &extension, &probe[54..]].concat();
        frame[20] = 44;
        let len = frame.len() - 54;
        frame[18..20].copy_from_slice(&(len as u16).to_be_bytes());
        let ip = ip(&frame);
        assert_eq!((ip.transport, ip.protocol, ip.end), (62, 17, frame.len()));
        assert_eq!((ip.fragment, ip.later_fragment), (true, later), "{field:?}");
        assert_eq!(ip.ports(&frame).is_none(), later);
    }
}

#[test]
fn headers_go_on_behind_that_of_a_first_fragment() {
    let probe = packet(&Template::new(&plain_spec(true, 0, 200)).unwrap(), 5, 0, 1, 0);
    let with = |fields: &[[u8; 2]]| {
        let fragments = fields
            .iter()
            .flat_map(|field| [44, 0, field[0], field[1], 0, 0, 0, 7]);
        let mut headers: Vec<u8> = fragments.collect();
        let last = headers.len() - 8;
        headers[last] = 60;
        headers.extend([17, 0, 1, 4, 0, 0, 0, 0]);
        let mut frame = [&probe[..54], &headers, &probe[54..]].concat();
        frame[20] = 44;
        let len = frame.len() - 54;
        frame[18..20].copy_from_slice(&(len as u16).to_be_bytes());
        frame
    };
    let found = |frame: &[u8]| {
        let ip = ip(frame);
        (
            ip.fragment_at,
            ip.transport,
            ip.protocol,
            ip.ports(frame).is_some(),
        )
    };
    for more in [[0, 0], [0, 1]] {
        assert_eq!(found(&with(&[more])), (54, 70, 17, true));
    }
    assert_eq!(found(&with(&[[0, 8]])), (54, 62, 60, false), "a later fragment");
    assert_eq!(
        found(&with(&[[0, 0], [0, 8]])),
        (62, 70, 60, false),
        "one in another"
    );
    let (first, later) = (with(&[[0, 1]]), with(&[[0, 8]]));
    assert_eq!(wire::flow_hash(&first), wire::flow_hash(&later), "one packet");
    assert_eq!(parse(&first[..68]), Parsed::Truncated);
}

#[test]
fn what_is_no_ip_has_a_name() {
    let probe = packet(&Template::new(&plain_spec(false, 0, 200)).unwrap(), 5, 0, 1, 0);
    let changed = |changes: &[(usize, u8)]| {
        let mut frame = probe.clone();
        for (at, byte) in changes {
            frame[*at] = *byte;
        }
        parse(&frame)
    };
    assert_eq!(changed(&[(12, 8), (13, 6)]), Parsed::Arp(14));
    assert_eq!(changed(&[(12, 0x88), (13, 0xCC)]), Parsed::Other);
    let three_tags = [(12, 0x81), (13, 0), (16, 0x81), (17, 0), (20, 0x81), (21, 0)];
    assert_eq!(changed(&three_tags), Parsed::Other);
    assert_eq!(changed(&[(14, 0x65)]), Parsed::Malformed);
    assert_eq!(changed(&[(16, 0), (17, 19)]), Parsed::Malformed);
    assert_eq!(parse(&probe[..33]), Parsed::Truncated);
    assert_eq!(parse(&[]), Parsed::Truncated);
}
