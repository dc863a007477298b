//! The flow table: its sums are exact whatever is forgotten, and who reads it beside its writer sees no flow mixed with another.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use dataplane::flows::{Flow, FlowKey, FlowReader, FlowTable};
use measure::Ticks;
use proptest::prelude::*;
use rules::{Count, Detail, Facts, Layer, Part};

/// What is known of a packet of flow `number`.
fn facts(number: u32) -> Facts {
    let is_v6 = number % 3 == 0;
    let place = u128::from(number) << if is_v6 { 0 } else { 96 };
    Facts {
        vlan: (number % 5 == 0).then_some(number as u16 & 0xFFF),
        ether_type: if is_v6 { 0x86DD } else { 0x0800 },
        layer: if is_v6 { Layer::V6 } else { Layer::V4 },
        protocol: 17,
        part: Part::Whole,
        source: place,
        destination: !place & if is_v6 { u128::MAX } else { u128::MAX << 96 },
        ports: (number % 2 == 0).then_some((number as u16, 53)),
        detail: Detail::None,
    }
}

fn not_ip() -> Facts {
    Facts {
        layer: Layer::Other,
        ..facts(0)
    }
}

fn sum(counts: impl IntoIterator<Item = Count>) -> Count {
    counts.into_iter().fold(Count::default(), |mut sum, count| {
        sum += count;
        sum
    })
}

fn assert_whole(reader: &FlowReader) {
    let sums = reader.sums();
    let flows = sum(reader.flows().map(|flow| flow.count));
    assert_eq!(sum([flows, sums.evicted, sums.other]), sums.seen);
}

proptest! {
    #[test]
    fn every_packet_is_in_a_flow_or_was_forgotten(
        room in 1_usize..200,
        seed: u64,
        bursts in prop::collection::vec(prop::collection::vec((0_u32..300, 60_usize..1515), 0..140), 0..60),
    ) {
        let mut table = FlowTable::new(room, seed);
        prop_assert!(table.capacity() >= room);
        let reader = table.reader();
        let mut exact: HashMap<FlowKey, (Count, u64, u64)> = HashMap::new();
        let mut others = 0;
        for (at, burst) in (1_u64..).zip(&bursts) {
            let now = Ticks(at * 1000);
            for (number, len) in burst {
                match number {
                    0 => table.note(now, None, *len),
                    1 => table.note(now, Some(&not_ip()), *len),
                    number => {
                        let facts = facts(*number);
                        table.note(now, Some(&facts), *len);
                        let flow = exact.entry(FlowKey::of(&facts).unwrap()).or_insert((Count::default(), now.0, now.0));
                        flow.0 += Count { packets: 1, bytes: *len as u64 };
                        flow.2 = now.0;
                    }
                }
                others += u64::from(*number < 2);
            }
            table.count(now);
            assert_whole(&reader);
        }
        let sums = reader.sums();
        prop_assert_eq!(sums.seen.packets, bursts.iter().map(|burst| burst.len() as u64).sum::<u64>());
        prop_assert_eq!(sums.other.packets, others);
        for flow in reader.flows() {
            let (count, first, last) = exact[&flow.key];
            prop_assert_eq!(flow.last.0, last);
            if sums.evictions == 0 {
                prop_assert_eq!((flow.count, flow.first.0), (count, first));
            }
            prop_assert!(flow.count.packets <= count.packets);
            prop_assert!(flow.count.packets + sums.evicted.packets >= count.packets);
        }
        if sums.evictions == 0 {
            prop_assert_eq!(reader.flows().count(), exact.len());
        }
    }

    #[test]
    fn the_largest_are_those_of_a_sorted_list(counts in prop::collection::vec(1_u64..50, 1..80), most in 0_usize..30) {
        let mut table = FlowTable::new(4096, 1);
        for (number, count) in (2_u32..).zip(&counts) {
            for _ in 0..*count {
                table.note(Ticks(1), Some(&facts(number)), 2000 - *count as usize * 7);
            }
        }
        table.count(Ticks(1));
        let reader = table.reader();
        let talkers = reader.talkers(most);
        prop_assert_eq!(talkers.flows, counts.len());
        let sorted = |by: fn(&Flow) -> (u64, u64)| {
            let mut all: Vec<Flow> = reader.flows().collect();
            all.sort_by_key(|flow| (std::cmp::Reverse(by(flow)), flow.key));
            all.truncate(most);
            all
        };
        prop_assert_eq!(talkers.by_bytes, sorted(|flow| (flow.count.bytes, flow.count.packets)));
        prop_assert_eq!(talkers.by_packets, sorted(|flow| (flow.count.packets, flow.count.bytes)));
    }
}

