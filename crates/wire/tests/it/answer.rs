//! Requests made by an independent tool get exactly the replies that tool would make; everything else gets
//! none.

#![allow(
    clippy::unwrap_used,
    clippy::single_match_else,
    reason = "tests say what they expect"
)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::common::vectors::{
    ARP_REPLY, ARP_REQUEST, ECHO_REPLY, ECHO_REQUEST, ECHO6_REPLY, ECHO6_REQUEST, NA, NA_ALL, NA_BARE, NS,
    NS_NONCE, NS_SENT, NS_UNICAST,
};
use crate::common::{be16, hex, slow_sum, tag};
use proptest::prelude::*;
use wire::neighbour::{arp_request, neighbour_solicitation, parse_reply};
use wire::{Addresses, TPID_CUSTOMER, VlanTag, answer};

const ME: [u8; 6] = [2, 0, 0, 0, 0, 0xAA];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 0xBB];
const MY_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const MY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1);
const HOST_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const HOST_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 9);
const TAG: VlanTag = VlanTag {
    tpid: TPID_CUSTOMER,
    id: 5,
    pcp: 0,
};

fn me() -> Addresses {
    Addresses {
        mac: ME,
        ips: vec![Ipv4Addr::new(10, 9, 8, 7).into(), MY_V4.into(), MY_V6.into()],
    }
}

/// The reply in a room with some bytes to spare, or `None`, and then the frame is as it was.
fn reply(request: &[u8]) -> Option<Vec<u8>> {
    let mut room = [request, &[0; 64]].concat();
    let len = answer(&mut room, request.len(), &me());
    if len.is_none() {
        assert_eq!(&room[..request.len()], request, "no answer, but changed");
    }
    len.map(|len| room[..len].to_vec())
}

#[test]
fn replies_are_those_of_an_independent_tool() {
    let pairs = [
        (ARP_REQUEST, ARP_REPLY),
        (ECHO_REQUEST, ECHO_REPLY),
        (ECHO6_REQUEST, ECHO6_REPLY),
        (NS, NA),
        (NS_UNICAST, NA),
        (NS_NONCE, NA_ALL),
    ];
    for (request, expected) in pairs {
        assert_eq!(reply(&hex(request)), Some(hex(expected)), "{request}");
        // A reply is not a request.
        assert_eq!(reply(&hex(expected)), None);
    }
}

#[test]
fn padding_stays_behind_arp_and_echo() {
    for (request, expected) in [(ARP_REQUEST, ARP_REPLY), (ECHO_REQUEST, ECHO_REPLY)] {
        let padded = |text| [hex(text), vec![0; 18]].concat();
        assert_eq!(reply(&padded(request)), Some(padded(expected)));
    }
}

#[test]
fn builders_make_the_frames_of_an_independent_tool() {
    assert_eq!(neighbour_solicitation(ME, MY_V6, HOST_V6, &[TAG]), hex(NS_SENT));
    let mut request = hex(ARP_REQUEST);
    request.resize(60, 0);
    assert_eq!(arp_request(HOST, HOST_V4, MY_V4, &[]), request);
}

#[test]
fn replies_are_read() {
    let (v4, v6) = (IpAddr::from(MY_V4), IpAddr::from(MY_V6));
    assert_eq!(parse_reply(&hex(ARP_REPLY), v4), Some(ME));
    assert_eq!(parse_reply(&hex(NA), v6), Some(ME));
    assert_eq!(parse_reply(&hex(NA_BARE), v6), Some(ME));
    for (frame, asked) in [
        (ARP_REPLY, HOST_V4.into()),
        (NA, HOST_V6.into()),
        (ARP_REPLY, v6),
        (NA, v4),
        (ARP_REQUEST, v4),
    ] {
        assert_eq!(parse_reply(&hex(frame), asked), None);
    }
    for (frame, asked) in [(hex(ARP_REPLY), v4), (hex(NA), v6)] {
        for len in 0..frame.len() {
            assert_eq!(parse_reply(&frame[..len], asked), None);
        }
    }
    // Every single flipped bit of the advertisement's message is seen, and a hop limit below 255 means it was
    // routed.
    let frame = hex(NA);
    for bit in 54 * 8..frame.len() * 8 {
        let mut damaged = frame.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(parse_reply(&damaged, v6), None, "bit {bit}");
    }
    let mut routed = frame;
    routed[21] = 254;
    assert_eq!(parse_reply(&routed, v6), None);
    // Nobody lives at a group address.
    let mut group = hex(ARP_REPLY);
    group[22] |= 1;
    assert_eq!(parse_reply(&group, v4), None);
}

