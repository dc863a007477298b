//! What is reflected has its ends swapped and all its checksums right; what must not go back stays as it was.

#![allow(
    clippy::unwrap_used,
    clippy::single_match_else,
    reason = "tests say what they expect"
)]

use std::collections::BTreeSet;

use crate::common::{STACKS, dissect, packet, plain_spec, spec};
use proptest::prelude::*;
use wire::{DropReason, Template, Verify, classify, reflect};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn a_swap_keeps_every_checksum_right(spec in spec(), flow: u32, sequence: u64, only_ours: bool) {
        let original = packet(&Template::new(&spec).unwrap(), 1, 2, sequence, flow % spec.flows);
        let mut frame = original.clone();
        match reflect(&mut frame, only_ours) {
            Ok(()) => {
                let (there, back) = (dissect(&original).unwrap(), dissect(&frame).map_err(TestCaseError::fail)?);
                prop_assert_eq!((&back.src_mac, &back.dst_mac), (&there.dst_mac, &there.src_mac));
                prop_assert_eq!((back.src, back.dst), (there.dst, there.src));
                prop_assert_eq!((back.tags, back.ttl, back.payload), (there.tags, there.ttl, there.payload));
                let verdict = |frame: &[u8]| classify(frame, spec.run, Verify::Payload);
                prop_assert_eq!(verdict(&frame), verdict(&original));
                let swapped = frame.clone();
                // The way back may be forbidden (port 0), and is the original else.
                match reflect(&mut frame, only_ours) {
                    Ok(()) => prop_assert_eq!(frame, original),
                    Err(_) => prop_assert_eq!(frame, swapped),
                }
            }
            Err(_) => prop_assert_eq!(frame, original),
        }
    }

    #[test]
    fn damage_neither_stops_nor_mends_a_packet(spec in spec(), selector: u64) {
        let mut frame = packet(&Template::new(&spec).unwrap(), 1, 2, 3, 0);
        prop_assert!(wire::corrupt_one_bit(&mut frame, selector));
        let damaged = frame.clone();
        match reflect(&mut frame, false) {
            Ok(()) => prop_assert_eq!(classify(&frame, spec.run, Verify::Checksum), wire::Class::Corrupt),
            Err(_) => prop_assert_eq!(frame, damaged),
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), only_ours: bool) {
        let _ = reflect(&mut bytes, only_ours);
    }

    #[test]
    fn truncated_frames_are_dropped(spec in spec(), cut: prop::sample::Index) {
        let mut frame = packet(&Template::new(&spec).unwrap(), 1, 2, 3, 0);
        frame.truncate(cut.index(frame.len()));
        prop_assert!(reflect(&mut frame, false).is_err());
    }
}

/// Applies changes to a good frame of the stack and reflects it.
fn drop_of(
    ipv6: bool,
    tags: usize,
    only_ours: bool,
    change: impl Fn(&mut Vec<u8>, usize),
) -> Result<(), DropReason> {
    let template = Template::new(&plain_spec(ipv6, tags, 128)).unwrap();
    let mut frame = packet(&template, 1, 2, 3, 0);
    change(&mut frame, template.l2_len());
    let before = frame.clone();
    let result = reflect(&mut frame, only_ours);
    assert_ne!(result.is_ok(), frame == before);
    result
}

