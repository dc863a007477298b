//! Two dropless over one virtual wire, with `AF_PACKET` or `AF_XDP` at both ends: every packet is accounted for on both sides.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::wire::{
    Wire, assert_all_back, assert_conserved, assert_no_rate_of_its_backlog, interrupted,
};
use crate::support::{Lab, Need, require};

const LIMIT: Duration = Duration::from_secs(30);

/// `test` over each of the two.
fn each(test: fn(&Lab, &Wire, &str)) {
    for kind in ["packet", "xdp"] {
        let Some(lab) = require(&[Need::Namespaces]) else {
            return;
        };
        test(&lab, &Wire::between(&lab, 1), kind);
    }
}

#[test]
fn both_sides_count_the_same() {
    each(|lab, wire, kind| {
        let reflector = wire.reflect_far(lab, kind, &[]);
        let sender = wire
            .send(lab, kind, &["--rate", "5kpps", "--count", "5000"])
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
        // The reflector also answered our ARP request.
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
    });
}

/// A round of 64 system calls is longer than a pause, and no stall: what is owed at the end is the sender's own.
#[test]
fn a_rate_that_only_the_backlog_keeps_up_with_is_none() {
    each(|lab, wire, kind| {
        let to = ["--tx-only", "--to-mac", "02:00:00:00:00:77", "--duration", "0.2s"];
        assert_no_rate_of_its_backlog(|more| wire.send(lab, kind, &[&to, more].concat()).run());
    });
}

#[test]
fn every_size_comes_back_whole() {
    each(|lab, wire, kind| {
        let reflector = wire.reflect_far(lab, kind, &[]);
        let arguments = [
            "--size", "64-1518", "--verify", "payload", "--rate", "5kpps", "--count", "2910",
        ];
        let sender = wire.send(lab, kind, &arguments).run();
        let _ = interrupted(reflector);
        assert_all_back(&sender);
        assert_eq!(
            (sender.number("received"), sender.number("corrupt")),
            (2910, 0),
            "{sender}"
        );
    });
}

#[test]
fn tagged_probes_come_back() {
    each(|lab, wire, kind| {
        let reflector = wire.reflect_far(lab, kind, &[]);
        for (vlan, to) in [("5", "198.18.0.2"), ("5,6", "2001:2::2")] {
            let arguments = ["--vlan", vlan, "--to", to, "--rate", "5kpps", "--count", "1000"];
            let sender = wire.send(lab, kind, &arguments).run();
            assert_all_back(&sender);
            assert_eq!(sender.number("received"), 1000, "{sender}");
        }
        let reflector = interrupted(reflector);
        // One ARP request and one neighbour solicitation, in their tags.
        assert_eq!(reflector.number("answered"), 2, "{reflector}");
    });
}

/// More than the far side can take: its kernel counts what it had no room for, and both sides and that make the whole.
#[test]
fn what_overflows_is_named_by_the_far_side() {
    each(|lab, wire, kind| {
        let reflector = wire.reflect_far(lab, kind, &["--cores", "0"]);
        let arguments = ["--rate", "max", "--duration", "60s", "--tx-only", "--cores", "0"];
        let mut sender = wire.send(lab, kind, &arguments).spawn();
        sender.until_sending(LIMIT);
        // More come meanwhile than have room.
        reflector.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(500));
        reflector.signal(Signal::SIGCONT);
        let sender = interrupted(sender);
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
            sender.number("sent") + 1,
            "{sender}\n{reflector}"
        );
    });
}
