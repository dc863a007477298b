//! `dropless replay`: what is in a capture arrives, byte for byte, in its order and by its times, or is counted.

use std::path::Path;
use std::time::Duration;

use capture::input::Reader;
use nix::sys::signal::Signal;

use crate::support::pcap_file::{PLAIN, Pcap, frames};
use crate::support::wire::{
    Wire, assert_balance, assert_refused, assert_valid_but_for_time, charged, has_note, interrupted,
};
use crate::support::{Finished, Lab, Need, Running, require, until};

pub const NEEDS: [Need; 2] = [Need::Namespaces, Need::Tool("tcpdump")];
pub const STARTING: Duration = Duration::from_secs(30);

/// The times and bytes of the packets of a file.
pub fn read(path: &str) -> Vec<(i64, Vec<u8>)> {
    let mut reader = Reader::open(Path::new(path)).expect("a capture");
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().expect("a packet") {
        packets.push((packet.time_ns.expect("a time"), packet.data.to_vec()));
    }
    packets
}

fn bytes_of(packets: &[(i64, Vec<u8>)]) -> Vec<&[u8]> {
    packets.iter().map(|(_, bytes)| &bytes[..]).collect()
}

/// tcpdump at the far end, writing until it has seen `count` packets from the near end. It takes them as they come: otherwise
/// the last ones would lie in the kernel for as long as it gathers.
pub fn tcpdump(wire: &Wire, file: &str, count: usize, precision: &str) -> Running {
    let count = count.to_string();
    let arguments = [
        &["-i", "far0", "-Q", "in", "-U", "-n", "-B", "16384", "-w", file][..],
        // Taken singly each has a place of the longest that may come.
        &["--immediate-mode", "-s", "10000"],
        &["-c", &count, "--time-stamp-precision", precision],
    ];
    let mut running = wire.far.spawn("tcpdump", &arguments.concat());
    running.wait_for("listening on", STARTING);
    running
}

/// `dropless replay` at the near end.
pub fn replay(lab: &Lab, wire: &Wire, file: &str, arguments: &[&str]) -> Finished {
    let all = [
        &["replay", file, "--json", "--port", "packet:near0"][..],
        arguments,
    ]
    .concat();
    lab.dropless(&all).within(&wire.near).run()
}

/// The same to nowhere.
pub fn to_null(lab: &Lab, file: &str, arguments: &[&str]) -> Finished {
    lab.dropless(&[&["replay", file, "--json", "--port", "null"][..], arguments].concat())
        .run()
}

/// read = sent + named places, by the counters of the port.
pub fn assert_balanced(run: &Finished) {
    assert_balance(&run.json()["ledger"], run);
    assert_eq!(run.number("ledger.entered"), run.number("read"), "{run}");
    assert_eq!(run.json()["pool"]["leaked"], 0, "{run}");
}

fn assert_all_sent(run: &Finished, count: u64) {
    assert_valid_but_for_time(run);
    assert_balanced(run);
    assert_eq!((run.number("read"), run.number("sent")), (count, count), "{run}");
}

#[test]
fn what_tcpdump_captured_arrives_byte_for_byte() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let far = wire.far.mac("far0");
    for precision in ["micro", "nano"] {
        let name = |what: &str| {
            lab.path(&format!("{what}-{precision}.pcap"))
                .display()
                .to_string()
        };
        let (first, again) = (name("first"), name("again"));
        let seen = tcpdump(&wire, &first, 1455, precision);
        let to = [
            "--tx-only",
            "--to-mac",
            &far,
            "--size",
            "64-1518",
            "--count",
            "1455",
        ];
        let sent = wire
            .send(&lab, "packet", &[&to[..], &["--rate", "5kpps"]].concat())
            .run();
        assert_eq!(sent.number("sent"), 1455, "{sent}");
        seen.wait(STARTING);
        let seen = tcpdump(&wire, &again, 1455, precision);
        let run = replay(&lab, &wire, &first, &[]);
        assert_all_sent(&run, 1455);
        seen.wait(STARTING);
        let (first, again) = (read(&first), read(&again));
        assert_eq!(bytes_of(&first), bytes_of(&again));
    }
}

