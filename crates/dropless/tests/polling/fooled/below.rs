//! What is lost where no driver counts it: in the kernel's queues, while nobody looks, and with a peer.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::pcap_file::{PLAIN, frames};
use crate::support::wire::{Wire, assert_invalid, charged, has_note, interrupted};
use crate::support::{Namespace, Need, require};

const LIMIT: Duration = Duration::from_secs(30);
const FRAMES: u64 = 2000;

fn received(namespace: &Namespace, interface: &str) -> u64 {
    let file = format!("/sys/class/net/{interface}/statistics/rx_packets");
    let count = namespace.run("cat", &[&file]);
    count.trim().parse().expect("a count")
}

/// A queue before an interface takes a frame, and the kernel says that it is sent: whatever becomes of it then.
#[test]
fn what_a_queue_took_and_lost_was_not_sent() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("tc")]) else {
        return;
    };
    let file = PLAIN.write(&lab, "frames.pcap", &frames(FRAMES as usize, 1000));
    let head_drop = "tc qdisc add dev near0 root handle 1: tbf rate 20mbit burst 4k latency 100ms \
                     && tc qdisc add dev near0 parent 1: pfifo_head_drop limit 9";
    for below in [
        "tc qdisc add dev near0 root pfifo && ip -n $FAR link set far0 mtu 300",
        head_drop,
    ] {
        let wire = Wire::between(&lab, 1);
        let script = below.replace("$FAR", wire.far.name());
        wire.near.run("sh", &["-c", &script]);
        let before = received(&wire.far, "far0");
        let run = lab
            .dropless(&[
                "replay",
                &file,
                "--json",
                "--port",
                "packet:near0",
                "--rate",
                "20kpps",
            ])
            .within(&wire.near)
            .run();
        let lost = charged(&run.json()["ledger"], "tx_dropped");
        assert!(lost > 0, "{below}: {run}");
        let came = received(&wire.far, "far0") - before;
        assert_eq!(
            (run.number("ledger.left"), FRAMES - lost),
            (came, came),
            "{below}: {run}"
        );
    }
}

/// A queue that gives slower than it is given: neither is the worker asleep meanwhile, nor is it what could not keep up, and
/// what it holds at the end has not left, also if it had room for all.
#[test]
fn a_slow_queue_is_the_limit_and_not_the_worker() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("tc")]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    // An eighth of what is asked.
    let slow = "tc qdisc add dev near0 root tbf rate 20mbit burst 4k limit 2m \
                && ip addr add 10.88.0.1/24 dev near0 \
                && ip neigh add 10.88.0.2 lladdr 02:00:00:00:00:02 dev near0";
    wire.near.run("sh", &["-c", slow]);
    let file = PLAIN.write(&lab, "frames.pcap", &frames(FRAMES as usize, 1000));
    let replay = ["replay", &file, "--port", "packet:near0"];
    let send = ["send", "--tx-only", "--size=1000", "--to=10.88.0.2"];
    let packet = ["--port=packet:near0", "--to-mac=02:00:00:00:00:02"];
    let held = [&send[..], &packet, &["--count=800"]].concat();
    let full = [&send[..], &packet, &["--count=2000"]].concat();
    // A socket takes fewer.
    let socket = [&send[..], &["--port=kernel:10.88.0.1", "--count=80"]].concat();
    for command in [&replay[..], &full, &held, &socket] {
        let fast = lab.dropless(command).arg("--rate=20kpps").arg("--json");
        let run = fast.within(&wire.near).run();
        assert_eq!(run.json()["reasons"][0]["code"], "port_full", "{run}");
        let left = run.json()["rate_tx_pps"].as_f64();
        assert!(left.is_some_and(|pps| pps < 10_000.0), "{run}");
    }
}

