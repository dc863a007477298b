//! The pacer against exact rational arithmetic, and its promises about backlog, limit and end.

use measure::{Allowance, Pacer, Rate, Ticks};
use proptest::prelude::*;

/// Packets due after `elapsed` ticks at `rate` whole packets per second, exactly.
fn exact_due(elapsed: u64, rate: u64, hz: u64) -> u128 {
    u128::from(elapsed) * u128::from(rate) / u128::from(hz) + 1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Up to 10^12 packets, the instant of every packet is the exact one or (rarely) the tick after it.
    #[test]
    fn instants_do_not_drift(rate in 1u64..2_000_000_000, hz in 1_000_000_000u64..5_000_000_000,
                             k in 0u64..1_000_000_000_000) {
        let exact = u128::from(k) * u128::from(hz) / u128::from(rate);
        prop_assume!(exact < 1 << 62);
        let pacer = Pacer::new(Rate::Pps(rate as f64), Ticks(0), hz as f64);
        let found = u128::from(pacer.instant(k).0);
        prop_assert!(found == exact || found == exact + 1, "{} against {}", found, exact);
    }

    /// Up to 10^12 packets, the count is the exact one, or one more where a packet is due within this very tick.
    #[test]
    fn counts_do_not_drift(rate in 1u64..2_000_000_000, hz in 1_000_000_000u64..5_000_000_000,
                           k in 0u64..1_000_000_000_000) {
        let elapsed = u128::from(k) * u128::from(hz) / u128::from(rate);
        prop_assume!(elapsed < 1 << 62);
        let elapsed = elapsed as u64;
        let pacer = Pacer::new(Rate::Pps(rate as f64), Ticks(1_000), hz as f64);
        let found = u128::from(pacer.due(Ticks(1_000 + elapsed)));
        prop_assert!(found >= exact_due(elapsed, rate, hz));
        // Instants are cut to whole ticks: whatever is due before the next tick is due now.
        prop_assert!(found <= exact_due(elapsed + 1, rate, hz));
    }

    /// Count and instants agree: exactly the packets whose instant has come are due.
    #[test]
    fn due_is_the_inverse_of_instant(rate in 0.001..1e10f64, elapsed in 0u64..(1 << 50)) {
        let pacer = Pacer::new(Rate::Pps(rate), Ticks(77), 2.1e9);
        let now = Ticks(77 + elapsed);
        let due = pacer.due(now);
        prop_assert!(due > 0 && pacer.instant(due - 1) <= now);
        prop_assert!(pacer.instant(due) > now);
    }

    /// However the polls fall, what was taken and abandoned is what was due, and no lag is understated.
    #[test]
    fn taken_and_abandoned_are_what_was_due(
        rate in 1e3..5e8f64,
        polls in prop::collection::vec((0u64..100_000, 0usize..128), 1..200),
        bound in 0u64..500,
        limit in prop::option::of(0u64..20_000),
    ) {
        let mut pacer = Pacer::new(Rate::Pps(rate), Ticks(10), 2e9).with_limit(limit.unwrap_or(u64::MAX));
        let (mut now, mut taken, mut abandoned) = (0u64, 0u64, 0u64);
        for (step, room) in polls {
            now += step;
            let first = taken + abandoned;
            let backlog = pacer.due(Ticks(now)) - first;
            let take = pacer.take(Ticks(now), room, bound);
            prop_assert_eq!(take.abandoned, backlog.saturating_sub(bound));
            prop_assert_eq!(take.count as u64, (room as u64).min(backlog - take.abandoned));
            if take.count > 0 {
                prop_assert_eq!(take.lag_ticks, now - pacer.instant(first + take.abandoned).0);
            }
            taken += take.count as u64;
            abandoned += take.abandoned;
        }
        let end = Ticks(now);
        abandoned += pacer.finish(end);
        prop_assert_eq!(pacer.intended(), taken + abandoned);
        prop_assert_eq!(pacer.abandoned(), abandoned);
        let exact = Pacer::new(Rate::Pps(rate), Ticks(10), 2e9).due(end).min(limit.unwrap_or(u64::MAX));
        prop_assert_eq!(pacer.intended(), exact);
        prop_assert!(pacer.is_done());
    }
}

#[test]
fn a_trillion_packets_end_on_the_tick() {
    // A rate with no finite expansion: 10^12 packets at 14.88 Mpps take 18.7 hours.
    let (rate, hz) = (14_880_952u64, 2_899_999_999u64);
    let pacer = Pacer::new(Rate::Pps(rate as f64), Ticks(0), hz as f64);
    let k = 1_000_000_000_000u64;
    assert_eq!(
        u128::from(pacer.instant(k).0),
        u128::from(k) * u128::from(hz) / u128::from(rate)
    );
}

