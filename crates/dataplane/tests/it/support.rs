//! What several tests of the loops begin with.
#![allow(clippy::unwrap_used, reason = "a test says so by failing")]

use std::cell::Cell;
use std::sync::Arc;

use dataplane::receive::{ReceiveCounters, ReceivePlan};
use dataplane::reflector_counters::Answers;
use measure::{Clock, IntervalRing, Nanos, Ticks};
use wire::{Addresses, TemplateSpec, Verify};

/// When runs begin, ns.
pub const START: u64 = 1_000_000_000;
/// The run's number in its probes.
pub const RUN: u8 = 9;

thread_local!(static NOW: Cell<u64> = const { Cell::new(0) });

/// The virtual clock: one tick is one nanosecond.
pub fn now() -> Ticks {
    Ticks(NOW.get())
}

/// Sets it.
pub fn set_now(ns: u64) {
    NOW.set(ns);
}

/// A plain stream of one flow.
pub fn spec(frame_size: usize, lane: u16) -> TemplateSpec {
    TemplateSpec {
        run: RUN,
        lane,
        ..TemplateSpec::plain(frame_size)
    }
}

/// A receiver of one lane, alone on its link.
pub fn receive_plan(counters: &Arc<ReceiveCounters>, drain_ns: u64) -> ReceivePlan {
    ReceivePlan {
        first_lane: 0,
        lanes: 1,
        streams: 1,
        window: 1 << 10,
        unions: Arc::default(),
        own_macs: Arc::default(),
        ends: Arc::default(),
        latency_bits: 7,
        run: RUN,
        start: Nanos(START),
        drain_ns,
        verify: Verify::Payload,
        burst: 32,
        clock: Clock::from_calibration(0, 0, 1e9),
        tsc: now,
        intervals: Arc::new(IntervalRing::new(1, 1_000_000, 128, Nanos(START)).unwrap()),
        counters: Arc::clone(counters),
        me: Addresses {
            mac: [0; 6],
            ips: Vec::new(),
        },
        replies: Arc::default(),
        answers: Arc::new(Answers::default()),
        holes_max: 1 << 16,
        senders: Vec::new(),
    }
}
