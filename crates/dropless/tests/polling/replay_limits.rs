//! `dropless replay` and what cannot be sent, or not in time: it is named, and what can be sent is.

use std::io::Write as _;
use std::path::Path;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::replay::{NEEDS, STARTING, assert_balanced, read, replay, tcpdump, to_null};
use crate::support::pcap_file::{PLAIN, Pcap, frames};
use crate::support::wire::{Wire, assert_invalid, assert_refused, charged};
use crate::support::{require, until};

#[test]
fn what_cannot_be_sent_is_named() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let mut packets = frames(60, 10_000);
    packets[3].bytes.resize(1515, 7);
    packets[3].original_len = 1515;
    // With a tag it is as long as an interface carries.
    packets[4].bytes.resize(1518, 7);
    packets[4].bytes[12..14].copy_from_slice(&[0x81, 0x00]);
    packets[4].original_len = 1518;
    packets[5].bytes.truncate(13);
    packets[5].original_len = 13;
    packets[6].bytes.truncate(40);
    packets[6].original_len = 90;
    // Captured in part, and not sent for another reason.
    packets[7].bytes.truncate(12);
    packets[7].original_len = 90;
    // A clock that was set back.
    packets[10].at_ns -= 5_000_000_000;
    let file = PLAIN.write(&lab, "odd.pcap", &packets);
    for (snapped, sent, too_short, len) in [("send", 57, 2, 40), ("pad", 57, 2, 90), ("skip", 56, 1, 0)] {
        let seen_file = lab.path(&format!("seen-{snapped}.pcap")).display().to_string();
        let seen = tcpdump(&wire, &seen_file, sent, "nano");
        let run = replay(&lab, &wire, &file, &["--snapped", snapped]);
        seen.wait(STARTING);
        assert_balanced(&run);
        assert_eq!(
            (run.number("read"), run.number("sent")),
            (60, sent as u64),
            "{run}"
        );
        let skipped = if snapped == "skip" { 2 } else { 0 };
        let places = ["too_long", "too_short", "snapped"].map(|place| charged(&run.json()["ledger"], place));
        assert_eq!(places, [1, too_short, skipped], "{run}");
        // What was captured in part is one thing, what of it was sent is another.
        assert_eq!(run.number("snapped"), 2, "{run}");
        let told = "1 packet had been captured in part, and went out";
        assert_eq!(run.stdout.contains(told), snapped == "send", "{run}");
        assert_eq!(run.json()["times"]["backwards"], 1, "{run}");
        assert_eq!(run.code, Some(1), "{run}");
        let seen = read(&seen_file);
        assert_eq!(seen.len(), sent);
        // Ethernet fills up what is shorter than 64 bytes with FCS.
        let on_wire = seen.iter().map(|(_, bytes)| (bytes.len() + 4).max(64) + 20);
        let bits = (on_wire.sum::<usize>() * 8) as f64 / sent as f64;
        let json = run.json();
        let rate = |name: &str| json[name].as_f64().expect("a rate");
        let found = rate("rate_tx_bps_l1") / rate("rate_tx_pps");
        assert!((found / bits - 1.0).abs() < 1e-9, "{found}, not {bits}: {run}");
        assert!(
            seen.iter().any(|(_, bytes)| *bytes == packets[4].bytes),
            "{snapped}"
        );
        let cut = seen
            .iter()
            .find(|(_, bytes)| bytes.starts_with(&packets[6].bytes));
        assert_eq!(cut.map_or(0, |(_, bytes)| bytes.len()), len, "{snapped}");
    }
}

#[test]
fn a_file_that_is_cut_short_is_sent_up_to_there_and_refused() {
    let Some(lab) = require(&NEEDS) else { return };
    let whole = PLAIN.bytes(&frames(50, 1_000));
    let path = lab.path("short.pcap");
    std::fs::write(&path, &whole[..whole.len() - 5]).expect("a file");
    let run = to_null(&lab, &path.display().to_string(), &["--loop", "3"]);
    assert_invalid(&run, "short.pcap is cut short");
    assert_balanced(&run);
    assert_eq!((run.number("read"), run.number("sent")), (49, 49), "{run}");
    assert_eq!(run.json()["reasons"][0]["code"], "input_broken", "{run}");
}

/// A pipe that gives the rest only when what it gave before has been sent cannot feed a schedule that goes on meanwhile.
#[test]
fn a_pipe_is_read_as_it_comes_and_one_that_is_too_slow_is_named() {
    let Some(lab) = require(&NEEDS) else { return };
    let pipe = lab.path("pipe").display().to_string();
    mkfifo(Path::new(&pipe), Mode::S_IRWXU).expect("a pipe");
    let packets = frames(40, 1_000_000);
    let file = PLAIN.bytes(&packets);
    let half = file.len() - PLAIN.bytes(&packets[20..]).len() + 24;
    let arguments = ["replay", &pipe, "--json", "--port", "null"];
    let running = lab.dropless(&arguments).spawn();
    let mut writer = std::fs::OpenOptions::new()
        .write(true)
        .open(&pipe)
        .expect("a reader");
    writer.write_all(&file[..half]).expect("a reader");
    let has_sent = || running.stderr().contains("sent 20,");
    assert!(until(STARTING, has_sent), "{}", running.stderr());
    writer.write_all(&file[half..]).expect("a reader");
    drop(writer);
    let run = running.wait(STARTING);
    assert_balanced(&run);
    assert_invalid(&run, "the file is too slow: 20 packets");
    assert_eq!((run.number("read"), run.number("sent")), (40, 40), "{run}");
    let starved = &run.json()["starved"];
    assert_eq!(starved["packets"], 20, "{run}");
    assert!(starved["times"].as_u64() > Some(0), "{run}");
}

