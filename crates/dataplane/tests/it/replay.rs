//! The replaying loop over memory and a virtual clock: every packet leaves in its order, not before it is due, or is counted.
#![allow(clippy::unwrap_used, reason = "a test says so by failing")]

use std::cell::Cell;
use std::sync::Arc;

use dataplane::io::{Frames, Receive};
use dataplane::memory::{MemoryBuffers, MemoryLink};
use dataplane::replay::feed::{Filler, Planned, feed};
use dataplane::replay::{ReplayCounters, ReplayPlan, ReplayResult, ReplayTask};
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use measure::Ticks;
use proptest::prelude::*;

thread_local!(static NOW: Cell<u64> = const { Cell::new(0) });

/// The virtual clock: one tick is one nanosecond.
fn now() -> Ticks {
    Ticks(NOW.get())
}

#[derive(Clone, Debug)]
struct Case {
    /// Time from the packet before, and length.
    packets: Vec<(u64, usize)>,
    is_paced: bool,
    burst: usize,
    chunks: usize,
    chunk_len: usize,
    /// Frames that the wire holds, and how many of them it carries away between two polls.
    capacity: usize,
    carried: usize,
    /// Between two polls: time that passes, and packets that are read.
    rounds: Vec<(u64, usize)>,
    /// No packet is due after so long.
    until: u64,
    /// After so many polls the run is ended.
    ends_after: usize,
}

struct Outcome {
    /// When each frame was on the wire, and its bytes.
    seen: Vec<(u64, Vec<u8>)>,
    read: usize,
    left_in_feed: [u64; 2],
    begun: u64,
    totals: ReplayResult,
    counters: Arc<ReplayCounters>,
}

fn bytes(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + number) as u8).collect()
}

/// Some of the packets are said to be the beginning of longer ones.
fn is_snapped(number: usize) -> bool {
    number % 3 == 1
}

/// Reads up to `count` packets more; the feed may have no room.
fn read(filler: &mut Option<Filler>, case: &Case, from: &mut usize, due: &mut u64, count: usize) {
    let Some(open) = filler.as_mut() else { return };
    for _ in 0..count {
        let Some((gap, len)) = case.packets.get(*from) else {
            break;
        };
        let at = if case.is_paced { *due + gap } else { 0 };
        let planned = Planned {
            at,
            position: *from as u64,
            is_snapped: is_snapped(*from),
        };
        if !open.push(planned, &bytes(*from, *len)) {
            break;
        }
        (*due, *from) = (at, *from + 1);
    }
    open.flush();
    if *from == case.packets.len() {
        *filler = None;
    }
}

fn run(case: &Case) -> Outcome {
    NOW.set(1_000_000);
    let mut wire = MemoryLink::new(case.capacity);
    let counters = ReplayCounters::new();
    let (filler, feed) = feed(case.chunks, case.chunk_len);
    filler.prime();
    let left = feed.hold();
    let plan = ReplayPlan {
        feed,
        burst: case.burst,
        is_paced: case.is_paced,
        until: case.until,
        now,
        counters: Arc::clone(&counters),
    };
    let (totals, leave) = Slot::new();
    let mut task: Box<dyn Task> = Box::new(ReplayTask::new(wire.clone(), MemoryBuffers, plan, leave));
    let (mut filler, mut from, mut due) = (Some(filler), 0, 0);
    let (mut seen, mut begun) = (Vec::new(), 0);
    let mut rounds = case.rounds.iter().cycle();
    let mut last_polls = 0;
    for poll in 0.. {
        let (step, count) = *rounds.next().unwrap();
        NOW.set(NOW.get() + step);
        read(&mut filler, case, &mut from, &mut due, count);
        let phase = if poll < case.ends_after {
            Phase::Run
        } else {
            Phase::Drain
        };
        task.poll(now(), phase);
        if counters.first_ticks.get() != 0 && begun == 0 {
            begun = counters.first_ticks.get();
        }
        let mut carried = wire.batch();
        wire.receive(&mut carried, case.carried);
        seen.extend(carried.each().map(|(bytes, _)| (NOW.get(), bytes.to_vec())));
        last_polls += usize::from(phase == Phase::Drain || counters.done.get() == 1);
        if last_polls > 3 {
            break;
        }
    }
    let mut rest = wire.batch();
    while wire.receive(&mut rest, 64) > 0 {
        seen.extend(rest.each().map(|(bytes, _)| (NOW.get(), bytes.to_vec())));
        rest.clear();
    }
    task.finish();
    drop(filler);
    Outcome {
        seen,
        read: from,
        left_in_feed: left.count_left(totals.get().unwrap().ended_at),
        begun,
        totals: *totals.get().unwrap(),
        counters,
    }
}

/// When each packet is due, after the first one.
fn due_times(case: &Case) -> Vec<u64> {
    let gaps = case.packets.iter().map(|(gap, _)| *gap);
    gaps.scan(0, |at, gap| {
        *at += gap;
        Some(*at)
    })
    .collect()
}

