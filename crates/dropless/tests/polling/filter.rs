//! `dropless filter`: rules are checked, and tried on captures.

use std::fs;

use serde_json::Value;

use crate::support::pcap_file::{PLAIN, frames};
use crate::support::{Finished, Lab, Need, require};

fn filter(lab: &Lab, arguments: &[&str]) -> Finished {
    lab.dropless(&[&["filter"][..], arguments].concat()).run()
}

/// A file of a thousand packets of several flows and sizes, and these rules.
fn files(lab: &Lab, rules: &str) -> (String, String) {
    let (file, path) = (lab.path("c.pcapng"), lab.path("edge.rules"));
    let (file, path) = (file.display().to_string(), path.display().to_string());
    let captured = lab
        .dropless(&["capture", "--quiet", "--count", "1000", "--to", &file])
        .run();
    assert_eq!(captured.code, Some(0), "{captured}");
    fs::write(&path, rules).expect("a rule file");
    (file, path)
}

#[test]
fn what_rules_do_is_what_tcpdump_finds() {
    let Some(lab) = require(&[Need::Tool("tcpdump")]) else {
        return;
    };
    let rules = "deny udp sport 49152-49155\ndeny from 198.18.0.0/15 dport 7\ndefault allow\n";
    let (file, rules) = files(&lab, rules);
    let tested = filter(&lab, &["test", &rules, &file, "--json"]);
    assert_eq!(tested.code, Some(0), "{tested}");
    let tested: Value = tested.json();
    let found = |expression: &str| {
        let output = std::process::Command::new("tcpdump")
            .args(["-nr", &file, expression])
            .output();
        let output = output.expect("tcpdump");
        String::from_utf8_lossy(&output.stdout).lines().count() as u64
    };
    let first = found("udp src portrange 49152-49155");
    assert!(first > 0 && first < 1000, "{first}");
    assert_eq!(tested["rules"][0]["packets"], first);
    let second = found("src net 198.18.0.0/15 and dst port 7 and not udp src portrange 49152-49155");
    assert_eq!(tested["rules"][1]["packets"], second);
    assert_eq!(tested["denied"], first + second);
    assert_eq!(tested["default"]["packets"], 1000 - first - second);
}

#[test]
fn each_packet_has_a_line_and_one_is_explained() {
    let Some(lab) = require(&[]) else { return };
    let (file, rules) = files(
        &lab,
        "rate 1pps per source burst 2 udp\nallow udp\ndefault deny\n",
    );
    let tested = filter(&lab, &["test", &rules, &file, "-c", "3"]);
    let lines: Vec<&str> = tested.stdout.lines().take(3).collect();
    let allowed = lines.iter().filter(|line| line.contains(" allow ")).count();
    let denied = lines.iter().filter(|line| line.contains(" deny ")).count();
    assert_eq!((allowed, denied), (2, 1), "{tested}");
    let within = filter(&lab, &["test", &rules, &file, "--why", "2"]).stdout;
    assert!(
        within.contains("within the rate") && within.contains("met: allowed"),
        "{within}"
    );
    let above = filter(&lab, &["test", &rules, &file, "--why", "3"]).stdout;
    assert!(above.contains("above the rate: denied"), "{above}");
}

