//! `AF_XDP` over a virtual wire: its queues, who else wants the interface, and what is lost there.

use std::time::Duration;

use crate::support::pcap_file::{PLAIN, frames};
use crate::support::wire::{
    Wire, assert_all_back, assert_conserved, assert_invalid, assert_refused, charged, has_note, interrupted,
    note, packets_by_queue, sum, told,
};
use crate::support::{Lab, Need, require};

const NEEDS: [Need; 1] = [Need::Namespaces];
/// Until a run shows its first line, and until it ends.
const STARTING: Duration = Duration::from_secs(30);

#[test]
fn what_only_the_wire_loses_is_named() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(
        &lab,
        "xdp",
        &["--only-ours", "--fault", "drop=10%,corrupt=2%", "--seed", "7"],
    );
    let sender = wire
        .send(
            &lab,
            "xdp",
            &["--rate", "5kpps", "--count", "2000", "--drain", "500ms"],
        )
        .run();
    let reflector = interrupted(reflector);
    assert_eq!(sender.code, Some(1), "{sender}");
    assert_conserved(&sender);
    let [dropped, damaged] = ["drop", "corrupt"].map(|fault| reflector.number(&format!("faults.{fault}")));
    assert!(dropped > 0 && damaged > 0, "{reflector}");
    let told = ["lost", "corrupt"].map(|name| sender.number(name));
    assert_eq!(told, [dropped + damaged, damaged], "{sender}\n{reflector}");
    // Of damage the usual reason on such a wire is named, which this is not.
    assert!(has_note(&sender.json(), "checksums_left_out"), "{sender}");
}

/// One port on each queue of the wire: what goes out on one comes in on the same at the other end.
#[test]
fn each_queue_can_be_a_port_of_its_own() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 2);
    let reflector = wire.reflect_far(&lab, "xdp", &[]);
    let sender = wire
        .send(&lab, "xdp", &["--rate", "5kpps", "--count", "2000"])
        .run();
    let reflector = interrupted(reflector);
    assert_all_back(&sender);
    assert_eq!(
        packets_by_queue(&sender.json(), "rx"),
        [2000 + told(&sender)],
        "{sender}"
    );
    assert_eq!(
        packets_by_queue(&reflector.json(), "rx"),
        [2001 + reflector.number("told")],
        "{reflector}"
    );
    // The other queue feeds the kernel, and the user is told.
    let told = note(&sender.json(), "queues-left");
    assert!(
        told.is_some_and(|text| text.contains("over 2 queues")),
        "{sender}"
    );
    assert_eq!(sum(&sender.json()["ledger"]["lost_at"]), 0, "{sender}");
}

/// What arrives at one socket goes back through the other: each works in one direction only.
#[test]
fn two_queues_are_a_socket_each_way() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 2);
    let reflector = wire.reflect_far(&lab, "xdp", &["--queues", "2"]);
    let arguments = ["--rx-queues", "2", "--rate", "5kpps", "--count", "2000"];
    let sender = wire.send(&lab, "xdp", &arguments).run();
    let reflector = interrupted(reflector);
    assert_all_back(&sender);
    assert_conserved(&sender);
    // The probes leave through the second socket, arrive at the far second one, and return between the first ones.
    let received = packets_by_queue(&sender.json(), "rx");
    let reflected = packets_by_queue(&reflector.json(), "rx");
    assert!(received[0] >= 2000 && received[1] == 0, "{sender}");
    assert!(reflected[0] < 20 && reflected[1] >= 2000, "{reflector}");
    // The port's counters are those of both sockets.
    let port = &reflector.json()["ports"][0];
    let moved = Some(reflector.number("received"));
    assert_eq!(
        (port["rx_packets"].as_u64(), port["tx_packets"].as_u64()),
        (moved, moved),
        "{reflector}"
    );
}

/// A kernel answers on whichever queue it likes: both addresses are found, and every probe that comes back.
#[test]
fn neighbours_are_found_on_every_queue() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::to_kernel_over(&lab, 2);
    for (to, v6) in [("198.18.0.2", false), ("2001:2::2", true)] {
        let _server = wire.echo_server(v6);
        let arguments = [
            "--rx-queues",
            "2",
            "--to",
            to,
            "--rate",
            "1kpps",
            "--count",
            "100",
        ];
        let sender = wire.send(&lab, "xdp", &arguments).run();
        assert_all_back(&sender);
        assert_eq!(sender.number("received"), 100, "{sender}");
    }
}

/// DPDK would take the program away from whoever has it: the second one is refused before that, and the first goes on.
#[test]
fn a_second_one_on_the_interface_is_refused() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(&lab, "xdp", &[]);
    let second = lab
        .dropless(&["reflect", "--port", "xdp:far0", "--duration", "1s"])
        .within(&wire.far)
        .run();
    let holder = format!("another dropless (process {}) has far0", reflector.id());
    assert_refused(&second, &["xdp:far0", &holder]);
    let sender = wire
        .send(&lab, "xdp", &["--rate", "5kpps", "--count", "1000"])
        .run();
    assert_all_back(&sender);
    assert_eq!(interrupted(reflector).code, Some(0));
}

