//! The ledger's identities over random evidence, the order of its places, and every way to break it.

use std::collections::BTreeMap;

use measure::ledger::NOT_AWAITED;
use measure::{Arrived, Imbalance, Lane, Ledger, LedgerInput};
use proptest::prelude::*;

fn named(places: &[(&str, u64)]) -> BTreeMap<String, u64> {
    places
        .iter()
        .map(|&(name, count)| (name.to_owned(), count))
        .collect()
}

/// Evidence of a run in which the frames that arrived were all classified.
fn input(accepted: u64, received: u64, places: &[(&str, u64)]) -> LedgerInput {
    LedgerInput {
        intended: accepted,
        accepted,
        arrived: Arrived {
            frames: received,
            received,
            ..Arrived::default()
        },
        places: named(places),
        ..LedgerInput::default()
    }
}

fn places() -> impl Strategy<Value = BTreeMap<String, u64>> {
    let name = prop::sample::select(vec![
        "fault_drop",
        "reflector_bad_length",
        "reflector_rx_missed",
        "tx_error",
        "rx_nombuf",
        "rx_missed",
        "rx_error",
        "something_new",
    ]);
    prop::collection::btree_map(name.prop_map(str::to_owned), 0u64..1_000, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn the_identities_hold_for_any_evidence(
        accepted in 0u64..5_000, unsent in 0u64..100, lost in 0u64..5_000,
        (duplicate, corrupt, late, too_old) in (0u64..50, 0u64..50, 0u64..50, 0u64..50),
        foreign in prop::collection::btree_map("[a-z]{3}", 0u64..50, 0..4),
        places in places(), one_way: bool, far_is_shared: bool,
    ) {
        let received = accepted.saturating_sub(lost);
        let arrived = Arrived {
            frames: received + duplicate + corrupt + late + too_old + foreign.values().sum::<u64>(),
            received, duplicate, corrupt, late, too_old,
            answered: foreign.values().sum::<u64>() / 2,
            foreign,
        };
        let ledger = Ledger::balance(LedgerInput {
            intended: accepted + unsent, accepted, unsent, arrived, places: places.clone(), raw: places.clone(), one_way, far_is_shared,
        });
        let lanes = [Lane { lane: 0, accepted, received, beyond: 0 }];
        prop_assert_eq!(ledger.check(&lanes), vec![]);
        prop_assert_eq!(accepted, received + ledger.lost_at_total() + ledger.unexplained);
        // No place is charged with more than it counted, and none with nothing.
        for (name, count) in &ledger.lost_at {
            prop_assert!(*count > 0);
            let counted = match name.as_str() {
                "late" => late, "too_old" => too_old, "corrupt" => corrupt, NOT_AWAITED => u64::MAX,
                other => places[other],
            };
            prop_assert!(*count <= counted);
        }
        // Something stays unexplained only when all evidence is used up.
        if ledger.unexplained > 0 {
            prop_assert!(!one_way);
            prop_assert_eq!(ledger.lost_at_total(), late + too_old + corrupt + places.values().sum::<u64>());
        }
        prop_assert_eq!(ledger.raw, places);
    }

    /// Whichever single number is wrong by however little, the books do not balance.
    #[test]
    fn any_single_wrong_number_is_found(accepted in 1u64..5_000, lost in 0u64..5_000, field in 0usize..6, by in 1u64..9) {
        let received = accepted - lost.min(accepted);
        let mut ledger = Ledger::balance(input(accepted, received, &[("rx_missed", 3)]));
        let number = match field {
            0 => &mut ledger.intended,
            1 => &mut ledger.accepted,
            2 => &mut ledger.unsent,
            3 => &mut ledger.received,
            4 => &mut ledger.unexplained,
            _ => &mut ledger.arrived.frames,
        };
        *number += by;
        prop_assert!(!ledger.check(&[]).is_empty());
    }
}

#[test]
fn places_are_charged_in_order() {
    let all = [
        ("rx_error", 1),
        ("rx_missed", 1),
        ("rx_nombuf", 1),
        ("tx_error", 1),
        ("reflector_fragment", 1),
        ("fault_drop", 1),
        ("other", 1),
    ];
    let order = [
        "late",
        "corrupt",
        "fault_drop",
        "reflector_fragment",
        // From here on frames are counted, not packets of this run.
        "too_old",
        "tx_error",
        "rx_nombuf",
        "rx_missed",
        "rx_error",
        "other",
    ];
    for lost in 0..=12 {
        let mut input = input(100, 100 - lost, &all);
        input.arrived.late = 1;
        input.arrived.too_old = 1;
        input.arrived.corrupt = 1;
        let ledger = Ledger::balance(input);
        let charged: Vec<&str> = order.iter().copied().take(lost as usize).collect();
        let mut found: Vec<&str> = ledger.lost_at.keys().map(String::as_str).collect();
        found.sort_by_key(|name| order.iter().position(|place| place == name));
        assert_eq!(found, charged);
        assert_eq!(ledger.unexplained, lost.saturating_sub(10));
        assert_eq!(ledger.lost(), lost);
    }
}

#[test]
fn late_and_corrupt_are_what_arrived_and_nothing_else() {
    let ledger = Ledger::balance(input(10, 5, &[("late", 3), ("corrupt", 2)]));
    assert!(ledger.lost_at.is_empty());
    assert_eq!(ledger.unexplained, 5);
}

#[test]
fn a_run_that_only_sends_loses_nothing() {
    let ledger = Ledger::balance(LedgerInput {
        one_way: true,
        ..input(10, 0, &[("tx_error", 1)])
    });
    assert_eq!(ledger.lost_at, named(&[("tx_error", 1), (NOT_AWAITED, 9)]));
    assert_eq!((ledger.unexplained, ledger.lost()), (0, 1));
}

#[test]
fn every_broken_identity_has_its_name() {
    let good = Ledger::balance(input(10, 10, &[]));
    assert_eq!(
        good.check(&[Lane {
            lane: 1,
            accepted: 10,
            received: 10,
            beyond: 10,
        }]),
        []
    );

    let broken = Ledger {
        unsent: 1,
        ..good.clone()
    };
    assert!(matches!(
        broken.check(&[])[..],
        [Imbalance::Intended {
            intended: 10,
            accepted: 10,
            unsent: 1
        }]
    ));

    let broken = Ledger {
        unexplained: 1,
        ..good.clone()
    };
    assert!(matches!(broken.check(&[])[..], [Imbalance::Accepted { .. }]));

    let mut broken = good.clone();
    broken.arrived.frames = 11;
    assert_eq!(
        broken.check(&[]),
        [Imbalance::Arrived {
            frames: 11,
            classified: 10
        }]
    );

    let mut broken = good.clone();
    broken.arrived.received = 9;
    broken.arrived.frames = 9;
    assert_eq!(
        broken.check(&[]),
        [Imbalance::Received {
            ledger: 10,
            arrived: 9
        }]
    );

    let mut broken = good.clone();
    broken.arrived.answered = 1;
    assert_eq!(
        broken.check(&[]),
        [Imbalance::Answered {
            answered: 1,
            foreign: 0
        }]
    );

    // A surplus in one lane and a loss in the other cancel out in the sum, and are found all the same.
    let lanes = [
        Lane {
            lane: 1,
            accepted: 5,
            received: 6,
            beyond: 0,
        },
        Lane {
            lane: 2,
            accepted: 5,
            received: 4,
            beyond: 0,
        },
    ];
    assert_eq!(
        good.check(&lanes),
        [Imbalance::Lane {
            lane: 1,
            accepted: 5,
            received: 6
        }]
    );

    let lanes = [Lane {
        lane: 1,
        accepted: 9,
        received: 9,
        beyond: 0,
    }];
    assert!(matches!(
        good.check(&lanes)[..],
        [Imbalance::Lanes {
            lanes_accepted: 9,
            ..
        }]
    ));
}

#[test]
fn more_received_than_sent_is_unbalanced() {
    let ledger = Ledger::balance(input(10, 11, &[]));
    assert!(matches!(ledger.check(&[])[..], [Imbalance::Accepted { .. }]));
}

#[test]
fn numbers_from_a_damaged_file_do_not_overflow() {
    let mut ledger = Ledger::balance(input(10, 10, &[]));
    ledger.lost_at = named(&[("a", u64::MAX), ("b", u64::MAX)]);
    ledger.arrived.foreign = ledger.lost_at.clone();
    ledger.unsent = u64::MAX;
    ledger.unexplained = u64::MAX;
    let broken = ledger.check(
        &[Lane {
            lane: 0,
            accepted: u64::MAX,
            received: u64::MAX,
            beyond: 0,
        }; 2],
    );
    assert!(broken.iter().all(|imbalance| !imbalance.to_string().is_empty()));
    assert!(broken.len() >= 4);
}

/// A number that was never sent came back: whatever the totals say, a packet was forged.
#[test]
fn a_number_that_was_never_sent_is_an_imbalance() {
    let books = Ledger::balance(LedgerInput {
        intended: 100,
        accepted: 100,
        arrived: Arrived {
            frames: 100,
            received: 100,
            ..Arrived::default()
        },
        ..LedgerInput::default()
    });
    let lane = |beyond| Lane {
        lane: 3,
        accepted: 100,
        received: 100,
        beyond,
    };
    assert_eq!(books.check(&[lane(100)]), []);
    let broken = books.check(&[lane(101)]);
    assert!(
        broken[0].to_string().contains("sequence number 100"),
        "{broken:?}"
    );
}
