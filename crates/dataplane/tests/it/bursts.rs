//! The books of a receiver do not depend on how what came was cut into bursts.
#![allow(clippy::unwrap_used, reason = "a test says so by failing")]

use std::sync::Arc;

use dataplane::memory::MemoryLink;
use dataplane::receive::{LaneResult, ReceiveCounters, ReceivePlan, ReceiveResult, ReceiveTask};
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use measure::{IntervalCollector, IntervalRing, IntervalRow, Nanos};
use proptest::prelude::*;
use wire::{BurstStamp, Foreign, Template};

use crate::support::{START, now, receive_plan, set_now, spec};

const DRAIN: u64 = 50_000_000;
/// Of two streams; one more lane is nobody's.
const LANES: u16 = 4;

/// A probe that comes.
#[derive(Clone, Copy, Debug)]
struct Coming {
    lane: u16,
    sequence: u64,
    stamp: u64,
}

fn frame(probe: &Coming) -> Vec<u8> {
    let template = Template::new(&spec(64, probe.lane)).unwrap();
    let mut frame = vec![0; 64];
    template.write(&mut frame, &BurstStamp::new(probe.stamp, 0), probe.sequence, None);
    frame.truncate(template.frame_len());
    frame
}

struct Left {
    result: ReceiveResult,
    counters: Arc<ReceiveCounters>,
    rows: Vec<IntervalRow>,
    outside: u64,
}

/// What a receiver leaves that took these, each group at one time, in bursts of `burst`.
fn receive(groups: &[(u64, Vec<Coming>)], burst: usize, slots: usize) -> Left {
    set_now(START);
    let wire = MemoryLink::new(1 << 12);
    let counters = ReceiveCounters::new();
    let intervals = Arc::new(IntervalRing::new(2, 1_000_000, slots, Nanos(START)).unwrap());
    let (left, leave) = Slot::new();
    let mut receiver = Box::new(ReceiveTask::new(
        wire.clone(),
        ReceivePlan {
            lanes: LANES.into(),
            streams: 2,
            window: 64,
            burst,
            intervals: Arc::clone(&intervals),
            ..receive_plan(&counters, DRAIN)
        },
        leave,
    ));
    for (at, group) in groups {
        set_now(*at);
        for probe in group {
            wire.inject(&frame(probe));
        }
        while receiver.poll(now(), Phase::Run) > 0 {}
    }
    receiver.finish();
    let mut collector = IntervalCollector::new(vec![intervals], DRAIN);
    let end = Nanos(now().0);
    collector.ends_at(end);
    let rows = std::iter::from_fn(|| collector.next_remaining()).collect();
    Left {
        result: left.take().unwrap(),
        counters,
        rows,
        outside: collector.overrun() + collector.stale(),
    }
}

/// What comes of `kinds`, one probe sent after the other, and when.
fn comings(kinds: &[(u16, u8, i64)], sizes: &[usize]) -> Vec<(u64, Vec<Coming>)> {
    let mut next = [0; LANES as usize + 1];
    let (mut placed, mut late) = (Vec::new(), Vec::new());
    let mut place = -4;
    for (number, &(lane, kind, shift)) in kinds.iter().enumerate() {
        let probe = Coming {
            lane,
            sequence: next[usize::from(lane)],
            // Four leave with one stamp, and the first were sent before the run.
            stamp: START - 200_000 + number as u64 / 4 * 40_000,
        };
        next[usize::from(lane)] += 1;
        place += 4;
        match kind {
            0 => {}
            1 => placed.push((place + shift, probe)),
            2 => placed.extend([(place, probe), (place + shift.abs(), probe)]),
            3 => late.push(probe),
            4 => placed.push((
                place,
                Coming {
                    stamp: probe.stamp + 1_000_000_000,
                    ..probe
                },
            )),
            _ => placed.push((place, probe)),
        }
    }
    placed.sort_by_key(|(place, _)| *place);
    let mut groups = Vec::new();
    let (mut rest, mut sizes) = (&placed[..], sizes.iter().cycle());
    let mut at = START + 10_000_000;
    while !rest.is_empty() {
        let (group, others) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
        groups.push((at, group.iter().map(|(_, probe)| *probe).collect()));
        at += 70_000;
        rest = others;
    }
    groups.push((START + 2 * DRAIN, late));
    groups
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn many_probes_a_burst_are_booked_like_one(
        kinds in prop::collection::vec((0..=LANES, 0_u8..40, -90_i64..90), 1..500),
        sizes in prop::collection::vec(1_usize..64, 1..8),
        in_turn in any::<bool>(),
        slots in prop::sample::select(vec![2_usize, 128]),
    ) {
        let mut kinds = kinds;
        if in_turn {
            // Of one stream: runs of several probes.
            kinds.iter_mut().enumerate().for_each(|(number, kind)| kind.0 = (number / 50) as u16 % LANES);
        }
        let groups = comings(&kinds, &sizes);
        let came: usize = groups.iter().map(|(_, group)| group.len()).sum();
        let (many, one) = (receive(&groups, 64, slots), receive(&groups, 1, slots));
        for (many, one) in many.result.lanes.iter().zip(&one.result.lanes) {
            let counts = |lane: &LaneResult| {
                [
                    lane.received,
                    lane.duplicate,
                    lane.reordered,
                    lane.extent_max,
                    lane.late,
                    lane.too_old,
                    lane.beyond,
                ]
            };
            prop_assert_eq!(counts(many), counts(one));
            let (many, one) = (many.jitter.ns().unwrap_or(0.0), one.jitter.ns().unwrap_or(0.0));
            prop_assert!((many - one).abs() <= 1e-6 * one.max(1.0), "{} and {}", many, one);
        }
        prop_assert_eq!(&many.result.latency, &one.result.latency);
        prop_assert_eq!(&many.result.latency_scheduled, &one.result.latency_scheduled);
        prop_assert_eq!(&many.result.holes, &one.result.holes);
        prop_assert_eq!(many.result.clock_backwards, one.result.clock_backwards);
        prop_assert_eq!(format!("{:?}", many.counters), format!("{:?}", one.counters));
        prop_assert_eq!(format!("{:?}", many.rows), format!("{:?}", one.rows));
        prop_assert_eq!(many.outside, one.outside);

        let probes: u64 = many.result.lanes.iter().map(LaneResult::probes).sum();
        let nobodys = many.counters.foreign[Foreign::OtherRun.index()].get();
        prop_assert_eq!(probes + nobodys + many.counters.stale.get(), came as u64);
        let booked: u64 = many.result.lanes.iter().map(|lane| lane.received + lane.duplicate).sum();
        let totals = many.rows.iter().map(IntervalRow::total);
        let in_rows: u64 = totals.map(|total| total.received + total.duplicate).sum();
        prop_assert_eq!(in_rows + many.outside, booked);
    }
}