#[test]
fn every_format_is_sent_and_captured_again() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("editcap"), Need::Tool("gzip")]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let packets = frames(500, 20_000);
    let plain = PLAIN.write(&lab, "plain.pcap", &packets);
    let mut files = vec![plain.clone()];
    for (is_nano, is_big) in [(false, false), (false, true), (true, true)] {
        let name = format!("{is_nano}-{is_big}.pcap");
        files.push(
            Pcap {
                is_nano,
                is_big,
                link: 1,
            }
            .write(&lab, &name, &packets),
        );
    }
    let pcapng = lab.path("a.pcapng").display().to_string();
    wire.near.run("editcap", &["-F", "pcapng", &plain, &pcapng]);
    files.push(pcapng);
    wire.near.run("gzip", &["-k", &plain]);
    files.push(format!("{plain}.gz"));
    let sent: Vec<&[u8]> = packets.iter().map(|made| &made.bytes[..]).collect();
    for (number, file) in files.iter().enumerate() {
        let seen = lab.path(&format!("seen-{number}.pcapng")).display().to_string();
        let arguments = ["capture", "--port", "packet:far0", "--to", &seen];
        let mut running = lab.dropless(&arguments).within(&wire.far).spawn();
        running.wait_for("capturing from", STARTING);
        let run = replay(&lab, &wire, file, &[]);
        assert_all_sent(&run, 500);
        interrupted(running);
        assert_eq!(bytes_of(&read(&seen)), sent, "{file}");
    }
}

/// The times are compared as shares of the whole: whoever takes the core for a moment makes one gap longer and the next one
/// shorter, since each packet has its own instant.
#[test]
fn it_takes_as_long_as_the_capture_and_half_of_it_at_twice_the_speed() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    // What takes twice as long has gaps half as long: its shares are no finer than those of the others.
    for (rate, speed, longest_ns) in [
        ("original", 1.0, 20_000_000),
        ("x2", 2.0, 20_000_000),
        ("x0.5", 0.5, 10_000_000),
    ] {
        // A gap of each length up to that, some of them long.
        let mut packets = frames(200, 0);
        let mut at_ns = packets[0].at_ns;
        for (number, packet) in packets.iter_mut().enumerate() {
            at_ns += (number as u64 * 7_919 % 20) * longest_ns / 20;
            packet.at_ns = at_ns;
        }
        let whole_s = (at_ns - packets[0].at_ns) as f64 / 1e9;
        let file = PLAIN.write(&lab, &format!("gaps-{rate}.pcap"), &packets);
        let seen_file = lab.path(&format!("seen-{rate}.pcap")).display().to_string();
        let seen = tcpdump(&wire, &seen_file, packets.len(), "nano");
        let run = replay(&lab, &wire, &file, &["--rate", rate]);
        assert_all_sent(&run, 200);
        seen.wait(STARTING);
        let seconds = |name: &str| run.json()[name].as_f64().expect("seconds");
        let planned = seconds("planned_s");
        assert!((planned * speed / whole_s - 1.0).abs() < 1e-6, "{run}");
        assert!(seconds("duration_s") > planned * 0.999, "{run}");
        // By the kernel's own clock at the other end, in order.
        let seen = read(&seen_file);
        assert!(seen.is_sorted_by_key(|(at, _)| *at), "{rate}");
        let took = (seen[199].0 - seen[0].0) as f64 / 1e9;
        assert!(
            (0.95..1.5).contains(&(took / planned)),
            "{rate}: {took} s of {planned} s"
        );
        let half = (seen[100].0 - seen[0].0) as f64 / 1e9;
        let wanted = (packets[100].at_ns - packets[0].at_ns) as f64 / 1e9 / speed;
        assert!(
            (0.8..1.7).contains(&(half / wanted)),
            "{rate}: {half} s of {wanted} s"
        );
        assert!(run.json()["gap_error_ns"]["p50"].is_u64(), "{run}");
    }
}

