//! The merge against a stable sort: queues that stall, burst and share stamps, under a virtual clock.

use std::collections::VecDeque;

use capture::merge::{Merge, Order};
use proptest::prelude::*;

/// A packet: its stamp, its queue, its number there.
type Packet = (u64, usize, u64);

/// One queue as its worker sees it: what has come and was not polled yet.
#[derive(Clone, Debug)]
struct Plan {
    /// From one arrival to the next.
    gaps: Vec<u64>,
    /// Of every so many looks one stalls for as long.
    stalls: (u64, u64),
}

/// What went, in the order in which it went, and which of it was marked late.
fn merged(plans: &[Plan], order: Order, tick: u64) -> Vec<(Packet, bool)> {
    let mut waiting: Vec<VecDeque<u64>> = plans.iter().map(|plan| arrivals(plan).into()).collect();
    let mut polled: Vec<VecDeque<Packet>> = vec![VecDeque::new(); plans.len()];
    let (mut numbers, mut busy_until) = (vec![0; plans.len()], vec![0; plans.len()]);
    let mut merge = Merge::new(plans.len(), order);
    let (mut went, mut now, mut looks) = (Vec::new(), 1, vec![0; plans.len()]);
    while waiting.iter().any(|queue| !queue.is_empty()) || polled.iter().any(|queue| !queue.is_empty()) {
        for queue in 0..plans.len() {
            let (every, for_long) = plans[queue].stalls;
            if now < busy_until[queue] {
                continue;
            }
            looks[queue] += 1;
            if looks[queue] % every == 0 {
                busy_until[queue] = now + for_long;
                continue;
            }
            // What has come by now is stamped now: a poll's end.
            now += 1;
            let mut burst = 0;
            while burst < 32 && waiting[queue].front().is_some_and(|at| *at < now) {
                waiting[queue].pop_front();
                polled[queue].push_back((now, queue, numbers[queue]));
                numbers[queue] += 1;
                burst += 1;
            }
            merge.set_head(queue, polled[queue].front().map(|packet| packet.0));
            merge.set_watermark(queue, now);
        }
        now += tick;
        drain(&mut merge, &mut polled, now, &mut went);
    }
    went
}

fn drain(merge: &mut Merge, polled: &mut [VecDeque<Packet>], now: u64, went: &mut Vec<(Packet, bool)>) {
    while let Some(turn) = merge.turn(now) {
        let queue = &mut polled[turn.queue];
        while let Some(packet) = queue.front().copied().filter(|packet| packet.0 <= turn.until) {
            queue.pop_front();
            merge.went(packet.0);
            went.push((packet, turn.is_late));
        }
        merge.set_head(turn.queue, queue.front().map(|packet| packet.0));
    }
}

fn arrivals(plan: &Plan) -> Vec<u64> {
    let times = plan.gaps.iter().scan(0, |at, gap| {
        *at += gap;
        Some(*at)
    });
    times.collect()
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let gap = prop_oneof![Just(0u64), 1u64..5, 1u64..500, 1u64..20_000];
    let stalls = (2u64..200, prop_oneof![Just(1u64), 1u64..100, 1u64..5000]);
    let plan = (prop::collection::vec(gap, 0..200), stalls).prop_map(|(gaps, stalls)| Plan { gaps, stalls });
    prop::collection::vec(plan, 1..=16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]
    #[test]
    fn a_strict_merge_is_a_stable_sort(plans in plans(), tick in 1u64..1000) {
        let went = merged(&plans, Order::Strict, tick);
        let packets: Vec<Packet> = went.iter().map(|(packet, _)| *packet).collect();
        let mut sorted = packets.clone();
        sorted.sort_unstable();
        prop_assert_eq!(&packets, &sorted);
        prop_assert!(went.iter().all(|(_, is_late)| !is_late));
        let all: usize = plans.iter().map(|plan| plan.gaps.len()).sum();
        prop_assert_eq!(packets.len(), all);
    }

    /// Whatever is not marked late is sorted, and only what would not be is marked.
    #[test]
    fn a_bounded_merge_is_sorted_but_for_what_is_late(plans in plans(), tick in 1u64..1000, patience in 0u64..2000) {
        let went = merged(&plans, Order::Bounded(patience), tick);
        let mut latest = 0;
        for ((stamp, ..), is_late) in &went {
            prop_assert_eq!(*is_late, *stamp < latest);
            latest = latest.max(*stamp);
        }
        let all: usize = plans.iter().map(|plan| plan.gaps.len()).sum();
        prop_assert_eq!(went.len(), all);
    }
}

#[test]
fn an_idle_queue_that_is_polled_holds_nobody_up() {
    let mut merge = Merge::new(2, Order::Strict);
    merge.set_head(0, Some(10));
    merge.set_watermark(0, 10);
    assert_eq!(merge.turn(10), None, "the other one has said nothing");
    merge.set_watermark(1, 11);
    assert_eq!(merge.turn(11).map(|turn| (turn.queue, turn.until)), Some((0, 11)));
}

#[test]
fn a_queue_that_says_nothing_is_waited_for_as_long_as_was_asked() {
    let mut merge = Merge::new(2, Order::Bounded(100));
    merge.set_watermark(1, 5);
    merge.set_head(0, Some(10));
    assert_eq!(merge.turn(105), None);
    assert!(merge.turn(106).is_some_and(|turn| !turn.is_late));
    merge.went(10);
    merge.set_head(0, None);
    merge.set_head(1, Some(6));
    assert!(
        merge
            .turn(107)
            .is_some_and(|turn| turn.is_late && turn.until == 9)
    );
}

#[test]
fn at_the_end_everything_goes() {
    let mut merge = Merge::new(3, Order::Strict);
    merge.set_head(2, Some(7));
    assert_eq!(merge.turn(1_000), None);
    merge.end();
    assert!(merge.turn(1_000).is_some());
}