#[test]
fn nothing_is_due_before_the_start() {
    let mut pacer = Pacer::new(Rate::Pps(1e6), Ticks(1_000), 1e9);
    assert_eq!(pacer.due(Ticks(999)), 0);
    assert_eq!(pacer.take(Ticks(999), 64, 64), Allowance::default());
    assert_eq!(
        pacer.take(Ticks(1_000), 64, 64),
        Allowance {
            count: 1,
            lag_ticks: 0,
            abandoned: 0,
            backlog: 1
        }
    );
    assert_eq!(pacer.next_due(), Some(Ticks(2_000)));
}

#[test]
fn a_late_worker_catches_up_to_its_bound() {
    let mut pacer = Pacer::new(Rate::Pps(1e6), Ticks(0), 1e9);
    // 101 packets are due: 0 to 100 us.
    let take = pacer.take(Ticks(100_000), 32, 40);
    assert_eq!(
        take,
        Allowance {
            count: 32,
            lag_ticks: 100_000 - 61_000,
            abandoned: 61,
            backlog: 40
        }
    );
    assert_eq!(
        pacer.take(Ticks(100_000), 32, 40),
        Allowance {
            count: 8,
            lag_ticks: 7_000,
            abandoned: 0,
            backlog: 8
        }
    );
    assert_eq!(pacer.intended(), 101);
}

#[test]
fn max_gives_what_there_is_room_for() {
    let mut pacer = Pacer::new(Rate::Max, Ticks(50), 1e9).with_limit(100);
    assert!(!pacer.is_paced());
    assert_eq!(pacer.take(Ticks(49), 64, 1).count, 0);
    assert_eq!(
        pacer.take(Ticks(50), 64, 1),
        Allowance {
            count: 64,
            lag_ticks: 0,
            abandoned: 0,
            backlog: 0
        }
    );
    assert_eq!(pacer.take(Ticks(50), 64, 1).count, 36);
    assert!(pacer.is_done());
    assert_eq!(pacer.next_due(), None);
    assert_eq!((pacer.intended(), pacer.finish(Ticks(1_000))), (100, 0));
}

#[test]
fn the_count_is_exact() {
    let mut pacer = Pacer::new(Rate::Pps(1e6), Ticks(0), 1e9).with_limit(10);
    let sent: usize = (0..100)
        .map(|us| pacer.take(Ticks(us * 1_000), 64, 64).count)
        .sum();
    assert_eq!(sent, 10);
    assert_eq!(pacer.finish(Ticks(1_000_000)), 0);
}

#[test]
fn impossible_rates_send_nothing() {
    for pps in [0.0, -5.0, f64::NAN, f64::INFINITY] {
        let mut pacer = Pacer::new(Rate::Pps(pps), Ticks(0), 1e9);
        assert_eq!(pacer.take(Ticks(u64::MAX), 64, 64), Allowance::default());
        assert!(pacer.is_done());
    }
    // More than one packet per tick is still counted right.
    let mut fast = Pacer::new(Rate::Pps(3e9), Ticks(0), 1e9);
    assert_eq!(fast.due(Ticks(1_000)), 3_001 + 2);
    assert_eq!(fast.take(Ticks(1_000), 128, u64::MAX).count, 128);
    // Extremes saturate and do not panic.
    let slow = Pacer::new(Rate::Pps(1e-300), Ticks(0), 1e9);
    assert_eq!(slow.due(Ticks(u64::MAX - 1)), 1);
}

/// Together the queues of a port send as one queue would: packet by packet.
#[test]
fn queues_take_turns() {
    let rate = Rate::Pps(1e6);
    let one = Pacer::new(rate, Ticks(1000), 2.5e9);
    for queues in [1, 2, 3, 8] {
        let all: Vec<Pacer> = (0..queues)
            .map(|queue| Pacer::of_queue(rate, (queue, queues), Ticks(1000), 2.5e9))
            .collect();
        for k in 0..1000 {
            let (queue, round) = (k as usize % queues, k / queues as u64);
            let (due, alone) = (all[queue].instant(round).0, one.instant(k).0);
            assert!(
                due.abs_diff(alone) <= 2,
                "{queues} queues, packet {k}: {due}, not {alone}"
            );
        }
    }
}
