//! What a template writes is right in the eyes of an independent reader, for every specification.

#![allow(
    clippy::unwrap_used,
    clippy::single_match_else,
    reason = "tests say what they expect"
)]

use crate::common;

use std::collections::HashSet;
use std::net::IpAddr;

use crate::common::{
    be16, dissect, dissect_without_udp_checksum, number, packet, plain_spec, slow_sum, spec,
};
use proptest::prelude::*;
use wire::{BurstStamp, Class, PROBE_LEN, Template, TemplateError, Verify, VlanTag, classify, pattern};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn writes_what_the_specification_says(
        spec in spec(), time_ns: u64, lag: u8, sequence: u64, flow_seed: u32,
    ) {
        let template = Template::new(&spec).unwrap();
        let flow = flow_seed % spec.flows;
        let frame = packet(&template, time_ns, lag, sequence, flow);
        prop_assert_eq!(frame.len(), spec.frame_size - 4);
        let found = dissect(&frame).map_err(TestCaseError::fail)?;
        prop_assert_eq!(&found.dst_mac[..], spec.dst_mac);
        prop_assert_eq!(&found.src_mac[..], spec.src_mac);
        let tags: Vec<_> = spec.vlans.iter().map(|tag| (tag.tpid, u16::from(tag.pcp) << 13 | tag.id)).collect();
        prop_assert_eq!(found.tags, tags);
        prop_assert_eq!((found.traffic_class, found.ttl), (spec.dscp << 2, spec.ttl));
        prop_assert_eq!(found.dst.ip(), spec.dst.ip());
        prop_assert!(spec.dst_ports.contains(&found.dst.port()));
        if flow == 0 {
            prop_assert_eq!((found.src, found.dst.port()), (spec.src, *spec.dst_ports.start()));
        } else {
            prop_assert!(found.src.port() >= spec.src.port().min(1024));
        }
        prop_assert_eq!(found.udp_at, template.udp_offset());
        prop_assert_eq!(template.l2_len() + template.l3_len(), found.udp_at);

        let (probe, rest) = found.payload.split_at(PROBE_LEN);
        prop_assert_eq!(&probe[..4], [0xD7, 0x01, spec.run, lag]);
        prop_assert_eq!(number(&probe[4..6]), u64::from(spec.lane));
        prop_assert_eq!(number(&probe[6..12]), sequence % (1 << 48));
        prop_assert_eq!(number(&probe[12..18]), time_ns % (1 << 48));
        prop_assert_eq!(Some(rest), pattern::expected(spec.run, spec.lane, rest.len()));

        for verify in [Verify::None, Verify::Checksum, Verify::Payload] {
            let Class::Probe(probe) = classify(&frame, spec.run, verify) else {
                return Err(TestCaseError::fail(format!("not accepted with {verify:?}")));
            };
            prop_assert_eq!((probe.run, probe.lag, probe.lane), (spec.run, lag, spec.lane));
            prop_assert_eq!((probe.sequence, probe.time_ns), (sequence % (1 << 48), time_ns % (1 << 48)));
            prop_assert_eq!(wire::peek(&frame), Some(probe));
        }
    }

    #[test]
    fn leaves_the_pseudo_sum_to_a_nic_that_completes_checksums(
        spec in spec(), time_ns: u64, lag: u8, sequence: u64, flow_seed: u32,
    ) {
        let plain = Template::new(&spec).unwrap();
        let offloaded = plain.clone().with_checksum_offload();
        let flow = flow_seed % spec.flows;
        let mut frame = packet(&offloaded, time_ns, lag, sequence, flow);
        let found = dissect_without_udp_checksum(&frame).map_err(TestCaseError::fail)?;
        let field = found.udp_at + 6;
        prop_assert_eq!(be16(&frame, field), slow_sum(&found.pseudo));
        // What the NIC then does: sum from the UDP header on, field included, and store the complement.
        let completed = match !slow_sum(&frame[found.udp_at..]) { 0 => 0xFFFF, sum => sum };
        frame[field..field + 2].copy_from_slice(&completed.to_be_bytes());
        prop_assert_eq!(frame, packet(&plain, time_ns, lag, sequence, flow));
    }

    #[test]
    fn writes_nothing_into_too_small_a_room(spec in spec(), cut in 1_usize..64) {
        let template = Template::new(&spec).unwrap();
        let mut room = vec![0xEE; template.room_needed() - cut];
        template.write(&mut room, &BurstStamp::new(1, 2), 3, None);
        prop_assert!(room.iter().all(|&byte| byte == 0xEE));
    }

    /// First, last, and those beside them: what lies between differs in nothing else.
    #[test]
    fn a_stretch_is_its_flows_one_by_one(
        spec in spec(), flows in 1_u32..200_000, from_port in 1_u16.., number: u32, step in 0_u32..70_000,
    ) {
        let mut spec = spec;
        spec.flows = flows;
        spec.src.set_port(from_port);
        let plain = Template::new(&spec).unwrap();
        let (number, step) = (number % flows, step % flows);
        for template in [plain.clone(), plain.with_checksum_offload()] {
            let mut stretch = template.stretch(number, step);
            let len = stretch.flows();
            prop_assert!(len >= 1 && number + (len - 1) * step < flows);
            for at in 0..len {
                if at < 3 || at + 3 > len {
                    let mut written = vec![0xEE; template.room_needed()];
                    stretch.write(&mut written, &BurstStamp::new(7, 0), 9);
                    written.truncate(template.frame_len());
                    prop_assert_eq!(written, packet(&template, 7, 0, 9, number + at * step), "{} of {}", at, len);
                }
                stretch.next(step);
            }
        }
    }

    #[test]
    fn no_flow_is_the_first(spec in spec(), sequence: u64) {
        let template = Template::new(&spec).unwrap();
        let mut written = vec![0xEE; template.room_needed()];
        template.write(&mut written, &BurstStamp::new(7, 0), sequence, None);
        written.truncate(template.frame_len());
        prop_assert_eq!(written, packet(&template, 7, 0, sequence, 0));
    }

    #[test]
    fn never_touches_what_lies_behind_a_long_frame(spec in spec(), sequence: u64, flow: u32) {
        let template = Template::new(&spec).unwrap();
        let mut room = vec![0xEE; template.room_needed() + 64];
        template.write(&mut room, &BurstStamp::new(u64::MAX, 255), sequence, Some(&template.flow(flow)));
        prop_assert!(room[template.room_needed()..].iter().all(|&byte| byte == 0xEE));
    }
}

