use super::*;
use crate::fixture::Machine;
use crate::noise::attribute::Span;

/// Nanoseconds are ticks.
const HZ: f64 = 1e9;
const MS: u64 = 1_000_000;
const CORE: Core = Core(1);
const TICK: Cause = Cause::Vector("local_timer");

fn stall(from_ms: u64, ms: u64, cause: Cause) -> AttributedStall {
    let span = Span {
        from: from_ms * MS,
        to: (from_ms + ms) * MS,
        core: CORE.0,
    };
    AttributedStall::whole(span, cause)
}

fn task() -> Cause {
    Cause::Task {
        pid: 7,
        name: "hog".into(),
        work: None,
    }
}

fn grown(from_ms: u64, to_ms: u64, ms: u64) -> Growth {
    Growth::new(from_ms * MS, to_ms * MS, ms * MS)
}

fn stolen(growths: &[Growth], named: &mut [AttributedStall]) {
    let counted = Counted {
        steal: [(CORE, growths.to_vec())].into(),
        ..Counted::default()
    };
    counted.charge(CORE, named, HZ);
}

fn throttled(growths: &[Growth], named: &mut [AttributedStall]) {
    let counted = Counted {
        throttled: growths.to_vec(),
        ..Counted::default()
    };
    counted.charge(CORE, named, HZ);
}

#[test]
fn what_the_hypervisor_took_says_so() {
    let mut named = [
        stall(100, 1, Cause::Outside),
        stall(200, 43, Cause::Outside),
        stall(300, 2, TICK),
        stall(400, 30, Cause::Outside),
    ];
    stolen(&[grown(90, 310, 40)], &mut named);
    assert_eq!(
        named[1].parts,
        [(Cause::Stolen, 40 * MS), (Cause::Outside, 3 * MS)]
    );
    let causes: Vec<_> = named.iter().map(|one| one.cause().clone()).collect();
    assert_eq!(causes, [Cause::Outside, Cause::Stolen, TICK, Cause::Outside]);
}

#[test]
fn an_interrupt_that_the_hypervisor_made_long_is_not_blamed() {
    let mut long = stall(100, 79, TICK);
    long.doubtful = vec![(TICK, 78 * MS)];
    let mut named = [long, stall(200, 79, TICK)];
    stolen(&[grown(90, 310, 80)], &mut named);
    assert_eq!(named[0].parts, [(Cause::Stolen, 78 * MS), (TICK, MS)]);
    assert_eq!(named[1].cause(), &TICK);
}

/// More than was counted is not called stolen, and neither is what is too short for a scheduler.
#[test]
fn no_more_is_stolen_than_was_counted() {
    let short = AttributedStall::whole(
        Span {
            from: 150 * MS,
            to: 150 * MS + 5_000,
            core: CORE.0,
        },
        Cause::Outside,
    );
    let mut named = [
        stall(100, 30, Cause::Outside),
        short,
        stall(200, 30, Cause::Outside),
    ];
    stolen(&[grown(90, 310, 40)], &mut named);
    let total: u64 = named
        .iter()
        .map(|one| one.time_of(|cause| *cause == Cause::Stolen))
        .sum();
    assert_eq!(total, 40 * MS);
    assert_eq!(named[1].cause(), &Cause::Outside);
    for one in &named {
        let sum: u64 = one.parts.iter().map(|(_, ticks)| ticks).sum();
        assert_eq!(sum, one.stall.ticks());
    }
}

#[test]
fn a_quota_explains_that_nobody_ran_and_who_ran_meanwhile() {
    let mut named = [
        stall(100, 20, Cause::NotRunnable),
        stall(200, 50, task()),
        stall(300, 4, task()),
        stall(900, 20, Cause::NotRunnable),
        stall(950, 20, task()),
    ];
    throttled(&[grown(90, 310, 72)], &mut named);
    let causes: Vec<_> = named.iter().map(|one| one.cause().clone()).collect();
    assert_eq!(
        causes,
        [Cause::Quota, Cause::Quota, task(), Cause::NotRunnable, task()]
    );
}

#[test]
fn counters_are_read_where_both_versions_have_them() {
    fn now() -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NOW: AtomicU64 = AtomicU64::new(100);
        NOW.fetch_add(1, Ordering::Relaxed)
    }
    let stat =
        |steal: u64| format!("cpu  0 0 0 0 0 0 0 9\ncpu0 0 0 0 0 0 0 0 7\ncpu1 0 0 0 0 0 0 0 {steal} 0 0\n");
    let machine = Machine::with(&[
        ("/proc/stat", &stat(3)),
        ("/proc/self/cgroup", "1:cpu:/a\n0::/b\n"),
        (
            "/sys/fs/cgroup/cpu/a/cpu.stat",
            "nr_throttled 1\nthrottled_time 5000\n",
        ),
        ("/sys/fs/cgroup/cpu.stat", "usage_usec 1\nthrottled_usec 7\n"),
    ]);
    let cores: CoreSet = "1".parse().unwrap();
    let mut counted = Counted::default();
    counted.look(&machine.sys, &cores, now, true);
    assert!(counted.steal.is_empty() && counted.throttled.is_empty());
    machine.write_all(&[
        ("/proc/stat", &stat(7)),
        (
            "/sys/fs/cgroup/cpu/a/cpu.stat",
            "nr_throttled 2\nthrottled_time 9000\n",
        ),
        ("/sys/fs/cgroup/cpu.stat", "usage_usec 1\nthrottled_usec 8\n"),
    ]);
    counted.look(&machine.sys, &cores, now, false);
    assert!(counted.steal.is_empty(), "it is not time yet");
    counted.look(&machine.sys, &cores, now, true);
    let steal: Vec<_> = counted
        .steal
        .iter()
        .map(|(core, all)| (*core, all[0].ns))
        .collect();
    assert_eq!(steal, [(CORE, 4 * USER_TICK_NS)]);
    assert_eq!(counted.throttled[0].ns, 4_000 + 1_000);
}

#[test]
fn a_long_run_forgets_no_time_and_needs_no_more_room() {
    let mut kept = Vec::new();
    let looks = 3 * GROWTHS_MAX as u64;
    for look in 0..looks {
        push(&mut kept, Growth::new(look, look + 1, look));
        assert!(kept.len() <= GROWTHS_MAX);
    }
    assert_eq!(
        kept.iter().map(|growth| growth.ns).sum::<u64>(),
        (0..looks).sum::<u64>()
    );
    assert!(
        kept.windows(2).all(|pair| pair[0].to == pair[1].from),
        "their times follow one another"
    );
    assert_eq!((kept[0].from, kept[kept.len() - 1].to), (0, looks));
}

#[test]
fn what_lies_between_two_growths_is_neither_of_them() {
    let (first, near, far) = (grown(0, 50, 200), grown(100, 150, 200), grown(1000, 1050, 200));
    assert_eq!(first.and(far), None);
    let both = first.and(near).unwrap();
    let mut named = [stall(0, 140, task())];
    throttled(&[both], &mut named);
    assert_eq!(
        named[0].time_of(|cause| *cause == Cause::Quota),
        100 * MS,
        "no more than the looks that saw it took"
    );
}
