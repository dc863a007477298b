//! Two dropless over one virtual wire with `AF_PACKET` at both ends: every packet is accounted for on both sides.

use crate::support::wire::{
    Wire, assert_all_back, assert_conserved, assert_refused, interrupted, packets_by_queue, told,
};
use crate::support::{Need, require};

const NEEDS: [Need; 1] = [Need::Namespaces];

#[test]
fn both_sides_count_the_same() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(&lab, "packet", &[]);
    let sender = wire
        .send(&lab, "packet", &["--rate", "5kpps", "--count", "5000"])
        .run();
    let reflector = interrupted(reflector);
    assert_all_back(&sender);
    assert_eq!(reflector.code, Some(0), "{reflector}");
    assert_conserved(&sender);
    assert_eq!(
        (sender.number("sent"), sender.number("received")),
        (5000, 5000),
        "{sender}"
    );
    assert_eq!(reflector.number("answered"), 1, "{reflector}");
    let told = reflector.number("told");
    assert!(told > 0, "{reflector}");
    assert_eq!(
        (reflector.number("received"), reflector.number("returned")),
        (5001 + told, 5001 + told),
        "{reflector}"
    );
    // The far side tells what it took and gave back: the probes, to the packet.
    let raw = |name: &str| sender.number(&format!("ledger.raw.reflector_{name}"));
    assert_eq!((raw("received"), raw("returned")), (5000, 5000), "{sender}");
}

/// The kernel spreads what comes back over the sockets made for sending, too.
#[test]
fn several_transmit_queues_lose_nothing() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(&lab, "packet", &[]);
    let arguments = [
        "--tx-queues",
        "2",
        "--flows",
        "20",
        "--rate",
        "5kpps",
        "--count",
        "4000",
    ];
    let sender = wire.send(&lab, "packet", &arguments).run();
    let _ = interrupted(reflector);
    assert_all_back(&sender);
    assert_eq!(sender.number("received"), 4000, "{sender}");
    assert_conserved(&sender);
}

#[test]
fn every_size_comes_back_whole() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(&lab, "packet", &[]);
    let arguments = [
        "--size", "64-1518", "--verify", "payload", "--rate", "5kpps", "--count", "2910",
    ];
    let sender = wire.send(&lab, "packet", &arguments).run();
    let _ = interrupted(reflector);
    assert_all_back(&sender);
    assert_eq!(
        (sender.number("received"), sender.number("corrupt")),
        (2910, 0),
        "{sender}"
    );
}

#[test]
fn tagged_probes_come_back() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(&lab, "packet", &[]);
    for (vlan, to) in [("5", "198.18.0.2"), ("5,6", "2001:2::2")] {
        let arguments = ["--vlan", vlan, "--to", to, "--rate", "5kpps", "--count", "1000"];
        let sender = wire.send(&lab, "packet", &arguments).run();
        assert_all_back(&sender);
        assert_eq!(sender.number("received"), 1000, "{sender}");
    }
    let reflector = interrupted(reflector);
    assert_eq!(reflector.number("answered"), 2, "{reflector}");
}

/// The kernel's fanout spreads by flow, and the table of queues shows it.
#[test]
fn flows_spread_over_the_queues() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(&lab, "packet", &["--queues", "2"]);
    let arguments = [
        "--flows",
        "64",
        "--tx-queues",
        "2",
        "--rx-queues",
        "2",
        "--rate",
        "5kpps",
        "--count",
        "6400",
    ];
    let sender = wire.send(&lab, "packet", &arguments).run();
    let reflector = interrupted(reflector);
    assert_eq!(
        (sender.code, reflector.code),
        (Some(0), Some(0)),
        "{sender}\n{reflector}"
    );
    assert_conserved(&sender);
    assert_eq!(packets_by_queue(&sender.json(), "tx"), [3200, 3200], "{sender}");
    let received = packets_by_queue(&sender.json(), "rx");
    assert_eq!(received.iter().sum::<u64>(), 6400 + told(&sender), "{sender}");
    // 64 flows on one side of a fair hash: once in 2^63 tables.
    assert!(received.iter().all(|packets| *packets > 0), "{sender}");
    let reflected = packets_by_queue(&reflector.json(), "rx");
    assert!(
        reflected.len() == 2 && reflected.iter().all(|packets| *packets > 0),
        "{reflector}"
    );
    assert_eq!(
        reflected.iter().sum::<u64>(),
        6401 + reflector.number("told"),
        "{reflector}"
    );
}