#[test]
fn what_must_not_go_back_is_dropped_by_name() {
    for (ipv6, tags) in STACKS {
        let (src, dst, len) = if ipv6 { (8, 24, 16) } else { (12, 16, 4) };
        let udp = if ipv6 { 40 } else { 20 };
        let check = |expected: Result<(), DropReason>, change: &dyn Fn(&mut Vec<u8>, usize)| {
            assert_eq!(drop_of(ipv6, tags, false, change), expected, "{ipv6} {tags}");
        };
        check(Ok(()), &|_, _| ());
        check(Err(DropReason::Multicast), &|frame, _| frame[0] |= 1);
        check(Err(DropReason::BadSource), &|frame, _| frame[6] |= 1);
        check(Err(DropReason::Multicast), &|frame, at| frame[at + dst] = 0xFF);
        check(Err(DropReason::BadSource), &|frame, at| frame[at + src] = 0xFF);
        check(Err(DropReason::Multicast), &|frame, at| {
            frame[at + dst..at + dst + len].fill(0);
        });
        check(Err(DropReason::BadSource), &|frame, at| {
            frame[at + src..at + src + len].fill(0);
        });
        check(Err(DropReason::SameAddress), &|frame, at| {
            frame.copy_within(at + src..at + dst, at + dst);
        });
        check(Err(DropReason::NoReplyPort), &|frame, at| {
            frame[at + udp..at + udp + 2].fill(0);
        });
        check(Err(DropReason::BadLength), &|frame, at| {
            frame[at + udp + 4] = 0x7F;
        });
        check(Err(DropReason::BadLength), &|frame, at| {
            frame[at + udp + 4..at + udp + 6].copy_from_slice(&[0, 7]);
        });
        check(Err(DropReason::BadLength), &|frame, _| frame.truncate(100));
        check(Err(DropReason::Truncated), &|frame, at| frame.truncate(at + 19));
        check(Err(DropReason::Truncated), &|frame, _| frame.truncate(13));
        check(Err(DropReason::BadLength), &|frame, at| frame[at] = 0x10);
        check(Err(DropReason::NotIp), &|frame, at| frame[at - 2] = 0x99);
        check(Err(DropReason::NotIp), &|frame, at| {
            frame[at - 2..at].copy_from_slice(&[8, 6]);
        });
        check(Err(DropReason::NotUdp), &|frame, at| {
            frame[at + if ipv6 { 6 } else { 9 }] = 6;
        });
        check(Err(DropReason::Fragment), &|frame, at| {
            frame[at + 6] = if ipv6 { 44 } else { 0x20 }
        });
        // No probe: only dropped where probes alone are wanted.
        let no_probe = |frame: &mut Vec<u8>, at: usize| frame[at + udp + 8] = 0;
        assert_eq!(drop_of(ipv6, tags, false, no_probe), Ok(()));
        assert_eq!(drop_of(ipv6, tags, true, no_probe), Err(DropReason::NotOurs));
        assert_eq!(drop_of(ipv6, tags, true, |_, _| ()), Ok(()));
    }
    for first in [0, 224, 240, 255] {
        assert_eq!(
            drop_of(false, 0, false, |frame, _| frame[26] = first),
            Err(DropReason::BadSource)
        );
        assert_eq!(
            drop_of(false, 0, false, |frame, _| frame[30] = first),
            Err(DropReason::Multicast)
        );
    }
    for first in [1, 127, 223] {
        assert_eq!(drop_of(false, 0, false, |frame, _| frame[26] = first), Ok(()));
    }
    for cast in [DropReason::Multicast, DropReason::BadSource] {
        let at = if cast == DropReason::Multicast { 30 } else { 26 };
        assert_eq!(
            drop_of(false, 0, false, |frame, _| frame[at..at + 4].fill(255)),
            Err(cast)
        );
    }
}

#[test]
fn an_icmp_error_about_our_own_probe_does_not_go_back() {
    let probe = packet(&Template::new(&plain_spec(false, 0, 64)).unwrap(), 1, 2, 3, 0);
    let mut frame = [&probe[..34], &[3, 3, 0, 0, 0, 0, 0, 0], &probe[14..]].concat();
    frame[23] = 1;
    frame[17] = (frame.len() - 14) as u8;
    assert_eq!(reflect(&mut frame, false), Err(DropReason::NotUdp));
    assert_eq!(reflect(&mut frame, true), Err(DropReason::NotUdp));
}

#[test]
fn the_shortest_possible_udp_is_reflected_but_holds_no_probe() {
    let mut frame = packet(&Template::new(&plain_spec(false, 0, 64)).unwrap(), 1, 2, 3, 0);
    frame[17] = 28;
    frame[39] = 8;
    let mut bare = frame[..42].to_vec();
    for frame in [&mut frame, &mut bare] {
        assert_eq!(reflect(frame, true), Err(DropReason::NotOurs));
        assert_eq!(reflect(frame, false), Ok(()));
    }
}

#[test]
fn tables_of_names_are_complete() {
    let names: BTreeSet<_> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(names.len(), DropReason::COUNT);
    assert!(
        DropReason::ALL
            .iter()
            .enumerate()
            .all(|(index, reason)| reason.index() == index)
    );
}