#[test]
fn a_loop_sends_it_again_and_a_long_gap_is_cut() {
    let Some(lab) = require(&NEEDS) else { return };
    let mut packets = frames(100, 10_000);
    // A pause of an hour.
    for packet in &mut packets[50..] {
        packet.at_ns += 3_600_000_000_000;
    }
    let file = PLAIN.write(&lab, "loop.pcap", &packets);
    let run = to_null(&lab, &file, &["--loop", "3", "--max-gap", "1ms"]);
    assert_all_sent(&run, 300);
    assert_eq!(run.number("loops"), 3, "{run}");
    assert_eq!(run.json()["times"]["cut"], 3, "{run}");
    // 98 gaps of 10 us and one of 1 ms, three times, and the mean of them between two loops.
    let planned = run.json()["planned_s"].as_f64().expect("seconds");
    let gaps = 98.0 * 10e-6 + 1e-3;
    let wanted = 3.0 * gaps + 2.0 * gaps / 99.0;
    assert!(
        (planned / wanted - 1.0).abs() < 1e-3,
        "{planned} s, not {wanted} s: {run}"
    );
}

#[test]
fn a_file_larger_than_the_memory_for_it_is_sent_whole() {
    let Some(lab) = require(&NEEDS) else { return };
    let packets = frames(20_000, 100);
    let file = PLAIN.write(&lab, "large.pcap", &packets);
    let len = std::fs::metadata(&file).expect("the file").len();
    assert!(len > 100 * 100_000, "{len}");
    let run = to_null(&lab, &file, &["--rate", "max", "--buffer", "110k", "--loop", "2"]);
    assert_all_sent(&run, 40_000);
    let bytes: usize = packets.iter().map(|made| made.bytes.len()).sum();
    assert_eq!(run.number("sent_bytes"), 2 * bytes as u64, "{run}");
    assert!(run.json()["late_ns"]["max"].is_null(), "{run}");
}

#[test]
fn an_interrupt_ends_a_loop_that_goes_on_for_ever() {
    let Some(lab) = require(&NEEDS) else { return };
    let file = PLAIN.write(&lab, "ever.pcap", &frames(1000, 100_000));
    let arguments = ["replay", &file, "--json", "--port", "null", "--loop", "forever"];
    let running = lab.dropless(&arguments).spawn();
    let has_begun = || running.stderr().contains("replaying:");
    assert!(until(STARTING, has_begun), "{}", running.stderr());
    running.signal(Signal::SIGINT);
    let run = running.wait(STARTING);
    assert_valid_but_for_time(&run);
    assert_balanced(&run);
    let cut_off = charged(&run.json()["ledger"], "cut_off");
    assert!(run.number("sent") > 0 && cut_off > 0, "{run}");
    // What was asked to end is no loss.
    assert_eq!(run.code, Some(0), "{run}");
    let places = run.json()["ledger"]["places"].clone();
    let places = places.as_array().expect("places").iter();
    let cut_off = places.filter(|charge| charge["place"] == "cut_off");
    assert_eq!(cut_off.count(), 1, "{run}");
    assert!(!run.stderr.contains("unsent"), "a line of a sender: {run}");
    assert!(has_note(&run.json(), "interrupted"), "{run}");
    // A run directory that is shown again.
    let dir = run.json()["run"].as_str().expect("a directory").to_owned();
    let report = lab.dropless(&["report", &dir]).run();
    for words in ["packets read", " cut off by the end"] {
        assert!(report.stdout.contains(words), "{report}");
    }
}

#[test]
fn standard_input_is_a_capture_too() {
    let Some(lab) = require(&NEEDS) else { return };
    let file = PLAIN.write(&lab, "in.pcap", &frames(300, 1_000));
    let program = env!("CARGO_BIN_EXE_dropless");
    let runs = lab.path("runs").display().to_string();
    let script = format!(
        "cat {file} | {program} replay - --port null --rate 100kpps --json --no-huge --no-doctor --runs {runs}"
    );
    let run = lab.shell(&script).wait(STARTING);
    assert_all_sent(&run, 300);
}

#[test]
fn expectations_decide_the_exit_code() {
    let Some(lab) = require(&NEEDS) else { return };
    let file = PLAIN.write(&lab, "expected.pcap", &frames(20, 1_000));
    let expecting = |what: &str| to_null(&lab, &file, &["--rate", "max", "--expect", what]);
    let (met, failed) = (expecting("sent==20"), expecting("sent<20"));
    for (run, code, is_met) in [(&met, 0, true), (&failed, 1, false)] {
        assert_eq!(run.code, Some(code), "{run}");
        assert_eq!(run.json()["expectations"][0]["met"], is_met, "{run}");
    }
    let unknown = expecting("latency_p99<1us");
    assert_refused(&unknown, &["latency_p99", "gap_error_p99"]);
}
