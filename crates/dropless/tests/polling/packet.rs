//! `AF_PACKET` over a virtual wire: its queues and rings, its neighbours in the kernel, and what is lost there.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::capture::capture;
use crate::support::pcap_file::{PLAIN, frames};
use crate::support::proc::children;
use crate::support::wire::{
    Wire, assert_all_back, assert_balance, assert_conserved, assert_invalid, assert_refused,
    assert_valid_but_for_time, charged, column_sum, interrupted, packets_by_queue, told,
};
use crate::support::{Namespace, Need, require, until};

const NEEDS: [Need; 1] = [Need::Namespaces];
/// Until a datagram has crossed the wire.
const CROSSING: Duration = Duration::from_secs(10);

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
    assert_refused(&run, &["carries frames of up to 1518", "send none"]);
}

/// The same with the way back awaited: the sender's own ledger names what the far side missed.
#[test]
fn what_overflows_far_away_is_named_here() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(&lab, "packet", &["--cores", "0", "--descriptors", "64"]);
    let arguments = ["--rate", "20kpps", "--duration", "60s", "--cores", "0"];
    let mut sender = wire.send(&lab, "packet", &arguments).spawn();
    sender.until_sending(CROSSING);
    // Thousands come meanwhile, and few have room.
    reflector.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(500));
    reflector.signal(Signal::SIGCONT);
    let sender = interrupted(sender);
    let reflector = interrupted(reflector);
    assert_conserved(&sender);
    let missed = reflector.json()["ports"][0]["rx_missed"]
        .as_u64()
        .expect("a count");
    assert!(missed > 0, "nothing overflowed: {reflector}");
    let raw = |name: &str| sender.number(&format!("ledger.raw.reflector_{name}"));
    assert_eq!(raw("rx_missed"), missed, "{sender}\n{reflector}");
    assert_eq!(
        raw("received") + missed,
        sender.number("sent"),
        "{sender}\n{reflector}"
    );
    assert_eq!(sender.number("unexplained"), 0, "{sender}\n{reflector}");
    // Its own books, rows and figures have it, too.
    assert_balance(&reflector.json()["ledger"], &reflector);
    assert_eq!(
        charged(&reflector.json()["ledger"], "rx_missed"),
        missed,
        "{reflector}"
    );
    assert_eq!(column_sum(&lab, &reflector, "missed"), missed, "{reflector}");
    let of = reflector.json()["run"].as_str().expect("a directory").to_owned();
    let report = lab.dropless(&["report", &of, "--json"]).run();
    let metrics = &report.json()["runs"][0]["metrics"];
    assert!(metrics["lost"].as_f64() >= Some(missed as f64), "{report}");
    assert!(metrics["loss"].as_f64() > Some(0.0), "{report}");
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

/// Received by a kernel's IP so far, of any version.
fn by_ip(namespace: &Namespace) -> u64 {
    let counts = namespace.run(
        "sh",
        &["-c", "grep ^Ip: /proc/net/snmp; sed 's/^/Ip6: /' /proc/net/snmp6"],
    );
    let lines: Vec<Vec<&str>> = counts
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let v4 = lines[0].iter().position(|name| *name == "InReceives");
    let v4 = lines[1][v4.expect("a count of IP")];
    let v6 = lines.iter().find(|line| line.get(1) == Some(&"Ip6InReceives"));
    // A kernel may have no IPv6.
    let v6 = v6.map_or("0", |line| line[2]);
    [v4, v6]
        .map(|count| count.parse::<u64>().expect("a count"))
        .iter()
        .sum()
}

/// Whether this kernel is Linux 6.6 or newer.
fn has_tcx(wire: &Wire) -> bool {
    let release = wire.near.run("uname", &["-r"]);
    let mut release = release.split('.').map_while(|number| number.parse::<u32>().ok());
    (release.next(), release.next()) >= (Some(6), Some(6))
}

