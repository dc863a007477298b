//! `dropless replay`: what is in a capture arrives, byte for byte, in its order and by its times, or is counted.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use capture::input::Reader;
use nix::sys::signal::Signal;

use crate::support::wire::{Wire, assert_invalid, assert_refused, assert_valid_but_for_time, interrupted};
use crate::support::{Finished, Lab, Need, Running, require, until};

const NEEDS: [Need; 2] = [Need::Namespaces, Need::Tool("tcpdump")];
const STARTING: Duration = Duration::from_secs(30);

/// A packet of a file that a test makes: its time, its bytes, and its length before it was cut.
#[derive(Clone)]
struct Made {
    at_ns: u64,
    bytes: Vec<u8>,
    original_len: usize,
}

/// Frames that nobody answers, `gap_ns` apart, each of its own length and bytes.
fn frames(count: usize, gap_ns: u64) -> Vec<Made> {
    let made = |number: usize| {
        let len = 60 + number * 37 % 1455;
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xB5];
        bytes.extend((14..len).map(|at| (at * 7 + number) as u8));
        Made {
            at_ns: 1_700_000_000_000_000_000 + number as u64 * gap_ns,
            original_len: bytes.len(),
            bytes,
        }
    };
    (0..count).map(made).collect()
}

/// The kinds of pcap: nanoseconds or microseconds, in either byte order.
#[derive(Clone, Copy, Debug)]
struct Pcap {
    is_nano: bool,
    is_big: bool,
    link: u32,
}

const PLAIN: Pcap = Pcap {
    is_nano: true,
    is_big: false,
    link: 1,
};

impl Pcap {
    /// A file as `pcap-savefile(5)` has it.
    fn bytes(self, packets: &[Made]) -> Vec<u8> {
        let word = |value: u32| {
            if self.is_big {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
        };
        let half = |value: u16| {
            if self.is_big {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
        };
        let magic = if self.is_nano { 0xA1B2_3C4D } else { 0xA1B2_C3D4 };
        let mut file = [&word(magic)[..], &half(2), &half(4)].concat();
        for value in [0, 0, 262_144, self.link] {
            file.extend(word(value));
        }
        for Made {
            at_ns,
            bytes,
            original_len,
        } in packets
        {
            let fraction = (at_ns % 1_000_000_000) as u32;
            let fraction = if self.is_nano { fraction } else { fraction / 1000 };
            let seconds = (at_ns / 1_000_000_000) as u32;
            for value in [seconds, fraction, bytes.len() as u32, *original_len as u32] {
                file.extend(word(value));
            }
            file.extend(bytes);
        }
        file
    }

    fn write(self, lab: &Lab, name: &str, packets: &[Made]) -> String {
        let path = lab.path(name);
        std::fs::write(&path, self.bytes(packets)).expect("a capture");
        path.display().to_string()
    }
}

/// The times and bytes of the packets of a file.
fn read(path: &str) -> Vec<(i64, Vec<u8>)> {
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

/// tcpdump at the far end, writing until it has seen `count` packets from the near end.
fn tcpdump(wire: &Wire, file: &str, count: usize, precision: &str) -> Running {
    let count = count.to_string();
    let arguments = [
        &["-i", "far0", "-Q", "in", "-U", "-n", "-B", "16384", "-w", file][..],
        &["-c", &count, "--time-stamp-precision", precision],
    ];
    let mut running = wire.far.spawn("tcpdump", &arguments.concat());
    running.wait_for("listening on", STARTING);
    running
}

/// `dropless replay` at the near end.
fn replay(lab: &Lab, wire: &Wire, file: &str, arguments: &[&str]) -> Finished {
    let all = [
        &["replay", file, "--json", "--port", "packet:near0"][..],
        arguments,
    ]
    .concat();
    lab.dropless(&all).within(&wire.near).run()
}

/// The same to nowhere.
fn to_null(lab: &Lab, file: &str, arguments: &[&str]) -> Finished {
    lab.dropless(&[&["replay", file, "--json", "--port", "null"][..], arguments].concat())
        .run()
}

/// read = sent + named places, by the counters of the port.
fn assert_balanced(run: &Finished) {
    let ledger = &run.json()["ledger"];
    let places = ledger["places"].as_array().map_or(&[][..], Vec::as_slice);
    let charged: u64 = places.iter().filter_map(|place| place["charged"].as_u64()).sum();
    let number = |name: &str| ledger[name].as_u64().expect("a count");
    assert_eq!(number("entered"), number("left") + charged, "{run}");
    assert_eq!(number("entered"), run.number("read"), "{run}");
    assert_eq!(number("unexplained"), 0, "{run}");
    assert_eq!(run.json()["pool"]["leaked"], 0, "{run}");
}

/// What the place of this name was charged.
fn charged(run: &Finished, name: &str) -> u64 {
    let json = run.json();
    let places = json["ledger"]["places"].as_array().expect("places");
    let place = places.iter().find(|place| place["place"] == name);
    place.map_or(0, |place| place["charged"].as_u64().expect("a count"))
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
            far.trim(),
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
    // A gap of each length from 0 to 20 ms, some of them long.
    let mut packets = frames(200, 0);
    let mut at_ns = packets[0].at_ns;
    for (number, packet) in packets.iter_mut().enumerate() {
        at_ns += (number as u64 * 7_919 % 20) * 1_000_000;
        packet.at_ns = at_ns;
    }
    let whole_s = (at_ns - packets[0].at_ns) as f64 / 1e9;
    let file = PLAIN.write(&lab, "gaps.pcap", &packets);
    for (rate, speed) in [("original", 1.0), ("x2", 2.0), ("x0.5", 0.5)] {
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
        assert_eq!(
            (charged(&run, "too_long"), charged(&run, "too_short")),
            (1, too_short),
            "{run}"
        );
        let skipped = if snapped == "skip" { 2 } else { 0 };
        assert_eq!(charged(&run, "snapped"), skipped, "{run}");
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
    nix::unistd::mkfifo(Path::new(&pipe), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
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
    assert!(run.number("sent") > 0 && charged(&run, "cut_off") > 0, "{run}");
    let notes = run.json()["notes"].as_array().expect("notes").clone();
    assert!(notes.iter().any(|note| note["code"] == "interrupted"), "{run}");
    // A run directory that is shown again.
    let dir = run.json()["run"].as_str().expect("a directory").to_owned();
    let report = lab.dropless(&["report", &dir]).run();
    assert!(report.stdout.contains("packets read"), "{report}");
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
    refused(&cooked, &[], &["cooked.pcap", "no Ethernet frames", "tcprewrite"]);
    refused(&good, &["--rate", "fast"], &["fast", "x2"]);
    refused(&good, &["--rate", "50%"], &["percent", "link speed"]);
    refused(&good, &["--loop", "often"], &["--loop"]);
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
