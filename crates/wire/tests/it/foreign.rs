//! Everything foreign that arrives has its name.
#![allow(clippy::unwrap_used, reason = "tests say what they expect")]

use crate::common::{STACKS, packet, plain_spec, slow_sum};
use wire::{Class, Foreign, Template, Verify, classify};

const RUN: u8 = 0xA7;
const CHECKED: [Verify; 2] = [Verify::Checksum, Verify::Payload];

/// Sets the IPv4 header checksum of a frame without tags right.
fn mend(mut frame: Vec<u8>) -> Vec<u8> {
    frame[24..26].fill(0);
    let checksum = !slow_sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

#[test]
fn foreign_frames_have_names() {
    let probe = packet(&Template::new(&plain_spec(false, 0, 128)).unwrap(), 5, 0, 1, 0);
    let probe6 = packet(&Template::new(&plain_spec(true, 0, 128)).unwrap(), 5, 0, 1, 0);
    let changed = |at: usize, bytes: &[u8]| {
        let mut frame = probe.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        mend(frame)
    };
    let changed6 = |changes: &[(usize, u8)]| {
        let mut frame = probe6.clone();
        for &(at, byte) in changes {
            frame[at] = byte;
        }
        frame
    };
    // An error quoting a probe: outer header, 8 bytes of ICMP, then the probe's packet.
    let error = mend(
        [
            &changed(23, &[1])[..34],
            &[3, 3, 0, 0, 0, 0, 0, 0],
            &probe[14..80],
        ]
        .concat(),
    );
    let mut short_error = error.clone();
    short_error[16..18].copy_from_slice(&60_u16.to_be_bytes());
    let short_error = mend(short_error[..74].to_vec());
    let mut error_lens = error.clone();
    error_lens[16..18].copy_from_slice(&((error.len() - 14) as u16).to_be_bytes());
    let error = mend(error_lens);
    let mut error6 = [&probe6[..54], &[1, 4, 0, 0, 0, 0, 0, 0], &probe6[14..]].concat();
    error6[20] = 58;
    let len = (error6.len() - 54) as u16;
    error6[18..20].copy_from_slice(&len.to_be_bytes());
    let cases = [
        (changed(12, &[0x88, 0xCC]), Foreign::NotIp),
        (changed(12, &[0x01, 0x00]), Foreign::NotIp),
        (changed(12, &[0x08, 0x06]), Foreign::Arp),
        (changed(23, &[6]), Foreign::OtherIp),
        (changed(20, &[0x20, 0]), Foreign::Fragment),
        (changed(20, &[0, 9]), Foreign::Fragment),
        (
            mend([&changed(23, &[1])[..34], &[8, 0][..], &probe[36..]].concat()),
            Foreign::IcmpEcho,
        ),
        (
            mend([&changed(23, &[1])[..34], &[13, 0][..], &probe[36..]].concat()),
            Foreign::IcmpOther,
        ),
        (error.clone(), Foreign::IcmpErrorOurs),
        (short_error, Foreign::IcmpError),
        (changed6(&[(20, 58), (54, 135)]), Foreign::Ndp),
        (changed6(&[(20, 58), (54, 128)]), Foreign::IcmpEcho),
        (changed6(&[(20, 58), (54, 1)]), Foreign::IcmpError),
        (changed6(&[(20, 58), (54, 143)]), Foreign::IcmpOther),
        (changed6(&[(20, 44)]), Foreign::Fragment),
        (changed6(&[(20, 6)]), Foreign::OtherIp),
        (error6.clone(), Foreign::IcmpErrorOurs),
        (probe[..13].to_vec(), Foreign::Truncated),
        (probe[..33].to_vec(), Foreign::Truncated),
        (probe6[..53].to_vec(), Foreign::Truncated),
        (changed(23, &[6])[..60].to_vec(), Foreign::Truncated),
        (Vec::new(), Foreign::Truncated),
    ];
    for (index, (frame, expected)) in cases.iter().enumerate() {
        for verify in CHECKED {
            assert_eq!(
                classify(frame, RUN, verify),
                Class::Foreign(*expected),
                "case {index}"
            );
        }
    }
    for frame in [error, error6] {
        assert_eq!(
            classify(&frame, RUN ^ 1, Verify::Checksum),
            Class::Foreign(Foreign::IcmpError)
        );
    }
    // Another run, and UDP that is no probe.
    for (ipv6, tags) in STACKS {
        let frame = packet(&Template::new(&plain_spec(ipv6, tags, 128)).unwrap(), 5, 0, 1, 0);
        for verify in [Verify::None, Verify::Checksum, Verify::Payload] {
            assert_eq!(
                classify(&frame, RUN ^ 1, verify),
                Class::Foreign(Foreign::OtherRun)
            );
        }
    }
    let (mut other, field) = (probe.clone(), 40);
    other[42] = 0;
    other[field..field + 2].fill(0);
    let pseudo = [&other[26..34], &[0, 17, other[38], other[39]], &other[34..]].concat();
    let checksum = !slow_sum(&pseudo);
    other[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(
        classify(&other, RUN, Verify::Payload),
        Class::Foreign(Foreign::OtherUdp)
    );
}

#[test]
fn tables_of_names_are_complete() {
    let names: std::collections::BTreeSet<_> = Foreign::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), Foreign::COUNT);
    assert!(
        Foreign::ALL
            .iter()
            .enumerate()
            .all(|(index, kind)| kind.index() == index)
    );
}