/// The checksum of the packet with this sequence is all ones: its computed value zero, which UDP may not
/// send.
#[test]
fn sends_a_zero_checksum_as_all_ones() {
    for (ipv6, tags) in common::STACKS {
        let template = Template::new(&plain_spec(ipv6, tags, 64)).unwrap();
        let field = template.udp_offset() + 6;
        let found = (0..65535)
            .filter(|&sequence| be16(&packet(&template, 0, 0, sequence, 0), field) == 0xFFFF)
            .count();
        let zeros = (0..65535)
            .filter(|&sequence| be16(&packet(&template, 0, 0, sequence, 0), field) == 0)
            .count();
        assert_eq!((found, zeros), (1, 0));
    }
}

fn distinct_flows(spec: &wire::TemplateSpec, flows: impl Iterator<Item = u32>) -> (usize, HashSet<IpAddr>) {
    let template = Template::new(spec).unwrap();
    let mut seen = HashSet::new();
    let mut sources = HashSet::new();
    for flow in flows {
        let found = dissect(&packet(&template, 7, 1, u64::from(flow), flow)).unwrap();
        sources.insert(found.src.ip());
        assert!(
            flow == 0 || found.src.port() >= spec.src.port().min(1024),
            "flow {flow}: {found:?}"
        );
        assert!(
            seen.insert((found.src, found.dst)),
            "flow {flow} repeats {found:?}"
        );
    }
    (seen.len(), sources)
}

/// An IPv4 header checksum of zero stays zero when it is patched: all ones is no value a fresh sum could have.
#[test]
fn patches_the_ipv4_checksum_as_if_it_were_summed() {
    let mut zeros = 0;
    for low in 0..=u16::MAX {
        let [c, d] = low.to_be_bytes();
        let spec = wire::TemplateSpec {
            src: ([10, 0, c, d], 4000).into(),
            ..plain_spec(false, 0, 64)
        };
        let frame = packet(&Template::new(&spec).unwrap(), 1, 2, 3, 64_512);
        assert_eq!(slow_sum(&frame[14..34]), 0xFFFF);
        assert_ne!(be16(&frame, 24), 0xFFFF);
        zeros += usize::from(be16(&frame, 24) == 0);
    }
    assert!(zeros > 0);
}

#[test]
fn flows_are_distinct_and_move_the_source_address_last() {
    let mut spec = plain_spec(false, 0, 64);
    let (count, sources) = distinct_flows(&spec, 0..130_000);
    assert_eq!((count, sources.len()), (130_000, 3));
    spec.dst_ports = 5000..=5002;
    let (count, sources) = distinct_flows(&spec, 0..3 * 64_512);
    assert_eq!((count, sources.len()), (3 * 64_512, 1));
    let (_, sources) = distinct_flows(&spec, 3 * 64_512..3 * 64_512 + 10);
    assert_eq!(
        sources.into_iter().collect::<Vec<_>>(),
        ["10.0.0.3".parse::<IpAddr>().unwrap()],
        "not the destination's"
    );
}

