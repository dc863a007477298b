//! Who talks to whom: joined both ways, bounded, and nothing uncounted.

use std::collections::BTreeMap;

use capture::input::LinkType;
use dissect::View;
use dissect::flow::{Connections, Count, Talkers};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{between, ethernet, tcp, udp};

fn frame(from: u8, to: u8, ports: Option<(u16, u16)>) -> Vec<u8> {
    let (protocol, payload) = match ports {
        Some((from, to)) => (17, udp(from, to, 10)),
        None => (1, vec![8, 0, 0, 0, 0, 0, 0, 0]),
    };
    ethernet(
        &[],
        0x0800,
        &between([10, 0, 0, from], [10, 0, 0, to], protocol, 0, &payload),
    )
}

fn view(frame: &[u8]) -> View<'_> {
    View::new(LinkType::Ethernet, frame)
}

#[test]
fn both_ways_are_one_connection_of_who_began() {
    let mut connections = Connections::new(10);
    let (there, back) = (frame(2, 1, Some((5000, 7))), frame(1, 2, Some((7, 5000))));
    for (time, frame) in [(5, &there), (3, &back), (9, &there)] {
        connections.add(&view(frame), Some(time), 100);
    }
    let (all, evicted, other) = connections.finish();
    let [only] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        (only.from.address, only.from.port),
        ("10.0.0.2".parse().unwrap(), 5000)
    );
    assert_eq!((only.to.address, only.to.port), ("10.0.0.1".parse().unwrap(), 7));
    assert_eq!((only.sent.packets, only.returned.packets), (2, 1));
    // The clock was put back in between.
    assert_eq!(only.times_ns, Some((3, 9)));
    assert_eq!((only.flags, evicted.entries, other.packets), (None, 0, 0));
}

#[test]
fn tcp_seen_from_its_answer_on_was_begun_by_the_other() {
    let mut connections = Connections::new(10);
    for flags in [0x12, 0x11] {
        let segment = ethernet(
            &[],
            0x0800,
            &between([10, 0, 0, 1], [10, 0, 0, 2], 6, 0, &tcp(flags, &[], b"")),
        );
        connections.add(&view(&segment), None, 54);
    }
    let (all, ..) = connections.finish();
    assert_eq!(all[0].to.address.to_string(), "10.0.0.1");
    assert_eq!(all[0].flag_letters(), Some(("none".into(), "FS.".into())));
    assert_eq!(
        (all[0].sent.packets, all[0].returned.packets, all[0].times_ns),
        (0, 2, None)
    );
}

fn total<'c>(counts: impl Iterator<Item = &'c Count>) -> (u64, u64) {
    counts.fold((0, 0), |sum, count| (sum.0 + count.packets, sum.1 + count.bytes))
}

proptest! {
    /// However small the table: what it shows, what it forgot and what was none make up everything.
    #[test]
    fn nothing_is_uncounted(
        packets in vec((1..6_u8, 1..6_u8, prop::option::of((1..4_u16, 1..4_u16)), 60..1500_u32), 0..200),
        max in 1..40_usize,
    ) {
        let (mut connections, mut talkers) = (Connections::new(max), Talkers::new(max));
        let mut model: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        let mut bytes = 0;
        for (number, (from, to, ports, len)) in packets.iter().enumerate() {
            let mut frame = frame(*from, *to, *ports);
            if number % 7 == 6 {
                // No IP any more.
                frame[12] = 0;
            } else {
                let (one, other) = ((*from, ports.map(|ports| ports.0)), (*to, ports.map(|ports| ports.1)));
                let sum = model.entry((ports.is_some(), one.min(other), one.max(other))).or_default();
                *sum = (sum.0 + 1, sum.1 + u64::from(*len));
            }
            bytes += u64::from(*len);
            connections.add(&view(&frame), i64::try_from(number).ok(), *len);
            talkers.add(&view(&frame), *len);
        }
        let (all, evicted, other) = connections.finish();
        prop_assert!(all.len() <= max);
        let shown = all.iter().flat_map(|one| [&one.sent, &one.returned]);
        prop_assert_eq!(total(shown.chain([&evicted.count, &other])), (packets.len() as u64, bytes));
        let sorted = all.windows(2).all(|pair| {
            let bytes = |at: usize| pair[at].sent.bytes + pair[at].returned.bytes;
            bytes(0) >= bytes(1)
        });
        prop_assert!(sorted);
        if evicted.entries == 0 {
            let mut got: Vec<(u64, u64)> = all.iter().map(|one| total([&one.sent, &one.returned].into_iter())).collect();
            let mut wanted: Vec<(u64, u64)> = model.into_values().collect();
            got.sort_unstable();
            wanted.sort_unstable();
            prop_assert_eq!(got, wanted);
        }
        let (all, evicted, other) = talkers.finish();
        prop_assert!(all.len() <= max);
        // Each packet counts for two addresses.
        let (shown, _) = total(all.iter().flat_map(|one| [&one.sent, &one.received]).chain([&evicted.count]));
        prop_assert_eq!(shown, 2 * (packets.len() as u64 - other.packets));
    }
}
