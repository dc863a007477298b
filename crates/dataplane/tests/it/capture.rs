//! The capturing loop over memory links and a virtual clock: every frame is in the ring, in the order of its stamps, or counted.
#![allow(
    clippy::unwrap_used,
    clippy::similar_names,
    reason = "a test says so by failing"
)]

use std::cell::Cell;
use std::sync::Arc;

use capture::merge::Order;
use capture::pcapng;
use capture::ring::layout::SEGMENT_MIN;
use capture::ring::{Consumer, Producer};
use dataplane::capture::{CaptureCounters, CaptureTask, MergeCounters, QueueSource, Source, SourcePlan};
use dataplane::memory::{MemoryFrame, MemoryLink};
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use measure::{Clock, Ticks};
use proptest::prelude::*;

thread_local!(static NOW: Cell<u64> = const { Cell::new(0) });

/// The virtual clock: one tick is one nanosecond, and each look takes some.
fn now() -> Ticks {
    NOW.set(NOW.get() + 7);
    Ticks(NOW.get())
}

/// A frame that says which it is, in buffers of `buffer` bytes.
fn frame(queue: usize, number: u64, len: usize, buffer: usize) -> MemoryFrame {
    let bytes = bytes(queue, number, len);
    MemoryFrame::in_segments(bytes.chunks(buffer))
}

fn bytes(queue: usize, number: u64, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|at| (at as u64 * 7 + number) as u8).collect();
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes[8] = queue as u8;
    bytes
}

#[derive(Clone, Debug)]
struct Case {
    queues: usize,
    snap_len: usize,
    buffer: usize,
    burst: usize,
    /// Before each poll: frames that come to a queue, and their length.
    arrivals: Vec<Vec<(usize, usize)>>,
    /// Whether the consumer takes what is there after so many polls.
    takes_every: usize,
    wanted: u64,
}

fn check(case: &Case) {
    NOW.set(1_000_000);
    let (producer, ring) = Producer::new(3, SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap();
    let (seat, page) = ring.seat(true).unwrap();
    let links: Vec<MemoryLink> = (0..case.queues).map(|_| MemoryLink::new(1 << 16)).collect();
    let counters: Vec<Arc<CaptureCounters>> = links.iter().map(|_| Arc::default()).collect();
    let merged = Arc::<MergeCounters>::default();
    let sources = (0..).zip(&links).zip(&counters).map(|((index, link), counters)| {
        let plan = SourcePlan {
            interface: index,
            queue: Some(index),
            direction: None,
            snap_len: case.snap_len,
            burst: case.burst,
            epoch_ns: 0,
            counters: Arc::clone(counters),
        };
        Box::new(QueueSource::new(link.clone(), plan)) as Box<dyn Source>
    });
    let (totals, leave) = Slot::new();
    let clock = Clock::from_calibration(0, 0, 1e9);
    let mut task: Box<dyn Task> = Box::new(CaptureTask::new(
        sources.collect(),
        (Order::Strict, case.wanted),
        producer,
        (clock, now),
        Arc::clone(&merged),
        leave,
    ));
    // What came before the run is none of it.
    links[0].inject(&[0; 60]);
    task.poll(now(), Phase::Warm);
    assert!(seat.is_taken());
    let mut consumer = Consumer::new(ring.file(), page).unwrap();
    let (mut sent, mut seen) = (vec![0; case.queues], vec![0; case.queues]);
    let mut last = (0, 0);
    let mut take = |consumer: &mut Consumer, sent: &[u64]| {
        let mut taken = 0;
        while let Some(packets) = consumer.packets().unwrap() {
            for packet in packets.iter() {
                let packet = packet.unwrap();
                let queue = packet.interface as usize;
                let number = u64::from_ne_bytes(*packet.data.first_chunk().unwrap());
                let whole = bytes(queue, number, packet.original_len as usize);
                assert_eq!(packet.data, &whole[..whole.len().min(case.snap_len)]);
                assert!(
                    number >= seen[queue] && number < sent[queue],
                    "once, and in order"
                );
                seen[queue] = number + 1;
                assert!((packet.time_ns, packet.interface) >= last, "sorted");
                last = (packet.time_ns, packet.interface);
                taken += 1;
            }
        }
        taken
    };
    let mut taken = 0;
    for (round, arrivals) in case.arrivals.iter().enumerate() {
        for (queue, len) in arrivals {
            links[*queue].inject_frame(frame(*queue, sent[*queue], *len, case.buffer));
            sent[*queue] += 1;
        }
        task.poll(now(), Phase::Run);
        if round % case.takes_every == 0 {
            taken += take(&mut consumer, &sent);
        }
    }
    while links.iter().any(|link| !link.is_empty()) {
        task.poll(now(), Phase::Run);
    }
    task.finish();
    taken += take(&mut consumer, &sent);
    let frames: u64 = counters.iter().map(|counters| counters.frames.get()).sum();
    assert_eq!(frames, sent.iter().sum::<u64>(), "every frame was received");
    assert_eq!(totals.take().unwrap().held, 0);
    let refused: u64 = counters.iter().map(|counters| counters.refused.get()).sum();
    let counted = merged.written.get() + refused + merged.unwanted.get();
    assert_eq!(frames, counted, "and written, or counted");
    assert!(merged.unwanted.get() == 0 || merged.written.get() == case.wanted);
    assert_eq!(taken, merged.written.get(), "and taken");
    assert_eq!(merged.late.get(), 0);
    assert_eq!(counters[0].flushed.get(), 1);
}

fn cases() -> impl Strategy<Value = Case> {
    (1usize..6).prop_flat_map(|queues| {
        let lens = prop_oneof![20usize..200, 1000usize..5000];
        let arrivals = prop::collection::vec(prop::collection::vec((0..queues, lens), 0..40), 1..80);
        let snap_len = prop_oneof![Just(usize::MAX), 20usize..3000];
        (
            arrivals,
            snap_len,
            64usize..2048,
            1usize..64,
            1usize..60,
            prop_oneof![Just(u64::MAX), 1u64..500],
        )
            .prop_map(
                move |(arrivals, snap_len, buffer, burst, takes_every, wanted)| Case {
                    queues,
                    snap_len,
                    buffer,
                    burst,
                    arrivals,
                    takes_every,
                    wanted,
                },
            )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn everything_is_in_the_ring_in_order_or_counted(case in cases()) {
        check(&case);
    }
}
