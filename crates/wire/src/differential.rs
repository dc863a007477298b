//! The fast paths and the slow ones must say the same of any frame: tests only.

use proptest::prelude::*;

use crate::checksum::UDP;
use crate::headers::{self, Parsed, parse, parse_any};
use crate::receive_any::{classify_any, peek_any};
use crate::reflect::reflect_any;
use crate::{
    BurstStamp, TPID_CUSTOMER, TPID_SERVICE, Template, TemplateSpec, Verify, VlanTag, classify, peek, plain,
    reflect,
};

const RUN: u8 = 0x3C;

fn template(ipv6: bool, tags: usize, extra: usize) -> Template {
    let (src, dst) = if ipv6 {
        ("[2001:db8::1]:40", "[2001:db8::2]:50")
    } else {
        ("10.0.0.1:40", "10.0.0.2:50")
    };
    let stack = [
        VlanTag {
            tpid: TPID_SERVICE,
            id: 1,
            pcp: 0,
        },
        VlanTag {
            tpid: TPID_CUSTOMER,
            id: 2,
            pcp: 0,
        },
    ];
    let spec = TemplateSpec {
        src_mac: [2; 6],
        dst_mac: [4; 6],
        vlans: stack[2 - tags..].to_vec(),
        src: src.parse().unwrap(),
        dst: dst.parse().unwrap(),
        run: RUN,
        lane: 7,
        dst_ports: 50..=50,
        ..TemplateSpec::plain(Template::minimum_frame_size(ipv6, tags) + extra)
    };
    Template::new(&spec).unwrap()
}

prop_compose! {
    /// A good frame with a few bytes of its headers replaced (or exchanged for others that matter), cut or
    /// padded.
    fn frame()(
        (ipv6, tags) in (any::<bool>(), 0_usize..=2),
        extra in prop_oneof![Just(0_usize), 0_usize..100],
        sequence: u64,
        changes in prop::collection::vec((0_usize..90, interesting()), 0..4),
        tail in -60_isize..20,
        is_cut in prop::bool::weighted(0.2),
    ) -> Vec<u8> {
        let template = template(ipv6, tags, extra);
        let mut bytes = vec![0; template.room_needed()];
        template.write(&mut bytes, &BurstStamp::new(sequence, 3), sequence, None);
        bytes.truncate(template.frame_len());
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        if is_cut {
            bytes.resize(bytes.len().saturating_add_signed(tail), 0x55);
        }
        mend(&mut bytes);
        bytes
    }
}

/// Bytes that mean something in some header, and others.
fn interesting() -> impl Strategy<Value = u8> {
    prop_oneof![
        prop::sample::select(vec![
            0, 1, 6, 8, 17, 20, 26, 28, 46, 58, 0x20, 0x40, 0x45, 0x46, 0x60, 0x81, 0x88, 0xE0, 0xFF
        ]),
        any::<u8>(),
    ]
}

/// Sets the IPv4 header checksum right, so that the damage is not always found there first.
fn mend(bytes: &mut [u8]) {
    if let Parsed::Ip(ip) = parse_any(bytes) {
        if !ip.v6 {
            bytes[ip.at + 10..ip.at + 12].fill(0);
            let field = crate::checksum::field(crate::checksum::sum(&bytes[ip.at..ip.transport]));
            bytes[ip.at + 10..ip.at + 12].copy_from_slice(&field);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn both_ways_to_parse_agree(frame in frame()) {
        prop_assert_eq!(parse(&frame), parse_any(&frame));
    }

    #[test]
    fn what_is_recognised_as_plain_is_what_the_parser_finds(frame in frame()) {
        let Some((at, _)) = headers::behind_tags(&frame) else {
            return Ok(());
        };
        let is_v4 = frame[at..].first_chunk::<22>().is_some_and(plain::is_v4_udp);
        let is_v6 = frame[at..].first_chunk::<42>().is_some_and(plain::is_v6_udp);
        match parse(&frame) {
            Parsed::Ip(ip) => {
                let header_len = if ip.v6 { 40 } else { 20 };
                let is_plain = ip.protocol == UDP && !ip.fragment && ip.transport == ip.at + header_len;
                prop_assert_eq!((is_v4, is_v6), (is_plain && !ip.v6, is_plain && ip.v6));
                prop_assert_eq!(ip.at, at + 2);
            }
            // Shorter than its own header says.
            Parsed::Malformed => prop_assert!(!is_v6),
            _ => prop_assert!(!is_v4 && !is_v6),
        }
    }

    #[test]
    fn both_ways_to_classify_agree(frame in frame()) {
        for verify in [Verify::None, Verify::Checksum, Verify::Payload] {
            prop_assert_eq!(classify(&frame, RUN, verify), classify_any(&frame, RUN, verify));
        }
        // The fast way to peek does not even look at the IP length.
        prop_assert!(peek(&frame) == peek_any(&frame) || peek_any(&frame).is_none());
    }

    #[test]
    fn both_ways_to_reflect_agree(frame in frame(), only_ours: bool) {
        let (mut fast, mut slow) = (frame.clone(), frame.clone());
        let (said_fast, said_slow) = (reflect(&mut fast, only_ours), reflect_any(&mut slow, only_ours));
        prop_assert_eq!(said_fast, said_slow);
        prop_assert_eq!(&fast, &slow);
        prop_assert!(said_fast.is_ok() || fast == frame, "dropped, but changed");
    }
}