#[test]
fn what_is_not_for_us_gets_no_answer() {
    let change = |text, at: usize, byte| {
        let mut frame = hex(text);
        assert_ne!(frame[at], byte);
        frame[at] = byte;
        frame
    };
    let cases = [
        ("target", change(ARP_REQUEST, 41, 2)),
        ("hardware", change(ARP_REQUEST, 15, 6)),
        ("announcement", {
            let mut frame = hex(ARP_REQUEST);
            frame.copy_within(38..42, 28);
            frame
        }),
        ("group source", change(ARP_REQUEST, 6, 3)),
        ("group asker", change(ARP_REQUEST, 22, 3)),
        ("echo for another", hex(ECHO_REPLY)),
        ("echo data", change(ECHO_REQUEST, 50, 0)),
        ("echo IP header", change(ECHO_REQUEST, 26, 9)),
        ("echo6 data", change(ECHO6_REQUEST, 80, 0)),
        ("echo6 protocol", change(ECHO6_REQUEST, 28, 1)),
        ("solicitation damaged", change(NS, 70, 1)),
        ("solicitation routed", change(NS, 21, 64)),
        ("option of length zero", change(NS, 79, 0)),
        ("option too long", change(NS, 79, 2)),
    ];
    for (name, frame) in cases {
        assert_eq!(reply(&frame), None, "{name}");
    }
    for text in [ARP_REQUEST, ECHO_REQUEST, ECHO6_REQUEST, NS, NS_NONCE] {
        let frame = hex(text);
        for len in 0..frame.len() {
            assert_eq!(reply(&frame[..len]), None, "cut to {len}");
        }
        let strangers = Addresses {
            mac: ME,
            ips: vec![Ipv4Addr::new(10, 9, 8, 7).into()],
        };
        assert_eq!(answer(&mut frame.clone(), frame.len(), &strangers), None);
        // More bytes claimed than there are.
        assert_eq!(answer(&mut frame.clone(), frame.len() + 1, &me()), None);
    }
    // Not even one byte of room for the longer reply.
    let frame = hex(NS_UNICAST);
    assert_eq!(answer(&mut frame.clone(), frame.len(), &me()), None);
}

#[test]
fn fragments_broadcasts_and_ourselves_get_no_echo() {
    let with_ip = |change: fn(&mut [u8])| {
        let mut frame = hex(ECHO_REQUEST);
        change(&mut frame[18..38]);
        frame[28..30].fill(0);
        let checksum = !slow_sum(&frame[18..38]);
        frame[28..30].copy_from_slice(&checksum.to_be_bytes());
        frame
    };
    assert!(reply(&with_ip(|_| ())).is_some());
    assert_eq!(reply(&with_ip(|ip| ip[6] = 0x20)), None);
    assert_eq!(reply(&with_ip(|ip| ip[7] = 1)), None);
    assert_eq!(reply(&with_ip(|ip| ip[12..16].fill(255))), None);
    assert_eq!(reply(&with_ip(|ip| ip[12..16].fill(0))), None);
    assert_eq!(reply(&with_ip(|ip| ip[12] = 224)), None);
    assert_eq!(reply(&with_ip(|ip| ip.copy_within(16..20, 12))), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn questions_are_answered_behind_any_tags(vlans in prop::collection::vec(tag(), 0..=2)) {
        for (question, asked) in [
            (arp_request(HOST, HOST_V4, MY_V4, &vlans), IpAddr::from(MY_V4)),
            (neighbour_solicitation(HOST, HOST_V6, MY_V6, &vlans), IpAddr::from(MY_V6)),
        ] {
            prop_assert!(question.len() >= 60);
            prop_assert_eq!(parse_reply(&question, asked), None);
            let reply = reply(&question).unwrap();
            prop_assert_eq!(parse_reply(&reply, asked), Some(ME));
            prop_assert_eq!(&reply[..12], &[HOST, ME].concat()[..]);
            prop_assert_eq!(&reply[12..12 + 4 * vlans.len()], &question[12..12 + 4 * vlans.len()]);
        }
    }

    /// Echo requests of any content, also those whose checksum is at an edge.
    #[test]
    fn echo_replies_have_right_checksums(
        identifier: u16, sequence: u16, data in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(0xFF)], 0..60),
    ) {
        let mut icmp = [&[8, 0, 0, 0], &identifier.to_be_bytes()[..], &sequence.to_be_bytes(), &data].concat();
        let checksum = !slow_sum(&icmp);
        icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
        let mut frame = [&hex(ECHO_REQUEST)[..38], &icmp].concat();
        let len = (20 + icmp.len()) as u16;
        frame[20..22].copy_from_slice(&len.to_be_bytes());
        frame[28..30].fill(0);
        let header = !slow_sum(&frame[18..38]);
        frame[28..30].copy_from_slice(&header.to_be_bytes());
        let reply = reply(&frame).unwrap();
        prop_assert_eq!((slow_sum(&reply[18..38]), slow_sum(&reply[38..]), reply[38]), (0xFFFF, 0xFFFF, 0));
        prop_assert_eq!(&reply[42..], &frame[42..]);
        prop_assert_eq!(be16(&reply, 16), be16(&frame, 16));
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), len in 0_usize..300) {
        let _ = (answer(&mut bytes, len, &me()), parse_reply(&bytes, MY_V4.into()), parse_reply(&bytes, MY_V6.into()));
    }

    #[test]
    fn damaged_requests_never_panic_nor_grow_beyond_the_room(
        which: prop::sample::Index, changes in prop::collection::vec((0_usize..100, any::<u8>()), 0..6), spare in 0_usize..20,
    ) {
        let requests = [ARP_REQUEST, ECHO_REQUEST, ECHO6_REQUEST, NS, NS_NONCE, NS_UNICAST];
        let mut room = hex(requests[which.index(requests.len())]);
        let len = room.len();
        for (at, byte) in changes.into_iter().filter(|&(at, _)| at < len) {
            room[at] = byte;
        }
        room.resize(len + spare, 0);
        let answered = answer(&mut room, len, &me());
        prop_assert!(answered.is_none_or(|answered| answered <= room.len()));
    }
}
