//! Prints what each hot piece costs: nanoseconds per call and, where a call stands for a burst, per packet.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use measure::{
    CompactHistogram, Counter, IntervalRing, IntervalWriter, Jitter, Nanos, Outcome, Pacer, Rate, Row,
    SequenceWindow, SharedHistogram, Ticks,
};

/// Packets a call stands for.
const BURST: u64 = 64;

/// Calls in one timed round; the best of some rounds counts, as the others were disturbed.
const CALLS: u64 = 100_000;

/// Times `call` and prints its cost; `packets` is what one call stands for.
fn cost(name: &str, packets: u64, mut call: impl FnMut(u64)) {
    let mut best = f64::INFINITY;
    for _ in 0..200 {
        let start = Instant::now();
        for round in 0..CALLS {
            call(black_box(round));
        }
        best = best.min(start.elapsed().as_nanos() as f64 / CALLS as f64);
    }
    println!(
        "{name:<52} {best:>8.2} ns/call {:>8.3} ns/packet",
        best / packets as f64
    );
}

fn main() {
    let counter = Counter::new();
    cost("Counter::add", 1, |n| black_box(&counter).add(n));
    pacers();
    sequences();
    histograms();
    intervals();
}

/// The three answers of a pacer.
fn pacers() {
    let mut pacer = Pacer::new(Rate::Pps(1.0), Ticks(1 << 60), 2e9);
    cost("Pacer::take, nothing due", 1, |now| {
        black_box(pacer.take(Ticks(now), 64, 4096));
    });
    // 64 packets every 64 ticks of 1 GHz.
    let mut pacer = Pacer::new(Rate::Pps(999_999_999.7), Ticks(0), 1e9);
    let mut now = 0;
    cost("Pacer::take, a burst of 64 due", BURST, |_| {
        now += BURST;
        black_box(pacer.take(Ticks(now), 64, 4096));
    });
    let mut pacer = Pacer::new(Rate::Max, Ticks(0), 1e9);
    cost("Pacer::take, rate max", BURST, |now| {
        black_box(pacer.take(Ticks(now), 64, 4096));
    });
}

/// Sequence windows in order and disturbed; outcomes are summed, as a receiver does.
fn sequences() {
    let mut window = SequenceWindow::new(1 << 20);
    let mut next = 0;
    let mut total = Outcome::default();
    cost("SequenceWindow::record, in order, runs of 64", BURST, |_| {
        total += window.record(next, BURST);
        next += BURST;
    });
    let mut window = SequenceWindow::new(1 << 20);
    let mut next = 0;
    cost("SequenceWindow::record, in order, one by one", 1, |_| {
        total += window.record(next, 1);
        next += 1;
    });
    let mut window = SequenceWindow::new(1 << 20);
    let mut next = 0u64;
    cost("SequenceWindow::record, neighbours swapped", 1, |_| {
        total += window.record(next ^ 1, 1);
        next += 1;
    });
    let mut window = SequenceWindow::new(1 << 20);
    let mut next = 0;
    cost("SequenceWindow::record, every other run lost", BURST, |_| {
        total += window.record(next, BURST);
        next += 2 * BURST;
    });
    let mut windows: Vec<SequenceWindow> = (0..1000).map(|_| SequenceWindow::new(1 << 16)).collect();
    let (mut next, mut lane) = (0, 0);
    cost("SequenceWindow::record, 1000 lanes, one by one", 1, |_| {
        total += windows[lane].record(next, 1);
        lane += 1;
        if lane == windows.len() {
            lane = 0;
            next += 1;
        }
    });
    black_box(total);
}

/// Histograms and jitter, with latencies that differ from call to call.
fn histograms() {
    let latency = |n: u64| 5_000 + (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50);
    let shared = SharedHistogram::new(10);
    cost("SharedHistogram(10)::record", BURST, |n| {
        black_box(&shared).record(latency(n), BURST);
    });
    let shared = SharedHistogram::new(7);
    cost("SharedHistogram(7)::record", BURST, |n| {
        black_box(&shared).record(latency(n), BURST);
    });
    let compact = CompactHistogram::new(5);
    cost("CompactHistogram(5)::record", BURST, |n| {
        black_box(&compact).record(latency(n), BURST);
    });
    let mut jitter = Jitter::new();
    cost("Jitter::record", BURST, |n| {
        black_box(&mut jitter).record(latency(n), BURST);
    });
}

/// Interval cells in the present interval.
fn intervals() {
    let Ok(ring) = IntervalRing::new(1, 1_000_000, 1 << 12, Nanos(0)) else {
        return;
    };
    let mut writer = IntervalWriter::new(Arc::new(ring));
    cost("IntervalWriter::publish", 1, |n| writer.publish(Nanos(n)));
    let mut row = |name, at: fn(u64) -> u64, of: fn(Row<'_>, u64)| {
        cost(name, BURST, |n| {
            if let Some(row) = writer.row(Nanos(at(n)), BURST) {
                of(row, 5_000 + n % 4096);
            }
        });
    };
    row("Row::accepted", |n| n & 0x3_ffff, |row, _| row.accepted(0, BURST));
    row(
        "Row::received",
        |n| n & 0x3_ffff,
        |row, ns| row.received(0, ns, BURST),
    );
    row("Row::timed", |n| n & 0x3_ffff, |row, ns| row.timed(ns, BURST));
    row(
        "Row::received, a new interval each",
        |n| (n & 0xfff) * 1_000_000,
        |row, ns| row.received(0, ns, BURST),
    );
}
