use host::cores::Core;
use proptest::prelude::*;

use super::*;
use crate::noise::cause::Cause;
use crate::noise::record::Record;

const OWN: u32 = 1;
const CORE: u32 = 1;

fn span(from: u64, to: u64) -> Span {
    Span { from, to, core: CORE }
}

fn event() -> impl Strategy<Value = Event> {
    let switch = |from, to| Event::Switch {
        from,
        state: 0,
        to,
        name: "kworker".into(),
    };
    prop_oneof![
        Just(Event::Enter(Cause::Vector("local_timer"))),
        Just(Event::Leave),
        Just(switch(OWN, 9)),
        Just(switch(9, OWN)),
        (8_u32..10, 1_u64..4).prop_map(|(pid, function)| Event::Work { pid, function }),
        (8_u32..10).prop_map(|pid| Event::WorkDone { pid }),
    ]
}

/// Things that follow each other, so far apart.
fn apart<T>(most: u64, what: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<(u64, T)>>
where
    T: std::fmt::Debug,
{
    prop::collection::vec((1..most, what), 0..60).prop_map(|list| {
        let mut at = 0;
        let times = list.into_iter().map(move |(gap, thing)| {
            at += gap;
            (at, thing)
        });
        times.collect()
    })
}

/// Stalls that follow each other: each ends so long after the one before as it has to begin first.
fn stalls() -> impl Strategy<Value = Vec<Span>> {
    apart(80, 1_u64..60).prop_map(|ends| {
        let mut last = 0;
        let spans = ends.into_iter().map(move |(to, len)| {
            let from = to.saturating_sub(len).max(last);
            last = to;
            span(from, to)
        });
        spans.collect()
    })
}

proptest! {
    #[test]
    fn what_is_forgotten_names_no_stall(
        events in apart(12, event()),
        stalls in stalls(),
        looks in apart(60, Just(())),
    ) {
        let mut kept = Kept::default();
        let (mut until, mut looked, mut taken) = (0, 0, 0);
        for (look, ()) in looks {
            for (at, event) in events.iter().skip(taken).take_while(|(at, _)| *at <= look) {
                kept.push(Stamped { at: *at, event: event.clone() });
                taken += 1;
            }
            let known: Vec<Span> = stalls.iter().copied().filter(|stall| stall.to <= look).collect();
            kept.forget(until, &known);
            if !stalls.iter().any(|stall| stall.from <= looked && stall.to > look) {
                until = looked;
            }
            looked = look;
        }
        for (at, event) in events.iter().skip(taken) {
            kept.push(Stamped { at: *at, event: event.clone() });
        }
        let all = events.into_iter().map(|(at, event)| Stamped { at, event }).collect::<Vec<_>>();
        let (kept, lost) = kept.end();
        prop_assert!(lost.is_empty());
        prop_assert!(kept.iter().all(|event| all.contains(event)));
        prop_assert!(kept.is_sorted_by_key(|event| event.at));
        let names = |events| {
            Record::of(Core(CORE), (events, Vec::new())).name(Core(CORE), OWN, &stalls)
        };
        prop_assert_eq!(names(kept), names(all));
    }
}

#[test]
fn a_quiet_core_keeps_nothing() {
    let mut kept = Kept::default();
    for at in 1..=1_000 {
        let event = Event::Enter(Cause::Vector("local_timer"));
        kept.push(Stamped { at: at * 10, event });
        kept.push(Stamped {
            at: at * 10 + 1,
            event: Event::Leave,
        });
        kept.forget(at * 10, &[span(5_000, 5_005)]);
    }
    assert_eq!(kept.count(), 2 + 2);
}

#[test]
fn what_was_lost_leaves_stalls_without_a_cause() {
    let irq = || Event::Enter(Cause::Vector("local_timer"));
    let mut kept = Kept::default();
    for (at, event) in [(110, irq()), (120, Event::Leave)] {
        kept.push(Stamped { at, event });
    }
    // One page begins after some that are gone, and one that is all gone is followed by another.
    kept.lose_since(120, Some(300));
    for (at, event) in [(300, irq()), (310, Event::Leave)] {
        kept.push(Stamped { at, event });
    }
    kept.lose_since(310, None);
    kept.push(Stamped {
        at: 500,
        event: irq(),
    });
    kept.push(Stamped {
        at: 510,
        event: Event::Leave,
    });
    kept.lose_since(510, None);
    let (events, lost) = kept.end();
    assert_eq!(lost, [(120, 300), (310, 500), (510, u64::MAX)]);
    let record = Record::of(Core(CORE), (events, lost));
    let stalls = [
        (100, 119),
        (200, 210),
        (301, 309),
        (400, 420),
        (501, 509),
        (600, 700),
        (800, 810),
    ];
    let named = record.name(Core(CORE), OWN, &stalls.map(|(from, to)| span(from, to)));
    let unrecorded = named
        .iter()
        .map(|one| *one.cause() == Cause::Unrecorded)
        .collect::<Vec<_>>();
    assert_eq!(unrecorded, [false, true, false, true, false, true, true]);
}