#[test]
fn a_key_is_what_the_packet_says() {
    let v4 = FlowKey::of(&Facts {
        source: 0x0A00_0001 << 96,
        destination: 0xC000_0202 << 96,
        protocol: 6,
        ports: Some((49152, 443)),
        vlan: Some(0),
        layer: Layer::V4,
        ..facts(1)
    });
    let wanted = FlowKey {
        source: IpAddr::from([10, 0, 0, 1]),
        destination: IpAddr::from([192, 0, 2, 2]),
        protocol: 6,
        ports: Some((49152, 443)),
        vlan: Some(0),
    };
    assert_eq!(v4, Some(wanted));
    let v6 = FlowKey::of(&Facts {
        source: 1,
        destination: u128::MAX,
        protocol: 58,
        ports: None,
        vlan: Some(4095),
        layer: Layer::V6,
        ..facts(1)
    });
    let v6 = v6.unwrap();
    assert_eq!(v6.source, "::1".parse::<IpAddr>().unwrap());
    assert_eq!((v6.ports, v6.vlan, v6.protocol), (None, Some(4095), 58));
    assert_eq!(FlowKey::of(&not_ip()), None);
}

#[test]
fn who_talks_on_stays_in_a_flood_of_new_flows() {
    let mut table = FlowTable::new(1024, 7);
    let reader = table.reader();
    let mut exact = [0_u64; 10];
    let mut flood = 1000;
    for at in 1..=20_000_u64 {
        let now = Ticks(at);
        for _ in 0..30 {
            flood += 1;
            table.note(now, Some(&facts(flood)), 60);
        }
        for talker in 0..10 {
            // The first of them the most, the last in every tenth burst only: by then a bucket has seen two new flows.
            if at % (talker + 1) == 0 {
                table.note(now, Some(&facts(talker as u32 + 2)), 60);
                exact[talker as usize] += 1;
            }
        }
        table.count(now);
    }
    assert_whole(&reader);
    assert!(reader.sums().evictions > 500_000);
    let found = reader.talkers(10).by_packets;
    let wanted: Vec<(FlowKey, u64)> = (2..)
        .zip(exact)
        .map(|(number, packets)| (FlowKey::of(&facts(number)).unwrap(), packets))
        .collect();
    let found: Vec<(FlowKey, u64)> = found.iter().map(|flow| (flow.key, flow.count.packets)).collect();
    assert_eq!(found, wanted);
}

/// Each flow's packets have a length of their own, which divides its bytes and no other's.
#[test]
fn a_reader_never_mixes_two_flows() {
    const PRIMES: [usize; 24] = [
        61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
        173, 179,
    ];
    let mut table = FlowTable::new(8, 3);
    let reader = table.reader();
    let len_of: HashMap<FlowKey, u64> = (2..)
        .zip(PRIMES)
        .map(|(number, len)| (FlowKey::of(&facts(number)).unwrap(), len as u64))
        .collect();
    let (is_over, mut read) = (AtomicBool::new(false), 0_u64);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        scope.spawn(move || {
            let mut random = 1_u64;
            for at in 1..400_000 {
                for _ in 0..8 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let which = (random >> 33) as usize % PRIMES.len();
                    table.note(Ticks(at), Some(&facts(which as u32 + 2)), PRIMES[which]);
                }
                table.count(Ticks(at));
            }
            is_over.store(true, Ordering::Release);
        });
        while !is_over.load(Ordering::Acquire) {
            for flow in reader.flows() {
                let len = len_of.get(&flow.key).expect("a key of one flow");
                assert_eq!(flow.count.bytes % len, 0, "{flow:?}");
                read += 1;
            }
        }
    });
    assert!(read > 0);
    assert!(reader.sums().evictions > 100_000);
    assert_whole(&reader);
}
