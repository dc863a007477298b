//! Each of the two books that a forwarder keeps is held against the other: one frame too few or too many is found.

use dataplane::flows::FlowTable;
use measure::{Judged, Ticks};

use super::*;

/// A way in which 100 frames came and 90 left; the others were denied and missed.
fn way() -> Counted {
    Counted {
        entered: 100,
        left: 90,
        places: vec![(DENIED, 7), (TX_HELD, 0), (RX_MISSED, 3)],
    }
}

fn summary(counted: &Counted) -> WaySummary {
    WaySummary {
        ledger: counted.balance(),
        ..WaySummary::default()
    }
}

/// What is found in two ways, and in both together.
fn found(one: &Counted, other: &Counted) -> Vec<Imbalance> {
    let together = Counted {
        entered: one.entered + other.entered,
        left: one.left + other.left,
        places: sums(one, other),
    };
    unbalanced(&[summary(one), summary(other)], &together.balance())
}

#[test]
fn a_frame_that_went_nowhere_or_twice_is_found() {
    assert_eq!(found(&way(), &way()), []);
    let (lost, twice) = (Counted { left: 89, ..way() }, Counted { left: 94, ..way() });
    let entered = |left| [Imbalance::Entered { entered: 100, left }];
    assert_eq!(found(&lost, &way()), entered(99));
    assert_eq!(found(&way(), &lost), entered(99));
    // 94 and 7 that were denied.
    assert_eq!(found(&way(), &twice), entered(101));
}

/// Of a pool that both ways share each may have all that a driver kept; both together have it once.
#[test]
fn what_a_driver_kept_excuses_one_way() {
    let kept = |left| Counted {
        left,
        places: vec![(DENIED, 7), (TX_HELD, 2), (RX_MISSED, 3)],
        ..way()
    };
    assert_eq!(found(&kept(88), &kept(90)), []);
    let twice = Imbalance::Entered {
        entered: 200,
        left: 198,
    };
    assert_eq!(found(&kept(88), &kept(88)), [twice]);
}

fn port(rx_packets: u64, tx_packets: u64) -> PortSummary {
    PortSummary {
        uri: "tap:host0".into(),
        rx_packets,
        tx_packets,
        ..PortSummary::default()
    }
}

fn differ(way: &'static str, port_count: u64, queues: u64) -> Imbalance {
    Imbalance::Port {
        port: "tap:host0".into(),
        way,
        port_count,
        queues,
    }
}

#[test]
fn a_port_that_counted_other_frames_than_its_queues_is_found() {
    let end = |counts_on_wire, is_read| PortEnd {
        summary: port(100, 0),
        interface: None,
        far_missed: 0,
        counts_on_wire,
        link_losses: 0,
        tx_places: 0,
        pushes_back: false,
        is_emptied_by_others: false,
        is_gone: false,
        too_short: None,
        is_read,
        misread: None,
    };
    assert_eq!(uncounted(&end(false, true), 100), None);
    for received in [99, 101] {
        let found = Some(differ("received", 100, received));
        assert_eq!(uncounted(&end(false, true), received), found);
        assert_eq!(
            uncounted(&end(false, false), received),
            None,
            "nobody could read it"
        );
    }
    // A NIC counts what is still in its ring; none hands over more than it counted.
    assert_eq!(uncounted(&end(true, true), 99), None);
    assert_eq!(
        uncounted(&end(true, true), 101),
        Some(differ("received", 100, 101))
    );
}

#[test]
fn a_tap_that_counted_other_frames_than_its_host_is_found() {
    let total = Total {
        to_kernel: 5,
        copied: 3,
        from_kernel: 4,
        ..Total::default()
    };
    let found = |sent, received| kernel(&total, Some(&port(0, sent)), Some(&port(received, 0)));
    assert_eq!(found(8, 4), []);
    assert_eq!(found(7, 4), [differ("sent", 7, 8)]);
    assert_eq!(found(8, 5), [differ("received", 5, 4)]);
    assert_eq!(kernel(&total, None, None), [], "there is no tap");
}

#[test]
fn a_frame_that_no_rule_met_or_two_did_is_found() {
    let rules = RulesSummary {
        judged: Judged {
            allowed: 90,
            denied: 10,
            ..Judged::default()
        },
        ..RulesSummary::default()
    };
    assert_eq!(unjudged(&rules, 100), None);
    for frames in [99, 101] {
        assert_eq!(
            unjudged(&rules, frames),
            Some(Imbalance::Judged { frames, met: 100 })
        );
    }
}

#[test]
fn a_frame_that_no_flow_table_counted_is_found() {
    let tables = [2, 1].map(|frames| {
        let mut table = FlowTable::new(4, 1);
        (0..frames).for_each(|_| table.note(Ticks(1), None, 60));
        table
    });
    let readers = tables.each_ref().map(FlowTable::reader);
    assert_eq!(flows::uncounted(&readers, 3), None);
    for frames in [2, 4] {
        let found = Imbalance::Flows { frames, counted: 3 };
        assert_eq!(flows::uncounted(&readers, frames), Some(found));
    }
}
