//! What a reflector lost: by its ledger, and by the counters of results that had none.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use measure::{Balance, Place, PortSummary, ReflectSummary};

/// 1,000 received, of which 40 were answered or told and 30 no probes, and so much missed by two ports.
fn reflected() -> ReflectSummary {
    let port = |rx_missed| PortSummary {
        rx_missed,
        rx_nombuf: 3,
        rx_errors: 1,
        ..PortSummary::default()
    };
    let dropped = [("not_udp", 20), ("not_ours", 10), ("fragment", 5)];
    ReflectSummary {
        received: 1000,
        returned: 965,
        answered: 31,
        told: 9,
        dropped: dropped.map(|(name, count)| (name.to_owned(), count)).into(),
        ports: vec![port(50), port(42)],
        ..ReflectSummary::default()
    }
}

fn loss_of(summary: &ReflectSummary, lost: u64, of: u64) {
    assert_eq!(summary.lost(), lost, "{summary:?}");
    let share = summary.loss().unwrap();
    assert!((share - lost as f64 / of as f64).abs() < 1e-12, "{share}");
}

#[test]
fn what_ports_missed_is_lost_also_where_no_ledger_has_it() {
    let summary = reflected();
    // 92 missed, 6 without a buffer, 2 unread, 5 that may have been probes; of these and of 925 that were returned.
    loss_of(&summary, 105, 925 + 105);
    let mut newer = summary.clone();
    newer.ledger = summary.balance();
    assert_eq!(newer.ledger.entered, 1100);
    assert_eq!(newer.balance(), newer.ledger, "nothing is added twice");
    loss_of(&newer, 105, 925 + 105);
    // One that had a ledger without them.
    let places = summary.dropped.iter();
    let places = places.map(|(name, count)| (Place::of_reflecting(name), *count));
    newer.ledger = Balance::of(1000, 965, places);
    loss_of(&newer, 105, 925 + 105);
}

/// A port took 30 that it or its interface did not send; the injector dropped 15 on purpose, and made 4 copies.
#[test]
fn what_a_port_took_and_did_not_send_is_lost() {
    let counted = [("fault_drop", 15), ("tx_error", 10), ("tx_dropped", 20)];
    let counted = counted.map(|(name, count)| (Place::named(name), count));
    let summary = ReflectSummary {
        received: 1000,
        returned: 959,
        ledger: Balance::of(1004, 959, counted),
        ..ReflectSummary::default()
    };
    loss_of(&summary, 30, 989);
    let one_less = ReflectSummary {
        ledger: Balance {
            unexplained: 1,
            ..summary.ledger.clone()
        },
        ..summary
    };
    assert_eq!(one_less.lost(), 31, "what nobody counted is lost, too");
}

#[test]
fn who_was_sent_no_probe_has_lost_none() {
    let summary = ReflectSummary {
        received: 7,
        returned: 4,
        answered: 4,
        dropped: BTreeMap::from([("not_ip".to_owned(), 3)]),
        ..ReflectSummary::default()
    };
    assert_eq!((summary.lost(), summary.loss()), (0, None));
}

/// A foreign file may hold anything.
#[test]
fn absurd_counts_do_not_overflow() {
    let port = PortSummary {
        rx_missed: u64::MAX,
        rx_errors: 1,
        ..PortSummary::default()
    };
    let summary = ReflectSummary {
        received: u64::MAX,
        returned: u64::MAX,
        ports: vec![port.clone(), port],
        ..reflected()
    };
    assert_eq!(summary.lost(), u64::MAX);
    assert!(summary.loss().is_some_and(|loss| loss <= 1.0));
}
