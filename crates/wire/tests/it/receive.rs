//! Every damage is seen, everything foreign has its name, and no bytes can make the receiver panic.

#![allow(
    clippy::unwrap_used,
    clippy::single_match_else,
    reason = "tests say what they expect"
)]

use crate::common::{STACKS, be16, dissect, packet, plain_spec, slow_sum, spec};
use proptest::prelude::*;
use wire::{Class, Foreign, Template, Verify, classify, corrupt_one_bit, peek};

const RUN: u8 = 0xA7;
const CHECKED: [Verify; 2] = [Verify::Checksum, Verify::Payload];

/// Flips every single bit of the UDP datagram in turn.
fn every_bit_is_seen(frame: &[u8]) {
    let datagram = dissect(frame).unwrap();
    let bits = (8 + datagram.payload.len()) as u64 * 8;
    let mut seen = std::collections::HashSet::new();
    for selector in 0..bits {
        let mut damaged = frame.to_vec();
        assert!(corrupt_one_bit(&mut damaged, selector));
        let flipped: Vec<_> = damaged
            .iter()
            .zip(frame)
            .enumerate()
            .filter(|(_, (a, b))| a != b)
            .collect();
        assert_eq!(flipped.len(), 1);
        let (at, (a, b)) = flipped[0];
        assert!((a ^ b).is_power_of_two() && at >= datagram.udp_at);
        seen.insert((at, a ^ b));
        for verify in CHECKED {
            assert_eq!(
                classify(&damaged, RUN, verify),
                Class::Corrupt,
                "{verify:?}, bit {selector}"
            );
        }
        // The same bit again is the frame as it was: the injector chooses the same place in a damaged frame,
        // unless the damage moved the datagram's end.
        if !(datagram.udp_at + 4..datagram.udp_at + 6).contains(&at) {
            assert!(corrupt_one_bit(&mut damaged, selector));
            assert_eq!(damaged, frame);
        }
    }
    assert_eq!(seen.len() as u64, bits);
    let mut again = frame.to_vec();
    assert!(corrupt_one_bit(&mut again, u64::MAX - u64::MAX % bits));
}

#[test]
fn every_flipped_bit_is_seen_in_every_stack_and_size() {
    for (ipv6, tags) in STACKS {
        for size in [64, 65, 100, 128, 333, 1518] {
            let template = Template::new(&plain_spec(ipv6, tags, size)).unwrap();
            every_bit_is_seen(&packet(&template, 0x1234_5678_9ABC, 9, 0xFEDC_BA98_7654, 77_777));
        }
    }
}

#[test]
fn a_flip_that_clears_the_checksum_field_is_seen() {
    for (ipv6, tags) in STACKS {
        let template = Template::new(&plain_spec(ipv6, tags, 64)).unwrap();
        let mut found = 0;
        for sequence in 0..65_535 {
            let frame = packet(&template, 5, 0, sequence, 0);
            if be16(&frame, template.udp_offset() + 6).is_power_of_two() {
                every_bit_is_seen(&frame);
                found += 1;
            }
        }
        assert_eq!(found, 16);
    }
}

#[test]
fn a_packet_without_checksum_is_corrupt_even_if_it_would_add_up() {
    for (ipv6, tags) in STACKS {
        let template = Template::new(&plain_spec(ipv6, tags, 64)).unwrap();
        let field = template.udp_offset() + 6;
        let mut found = 0;
        for sequence in 0..65_535 {
            let mut frame = packet(&template, 5, 0, sequence, 0);
            let adds_up = be16(&frame, field) == 0xFFFF;
            if !adds_up && sequence % 1000 != 0 {
                continue;
            }
            frame[field..field + 2].fill(0);
            found += usize::from(adds_up);
            for verify in CHECKED {
                assert_eq!(classify(&frame, RUN, verify), Class::Corrupt);
            }
            assert!(matches!(classify(&frame, RUN, Verify::None), Class::Probe(_)));
        }
        assert_eq!(found, 1);
    }
}

#[test]
fn every_flipped_bit_of_the_ipv4_header_is_seen() {
    let template = Template::new(&plain_spec(false, 0, 200)).unwrap();
    let frame = packet(&template, 5, 0, 1, 0);
    for bit in 14 * 8..34 * 8 {
        let mut damaged = frame.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        for verify in CHECKED {
            let class = classify(&damaged, RUN, verify);
            // A longer header than the frame has is all that can be said of it.
            assert!(
                matches!(class, Class::Corrupt | Class::Foreign(Foreign::Truncated)),
                "bit {bit}: {class:?}"
            );
        }
    }
}