fn check(case: &Case) {
    let outcome = run(case);
    let Outcome {
        seen,
        totals,
        counters,
        ..
    } = &outcome;
    let sent = counters.sent.get();
    assert_eq!(seen.len() as u64, sent);
    assert_eq!(
        outcome.read as u64,
        sent + totals.held + totals.not_due + outcome.left_in_feed.iter().sum::<u64>(),
        "{totals:?}"
    );
    // What was due before the end and had been read is held, and nothing else.
    if let Some(ended_at) = totals.ended_at {
        let due = due_times(case);
        let read = due[..outcome.read].iter();
        let owed = read.skip(sent as usize).filter(|at| **at <= ended_at).count();
        assert_eq!(totals.held + outcome.left_in_feed[0], owed as u64, "{totals:?}");
        if let Some(from) = totals.held_from {
            assert_eq!(from, due[sent as usize]);
        }
    }
    if case.is_paced {
        let due = due_times(case);
        assert!(due[..seen.len()].iter().all(|due| *due <= case.until));
    }
    let mut due = 0;
    for (number, ((gap, len), (at, found))) in case.packets.iter().zip(seen).enumerate() {
        assert!(*found == bytes(number, *len), "packet {number} is another one");
        due += gap;
        if case.is_paced {
            assert!(
                *at >= outcome.begun + due,
                "packet {number} left before it was due"
            );
        }
    }
    let sum: u64 = case.packets[..seen.len()]
        .iter()
        .map(|(_, len)| *len as u64)
        .sum();
    assert_eq!(counters.bytes.get(), sum);
    let framed = case.packets[..seen.len()]
        .iter()
        .map(|(_, len)| (*len as u64 + 4).max(64));
    assert_eq!(counters.wire_bytes.get(), framed.sum());
    let snapped = (0..seen.len()).filter(|number| is_snapped(*number)).count();
    assert_eq!(counters.snapped.get(), snapped as u64);
    let [late, gaps] = [&counters.late_ticks, &counters.gap_error_ticks].map(|seen| seen.snapshot().count());
    if case.is_paced {
        assert_eq!((late, gaps), (sent, sent.saturating_sub(1)));
    } else {
        assert_eq!((late, gaps), (0, 0));
    }
    if counters.done.get() == 1 {
        assert_eq!(
            (sent, counters.position.get()),
            (case.packets.len() as u64, sent - 1)
        );
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let packets = prop::collection::vec((prop_oneof![Just(0), 0_u64..5_000], 14_usize..300), 1..200);
    let rounds = prop::collection::vec((1_u64..2_000, prop_oneof![Just(0), 0_usize..40]), 1..40)
        .prop_filter("somebody reads", |rounds| {
            rounds.iter().any(|(_, count)| *count > 0)
        });
    let wire = (1_usize..64, 1_usize..64);
    let feed = (2_usize..6, 450_usize..2_500);
    let ends_after = prop_oneof![Just(usize::MAX), 0_usize..500];
    // Only whoever ends a run says that packets have an end.
    let ends = (ends_after, prop_oneof![Just(u64::MAX), 0_u64..500_000]);
    let ends = ends.prop_map(|(after, until)| {
        if after == usize::MAX {
            (after, u64::MAX)
        } else {
            (after, until)
        }
    });
    (packets, any::<bool>(), 1_usize..=64, feed, wire, rounds, ends).prop_map(
        |(
            mut packets,
            is_paced,
            burst,
            (chunks, chunk_len),
            (capacity, carried),
            rounds,
            (ends_after, until),
        )| {
            packets[0].0 = 0;
            Case {
                packets,
                is_paced,
                burst,
                chunks,
                chunk_len,
                capacity,
                carried,
                rounds,
                until,
                ends_after,
            }
        },
    )
}

proptest! {
    #[test]
    fn every_packet_leaves_in_its_order_when_it_is_due_or_is_counted(case in cases()) {
        check(&case);
    }
}

/// So many packets, 1 us apart.
fn plain(packets: usize, rounds: Vec<(u64, usize)>) -> Case {
    Case {
        packets: (0..packets)
            .map(|number| (1000 * u64::from(number > 0), 60))
            .collect(),
        is_paced: true,
        burst: 8,
        chunks: 4,
        chunk_len: 1000,
        capacity: 1000,
        carried: 64,
        rounds,
        until: u64::MAX,
        ends_after: usize::MAX,
    }
}

#[test]
fn gaps_are_exact_to_the_poll() {
    // Polled every 10 ns, packets 1 us apart: none is late, and no gap is wrong.
    let case = plain(50, vec![(10, 10)]);
    let outcome = run(&case);
    assert_eq!(outcome.counters.sent.get(), 50);
    assert_eq!(outcome.counters.gap_error_ticks.snapshot().max(), Some(0));
    let took = outcome.counters.last_ticks.get() - outcome.counters.first_ticks.get();
    assert_eq!(took, 49 * 1000);
    assert_eq!(
        (outcome.counters.starved.get(), outcome.counters.queue_full.get()),
        (0, 0)
    );
}

#[test]
fn a_worker_that_was_away_catches_up_and_its_gaps_say_so() {
    let mut rounds = vec![(10, 10); 1000];
    rounds[500].0 = 20_000;
    let outcome = run(&plain(50, rounds));
    assert_eq!(outcome.counters.sent.get(), 50);
    assert!(outcome.counters.late_ticks.snapshot().max() >= Some(10_000));
    assert!(outcome.counters.gap_error_ticks.snapshot().max() >= Some(10_000));
    assert_eq!(outcome.counters.late_by_file.get(), 0);
}

#[test]
fn a_file_that_is_too_slow_is_named_with_its_packets() {
    // One packet is read in 10 polls of 1 us, and one is due every microsecond.
    let mut rounds = vec![(1000, 0); 10];
    rounds[0].1 = 1;
    let outcome = run(&plain(20, rounds));
    assert_eq!(outcome.counters.sent.get(), 20);
    // Each but the first was due 9 us before it had been read, and 9 us more with each.
    assert_eq!(outcome.counters.late_by_file.get(), 19);
    assert_eq!(outcome.counters.starved.get(), 19);
    assert!(
        outcome.counters.starved_ticks.get() >= 19 * 8000,
        "{:?}",
        outcome.counters
    );
}

/// The run ends while the input gives nothing: nobody knows what would have come, unless it had ended.
#[test]
fn an_input_that_stalls_to_the_end_is_told() {
    let stalled = |packets| {
        let mut rounds = vec![(1000, 0); 60];
        rounds[0].1 = 5;
        let case = Case {
            ends_after: 40,
            ..plain(packets, rounds)
        };
        run(&case).totals
    };
    let totals = stalled(20);
    assert_eq!(totals.starved, totals.ended_at.unwrap() - 4000, "{totals:?}");
    assert_eq!(stalled(5).starved, 0);
}

/// The wire holds 8 frames and carries none away: what fell due meanwhile was not cut off, the port did not take it.
#[test]
fn what_a_stuck_port_did_not_take_is_held() {
    let stuck = Case {
        capacity: 8,
        carried: 0,
        ends_after: 40,
        ..plain(200, vec![(1000, 200)])
    };
    let outcome = run(&stuck);
    assert_eq!(outcome.counters.sent.get(), 8);
    let ended_at = outcome.totals.ended_at.unwrap();
    let owed = outcome.totals.held + outcome.left_in_feed[0];
    assert_eq!(owed, ended_at / 1000 + 1 - 8, "{:?}", outcome.totals);
    assert_eq!(outcome.totals.held_from, Some(8000));
    assert_eq!(outcome.counters.drained.get(), 0);
    // It has been full since the ninth packet was due.
    assert_eq!(outcome.counters.full_ticks.get(), ended_at - 8000);
}

/// What was due before the end is sent in the drain, as far as the wire lets it.
#[test]
fn what_was_due_before_the_end_is_sent_after_it() {
    let slow = Case {
        capacity: 1,
        carried: 1,
        ends_after: 12,
        // The worker was away for 3 us just before the end.
        ..plain(
            200,
            [vec![(1000, 200); 11], vec![(3000, 0); 1], vec![(10, 0); 50]].concat(),
        )
    };
    let outcome = run(&slow);
    assert!(outcome.totals.not_due > 0, "{:?}", outcome.totals);
    assert_eq!(
        outcome.totals.held + outcome.left_in_feed[0],
        0,
        "{:?}",
        outcome.totals
    );
    assert_eq!(outcome.counters.drained.get(), 1);
}

/// Whoever ends the run looks 200 polls later.
#[test]
fn nothing_is_sent_that_was_due_after_the_end() {
    let late = |is_paced, gap| Case {
        is_paced,
        // One frame a poll, which leaves some of what is due before the end to be sent after it.
        capacity: 1,
        carried: 1,
        packets: (0..400).map(|number| (gap * u64::from(number > 0), 60)).collect(),
        chunks: 400,
        until: 49_999,
        ends_after: 250,
        ..plain(0, vec![(1000, 400)])
    };
    let outcome = run(&late(true, 1000));
    assert_eq!(outcome.counters.sent.get(), 50, "{:?}", outcome.totals);
    assert_eq!(outcome.totals.ended_at, Some(49_999));
    let outcome = run(&late(true, 500));
    assert_eq!(outcome.counters.sent.get(), 100, "{:?}", outcome.totals);
    assert_eq!(outcome.totals.held + outcome.left_in_feed[0], 0);
    let outcome = run(&late(false, 0));
    // And what the driver had refused by then.
    assert!(
        (50..60).contains(&outcome.counters.sent.get()),
        "{:?}",
        outcome.totals
    );
}