/// Somebody does something to the interface's program in the middle of a run, which says so.
fn assert_lost_by(lab: &Lab, change: &[&str]) {
    let wire = Wire::between(lab, 1);
    let _reflector = wire.reflect_far(lab, "xdp", &[]);
    let mut sender = wire
        .send(
            lab,
            "xdp",
            &["--rate", "5kpps", "--duration", "2s", "--drain", "500ms"],
        )
        .spawn();
    sender.until_sending(STARTING);
    wire.near.run("ip", change);
    let run = sender.wait(STARTING);
    assert_invalid(&run, "lost its link");
}

#[test]
fn a_program_taken_away_makes_the_run_invalid() {
    let Some(lab) = require(&NEEDS) else { return };
    assert_lost_by(&lab, &["link", "set", "dev", "near0", "xdp", "off"]);
}

#[test]
fn a_program_in_place_of_ours_makes_the_run_invalid() {
    let Some(lab) = require(&[&NEEDS[..], &[Need::Tool("clang")]].concat()) else {
        return;
    };
    let [source, object] = ["pass.c", "pass.o"].map(|name| lab.path(name).display().to_string());
    let text = "__attribute__((section(\"xdp\"), used)) int pass(void *frame) { return 2; }";
    std::fs::write(&source, text).expect("writing");
    let compiled = std::process::Command::new("clang")
        .args(["-O2", "-target", "bpf", "-c", &source, "-o", &object])
        .status();
    assert!(compiled.expect("clang").success());
    let change = [
        "-force", "link", "set", "dev", "near0", "xdp", "obj", &object, "sec", "xdp",
    ];
    assert_lost_by(&lab, &change);
}

/// The kernel keeps 256 bytes of each buffer free, and drops what does not fit into the rest.
#[test]
fn buffers_are_made_for_the_longest_frame() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    for (namespace, name) in [(&wire.near, "near0"), (&wire.far, "far0")] {
        namespace.ip(&["link", "set", name, "mtu", "3000"]);
    }
    let reflector = wire.reflect_far(&lab, "xdp", &[]);
    let long = ["--size", "2500", "--rate", "5kpps", "--count", "1000"];
    assert_all_back(&wire.send(&lab, "xdp", &long).run());
    assert_eq!(interrupted(reflector).code, Some(0));
    wire.far.ip(&["link", "set", "far0", "mtu", "3480"]);
    let refused = lab
        .dropless(&["reflect", "--port", "xdp:far0"])
        .within(&wire.far)
        .run();
    assert_refused(
        &refused,
        &["xdp:far0", "up to 3456 bytes", "ip link set far0 mtu 3430"],
    );
}

#[test]
fn more_queues_than_the_interface_has_is_one_line() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 2);
    let run = wire.send(&lab, "xdp", &["--rx-queues", "3"]).run();
    assert_refused(&run, &["xdp:near0", "2 receive", "ethtool -L near0 rx 3 tx 3"]);
}

/// Whoever takes all frames of an interface says which tags XDP does not show.
#[test]
fn tags_beside_frames_are_noted() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let runs: [&[&str]; 3] = [
        &["capture", "--port", "xdp:far0", "--count", "1"],
        &["reflect", "--port", "xdp:far0"],
        &["forward", "--port", "xdp:far0", "--port", "null"],
    ];
    for run in runs {
        let arguments = [run, &["--json", "--duration", "300ms", "--no-doctor"]].concat();
        let run = lab.dropless(&arguments).within(&wire.far).run();
        assert!(has_note(&run.json(), "vlan-stripped"), "{run}");
    }
    let arguments = [
        "--json",
        "--duration",
        "300ms",
        "--no-doctor",
        "--port",
        "packet:far0",
    ];
    let run = [&["capture"], &arguments[..]].concat();
    let run = lab.dropless(&run).within(&wire.far).run();
    assert!(!has_note(&run.json(), "vlan-stripped"), "{run}");
}

/// A veth throws away what is longer than its other end takes, after the kernel gave it back as sent.
#[test]
fn what_the_interface_throws_away_is_lost_and_counted() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    wire.far.ip(&["link", "set", "far0", "mtu", "600"]);
    let mut all = frames(1000, 1000);
    for (number, frame) in all.iter_mut().enumerate() {
        let len = if number % 5 == 0 { 1000 } else { 60 };
        frame.bytes.resize(len, 7);
        frame.original_len = len;
    }
    let file = PLAIN.write(&lab, "some-long.pcap", &all);
    let to = ["--tx-only", "--to-mac", "02:00:00:00:00:77"];
    let send = [&["send", "--size", "1000", "--count", "1000"][..], &to].concat();
    // A sender says what its driver accepted; of a replay only what left is sent.
    for (arguments, sent, thrown) in [(&send[..], 1000, 1000), (&["replay", &file], 800, 200)] {
        let arguments = [arguments, &["--json", "--port", "xdp:near0", "--rate", "5kpps"]].concat();
        let run = lab.dropless(&arguments).within(&wire.near).run();
        let port = |name: &str| run.number(&format!("ports.0.{name}"));
        assert_eq!((port("tx_packets"), port("tx_dropped")), (1000, thrown), "{run}");
        assert_eq!(run.number("sent"), sent, "{run}");
        assert_eq!(charged(&run.json()["ledger"], "tx_dropped"), thrown, "{run}");
        assert_eq!(run.number("ledger.unexplained"), 0, "{run}");
        assert_eq!(run.code, Some(1), "{run}");
    }
}
