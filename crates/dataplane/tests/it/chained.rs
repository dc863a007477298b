//! Frames that lie in several buffers: judged by all their bytes, or refused by name, never taken for short ones.
#![allow(clippy::unwrap_used, reason = "a test says so by failing")]

use std::sync::Arc;

use dataplane::fault::Faults;
use dataplane::memory::{MemoryBuffers, MemoryFrame, MemoryLink, ROOM};
use dataplane::receive::{ReceiveCounters, ReceiveResult, ReceiveTask};
use dataplane::reflect::{OwnMac, ReflectCounters, ReflectPlan, ReflectTask};
use dataplane::slot::Slot;
use dataplane::{Phase, Task};

use wire::{Addresses, BurstStamp, DropReason, MAX_FRAME_SIZE, Template, Verify};

use crate::support::{START, now, receive_plan, set_now, spec};

/// The probe `sequence` of a jumbo stream.
fn probe(sequence: u64, frame_size: usize) -> Vec<u8> {
    let template = Template::new(&spec(frame_size, 0)).unwrap();
    let mut room = vec![0; template.room_needed()];
    template.write(&mut room, &BurstStamp::new(START + 1_000, 0), sequence, None);
    room.truncate(template.frame_len());
    room
}

fn receive(wire: MemoryLink) -> (ReceiveResult, Arc<ReceiveCounters>) {
    let counters = ReceiveCounters::new();
    let plan = receive_plan(&counters, 1_000_000);
    let (totals, leave) = Slot::new();
    let mut task = Box::new(ReceiveTask::new(wire, plan, leave));
    set_now(START + 5_000);
    task.poll(now(), Phase::Run);
    task.finish();
    (totals.take().unwrap(), counters)
}

#[test]
fn a_chained_probe_is_verified_over_its_whole_length_and_in_its_order() {
    let wire = MemoryLink::new(64);
    let mut bytes = 0;
    for sequence in 0..12 {
        let frame = probe(sequence, if sequence % 3 == 0 { 64 } else { 9000 });
        bytes += frame.len() as u64;
        match sequence % 3 {
            // In pieces that part the headers, too.
            1 => wire.inject_frame(MemoryFrame::in_segments(frame.chunks(17))),
            _ => wire.inject(&frame),
        }
    }
    let (totals, counters) = receive(wire);
    let lane = &totals.lanes[0];
    assert_eq!((lane.received, lane.duplicate, lane.reordered), (12, 0, 0));
    assert_eq!((counters.frames.get(), counters.bytes.get()), (12, bytes));
    assert_eq!((counters.oversized.get(), totals.holes.len()), (0, 0));
}

#[test]
fn damage_behind_the_first_buffer_is_found() {
    let wire = MemoryLink::new(64);
    for at in [ROOM, 5000, 8995] {
        let mut frame = probe(0, 9000);
        frame[at] ^= 1;
        wire.inject(&frame);
    }
    let (totals, counters) = receive(wire);
    assert_eq!((counters.corrupt.get(), totals.lanes[0].received), (3, 0));
}

#[test]
fn a_whole_probe_with_a_buffer_chained_behind_it_is_judged_with_it() {
    let (short, wire) = (probe(0, 64), MemoryLink::new(64));
    let tail: &[u8] = &[0; 3000];
    wire.inject_frame(MemoryFrame::in_segments([&short[..], tail]));
    let long: &[u8] = &[0; MAX_FRAME_SIZE];
    wire.inject_frame(MemoryFrame::in_segments([&short[..], long]));
    let (totals, counters) = receive(wire);
    let whole = [&short[..], tail].concat();
    let is_probe = matches!(wire::classify(&whole, 9, Verify::Payload), wire::Class::Probe(_));
    assert_eq!(totals.lanes[0].received, u64::from(is_probe));
    assert_eq!(counters.oversized.get(), 1, "longer than any probe");
    let len = 2 * short.len() + tail.len() + long.len();
    assert_eq!(counters.bytes.get(), len as u64);
}

#[test]
fn a_reflector_refuses_a_chain_by_name_and_counts_all_its_bytes() {
    let (there, back) = (MemoryLink::new(64), MemoryLink::new(64));
    let frames = [probe(0, 64), probe(1, 9000), probe(2, 64)];
    for frame in &frames {
        there.inject(frame);
    }
    let counters = ReflectCounters::new();
    let plan = ReflectPlan {
        own_mac: OwnMac::Any,
        only_ours: false,
        me: Addresses {
            mac: [2, 0, 0, 0, 0, 2],
            ips: vec![],
        },
        burst: 32,
        hold_ticks: u64::MAX,
        takes_rest: true,
        counters: Arc::clone(&counters),
        own_counters: None,
    };
    let (totals, leave) = Slot::new();
    let faults = None::<Faults<MemoryBuffers>>;
    let mut task = Box::new(ReflectTask::new(there, back.clone(), plan, faults, leave));
    task.poll(now(), Phase::Run);
    task.finish();
    assert_eq!(totals.take().unwrap().held, 0);
    assert_eq!((back.len(), counters.returned.get()), (2, 2));
    assert_eq!((counters.frames.get(), counters.oversized.get()), (3, 1));
    let by_reason = DropReason::ALL.map(|reason| counters.dropped[reason.index()].get());
    assert_eq!(by_reason.iter().sum::<u64>(), 0);
    let bytes: usize = frames.iter().map(Vec::len).sum();
    assert_eq!(counters.bytes.get(), bytes as u64);
}
