//! Prints what the flow table costs a packet, in nanoseconds: for one flow, a thousand and a million, in a table that has
//! room for them, and for new flows only, in a table that is full. The best of several rounds, beside making the keys alone.

use std::hint::black_box;
use std::time::Instant;

use dataplane::flows::FlowTable;
use measure::Ticks;
use rules::{Detail, Facts, Layer, Part};

const BURST: usize = 64;
const BURSTS: usize = 20_000;
const ROUNDS: usize = 7;

fn facts(number: u64) -> Facts {
    Facts {
        vlan: None,
        ether_type: 0x0800,
        layer: Layer::V4,
        protocol: 17,
        part: Part::Whole,
        source: u128::from(number) << 96,
        destination: 0xC633_6402 << 96,
        ports: Some((number as u16, 53)),
        detail: Detail::None,
    }
}

/// The flow of packet `at` among so many, without order.
fn flow_of(at: u64, flows: u64) -> u64 {
    ((u128::from(at.wrapping_mul(0x9E37_79B9_7F4A_7C15)) * u128::from(flows)) >> 64) as u64
}

fn best(mut round: impl FnMut(u64)) -> f64 {
    let mut times = Vec::new();
    for number in 0..ROUNDS as u64 {
        let begun = Instant::now();
        round(number);
        times.push(begun.elapsed().as_secs_f64() * 1e9 / (BURSTS * BURST) as f64);
    }
    times.into_iter().fold(f64::MAX, f64::min)
}

fn main() {
    let keys = best(|round| {
        for at in 0..(BURSTS * BURST) as u64 {
            black_box(facts(flow_of(round + at, 1_000_000)));
        }
    });
    println!("{:<34} {keys:>6.1} ns", "what is known of a packet, alone");
    for (flows, what) in [(1, "one flow"), (1000, "a thousand"), (1_000_000, "a million")] {
        let mut table = FlowTable::new((flows as usize).max(4096) * 2, 1);
        for flow in 0..flows {
            table.note(Ticks(1), Some(&facts(flow)), 60);
        }
        let ns = best(|round| run(&mut table, round, |at| flow_of(at, flows)));
        println!(
            "{what:<34} {ns:>6.1} ns, {} evictions",
            table.reader().sums().evictions
        );
    }
    let mut table = FlowTable::new(1_000_000, 1);
    let ns = best(|round| run(&mut table, round, |at| 1_000_000 + at));
    let sums = table.reader().sums();
    println!(
        "{:<34} {ns:>6.1} ns, {} evictions",
        "new flows only, a full million", sums.evictions
    );
    let reader = table.reader();
    let begun = Instant::now();
    let talkers = reader.talkers(20);
    println!(
        "the 20 largest of {} flows: {:.1} ms",
        talkers.flows,
        begun.elapsed().as_secs_f64() * 1e3
    );
}

/// A round of packets whose flows `flow_of` says.
fn run(table: &mut FlowTable, round: u64, flow_of: impl Fn(u64) -> u64) {
    let mut at = round * (BURSTS * BURST) as u64;
    for burst in 0..BURSTS as u64 {
        let now = Ticks(2 + round * BURSTS as u64 + burst);
        for _ in 0..BURST {
            at += 1;
            table.note(now, Some(&facts(flow_of(at))), 60);
        }
        table.count(now);
    }
}
