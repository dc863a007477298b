//! The intervals: attribution to the send time, final rows, bounded memory, and hand-over between threads.

use std::sync::Arc;

use measure::interval::{CELLS_MAX, slots_for};
use measure::{IntervalCollector, IntervalError, IntervalRing, IntervalRow, IntervalWriter, Nanos};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

#[allow(clippy::unwrap_used, reason = "a test helper")]
fn ring(streams: usize, slots: usize) -> Arc<IntervalRing> {
    Arc::new(IntervalRing::new(streams, MS, slots, Nanos(100)).unwrap())
}

/// `n` packets of `stream` went out, stamped `at`.
fn accepted(writer: &mut IntervalWriter, at: Nanos, stream: usize, n: u64) {
    if let Some(row) = writer.row(at, n) {
        row.accepted(stream, n);
    }
}

/// `n` of them came back.
fn received(writer: &mut IntervalWriter, at: Nanos, stream: usize, latency_ns: u64, n: u64) {
    if let Some(row) = writer.row(at, n) {
        row.received(stream, latency_ns, n);
        row.timed(latency_ns, n);
    }
}

/// The rows of a run that ended at `end`.
fn rest(collector: &mut IntervalCollector, end: u64) -> impl Iterator<Item = IntervalRow> {
    collector.ends_at(Nanos(end));
    std::iter::from_fn(|| collector.next_remaining())
}

#[test]
fn everything_counts_for_the_time_of_sending() {
    let (sender, receiver) = (
        Arc::new(IntervalRing::for_sender(2, MS, 8, Nanos(100)).unwrap()),
        ring(2, 8),
    );
    let (mut tx, mut rx) = (
        IntervalWriter::new(Arc::clone(&sender)),
        IntervalWriter::new(Arc::clone(&receiver)),
    );
    accepted(&mut tx, Nanos(100), 0, 10);
    accepted(&mut tx, Nanos(100 + MS - 1), 1, 4);
    accepted(&mut tx, Nanos(100 + MS), 1, 2);
    tx.unsent(Nanos(100 + MS), 3);
    // Arrives in interval 5, was sent in interval 0.
    received(&mut rx, Nanos(101), 0, 5 * MS, 8);
    received(&mut rx, Nanos(101), 0, 7_000, 1);
    let row = rx.row(Nanos(101), 3).unwrap();
    row.duplicate(0, 2);
    row.reordered(0, 1);
    rx.corrupt(Nanos(100 + 2 * MS), 1);
    let mut collector = IntervalCollector::new(vec![sender, receiver], 2_000 * MS);
    assert_eq!(collector.next_final(), None);
    tx.finish();
    assert_eq!(collector.next_final(), None, "the receiver still runs");
    rx.finish();

    let first = collector.next_final().unwrap();
    let stream = first.streams[0];
    assert_eq!(
        (stream.sent, stream.received, stream.duplicate, stream.reordered),
        (10, 9, 2, 1)
    );
    assert_eq!(
        (stream.latency_min_ns, stream.latency_max_ns),
        (Some(7_000), Some(5 * MS))
    );
    assert_eq!((stream.lost(), stream.drop_rate_percent()), (1, Some(10.0)));
    assert_eq!(
        (first.streams[1].sent, first.streams[1].drop_rate_percent()),
        (4, Some(100.0))
    );
    assert_eq!(first.streams[1].latency_mean_ns(), None);
    assert_eq!((first.total().sent, first.total().received), (14, 9));
    assert_eq!(first.percentiles().max, Some(5 * MS));
    assert_eq!(first.latency.count(), 9);

    collector.ends_at(Nanos(100 + MS + MS / 2));
    let second = collector.next_remaining().unwrap();
    assert_eq!((second.start_ns, second.end_ns), (MS, MS + MS / 2));
    assert!((second.seconds() - 0.000_5).abs() < 1e-12);
    assert_eq!((second.total().sent, second.unsent), (2, 3));
    assert_eq!(
        second.corrupt, 1,
        "damage after the end of sending stands in the last row"
    );
    assert_eq!(second.percentiles().p50, None);
    assert_eq!(collector.next_remaining(), None);
}