#[test]
fn what_came_before_the_end_of_a_file_that_is_cut_is_told() {
    let Some(lab) = require(&[]) else { return };
    let rules = lab.path("edge.rules");
    fs::write(&rules, "deny malformed\n").expect("a rule file");
    let rules = rules.display().to_string();
    let whole = PLAIN.write(&lab, "whole.pcap", &frames(3, 1000));
    let bytes = fs::read(&whole).expect("a file");
    let cut = lab.path("cut.pcap").display().to_string();
    fs::write(&cut, &bytes[..bytes.len() - 5]).expect("a file");
    let tested = filter(&lab, &["test", &rules, &cut]);
    assert_eq!(tested.code, Some(2), "{tested}");
    assert_eq!(tested.stdout.matches(" allow default").count(), 2, "{tested}");
    assert!(
        tested.stdout.contains("2 packets: 2 allowed, 0 denied"),
        "{tested}"
    );
    assert!(tested.stderr.contains("cut"), "{tested}");
    let json = filter(&lab, &["test", &rules, &cut, "--json"]);
    assert_eq!(json.code, Some(2), "{json}");
    assert!(json.json()["error"].to_string().contains("cut"), "{json}");
    // Headers that were not captured are no malformed ones, also rule by rule.
    let mut short = frames(1, 1000);
    short[0].bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
    short[0].bytes.truncate(20);
    let short = PLAIN.write(&lab, "short.pcap", &short);
    let tested = filter(&lab, &["test", &rules, &short]);
    assert!(tested.stdout.contains("     1 cut off "), "{tested}");
    let why = filter(&lab, &["test", &rules, &short, "--why", "1"]);
    assert!(
        why.stdout.contains("cut off") && !why.stdout.contains("malformed"),
        "{why}"
    );
    // SCTP is well-formed without its ports, and is not judged as if it had none.
    let mut sctp = frames(1, 1000);
    sctp[0].bytes[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 132]);
    sctp[0].bytes.truncate(36);
    let sctp = PLAIN.write(&lab, "sctp.pcap", &sctp);
    fs::write(&rules, "deny sctp dport 5000\ndefault allow\n").expect("a rule file");
    let tested = filter(&lab, &["test", &rules, &sctp]);
    assert!(tested.stdout.contains("     1 cut off "), "{tested}");
    let why = filter(&lab, &["test", &rules, &sctp, "--why", "1"]);
    assert!(why.stdout.contains("cut off"), "{why}");
    // What is longer than its frame is so whatever follows.
    let mut long = frames(1, 1000);
    long[0].bytes[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 132]);
    long[0].bytes.truncate(36);
    let long = PLAIN.write(&lab, "long.pcap", &long);
    fs::write(&rules, "deny malformed ip-length\ndefault allow\n").expect("a rule file");
    let tested = filter(&lab, &["test", &rules, &long]);
    assert!(tested.stdout.contains("0 allowed, 1 denied"), "{tested}");
}

/// A block of pcapng, whose body is made of whole words.
fn block(kind: u32, body: &[u32]) -> Vec<u8> {
    let len = 12 + body.len() as u32 * 4;
    let words = [&[kind, len][..], body, &[len]].concat();
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn rates_go_by_times_before_1970_and_say_where_there_are_none() {
    let Some(lab) = require(&[]) else { return };
    let mut frame = [0; 60];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 47]);
    let frame = frame
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("a word")));
    let frame: Vec<u32> = frame.collect();
    // Of whole seconds (`if_tsresol` 0), since one that is a thousand seconds before 1970.
    let begun = (-1000_i64).to_le_bytes().map(u32::from);
    let begun = |at: usize| (0..4).fold(0, |word, byte| word | begun[at + byte] << (8 * byte));
    let head = [
        block(0x0A0D_0D0A, &[0x1A2B_3C4D, 1, u32::MAX, u32::MAX]),
        block(1, &[1, 0, 0x0001_0009, 0, 0x0008_000E, begun(0), begun(4), 0]),
    ]
    .concat();
    let timed = |second: u32| block(6, &[&[0, 0, second, 60, 60][..], &frame].concat());
    let timeless = block(3, &[&[60][..], &frame].concat());
    let (rules, file) = (lab.path("edge.rules"), lab.path("old.pcapng"));
    fs::write(&rules, "rate 1pps per source burst 1\n").expect("a rule file");
    let (rules, name) = (rules.display().to_string(), file.display().to_string());
    let test = |packets: &[Vec<u8>], arguments: &[&str]| {
        fs::write(&file, [&head[..], &packets.concat()].concat()).expect("a capture");
        filter(&lab, &[&["test", &rules, &name][..], arguments].concat())
    };
    let old: Vec<_> = (0..3).map(timed).collect();
    let tested = test(&old, &["--json"]).json();
    assert_eq!(
        (&tested["allowed"], &tested["without_time"]),
        (&3.into(), &0.into()),
        "{tested}"
    );
    let why = test(&old, &["--why", "3"]).stdout;
    assert!(
        why.contains("within the rate") && !why.contains("no time"),
        "{why}"
    );
    // At the time of the one before, that of the first being none.
    let some = [timed(0), timeless.clone(), timed(1), timeless];
    let tested = test(&some, &["--summary"]).stdout;
    let told = "2 allowed, 2 denied; 2 packets have no time: rates go by that of the packet before";
    assert!(tested.contains(told), "{tested}");
    let tested = test(&some, &["--json"]).json();
    assert_eq!(tested["without_time"], 2, "{tested}");
    let why = test(&some, &["--why", "2"]).stdout;
    assert!(
        why.contains("above the rate") && why.contains("1 packet has no time"),
        "{why}"
    );
    // Without a rate no time is needed.
    fs::write(&rules, "deny tcp\n").expect("a rule file");
    let tested = test(&some, &[]).stdout;
    assert!(
        tested.contains("4 allowed") && !tested.contains("no time"),
        "{tested}"
    );
}