/// What has come and was not taken yet when the run ends: its worker had not its core, or what it goes to was full.
#[test]
fn what_waits_at_the_end_has_come() {
    let needs = [
        Need::Namespaces,
        Need::Processors(2),
        Need::Tool("tc"),
        Need::Tool("taskset"),
    ];
    let Some(lab) = require(&needs) else { return };
    let file = PLAIN.write(&lab, "frames.pcap", &frames(1500, 100));
    let to = lab.path("c.pcapng").display().to_string();
    let capture = ["capture", "--to", &to, "--port"];
    let slow = "ip link add near1 type veth peer name far1 && ip link set near1 up \
                && tc qdisc add dev near1 root tbf rate 2mbit burst 5k limit 5k";
    for (command, script) in [
        ([&capture[..], &["packet:far0"]].concat(), ""),
        ([&capture[..], &["xdp:far0"]].concat(), ""),
        (vec!["reflect", "--port", "packet:far0"], ""),
        (
            vec!["forward", "--port", "packet:far0", "--port", "packet:near1"],
            "",
        ),
        (
            vec!["forward", "--port", "packet:far0", "--port", "packet:near1"],
            slow,
        ),
    ] {
        let wire = Wire::between(&lab, 1);
        let dummy = "ip link add near1 type veth peer name far1 && ip link set near1 up";
        wire.far
            .run("sh", &["-c", if script.is_empty() { dummy } else { script }]);
        let arguments = [&command[..], &["--cores", "1", "--json"]].concat();
        let mut run = lab.dropless(&arguments).within(&wire.far).spawn();
        run.until_begun(LIMIT);
        let before = received(&wire.far, "far0");
        let busy = "taskset -c 1 nice -n -20 timeout 2 sh -c 'while :; do :; done'";
        let thief = script.is_empty().then(|| wire.near.spawn("sh", &["-c", busy]));
        let sent = lab
            .dropless(&[
                "replay",
                &file,
                "--port",
                "packet:near0",
                "--rate",
                "50kpps",
                "--cores",
                "0",
            ])
            .within(&wire.near)
            .run();
        assert_eq!(sent.code, Some(0), "{sent}");
        run.signal(Signal::SIGINT);
        let run = run.wait(LIMIT);
        drop(thief);
        let came = received(&wire.far, "far0") - before;
        let json = run.json();
        assert_eq!(
            json["ledger"]["entered"].as_u64(),
            Some(came),
            "{command:?} {script}: {run}"
        );
    }
}

/// Of a macvlan the kernel counts no carrier: only what it tells of each change says that it was down.
#[test]
fn an_interface_that_was_down_while_nobody_looked_lost_its_link() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let script = "ip link add link far0 name over0 type macvlan mode bridge && ip link set over0 up";
    wire.far.run("sh", &["-c", script]);
    let to = lab.path("c.pcapng").display().to_string();
    let mut capture = lab
        .dropless(&["capture", "--json", "--port", "packet:over0", "--to", &to])
        .within(&wire.far)
        .spawn();
    capture.until_begun(LIMIT);
    capture.signal(Signal::SIGSTOP);
    for state in ["down", "up"] {
        wire.far.ip(&["link", "set", "over0", state]);
    }
    capture.signal(Signal::SIGCONT);
    // Some looks later.
    std::thread::sleep(Duration::from_millis(200));
    assert_invalid(&interrupted(capture), "port packet:over0 lost its link");
}

/// What a peer had been given is in its memory, and goes with that.
#[test]
fn what_went_with_a_peer_is_told() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let file = PLAIN.write(&lab, "frames.pcap", &frames(300, 1000));
    let socket = format!("memif:{}", lab.path("m.sock").display());
    let port = format!("{socket},server");
    let peer = |number: u8| {
        let to = lab.path(&format!("{number}.pcapng")).display().to_string();
        let mut capture = lab.dropless(&["capture", "--port", &socket, "--to", &to]).spawn();
        capture.until_begun(LIMIT);
        capture
    };
    let mut forward = lab
        .dropless(&["forward", "--json", "--port", "packet:far0", "--port", &port])
        .within(&wire.far)
        .spawn();
    let first = peer(1);
    first.signal(Signal::SIGSTOP);
    let sent = lab
        .dropless(&["replay", &file, "--port", "packet:near0", "--rate", "20kpps"])
        .within(&wire.near)
        .run();
    assert_eq!(sent.code, Some(0), "{sent}");
    forward.until_told(LIMIT, |state| state.total.sent == 300);
    first.kill();
    forward.until_told(LIMIT, |state| {
        state.ports.get(1).is_some_and(|port| !port.link.up)
    });
    let second = peer(2);
    let run = interrupted(forward);
    let _ = interrupted(second);
    assert_eq!(run.number("forwarded"), 300, "{run}");
    assert!(has_note(&run.json(), "lost_with_peer"), "{run}");
    let words = "300 forwarded, none lost but what went with a peer";
    assert!(run.stderr.contains(words), "{run}");
}

/// A file has no pace: it is behind, and then it is not.
#[test]
fn nothing_is_given_up_for_a_file() {
    let Some(lab) = require(&[]) else { return };
    let port = format!("pcap:-,{}", lab.path("w.pcap").display());
    let mut sender = lab
        .dropless(&["send", "--json", "--tx-only", "--to-mac", "02:00:00:00:00:02"])
        .arg(format!("--port={port}"))
        .arg("--count=400000")
        .arg("--rate=100kpps")
        .spawn();
    sender.until_sending(LIMIT);
    sender.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(200));
    sender.signal(Signal::SIGCONT);
    let run = sender.wait(LIMIT);
    assert_eq!((run.code, run.number("sent")), (Some(0), 400_000), "{run}");
    let length = fs::metadata(lab.path("w.pcap")).expect("a file").len();
    // Each has a header of 16 bytes, the file one of 24.
    assert_eq!(length, 24 + 400_000 * (16 + 60), "{run}");
}