/// What comes from the destination's own address a reflector must not return.
#[test]
fn flows_pass_over_the_destination_and_say_where_they_end() {
    for ([first, to], ends) in [
        (["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.3", "10.0.0.4"]),
        (["10.0.0.1", "10.0.0.3"], ["10.0.0.1", "10.0.0.2", "10.0.0.4"]),
        (["10.0.0.1", "10.0.0.0"], ["10.0.0.1", "10.0.0.2", "10.0.0.3"]),
        (
            ["2001:2::1", "2001:2::2"],
            ["2001:2::1", "2001:2::3", "2001:2::4"],
        ),
        (
            ["2001:2::1", "2001:3::2"],
            ["2001:2::1", "2001:2::2", "2001:2::3"],
        ),
    ] {
        for (turn, end) in (1..).zip(ends) {
            let spec = wire::TemplateSpec {
                src: (first.parse::<IpAddr>().unwrap(), 4000).into(),
                dst: (to.parse::<IpAddr>().unwrap(), 7).into(),
                flows: turn * 64_512,
                ..wire::TemplateSpec::plain(84)
            };
            let frame = packet(&Template::new(&spec).unwrap(), 1, 2, 3, spec.flows - 1);
            let end: IpAddr = end.parse().unwrap();
            assert_eq!(dissect(&frame).unwrap().src.ip(), end, "{first} to {to}");
            assert_eq!(spec.last_source(), Some(end));
        }
    }
    let beyond = |first: &str| wire::TemplateSpec {
        src: (first.parse::<IpAddr>().unwrap(), 4000).into(),
        flows: 64_513,
        ..wire::TemplateSpec::plain(84)
    };
    assert_eq!(beyond("255.255.255.255").last_source(), None);
    assert_eq!(beyond("2001:2::ffff:ffff").last_source(), None);
}

#[test]
fn flows_beyond_the_source_ports_are_right_for_ipv6_and_low_ports() {
    let mut spec = plain_spec(true, 1, 300);
    spec.src.set_port(53);
    let (count, sources) = distinct_flows(&spec, (0..70_000).chain(u32::MAX - 5..=u32::MAX));
    assert_eq!((count, sources.len()), (70_006, 3));
}

#[test]
fn refuses_what_cannot_be_sent_and_says_what_can() {
    let good = plain_spec(false, 0, 64);
    for (ipv6, tags, minimum) in [
        (false, 0, 64),
        (false, 1, 68),
        (false, 2, 72),
        (true, 0, 84),
        (true, 2, 92),
    ] {
        assert_eq!(Template::minimum_frame_size(ipv6, tags), minimum);
        let mut spec = plain_spec(ipv6, tags, minimum);
        assert!(Template::new(&spec).is_ok());
        spec.frame_size -= 1;
        let error = Template::new(&spec).unwrap_err();
        assert!(
            error.to_string().contains(&format!("at least {minimum} bytes")),
            "{error}"
        );
    }
    let with = |change: fn(&mut wire::TemplateSpec)| {
        let mut spec = good.clone();
        change(&mut spec);
        Template::new(&spec).unwrap_err()
    };
    assert!(matches!(
        with(|spec| spec.frame_size = 20_000),
        TemplateError::TooLarge { found: 20_000 }
    ));
    assert!(matches!(
        with(|spec| spec.dst = "[::1]:1".parse().unwrap()),
        TemplateError::MixedVersions { .. }
    ));
    assert!(matches!(with(|spec| spec.flows = 0), TemplateError::NoFlows));
    #[allow(clippy::reversed_empty_ranges, reason = "the very thing that must be refused")]
    {
        assert!(matches!(
            with(|spec| spec.dst_ports = 9..=8),
            TemplateError::NoPorts { first: 9, last: 8 }
        ));
    }
    assert!(matches!(
        with(|spec| spec.dscp = 64),
        TemplateError::Dscp { found: 64 }
    ));
    for tag in [(0x9100, 1, 0), (0x8100, 4095, 0), (0x8100, 1, 8)] {
        let (tpid, id, pcp) = tag;
        let spec = wire::TemplateSpec {
            vlans: vec![VlanTag { tpid, id, pcp }],
            ..good.clone()
        };
        assert!(
            matches!(Template::new(&spec), Err(TemplateError::Vlan(_))),
            "{tag:?}"
        );
    }
    let tags = vec![
        VlanTag {
            tpid: 0x8100,
            id: 1,
            pcp: 0
        };
        3
    ];
    let spec = wire::TemplateSpec {
        vlans: tags,
        frame_size: 100,
        ..good
    };
    assert!(matches!(
        Template::new(&spec),
        Err(TemplateError::Vlan(wire::VlanError::TooMany { found: 3 }))
    ));
}

#[test]
fn packets_are_those_of_an_independent_tool() {
    let macs = ([2, 0, 0, 0, 0, 0xBB], [2, 0, 0, 0, 0, 0xAA]);
    let spec = wire::TemplateSpec {
        src_mac: macs.0,
        dst_mac: macs.1,
        dscp: 10,
        lane: 1,
        ..plain_spec(false, 0, 64)
    };
    let frame = packet(&Template::new(&spec).unwrap(), 3, 5, 2, 0);
    assert_eq!(frame, common::hex(common::vectors::UDP4));
    let spec = wire::TemplateSpec {
        src_mac: macs.0,
        dst_mac: macs.1,
        dscp: 10,
        ..plain_spec(true, 2, 92)
    };
    let frame = packet(
        &Template::new(&spec).unwrap(),
        0x1234_5678_90AB,
        255,
        0xFEDC_BA98_7654,
        0,
    );
    assert_eq!(frame, common::hex(common::vectors::UDP6));
}