#[test]
fn no_row_is_too_short_for_a_file_to_tell_its_time() {
    let burst = |end: u64, is_out: bool| {
        let ring = Arc::new(IntervalRing::for_sender(1, MS, 64, Nanos(100)).unwrap());
        let mut writer = IntervalWriter::new(Arc::clone(&ring));
        accepted(&mut writer, Nanos(100), 0, 10);
        accepted(&mut writer, Nanos(100 + MS + 300), 0, 64);
        writer.publish(Nanos(100 + if is_out { 2 * MS } else { 0 }));
        let mut collector = IntervalCollector::new(vec![ring], 0);
        let mut rows: Vec<_> = is_out
            .then(|| collector.next_final().unwrap())
            .into_iter()
            .collect();
        rows.extend(rest(&mut collector, 100 + end));
        rows.iter()
            .map(|row| (row.end_ns, row.total().sent))
            .collect::<Vec<_>>()
    };
    // A rest of 301 ns belongs to the row before; where that is out, it is a row of a microsecond.
    assert_eq!(burst(MS + 301, false), [(MS + 301, 74)]);
    assert_eq!(burst(MS + 301, true), [(MS, 10), (MS + 1000, 64)]);
    assert_eq!(burst(MS + 1000, false), [(MS, 10), (MS + 1000, 64)]);
}

#[test]
fn a_row_is_final_only_after_the_drain() {
    let ring = ring(1, 64);
    let writer = IntervalWriter::new(Arc::clone(&ring));
    let mut collector = IntervalCollector::new(vec![ring], 10 * MS);
    writer.publish(Nanos(100 + 11 * MS));
    assert_eq!(collector.next_final(), None);
    writer.publish(Nanos(100 + 11 * MS + 1));
    assert!(collector.next_final().is_some());
    assert_eq!(collector.next_final(), None);
    assert_eq!(collector.next_index(), 1);
}

/// However long it is waited for what is missing: no row begins after the end, and none is without what came later.
#[test]
fn the_row_of_the_end_waits_for_what_comes_after_it() {
    let ring = Arc::new(IntervalRing::for_sender(1, MS, 4, Nanos(100)).unwrap());
    let mut writer = IntervalWriter::new(Arc::clone(&ring));
    let mut collector = IntervalCollector::new(vec![ring], MS);
    accepted(&mut writer, Nanos(100), 0, 5);
    accepted(&mut writer, Nanos(100 + MS), 0, 7);
    collector.ends_at(Nanos(100 + MS + MS / 2));
    let mut rows = Vec::new();
    // Ten times as long as there are slots.
    for at in 2..40 {
        writer.corrupt(Nanos(100 + at * MS), 1);
        writer.publish(Nanos(100 + at * MS));
        rows.extend(std::iter::from_fn(|| collector.next_final()));
    }
    writer.finish();
    rows.extend(std::iter::from_fn(|| collector.next_final()));
    assert_eq!(rows.len(), 1);
    rows.extend(std::iter::from_fn(|| collector.next_remaining()));
    let told = rows.iter().map(|row| (row.end_ns, row.total().sent, row.corrupt));
    let told: Vec<_> = told.collect();
    assert_eq!(told, [(MS, 5, 0), (MS + MS / 2, 7, 38)]);
    assert_eq!(collector.overrun(), 0);
}

#[test]
fn what_finds_no_slot_is_counted_and_overwrites_nothing() {
    let ring = ring(1, 4);
    let mut writer = IntervalWriter::new(Arc::clone(&ring));
    for interval in 0..6 {
        received(&mut writer, Nanos(100 + interval * MS), 0, 1_000, 1);
    }
    assert_eq!(ring.overrun(), 2);
    writer.finish();
    let mut collector = IntervalCollector::new(vec![Arc::clone(&ring)], 0);
    assert_eq!(collector.next_final().unwrap().total().received, 1);
    // One slot is free again: interval 4 fits now, interval 5 still does not.
    received(&mut writer, Nanos(100 + 4 * MS), 0, 1_000, 7);
    received(&mut writer, Nanos(100 + 5 * MS), 0, 1_000, 1);
    assert_eq!(ring.overrun(), 3);
    // Interval 0 is closed.
    received(&mut writer, Nanos(100), 0, 1_000, 5);
    received(&mut writer, Nanos(99), 0, 1_000, 5);
    assert_eq!(ring.stale(), 10);
    let came: Vec<u64> = rest(&mut collector, 100 + 5 * MS)
        .map(|row| row.total().received)
        .collect();
    assert_eq!(came, [1, 1, 1, 7]);
    assert_eq!((collector.overrun(), collector.stale()), (3, 10));
}

