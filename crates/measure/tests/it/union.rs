//! What several queues see of a lane, against a set that remembers everything: no copy may ever stand in for a loss.

#![allow(clippy::cast_possible_wrap, reason = "test numbers are small")]

use std::collections::HashSet;
use std::sync::Arc;

use measure::{LaneUnion, Outcome, SequenceWindow};
use proptest::prelude::*;

/// A queue's window, and what it has taken for first ones.
struct Queue(SequenceWindow, Outcome);

/// Numbers come to the queues in this order; the first ones by the windows, and the union.
fn seen(bits: usize, queues: usize, arrivals: &[(usize, u64)]) -> (u64, u64, Arc<LaneUnion>) {
    let union = Arc::new(LaneUnion::new(bits));
    let window = || SequenceWindow::new(bits).shared(Some(Arc::clone(&union)));
    let mut queues: Vec<Queue> = (0..queues).map(|_| Queue(window(), Outcome::default())).collect();
    for (queue, number) in arrivals {
        let Queue(window, total) = &mut queues[*queue];
        *total += window.record(*number, 1);
    }
    let (mut fresh, mut too_old) = (0, 0);
    for Queue(window, total) in &mut queues {
        window.end();
        fresh += total.fresh;
        too_old += total.too_old;
    }
    (fresh, too_old, union)
}

/// A stream that is thinned, doubled and shuffled, over several queues.
fn arrivals(queues: usize, disorder: i64) -> impl Strategy<Value = Vec<(usize, u64)>> {
    let packet = (
        0..queues,
        0..queues,
        0u8..20,
        -disorder..=disorder,
        -disorder..=disorder,
    );
    prop::collection::vec(packet, 1..3000).prop_map(move |packets| {
        let mut places = Vec::new();
        for (number, (queue, other, kind, early, late)) in packets.into_iter().enumerate() {
            let (place, number) = (number as i64 * 4, number as u64);
            // Lost, or sent, or sent and copied on the way.
            if kind > 2 {
                places.push((place + early, queue, number));
            }
            if kind > 15 {
                places.push((place + late, other, number));
            }
        }
        places.sort_unstable();
        places
            .into_iter()
            .map(|(_, queue, number)| (queue, number))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_came_is_counted_once(arrivals in (1usize..5).prop_flat_map(|queues| arrivals(queues, 200))) {
        let distinct = arrivals.iter().map(|(_, number)| number).collect::<HashSet<_>>().len() as u64;
        let (fresh, too_old, union) = seen(1024, 5, &arrivals);
        prop_assert_eq!((too_old, union.unsure()), (0, 0));
        prop_assert_eq!(fresh - union.copies(), distinct);
    }

    /// However far apart the queues are: what is called received has been, unless the union says that it cannot tell.
    #[test]
    fn a_copy_never_stands_in_for_a_loss(
        arrivals in (2usize..4).prop_flat_map(|queues| arrivals(queues, 3000)),
        window in prop::sample::select(vec![64, 128]),
    ) {
        let distinct = arrivals.iter().map(|(_, number)| number).collect::<HashSet<_>>().len() as u64;
        let (fresh, _, union) = seen(window, 4, &arrivals);
        prop_assert!(fresh - union.copies() <= distinct + union.unsure());
        prop_assert!(union.unsure() > 0 || fresh - union.copies() <= distinct);
    }
}

#[test]
fn a_queue_that_was_left_behind_is_not_believed() {
    let arrivals: Vec<(usize, u64)> = [(1, 5)]
        .into_iter()
        .chain((0..100_000).map(|number| (0, number)))
        .collect();
    let (fresh, _, union) = seen(1024, 2, &arrivals);
    // Number 5 came twice, and the second queue told of it when nobody knew any more.
    assert_eq!((fresh, union.copies(), union.unsure()), (100_001, 0, 1));
}

#[test]
fn queues_on_two_cores_find_every_copy() {
    const NUMBERS: u64 = 1 << 18;
    let union = Arc::new(LaneUnion::new(1 << 18));
    let received: u64 = std::thread::scope(|scope| {
        // Each misses every third number of its own, and both see the others.
        let queue = |missing: u64| {
            let mut window = SequenceWindow::new(1 << 18).shared(Some(Arc::clone(&union)));
            move || {
                let came = (0..NUMBERS).filter(|number| number % 3 != missing);
                let fresh = came.map(|number| window.record(number, 1).fresh).sum::<u64>();
                window.end();
                fresh
            }
        };
        let threads = [scope.spawn(queue(0)), scope.spawn(queue(1))];
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    assert_eq!((received - union.copies(), union.unsure()), (NUMBERS, 0));
}