/// A kernel of Linux 6.6 is kept from looking for a route for each of them; before, it goes on doing so. What is no probe it
/// gets as ever.
#[test]
fn probes_are_not_for_the_kernels_ip() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let has_tcx = has_tcx(&wire);
    let reflector = wire.reflect_far(&lab, "packet", &[]);
    for to in ["198.18.0.2", "2001:2::2"] {
        let before = [&wire.near, &wire.far].map(by_ip);
        let arguments = ["--to", to, "--rate", "5kpps", "--count", "2000"];
        let sender = wire.send(&lab, "packet", &arguments).run();
        assert_all_back(&sender);
        let seen = [&wire.near, &wire.far].map(by_ip);
        for (seen, before) in seen.iter().zip(before) {
            let seen = seen - before;
            // What is asked of the far side, and its neighbours, are no probes.
            assert_eq!(seen < 1000, has_tcx, "{to}: {seen} of 2000\n{sender}");
        }
    }
    let before = by_ip(&wire.far);
    wire.near.ip(&["address", "add", "198.18.0.9/24", "dev", "near0"]);
    let ask = "for i in 1 2 3 4 5 6 7 8 9; do echo no probe >/dev/udp/198.18.0.2/7; done";
    wire.near.run("bash", &["-c", ask]);
    assert!(
        until(CROSSING, || by_ip(&wire.far) >= before + 9),
        "the kernel was kept from more"
    );
    let reflector = interrupted(reflector);
    assert_eq!(reflector.code, Some(0), "{reflector}");
}

/// Where the kernel has the address, too, somebody may wait there for what begins like a probe: of other runs. A sender's own
/// are known by their run.
#[test]
fn probes_to_an_address_of_the_kernel_are_its_own_as_well() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    wire.far.ip(&["address", "add", "198.18.0.2/24", "dev", "far0"]);
    wire.near.ip(&["address", "add", "198.18.0.1/24", "dev", "near0"]);
    let reflector = wire.reflect_far(&lab, "packet", &[]);
    let before = [&wire.near, &wire.far].map(by_ip);
    let sender = wire
        .send(&lab, "packet", &["--rate", "5kpps", "--count", "2000"])
        .run();
    assert_eq!(sender.number("received"), 2000, "{sender}");
    assert!(by_ip(&wire.far) >= before[1] + 2000, "{sender}");
    assert_eq!(by_ip(&wire.near) < before[0] + 1000, has_tcx(&wire), "{sender}");
    let reflector = interrupted(reflector);
    assert_eq!(reflector.code, Some(0), "{reflector}");
}

/// Frames for nobody's address come as long as the run lasts, whoever else wanted them, too, and ends before it; and what
/// the user set stays.
#[test]
fn frames_for_any_address_come_whatever_others_end() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    // Unlike a veth, it does not hand up what is for another address.
    wire.far.ip(&["link", "add", "br0", "type", "bridge"]);
    wire.far.ip(&["link", "set", "far0", "master", "br0"]);
    wire.far.without_ipv6("br0");
    wire.far.up("br0", &[]);
    wire.far.wait_for_link("br0");
    let file = |name: &str| lab.path(name).display().to_string();
    let capture_to = |name: &str| {
        let arguments = ["--port", "packet:br0", "--to", &file(name)];
        capture(&lab, &wire.far, &arguments)
    };
    let strange = ["--tx-only", "--to-mac", "02:00:00:00:00:77", "--count", "1000"];
    let (first, second) = (capture_to("first.pcapng"), capture_to("second.pcapng"));
    let second = interrupted(second);
    let sent = wire.send(&lab, "packet", &strange).run();
    let third = capture_to("third.pcapng");
    let first = interrupted(first);
    let sent_again = wire.send(&lab, "packet", &strange).run();
    let third = interrupted(third);
    assert_eq!(
        (sent.number("sent"), sent_again.number("sent")),
        (1000, 1000),
        "{sent}{sent_again}"
    );
    assert_eq!(
        [&first, &second, &third].map(|run| run.number("captured")),
        [1000, 0, 1000],
        "{first}{second}{third}"
    );
    let links = wire.far.ip(&["-details", "link", "show", "br0"]);
    assert!(links.contains("promiscuity 0"), "{links}");
    for kind in ["packet", "xdp"] {
        wire.near.ip(&["link", "set", "near0", "promisc", "on"]);
        let port = format!("{kind}:near0");
        let own = capture(&lab, &wire.near, &["--port", &port, "--to", &file(kind)]);
        let run = interrupted(own);
        let links = wire.near.ip(&["-details", "link", "show", "near0"]);
        assert!(links.contains("promiscuity 1"), "{links}{run}");
    }
}

