//! Packets of one header are one to the rules.

use proptest::prelude::*;
use wire::checksum;

use super::{Header, ICMP, TCP, UDP};
use crate::facts::look;
use crate::{Malformed, ON_REQUEST};

/// A plain packet out of few values, of 60 bytes in all.
fn plain() -> impl Strategy<Value = Vec<u8>> {
    let protocol = prop::sample::select(vec![TCP, UDP, ICMP]);
    let byte = || prop::sample::select(vec![0_u8, 1, 2, 17]);
    (protocol, prop::collection::vec(byte(), 46)).prop_map(|(protocol, bytes)| {
        let mut frame = vec![2; 14];
        frame[12..].copy_from_slice(&[8, 0]);
        frame.extend(bytes);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&[0, 46]);
        frame[20..22].copy_from_slice(&[0, 0]);
        frame[23] = protocol;
        // As UDP and as TCP want it, whichever it is.
        frame[38..40].copy_from_slice(&[0, 26]);
        frame[46] = 0x50;
        frame
    })
}

fn with_checksum(frame: &mut [u8]) {
    if let Some(header) = frame.get_mut(14..34) {
        header[10..12].fill(0);
        let sum = checksum::field(checksum::sum(header));
        header[10..12].copy_from_slice(&sum);
    }
}

/// Another frame: a byte of the headers that is another, a frame that ends elsewhere.
fn changed(frame: &[u8], (at, value, is_summed): (usize, u8, bool), len: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at] = value;
    frame.resize(len, 0);
    if is_summed {
        with_checksum(&mut frame);
    }
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn of_the_same_header_all_facts_are_the_same(
        one in plain(),
        (at, value) in (12_usize..60, prop::sample::select(vec![0_u8, 1, 2, 6, 17, 20, 26, 0x20, 0x45, 0x46, 0x50, 0x60, 0x90, 46, 60, 255])),
        (is_summed, len) in (any::<bool>(), prop::sample::select(vec![42_usize, 53, 54, 55, 59, 60, 60, 60, 61])),
        reasons in prop::sample::select(vec![0, ON_REQUEST, Malformed::IpChecksum.bit(), Malformed::TcpFlags.bit()]),
    ) {
        let mut one = one;
        with_checksum(&mut one);
        let other = changed(&one, (at, value, is_summed), len);
        let facts = |frame: &[u8]| look(frame, frame.len(), reasons);
        let header = |frame: &[u8]| Header::of(frame, reasons);
        if let (Some(first), Ok(known)) = (header(&one), facts(&one)) {
            if header(&other) == Some(first) {
                prop_assert_eq!(facts(&other), Ok(known), "{:02x?} {:02x?}", one, other);
            }
        }
    }
}

/// What is most of all traffic has a header: else nothing would ever be remembered.
#[test]
fn usual_packets_have_a_header() {
    for protocol in [TCP, UDP, ICMP] {
        let mut frame = vec![0; 60];
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[17] = 46;
        frame[23] = protocol;
        frame[39] = 26;
        frame[46] = 0x50;
        with_checksum(&mut frame);
        for reasons in [0, ON_REQUEST] {
            assert!(Header::of(&frame, reasons).is_some(), "{protocol} {reasons}");
        }
    }
}

/// Clients of one network, or ports of one host, differ in a byte: they must not take one place from each other.
#[test]
fn each_byte_of_a_header_spreads_over_the_places() {
    for bit in [0, 8, 16, 24, 32, 64, 72, 80, 88, 96, 104, 112, 120] {
        let header = |value: u128| {
            let words = value << bit | 1 << 40;
            Header((words >> 64) as u64, words as u64)
        };
        let places: std::collections::HashSet<usize> =
            (0..=255).map(|value| header(value).mixed::<12>()).collect();
        // Chance leaves 248 of 256 in 4,096.
        assert!(places.len() > 220, "bit {bit}: {}", places.len());
    }
}

/// As many headers as places, that differ as those of scans and of clients do, take nearly as many places as by chance.
#[test]
fn headers_in_order_spread_as_by_chance() {
    const PLACES: u32 = 4096;
    let header = |source: u32, destination: u32, ports: [u32; 2]| {
        let ports =
            u64::from((ports[0] as u16).swap_bytes()) | u64::from((ports[1] as u16).swap_bytes()) << 16;
        let addresses = u64::from(source.swap_bytes()) | u64::from(destination.swap_bytes()) << 32;
        Header(addresses, ports | u64::from(UDP) << 40)
    };
    let (source, destination) = (0x0A00_0001, 0xC612_0001);
    let shapes: [(&str, &dyn Fn(u32) -> Header); 8] = [
        ("sources", &|n| header(source + n, destination, [1000, 53])),
        ("networks", &|n| header(source + n * 256, destination, [1000, 53])),
        ("destinations", &|n| header(source, destination + n, [1000, 53])),
        ("source ports", &|n| header(source, destination, [1024 + n, 53])),
        ("ports", &|n| header(source, destination, [1024, n])),
        ("both ports", &|n| {
            header(source, destination, [1024 + n, 1024 + n])
        }),
        ("both addresses", &|n| {
            header(source + n % 64, destination + n / 64, [1024, 53])
        }),
        ("sources and ports", &|n| {
            header(source + n, destination, [1024 + n, 53])
        }),
    ];
    for (name, shape) in shapes {
        let places: std::collections::HashSet<usize> = (0..PLACES).map(|n| shape(n).mixed::<12>()).collect();
        // Chance takes 1 - 1/e of them: 2,589.
        assert!(places.len() > 2_330, "{name}: {}", places.len());
    }
}
