//! `dropless read` of a ring: live, and what it overwrote.

use nix::sys::signal::Signal;

use crate::read::{LIMIT, assert_same_lines, objects, output, read};
use crate::support::wire::{Wire, interrupted};
use crate::support::{Need, require, until};

/// A ring that a capture offers, read as it fills; and the file that the same capture wrote.
#[test]
fn a_ring_is_read_live() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("tcpdump")]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let (door, file) = (lab.path("live.sock"), lab.path("own.pcapng"));
    let (door, file) = (door.display().to_string(), file.display().to_string());
    let arguments = [
        "capture",
        "--json",
        "--port",
        "packet:far0",
        "--ring",
        &door,
        "--to",
        &file,
    ];
    let mut capture = lab.dropless(&arguments).within(&wire.far).spawn();
    capture.wait_for("capturing from", LIMIT);
    let live = lab.dropless(&["read", &door, "--lossless", "--json"]).spawn();
    let mut first = lab.dropless(&["read", &door, "--count", "10", "--utc"]).spawn();
    let far = wire.far.mac("far0");
    // By its usual source port, 49152, tcpdump would take it for a protocol.
    let to = ["--tx-only", "--to-mac", &far, "--from", "198.18.0.1:50000"];
    let rate = ["--rate", "2kpps", "--duration", "30s"];
    let sender = wire.send(&lab, "packet", &[&to[..], &rate].concat()).spawn();
    // Both have joined once they have got something.
    first.wait_for("UDP", LIMIT);
    assert!(until(LIMIT, || live.stdout().lines().count() > 1000));
    let _ = interrupted(sender);
    let capture = interrupted(capture);
    let live = live.wait(LIMIT);
    assert_eq!(live.code, Some(0), "{live}");
    let got = objects(&live);
    assert!(
        got.iter().all(|packet| packet["interface"] == "packet:far0"),
        "{live}"
    );
    // It joined while the capture ran: its packets are the last of them, and none is missing in between.
    let whole = objects(&read(&lab, &[&file, "--json"]));
    assert_eq!(capture.number("captured"), whole.len() as u64, "{capture}");
    assert_eq!(got[..], whole[whole.len() - got.len()..]);
    assert!(live.stderr.contains(" 0 overwritten before"), "{live}");
    let first = first.wait(LIMIT);
    assert_eq!(
        (first.code, first.stdout.lines().count()),
        (Some(0), 10),
        "{first}"
    );
    let wanted = output(
        &lab,
        "tcpdump",
        &["-nS", "--time-stamp-precision=nano", "-r", &file],
    );
    assert_same_lines(&read(&lab, &[&file]).stdout, &wanted);
}

/// Who does not wait for a reader overwrites, and the reader says how much: each packet is printed or counted.
#[test]
fn what_a_ring_overwrote_is_told() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let door = lab.path("small.sock").display().to_string();
    let arguments = [
        "capture",
        "--json",
        "--port",
        "packet:far0",
        "--ring",
        &door,
        "--ring-size",
        "4MiB",
    ];
    let mut capture = lab.dropless(&arguments).within(&wire.far).spawn();
    capture.wait_for("capturing from", LIMIT);
    let mut live = lab.dropless(&["read", &door, "--json"]).spawn();
    let far = wire.far.mac("far0");
    let send = |how: &[&str]| {
        let to = ["--tx-only", "--to-mac", &far];
        wire.send(&lab, "packet", &[&to[..], how].concat()).run()
    };
    // It has joined when it prints; what came before was not offered to it.
    assert!(until(LIMIT, || {
        send(&["--rate", "1kpps", "--count", "100"]);
        !live.stdout().is_empty()
    }));
    live.signal(Signal::SIGSTOP);
    send(&["--size", "1518", "--rate", "10kpps", "--count", "10000"]);
    live.signal(Signal::SIGCONT);
    send(&["--rate", "1kpps", "--count", "100"]);
    live.wait_for("\"length\":60", LIMIT);
    let capture = interrupted(capture).json();
    let live = live.wait(LIMIT);
    let consumers = capture["consumers"].as_array().expect("consumers");
    let reader = consumers
        .iter()
        .find(|consumer| consumer.to_string().contains("dropless read"));
    let reader = reader.expect("the reader");
    let lost = reader["lost"].as_u64().expect("a count");
    assert!(lost > 0 && live.code == Some(1), "{reader} {}", live.stderr);
    assert!(
        live.stderr
            .contains(&format!("{} overwritten before", report::number::count(lost))),
        "{reader} {}",
        live.stderr
    );
    assert_eq!(
        reader["offered"],
        lost + live.stdout.lines().count() as u64,
        "{}",
        live.stderr
    );
}