#[test]
fn mistakes_are_told_with_their_places() {
    let Some(lab) = require(&[]) else { return };
    let path = lab.path("bad.rules");
    fs::write(&path, "deny form 10.0.0.0/8\nallow tcp prt 80\n").expect("a rule file");
    let name = path.display().to_string();
    let checked = filter(&lab, &["check", &name]);
    assert_eq!(checked.code, Some(2), "{checked}");
    let lines: Vec<&str> = checked.stderr.lines().collect();
    let told = [
        format!("{name}:1:6: `form` is no condition; did you mean from?"),
        format!("{name}:2:11: `prt` is no condition"),
    ];
    for (line, told) in lines.iter().zip(&told) {
        assert!(line.starts_with(told), "{checked}");
    }
    assert_eq!((lines.len(), lines.last()), (3, Some(&"2 mistakes")), "{checked}");
    let json = filter(&lab, &["check", &name, "--json"]);
    assert_eq!(json.code, Some(2), "{json}");
    assert_eq!(json.json()["mistakes"][1]["column"], 11, "{json}");
    let mark = b"\xEF\xBB\xBFdeny tcp\n";
    fs::write(&path, mark).expect("a rule file");
    assert_eq!(filter(&lab, &["check", &name]).code, Some(0));
    fs::write(&path, b"deny tcp\ndeny udp \xFF\n").expect("a rule file");
    let damaged = filter(&lab, &["check", &name]);
    assert!(
        damaged.stderr.contains("line 2 of") && damaged.stderr.contains("UTF-8"),
        "{damaged}"
    );
    fs::write(&path, "deny ip\nallow tcp\n").expect("a rule file");
    let checked = filter(&lab, &["check", &name]);
    assert_eq!(checked.code, Some(1), "{checked}");
    assert!(
        checked.stdout.contains(":2: `allow tcp` is never met"),
        "{checked}"
    );
}

/// A run that reads its rules again must come back from that: no pipe is waited for, no device read for ever.
#[test]
fn rules_are_read_from_files_alone() {
    let Some(lab) = require(&[]) else { return };
    let (pipe, device) = (lab.path("pipe.rules"), lab.path("zero.rules"));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    std::os::unix::fs::symlink("/dev/zero", &device).expect("a link");
    for (path, kind) in [(pipe, "a named pipe"), (device, "a device")] {
        let refused = filter(&lab, &["check", &path.display().to_string()]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(kind), "{refused}");
    }
}
