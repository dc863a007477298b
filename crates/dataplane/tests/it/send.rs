//! What a sender leaves of which the driver took only a part.
#![allow(clippy::unwrap_used, reason = "a test says so by failing")]

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dataplane::io::{Frames, Receive};
use dataplane::memory::{MemoryBuffers, MemoryLink};
use dataplane::send::{SendCounters, SendPlan, SendTask};
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use measure::{Clock, Entry, IntervalRing, Nanos, Pacer, Rate, Ticks};
use wire::Template;

use crate::support::{START, now, set_now, spec};

#[test]
fn bytes_are_of_what_was_taken_however_little_of_a_burst() {
    set_now(START);
    let mut link = MemoryLink::new(45);
    let counters = SendCounters::new();
    let (left, leave) = Slot::new();
    let entry = |template| Entry { stream: 0, template };
    let mut sender = Box::new(SendTask::new(
        link.clone(),
        MemoryBuffers,
        SendPlan {
            templates: [64, 1518]
                .map(|size| Template::new(&spec(size, 0)).unwrap())
                .into(),
            schedule: vec![entry(0), entry(1)],
            flows: vec![1],
            flow_start: 0,
            flow_step: 1,
            lane_base: 0,
            pacer: Pacer::new(Rate::Max, Ticks(START), 1e9),
            end: Ticks(u64::MAX),
            burst: 32,
            backlog: 1024,
            cut: Arc::new(AtomicU64::new(u64::MAX)),
            clock: Clock::from_calibration(0, 0, 1e9),
            intervals: Arc::new(IntervalRing::for_sender(1, 1_000_000, 64, Nanos(START)).unwrap()),
            counters: Arc::clone(&counters),
            replies: Arc::default(),
            checksum_offload: false,
        },
        leave,
    ));
    while sender.poll(now(), Phase::Run) > 0 {}
    assert_eq!(counters.bytes.get(), 16 * (60 + 1514), "that of whole bursts");
    sender.finish();
    let mut taken = Receive::batch(&link);
    assert_eq!(link.receive(&mut taken, 64), 45);
    let bytes: usize = (0..taken.len()).map(|index| taken.whole_len(index)).sum();
    assert_eq!(left.take().unwrap().bytes, bytes as u64);
    assert_eq!(counters.bytes.get(), bytes as u64);
}