#[test]
fn a_frame_above_the_mtu_is_one_line() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let run = wire.send(&lab, "packet", &["--size", "4000"]).run();
    assert_refused(&run, &["4000", "MTU", "ip link set near0 mtu"]);
    wire.near.ip(&["link", "set", "near0", "mtu", "9000"]);
    let run = wire
        .send(&lab, "packet", &["--size", "4000", "--count", "1"])
        .run();
    assert_refused(&run, &["carries frames of up to 1518", "--size"]);
}

/// More than the far side can take: its kernel counts what it had no room for, and both sides and that make the whole.
#[test]
fn what_overflows_is_named_by_the_far_side() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    // Both on one core: the reflector stands still while the sender has its turn.
    let reflector = wire.reflect_far(&lab, "packet", &["--cores", "0"]);
    let arguments = ["--rate", "max", "--count", "200k", "--tx-only", "--cores", "0"];
    let sender = wire.send(&lab, "packet", &arguments).run();
    let reflector = interrupted(reflector);
    assert_eq!(sender.code, Some(0), "{sender}");
    assert_conserved(&sender);
    let missed = reflector.json()["ports"][0]["rx_missed"]
        .as_u64()
        .expect("a count");
    assert!(missed > 0, "nothing overflowed: {reflector}");
    // The ARP request came besides the probes.
    assert_eq!(
        reflector.number("received") + missed,
        200_001,
        "{sender}\n{reflector}"
    );
}

/// The same with the way back awaited: the sender's own ledger names what the far side missed.
#[test]
fn what_overflows_far_away_is_named_here() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(&lab, "packet", &["--cores", "0"]);
    let arguments = ["--rate", "max", "--count", "200k", "--cores", "0"];
    let sender = wire.send(&lab, "packet", &arguments).run();
    let reflector = interrupted(reflector);
    assert_conserved(&sender);
    let missed = reflector.json()["ports"][0]["rx_missed"]
        .as_u64()
        .expect("a count");
    assert!(missed > 0, "nothing overflowed: {reflector}");
    let raw = |name: &str| sender.number(&format!("ledger.raw.reflector_{name}"));
    assert_eq!(raw("rx_missed"), missed, "{sender}\n{reflector}");
    assert_eq!(raw("received") + missed, 200_000, "{sender}\n{reflector}");
    assert_eq!(sender.number("unexplained"), 0, "{sender}\n{reflector}");
}

/// On ordinary pages DPDK lays no buffer across two: what is reserved for many of them must count that.
#[test]
fn many_buffers_lie_on_ordinary_pages() {
    let Some(lab) = require(&NEEDS) else { return };
    let (near, far) = (lab.namespace("near"), lab.namespace("far"));
    for (own, other) in [("near0", "far0"), ("near1", "far1")] {
        near.veth(own, &far, other);
        far.up(other, &[]);
        near.up(own, &[]);
    }
    near.wait_for_link("near1");
    let to = ["--tx-only", "--to-mac", "02:00:00:00:00:02"];
    let packet = [
        "--port",
        "packet:near0,queues=4",
        "--port",
        "packet:near1,queues=4",
    ];
    let rings = ["--port", "ring:a", "--port", "ring:b", "--buffers", "65535"];
    for (ports, buffers, size) in [
        (
            &[&packet[..], &to, &["--descriptors", "4096"]].concat(),
            131_071,
            "64",
        ),
        (&rings.to_vec(), 65_535, "1518"),
    ] {
        let arguments = [
            "send",
            "--json",
            "--no-huge",
            "--rate",
            "5kpps",
            "--count",
            "500",
            "--size",
            size,
        ];
        let run = lab
            .dropless(&[&arguments[..], ports].concat())
            .within(&near)
            .run();
        assert_eq!(
            (run.number("sent"), run.number("pool.size")),
            (500, buffers),
            "{run}"
        );
        assert_eq!(run.number("pool.leaked"), 0, "{run}");
    }
}