/// To the packet, however seldom control looks.
#[test]
fn nothing_is_sent_after_the_duration() {
    let Some(lab) = require(&NEEDS) else { return };
    let file = PLAIN.write(&lab, "long.pcap", &frames(400, 0));
    let arguments = [
        "replay",
        &file,
        "--json",
        "--port=null",
        "--rate=10kpps",
        "--duration=5ms",
    ];
    let run = lab.dropless(&arguments).run();
    assert_balanced(&run);
    assert_eq!((run.number("sent"), run.number("read")), (50, 400), "{run}");
}

/// `--duration` is that of sending, and not over while the first packets are waited for; and what came in time is not all that
/// was due.
#[test]
fn a_pipe_that_stalls_to_the_end_is_named() {
    let Some(lab) = require(&NEEDS) else { return };
    let pipe = lab.path("stalls").display().to_string();
    mkfifo(Path::new(&pipe), Mode::S_IRWXU).expect("a pipe");
    let running = lab.dropless(&[
        "replay",
        &pipe,
        "--json",
        "--port=null",
        "--rate=10kpps",
        "--duration=300ms",
    ]);
    let running = running.spawn();
    let writer = std::fs::OpenOptions::new().write(true).open(&pipe);
    let mut writer = writer.expect("a reader");
    writer.write_all(&PLAIN.bytes(&frames(40, 0))).expect("a reader");
    let run = running.wait(STARTING);
    assert_invalid(&run, "nothing more while packets were due");
    assert_balanced(&run);
    assert_eq!((run.number("sent"), run.number("read")), (40, 40), "{run}");
    assert_eq!(run.json()["starved"]["times"], 1, "{run}");
}

#[test]
fn a_pipe_that_nobody_writes_to_is_waited_for_until_an_interrupt() {
    let Some(lab) = require(&NEEDS) else { return };
    let pipe = lab.path("silent").display().to_string();
    mkfifo(Path::new(&pipe), Mode::S_IRWXU).expect("a pipe");
    let running = lab
        .dropless(&["replay", &pipe, "--json", "--port", "null"])
        .spawn();
    let has_begun = || running.stderr().contains("replaying:");
    assert!(until(STARTING, has_begun), "{}", running.stderr());
    running.signal(Signal::SIGINT);
    let run = running.wait(STARTING);
    assert_invalid(&run, "nothing was sent");
    assert_balanced(&run);
    assert_eq!(run.number("read"), 0, "{run}");
}

#[test]
fn wrong_uses_are_one_line() {
    let Some(lab) = require(&NEEDS) else { return };
    let refused = |file: &str, arguments: &[&str], words: &[&str]| {
        let all = [&["replay", file, "--port", "null"][..], arguments].concat();
        assert_refused(&lab.dropless(&all).run(), words);
    };
    let good = PLAIN.write(&lab, "good.pcap", &frames(3, 1000));
    let none = PLAIN.write(&lab, "none.pcap", &[]);
    let cooked = Pcap { link: 113, ..PLAIN }.write(&lab, "cooked.pcap", &frames(3, 1000));
    let text = lab.path("text").display().to_string();
    std::fs::write(&text, "this is no capture, but a few words").expect("a file");
    let empty = lab.path("empty").display().to_string();
    std::fs::write(&empty, "").expect("a file");
    let folder = lab.directory().display().to_string();
    refused(
        "/nonexistent/a.pcap",
        &[],
        &["/nonexistent/a.pcap", "No such file"],
    );
    refused(&folder, &[], &["is a directory"]);
    refused(&text, &[], &["no pcap or pcapng file", "editcap"]);
    refused(&empty, &[], &["is empty"]);
    refused(&none, &[], &["none.pcap", "no packet"]);
    refused(
        &cooked,
        &[],
        &[
            "cooked.pcap",
            "no Ethernet frames",
            "SLL",
            "instead of `any`",
            "tcprewrite",
        ],
    );
    // What no interface called `any` made is not mended by another interface.
    let user = Pcap { link: 147, ..PLAIN }.write(&lab, "user.pcap", &frames(3, 1000));
    refused(&user, &[], &["(they are of link type 147); give them heads"]);
    refused(&good, &["--rate", "fast"], &["fast", "x2"]);
    refused(&good, &["--rate", "50%"], &["percent", "link speed"]);
    refused(&good, &["--loop", "often"], &["--loop"]);
    refused(&good, &["--loop-gap", "5s"], &["--loop-gap", "add --loop N"]);
    refused(&good, &["--buffer", "1k"], &["--buffer", "more"]);
    refused(&good, &["--max-frame", "20"], &["--max-frame 20"]);
    refused("-", &["--loop", "2"], &["--loop", "file"]);
    let ports = |port: &str, words: &[&str]| {
        let run = lab.dropless(&["replay", &good, "--port", port]).run();
        assert_refused(&run, words);
    };
    ports("ring", &["ring", "null"]);
    ports("kernel:198.18.0.9", &["kernel:198.18.0.9", "packet:"]);
}