#[test]
fn a_stream_that_does_not_exist_is_ignored() {
    let ring = ring(2, 4);
    let mut writer = IntervalWriter::new(Arc::clone(&ring));
    accepted(&mut writer, Nanos(100), 2, 5);
    received(&mut writer, Nanos(100), usize::MAX, 5, 5);
    let collector = IntervalCollector::new(vec![ring], 0);
    assert_eq!(collector.collect(0).total(), measure::IntervalTotals::default());
}

#[test]
fn memory_is_bounded_and_the_error_says_what_fits() {
    assert_eq!(slots_for(1, 1_000 * MS, 2_000 * MS), Ok(5));
    let slots = slots_for(1, MS, 2_000 * MS).unwrap();
    assert!(IntervalRing::new(1, MS, slots, Nanos(0)).is_ok());
    let error = slots_for(1_000, MS, 2_000 * MS).unwrap_err();
    let IntervalError::TooSmall { smallest_ns, .. } = error else {
        panic!("{error}")
    };
    assert!(slots_for(1_000, smallest_ns, 2_000 * MS).is_ok());
    assert!(slots_for(1_000, smallest_ns - 1_000, 2_000 * MS).is_err());
    assert!(
        error.to_string().contains(&format!(
            "use --interval {}ms or longer",
            smallest_ns.div_ceil(MS)
        )),
        "{error}"
    );
    assert!(matches!(
        IntervalRing::new(1_000, MS, CELLS_MAX, Nanos(0)),
        Err(IntervalError::TooManySlots { .. })
    ));
    for (streams, interval) in [(0, MS), (1, 0)] {
        assert_eq!(slots_for(streams, interval, 0), Err(IntervalError::Empty));
        assert!(IntervalRing::new(streams, interval, 4, Nanos(0)).is_err());
    }
    assert!(IntervalRing::new(1, MS, 0, Nanos(0)).is_err());
    assert!(slots_for(usize::MAX, u64::MAX, u64::MAX).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// However packets come and however slow control is: rows, overrun and stale add up to all packets.
    #[test]
    fn no_packet_is_lost_between_the_rows(
        events in prop::collection::vec((0u64..40 * MS, 0usize..3, 1u64..100, 0u8..10), 1..300),
        slots in 1usize..48,
    ) {
        let ring = ring(3, slots);
        let mut writer = IntervalWriter::new(Arc::clone(&ring));
        let mut collector = IntervalCollector::new(vec![Arc::clone(&ring)], 2 * MS);
        let (mut given, mut rows) = (0u64, Vec::new());
        for (at, stream, n, kind) in events {
            received(&mut writer, Nanos(100 + at), stream, at / 3, n);
            given += n;
            if kind == 0 { writer.publish(Nanos(100 + at)); }
            if kind == 1 { rows.extend(collector.next_final()); }
        }
        writer.finish();
        rows.extend(rest(&mut collector, 100 + 40 * MS));
        prop_assert_eq!(rows.len(), 40);
        let in_rows: u64 = rows.iter().map(|row| row.total().received).sum();
        let in_latencies: u64 = rows.iter().map(|row| row.latency.count()).sum();
        prop_assert_eq!(in_rows, in_latencies);
        prop_assert_eq!(in_rows + collector.overrun() + collector.stale(), given);
    }
}

/// Two real threads: the worker runs ahead, control follows, nothing is lost or counted twice.
#[test]
fn a_worker_and_control_share_a_ring() {
    let slots = slots_for(1, MS, 2 * MS).unwrap();
    let ring = ring(1, slots);
    let mut writer = IntervalWriter::new(Arc::clone(&ring));
    let worker = std::thread::spawn(move || {
        let mut given = 0;
        for step in 0..200_000u64 {
            let now = Nanos(100 + step * 10_000);
            writer.publish(now);
            received(
                &mut writer,
                Nanos(now.0 - (step % 150).min(step) * 10_000),
                0,
                1_000,
                3,
            );
            given += 3;
        }
        writer.finish();
        given
    });
    let mut collector = IntervalCollector::new(vec![Arc::clone(&ring)], 2 * MS);
    let mut received = 0;
    while ring.progress() != Nanos(u64::MAX) {
        received += collector.next_final().map_or(0, |row| row.total().received);
        std::thread::yield_now();
    }
    let given: u64 = worker.join().unwrap();
    let rest = rest(&mut collector, 100 + 200_000 * 10_000);
    received += rest.map(|row| row.total().received).sum::<u64>();
    assert_eq!(received + collector.overrun(), given);
    assert_eq!(collector.stale(), 0);
}