/// What an interface that is slower than its port has not taken at the end was not sent.
#[test]
fn what_waits_in_the_ring_at_the_end_is_not_sent() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("tc")]) else {
        return;
    };
    let mut small = frames(1200, 1000);
    for frame in &mut small {
        frame.bytes.truncate(60);
        frame.original_len = 60;
    }
    let file = PLAIN.write(&lab, "frames.pcap", &small);
    let send = [
        "send",
        "--tx-only",
        "--to-mac",
        "02:00:00:00:00:77",
        "--count",
        "1200",
    ];
    let replay = ["replay", &file];
    // Each on a wire of its own, both at once: what they wait for is the kernel.
    let both = [&send[..], &replay].map(|arguments| {
        let wire = Wire::between(&lab, 1);
        let slow = ["rate", "100kbit", "burst", "2k", "latency", "100s"];
        wire.near.run(
            "tc",
            &[&["qdisc", "add", "dev", "near0", "root", "tbf"], &slow[..]].concat(),
        );
        (arguments, wire)
    });
    let both = both.map(|(arguments, wire)| {
        let to = ["--json", "--port", "packet:near0", "--rate", "max"];
        let running = lab
            .dropless(&[arguments, &to].concat())
            .within(&wire.near)
            .spawn();
        (arguments, wire, running)
    });
    for (arguments, wire, running) in both {
        let run = running.wait(CROSSING);
        let text = wire
            .near
            .run("tc", &["-s", "-j", "qdisc", "show", "dev", "near0"]);
        let json: Value = serde_json::from_str(&text).expect("tc speaks JSON");
        let number = |name: &str| json[0][name].as_u64().expect("a count");
        // The kernel has taken what waits there.
        let truth = number("packets") + number("qlen");
        let ports = run.json();
        let port = |name: &str| ports["ports"][0][name].as_u64().expect("a count");
        assert!(truth < 1200, "it was fast enough: {run}");
        assert_eq!(
            (port("tx_packets"), port("tx_errors")),
            (truth, 1200 - truth),
            "{run}"
        );
        let told = if arguments[0] == "replay" {
            // Its rate is of what the interface has sent, whatever the kernel took.
            let figure = |name: &str| run.json()[name].as_f64().expect("a figure");
            let rated = figure("rate_tx_pps") * figure("duration_s");
            assert!(rated <= number("packets") as f64, "{text}{run}");
            run.number("ledger.left")
        } else {
            1200 - run.number("lost")
        };
        assert_eq!(told, truth, "{run}");
        assert!(run.stdout.contains("\"tx_unsent\""), "{run}");
    }
}

/// The kernel throws away what is longer than the MTU, which may be lowered at any time, and DPDK's driver counts it as sent.
#[test]
fn an_mtu_that_was_lowered_in_the_run_is_named() {
    let Some(lab) = require(&NEEDS) else { return };
    // Each on a wire of its own, both at once.
    let both = [("1000", false), ("500", true)].map(|(size, is_valid)| {
        let wire = Wire::between(&lab, 1);
        let arguments = ["--tx-only", "--to-mac", "02:00:00:00:00:77", "--size", size];
        let pace = ["--rate", "1kpps", "--duration", "60s"];
        let running = wire
            .send(&lab, "packet", &[&arguments[..], &pace].concat())
            .spawn();
        (wire, running, is_valid)
    });
    let both = both.map(|(wire, mut running, is_valid)| {
        running.until_sending(CROSSING);
        wire.near.ip(&["link", "set", "near0", "mtu", "600"]);
        (wire, running, is_valid)
    });
    std::thread::sleep(Duration::from_millis(500));
    for (wire, running, is_valid) in both {
        // Who looked only at the end would see nothing.
        wire.near.ip(&["link", "set", "near0", "mtu", "1500"]);
        let run = interrupted(running);
        if is_valid {
            assert_valid_but_for_time(&run);
        } else {
            assert_invalid(&run, "the MTU of port packet:near0 was 600 in the run");
        }
    }
}