#[test]
fn lengths_that_disagree_are_corrupt_even_without_verification() {
    for (ipv6, tags) in STACKS {
        for size in [64, 200] {
            let template = Template::new(&plain_spec(ipv6, tags, size)).unwrap();
            let frame = packet(&template, 5, 0, 1, 0);
            let at = template.udp_offset() + 4;
            let len = be16(&frame, at);
            for wrong in (0..len).chain(len + 1..len + 100).chain([u16::MAX]) {
                let mut damaged = frame.clone();
                damaged[at..at + 2].copy_from_slice(&wrong.to_be_bytes());
                damaged.resize(frame.len() + 200, 0);
                for verify in [Verify::None, Verify::Checksum, Verify::Payload] {
                    assert_eq!(
                        classify(&damaged, RUN, verify),
                        Class::Corrupt,
                        "{len} told as {wrong}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_wrong_pattern_under_a_right_checksum_is_seen_when_payload_is_verified() {
    for (ipv6, tags) in STACKS {
        let template = Template::new(&plain_spec(ipv6, tags, 300)).unwrap();
        let mut frame = packet(&template, 5, 0, 1, 0);
        // Two words exchanged leave the sum as it is.
        let at = template.udp_offset() + 28;
        assert_ne!(frame[at..at + 2], frame[at + 2..at + 4]);
        frame[at..at + 4].rotate_left(2);
        assert!(dissect(&frame).is_ok());
        assert!(matches!(classify(&frame, RUN, Verify::Checksum), Class::Probe(_)));
        assert_eq!(classify(&frame, RUN, Verify::Payload), Class::Corrupt);
    }
}

#[test]
fn an_ipv6_routing_detour_and_ipv4_options_do_not_hide_a_probe() {
    let template = Template::new(&plain_spec(true, 1, 100)).unwrap();
    let plain = packet(&template, 5, 0, 1, 0);
    let ip_at = template.l2_len();
    // Hop-by-hop with padding, then UDP.
    let mut frame = [
        &plain[..ip_at + 40],
        &[17, 0, 1, 4, 0, 0, 0, 0],
        &plain[ip_at + 40..],
    ]
    .concat();
    frame[ip_at + 6] = 0;
    let len = be16(&frame, ip_at + 4) + 8;
    frame[ip_at + 4..ip_at + 6].copy_from_slice(&len.to_be_bytes());
    assert!(matches!(classify(&frame, RUN, Verify::Payload), Class::Probe(_)));
    assert!(peek(&frame).is_some());

    let template = Template::new(&plain_spec(false, 0, 100)).unwrap();
    let plain = packet(&template, 5, 0, 1, 0);
    let mut frame = [&plain[..34], &[1, 1, 1, 0], &plain[34..]].concat();
    frame[14] = 0x46;
    let len = be16(&frame, 16) + 4;
    frame[16..18].copy_from_slice(&len.to_be_bytes());
    assert_eq!(classify(&frame, RUN, Verify::Checksum), Class::Corrupt);
    frame[24..26].fill(0);
    let checksum = !slow_sum(&frame[14..38]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    assert!(matches!(classify(&frame, RUN, Verify::Payload), Class::Probe(_)));
    assert!(peek(&frame).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8192))]

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), run: u8, selector: u64) {
        for verify in [Verify::None, Verify::Checksum, Verify::Payload] {
            prop_assert!(!matches!(classify(&bytes, run, verify), Class::Probe(probe) if probe.run != run));
        }
        let _ = (peek(&bytes), corrupt_one_bit(&mut bytes, selector));
    }

    #[test]
    fn truncated_frames_are_never_accepted(spec in spec(), cut: prop::sample::Index) {
        let frame = packet(&Template::new(&spec).unwrap(), 1, 2, 3, 0);
        let short = &frame[..cut.index(frame.len())];
        for verify in [Verify::None, Verify::Checksum, Verify::Payload] {
            let class = classify(short, spec.run, verify);
            prop_assert!(matches!(class, Class::Corrupt | Class::Foreign(Foreign::Truncated)), "{:?}", class);
        }
    }

    #[test]
    fn padding_changes_nothing(spec in spec(), padding in prop::collection::vec(any::<u8>(), 0..50)) {
        let frame = packet(&Template::new(&spec).unwrap(), 1, 2, 3, 0);
        let padded = [&frame[..], &padding].concat();
        for verify in [Verify::None, Verify::Checksum, Verify::Payload] {
            prop_assert_eq!(classify(&padded, spec.run, verify), classify(&frame, spec.run, verify));
        }
    }

    #[test]
    fn one_flipped_bit_is_always_seen(spec in spec(), flow: u32, sequence: u64, selector: u64) {
        let mut frame = packet(&Template::new(&spec).unwrap(), sequence, 2, sequence, flow % spec.flows);
        prop_assert!(corrupt_one_bit(&mut frame, selector));
        for verify in CHECKED {
            prop_assert_eq!(classify(&frame, spec.run, verify), Class::Corrupt);
        }
    }

    #[test]
    fn a_damaged_pattern_or_probe_is_always_seen(
        spec in spec(), at: prop::sample::Index, byte in 1_u8..=255, sequence: u64,
    ) {
        let template = Template::new(&spec).unwrap();
        let mut frame = packet(&template, sequence, 2, sequence, 0);
        let at = template.udp_offset() + at.index(frame.len() - template.udp_offset());
        frame[at] ^= byte;
        for verify in CHECKED {
            prop_assert_eq!(classify(&frame, spec.run, verify), Class::Corrupt);
        }
    }
}