/// Another interface has taken its name: the sockets are bound to the one that is gone.
#[test]
fn an_interface_that_was_replaced_is_gone() {
    let Some(lab) = require(&NEEDS) else { return };
    let file = lab.path("a.pcapng").display().to_string();
    let replace = "printf 'link del far0\nlink add far0 type veth peer name far1\nlink set far0 up\nlink set far1 up\n' | ip -b -";
    for what in ["capture", "reflect"] {
        let wire = Wire::between(&lab, 1);
        let running = if what == "capture" {
            capture(&lab, &wire.far, &["--port", "packet:far0", "--to", &file])
        } else {
            wire.reflect_far(&lab, "packet", &[])
        };
        let arguments = ["--tx-only", "--to-mac", &wire.far.mac("far0"), "--count", "100"];
        let sent = wire.send(&lab, "packet", &arguments).run();
        assert_eq!(sent.number("sent"), 100, "{sent}");
        wire.far.run("sh", &["-c", replace]);
        let run = running.wait(CROSSING);
        assert_invalid(&run, "the interface was removed");
        assert_eq!(run.number("received"), 100, "{run}");
    }
}

/// The sockets of a port share what comes with each other, and not with those of a process that has the same number in
/// another PID namespace.
#[test]
fn processes_of_one_number_do_not_share_packets() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("unshare")]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let capture = |name: &str| {
        let file = lab.path(name).display().to_string();
        let program = env!("CARGO_BIN_EXE_dropless");
        let arguments = [
            "--pid",
            "--fork",
            "--kill-child",
            program,
            "capture",
            "--json",
            "--runs",
        ];
        let runs = lab.path("runs").display().to_string();
        let port = ["--port", "packet:far0,queues=2", "--to", &file];
        let mut running = wire
            .far
            .spawn("unshare", &[&arguments[..], &[&runs], &port].concat());
        running.wait_for("capturing from", CROSSING);
        running
    };
    let both = [capture("first.pcapng"), capture("second.pcapng")];
    let arguments = ["--tx-only", "--to-mac", &wire.far.mac("far0"), "--flows", "50"];
    let count = ["--rate", "5kpps", "--count", "1000"];
    let sent = wire
        .send(&lab, "packet", &[&arguments[..], &count].concat())
        .run();
    assert_eq!(sent.number("sent"), 1000, "{sent}");
    for running in both {
        // The signal is for the capture: that is the child of `unshare`.
        let children = children(running.id());
        assert_eq!(children.len(), 1, "{running:?}");
        kill(children[0], Signal::SIGINT).expect("signalling");
        let run = running.wait(CROSSING);
        assert_eq!(run.number("captured"), 1000, "{run}");
    }
}

/// DPDK's driver has one kind of tag only.
#[test]
fn service_tags_that_are_changed_are_told_of() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    for (vlan, is_changed) in [("5", false), ("5,6", true)] {
        let file = lab.path(&format!("{vlan}.pcapng")).display().to_string();
        let running = capture(&lab, &wire.far, &["--port", "packet:far0", "--to", &file]);
        let arguments = ["--tx-only", "--to-mac", &wire.far.mac("far0"), "--count", "100"];
        let sent = wire
            .send(&lab, "packet", &[&arguments[..], &["--vlan", vlan]].concat())
            .run();
        assert_eq!(sent.number("sent"), 100, "{sent}");
        let run = interrupted(running);
        assert_eq!(run.number("captured"), 100, "{run}");
        assert_eq!(
            run.stdout.contains("\"service_tags_changed\""),
            is_changed,
            "{run}"
        );
    }
}
