//! `dropless guard`: floods are found and blocked, over captures and over a wire, and nothing else is.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use wire::checksum;

use crate::replay::{STARTING, replay};
use crate::support::pcap_file::{Made, PLAIN};
use crate::support::terminal::LIVE_VARIABLE;
use crate::support::wire::{Wire, has_note};
use crate::support::{Lab, Need, Running, require, until};

/// What legitimate packets go to.
pub const OURS: u16 = 4433;
const MS: u64 = 1_000_000;

/// A UDP packet for the far end.
pub fn udp(mac: [u8; 6], source: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
    udp_to(mac, (source, [198, 18, 0, 2]), ports)
}

/// A UDP packet from one address to another.
pub fn udp_to(mac: [u8; 6], (source, destination): ([u8; 4], [u8; 4]), ports: (u16, u16)) -> Vec<u8> {
    let mut frame = [&mac[..], &[2, 0, 0, 0, 0, 1, 8, 0]].concat();
    let mut header = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0];
    header.extend(source);
    header.extend(destination);
    let sum = checksum::field(checksum::sum(&header));
    header[10..12].copy_from_slice(&sum);
    frame.extend(header);
    frame.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes(), [0, 26], [0, 0]].concat());
    frame.resize(60, 0);
    frame
}

/// So many of them.
pub const LEGITIMATE: u64 = 1500;

/// A second and a half of a legitimate packet each millisecond, from ten sources; in the last second, `flood` packets of NTP from
/// sources that are invented.
pub fn packets(mac: [u8; 6], flood: u64) -> Vec<Made> {
    let made = |at_ns, bytes| Made::whole(1_700_000_000_000_000_000 + at_ns, bytes);
    let ours = (0..LEGITIMATE).map(|number| {
        let bytes = udp(
            mac,
            [10, 0, 0, (number % 10) as u8],
            (5000 + (number % 10) as u16, OURS),
        );
        made(number * MS, bytes)
    });
    let theirs = (0..flood).map(|number| {
        let source = (number as u32).wrapping_mul(2_654_435_761).to_be_bytes();
        let source = [11 + source[0] % 100, source[1], source[2], source[3]];
        made(
            500 * MS + number * 1000 * MS / flood,
            udp(mac, source, (123, 10_000 + (number % 50_000) as u16)),
        )
    });
    let mut all: Vec<Made> = ours.chain(theirs).collect();
    all.sort_by_key(|packet| packet.at_ns);
    all
}

pub fn met(judged: &Value, rule: &str) -> u64 {
    let rules = judged["rules"].as_array().expect("rules");
    let found = rules
        .iter()
        .find(|one| one["rule"].as_str().is_some_and(|text| text.contains(rule)));
    found.map_or(0, |one| one["packets"].as_u64().expect("a number"))
}

pub const RULE: &str = "deny udp sport 123 to 198.18.0.2";

#[test]
fn over_a_capture_it_is_told_what_would_have_been_blocked_and_when() {
    let Some(lab) = require(&[]) else { return };
    let file = PLAIN.write(&lab, "flood.pcap", &packets([2; 6], 30_000));
    let rules = lab.path("own.rules");
    fs::write(&rules, format!("allow udp dport {OURS}\n")).expect("a rule file");
    let rules = rules.display().to_string();
    let run = |more: &[&str]| {
        let all = [
            &["guard", "--replay", &file, "--rules", &rules, "--json"][..],
            more,
        ]
        .concat();
        let run = lab.dropless(&all).run();
        assert_eq!(run.code, Some(0), "{run}");
        run
    };
    let guarded = run(&["--threshold", "amplification=5kpps"]);
    let told = guarded.json();
    assert_eq!(told["blocks"].as_array().map(Vec::len), Some(1), "{guarded}");
    let block = &told["blocks"][0];
    assert_eq!(
        (block["rule"].as_str(), block["cost"].as_f64()),
        (Some(RULE), Some(0.0))
    );
    // By the times of the file, which are always the same.
    let after_s = block["stopped_after_s"].as_f64().expect("a time");
    assert!(after_s > 0.0 && after_s < 1.0, "{guarded}");
    let judged = &told["judged"];
    let (denied, ours) = (judged["denied"].as_u64().expect("a count"), met(judged, "dport"));
    assert_eq!((ours, met(judged, RULE)), (LEGITIMATE, denied));
    assert_eq!(
        judged["allowed"].as_u64().map(|allowed| allowed + denied),
        Some(30_000 + LEGITIMATE)
    );
    let expected = (30_000.0 * (1.0 - after_s)) as u64;
    assert!(denied.abs_diff(expected) <= 2, "{denied} of {expected}");
    let log = format!("{}/guard.jsonl", told["run"].as_str().expect("a directory"));
    let log = fs::read_to_string(lab.path(&log)).expect("the log");
    let line: Value = serde_json::from_str(log.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&line["event"], &line["rule"]), (&"blocked".into(), &RULE.into()));
    // The same file, the same result.
    assert_eq!(
        run(&["--threshold", "amplification=5kpps"]).json()["judged"],
        *judged
    );
    let dry = run(&["--threshold", "amplification=5kpps", "--dry-run"]).json();
    assert_eq!(
        (
            dry["blocks"].as_array().map(Vec::len),
            dry["judged"]["denied"].as_u64()
        ),
        (Some(1), Some(0))
    );
    let high = run(&["--threshold", "amplification=50kpps"]).json();
    assert_eq!(high["blocks"], Value::Array(Vec::new()));
    let allow = lab.path("peers.rules");
    fs::write(&allow, "allow udp sport 123\n").expect("an allow-list");
    let allowed = run(&[
        "--threshold",
        "amplification=5kpps",
        "--allow",
        &allow.display().to_string(),
    ])
    .json();
    assert_eq!(
        (&allowed["blocks"], &allowed["judged"]["denied"]),
        (&Value::Array(Vec::new()), &0.into())
    );
}

/// To a list that does not name what is wrong with them, odd packets of a peer are packets of a peer.
#[test]
fn odd_packets_of_an_allowed_source_make_no_rule() {
    let Some(lab) = require(&[]) else { return };
    let mut frame = udp([2; 6], [10, 0, 0, 1], (5000, 80));
    frame[23] = 6;
    // Without any flag.
    frame[46] = 5 << 4;
    frame[24..26].fill(0);
    let sum = checksum::field(checksum::sum(&frame[14..34]));
    frame[24..26].copy_from_slice(&sum);
    let made = |number: u64| Made::whole(1_700_000_000_000_000_000 + number * MS / 20, frame.clone());
    let file = PLAIN.write(&lab, "odd.pcap", &(0..40_000).map(made).collect::<Vec<_>>());
    for (allowed, rules) in [("10.0.0.1", 0), ("10.0.0.2", 1)] {
        let allow = lab.path("peers.rules");
        fs::write(&allow, format!("allow from {allowed}\n")).expect("an allow-list");
        let allow = allow.display().to_string();
        let run = lab
            .dropless(&["guard", "--replay", &file, "--allow", &allow, "--json"])
            .run();
        let told = run.json();
        assert_eq!(told["blocks"].as_array().map(Vec::len), Some(rules), "{run}");
        assert_eq!(told["judged"]["denied"] == 0, rules == 0, "{run}");
    }
}

/// A damaged capture is told of in one line even where nothing else is printed.
#[test]
fn a_damaged_capture_is_told_of_quietly() {
    let Some(lab) = require(&[]) else { return };
    let file = PLAIN.write(&lab, "cut.pcap", &packets([2; 6], 10));
    let whole = fs::read(&file).expect("a file");
    fs::write(&file, &whole[..whole.len() - 5]).expect("a file");
    let run = lab
        .dropless(&["guard", "--replay", &file, "--quiet", "--threshold", "tcp=5kpps"])
        .run();
    assert_eq!((run.code, &*run.stdout), (Some(2), ""), "{run}");
    assert!(run.stderr.starts_with("dropless: INVALID: "), "{run}");
    assert_eq!(run.stderr.lines().count(), 1, "{run}");
    let run = lab.dropless(&["guard", "--replay", &file, "--json"]).run();
    let told = run.json();
    assert_eq!(
        (run.code, &told["verdict"]),
        (Some(2), &"invalid".into()),
        "{run}"
    );
    assert_eq!(told["reasons"][0]["code"], "input_damaged", "{run}");
}

/// Packets that are out of order or have no time count at the time of those before them, and a note says so.
#[test]
fn times_that_a_capture_lacks_are_told() {
    let Some(lab) = require(&[]) else { return };
    let noted = |file: &str| {
        let run = lab.dropless(&["guard", "--replay", file, "--json"]).run();
        assert_eq!(run.code, Some(0), "{run}");
        let told = run.json();
        let judged = told["judged"]["allowed"].as_u64();
        let notes = told["notes"].as_array().expect("notes").clone();
        let codes = ["times_go_back", "no_times"].map(|code| notes.iter().any(|note| note["code"] == code));
        (codes, judged)
    };
    let mut packets = packets([2; 6], 10);
    let all = packets.len() as u64;
    let file = |packets: &[Made]| PLAIN.write(&lab, "times.pcap", packets);
    assert_eq!(noted(&file(&packets)), ([false, false], Some(all)));
    packets.swap(500, 600);
    assert_eq!(noted(&file(&packets)), ([true, false], Some(all)));
    // A section, an interface of Ethernet, and a simple packet, which has no time.
    let frame = udp([2; 6], [10, 0, 0, 1], (5000, OURS));
    let mut simple = Vec::new();
    for word in [0x0A0D_0D0A_u32, 28, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 28] {
        simple.extend(word.to_le_bytes());
    }
    for word in [
        1_u32,
        20,
        1,
        0,
        20,
        3,
        16 + frame.len() as u32,
        frame.len() as u32,
    ] {
        simple.extend(word.to_le_bytes());
    }
    simple.extend(&frame);
    simple.extend((16 + frame.len() as u32).to_le_bytes());
    let path = lab.path("simple.pcapng");
    fs::write(&path, simple).expect("a file");
    assert_eq!(noted(&path.display().to_string()), ([false, true], Some(1)));
}

#[test]
fn what_cannot_be_meant_is_refused_in_one_line() {
    let Some(lab) = require(&[]) else { return };
    let file = PLAIN.write(&lab, "some.pcap", &packets([2; 6], 10));
    let rules = lab.path("deny.rules");
    fs::write(&rules, "deny udp\n").expect("a rule file");
    let rules = rules.display().to_string();
    for (arguments, told) in [
        (&["--threshold", "tpc=5kpps"][..], "`tpc` is no class"),
        (&["--threshold", "tcp=fast"], "a rate is wanted"),
        (&["--cap", "prefix=40"], "from 1 to 32"),
        (&["--cap", "size=4"], "is no limit"),
        (&["--cap", "rules=1,share=1%,rules=2"], "gives rules twice"),
        (
            &["--threshold", "syn=1kpps,syn=1Gbps,syn=2kpps"],
            "in this unit already",
        ),
        (&["--allow", &rules], "`allow` rules only"),
        (&["--baseline", &rules], "is none"),
        (
            &["--baseline", "/nowhere/usual.json"],
            "nothing can be left in /nowhere: No such file or directory; name another place",
        ),
        (&["--metrics", ":9"], "--metrics is for --dev and --port"),
    ] {
        let run = lab
            .dropless(&[&["guard", "--replay", &file][..], arguments].concat())
            .run();
        assert_eq!(
            (run.code, run.stderr.trim_end().lines().count()),
            (Some(2), 1),
            "{run}"
        );
        assert!(run.stderr.contains(told), "{run}");
    }
}

/// All of the file was judged: that holds, wherever what is usual goes.
#[test]
fn a_baseline_that_cannot_be_kept_costs_nothing_but_itself() {
    let Some(lab) = require(&[]) else { return };
    let file = PLAIN.write(&lab, "some.pcap", &packets([2; 6], 10));
    let kept = lab.path("usual.json").display().to_string();
    // In the way of the file that is written first.
    fs::create_dir(lab.path(".usual.json.tmp")).expect("a directory");
    let run = lab
        .dropless(&["guard", "--replay", &file, "--baseline", &kept, "--json"])
        .run();
    assert_eq!(run.code, Some(0), "{run}");
    let notes = run.json()["notes"].to_string();
    assert!(notes.contains("baseline_not_kept"), "{run}");
    let result = run.json()["run"]
        .as_str()
        .map(|run| lab.path(run).join("summary.json"));
    assert!(result.is_some_and(|file| file.is_file()), "{run}");
}

/// A guard of the far end's interface.
fn guard(lab: &Lab, wire: &Wire, arguments: &[&str]) -> Running {
    let rules = lab.path("own.rules");
    fs::write(&rules, format!("allow udp dport {OURS}\n")).expect("a rule file");
    let rules = rules.display().to_string();
    let all = [
        &["guard", "--dev", "far0", "--json", "--rules", &rules][..],
        arguments,
    ]
    .concat();
    let mut running = lab.dropless(&all).within(&wire.far).spawn();
    running.wait_for("guarding far0", STARTING);
    running
}

/// Sends floods until the guard has said that it saw one, and then another; how many that were. Whoever is not let onto a core
/// while one is there sees the next.
pub fn floods(guard: &Running, send: impl Fn()) -> u64 {
    for sent in 1..=5 {
        let was_seen = guard.stderr().contains(RULE);
        send();
        if was_seen {
            return sent;
        }
    }
    panic!("it saw no flood: {guard:?}")
}

/// Sends floods over the wire; what came of it, how many legitimate packets the far kernel got, and of how many floods.
fn flooded(lab: &Lab, arguments: &[&str]) -> (Value, u64, u64) {
    let wire = Wire::to_kernel(lab);
    let count = "table inet c { counter ours { }\n chain c { type filter hook prerouting priority -300; udp dport 4433 counter name ours\n }\n}";
    let path = lab.path("count.nft");
    fs::write(&path, count).expect("a ruleset");
    wire.far.run("nft", &["-f", &path.display().to_string()]);
    let file = PLAIN.write(lab, "flood.pcap", &packets(wire.far.mac_bytes("far0"), 20_000));
    let running = guard(
        lab,
        &wire,
        &[&["--threshold", "amplification=2kpps"][..], arguments].concat(),
    );
    let floods = floods(&running, || drop(replay(lab, &wire, &file, &[])));
    running.signal(Signal::SIGINT);
    let ended = running.wait(Duration::from_secs(30));
    assert_eq!(ended.code, Some(0), "{ended}");
    let listed = wire
        .far
        .run("nft", &["-j", "list", "counter", "inet", "c", "ours"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let objects = listed["nftables"].as_array().expect("a list");
    let got = objects
        .iter()
        .find_map(|object| object["counter"]["packets"].as_u64());
    (ended.json(), got.expect("a count"), floods)
}

#[test]
fn over_a_wire_the_flood_ends_and_every_legitimate_packet_arrives() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("nft")]) else {
        return;
    };
    let (told, got, floods) = flooded(&lab, &[]);
    let judged = &told["judged"];
    let rules: Vec<&str> = told["blocks"]
        .as_array()
        .expect("rules")
        .iter()
        .filter_map(|block| block["rule"].as_str())
        .collect();
    assert_eq!(rules, [RULE], "{told}");
    assert!(
        told["blocks"][0]["stopped_after_s"]
            .as_f64()
            .is_some_and(|after| after > 0.0),
        "{told}"
    );
    let (denied, ours) = (judged["denied"].as_u64().expect("a count"), met(judged, "dport"));
    assert!(denied > 0 && denied == met(judged, RULE), "{told}");
    // The rule says what the kernel has counted, and not what samples stand for.
    assert_eq!(
        (&told["blocks"][0]["packets"], &told["blocks"][0]["counted"]),
        (&denied.into(), &true.into()),
        "{told}"
    );
    let sent = LEGITIMATE * floods;
    assert_eq!((ours, got), (sent, sent), "{told}");
}

#[test]
fn a_dry_run_over_a_wire_blocks_nothing() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("nft")]) else {
        return;
    };
    let (told, got, floods) = flooded(&lab, &["--dry-run"]);
    assert_eq!(told["blocks"][0]["rule"], RULE, "{told}");
    assert_eq!(
        (&told["judged"]["denied"], &told["judged"]["allowed"], got),
        (
            &0.into(),
            &((20_000 + LEGITIMATE) * floods).into(),
            LEGITIMATE * floods
        ),
        "{told}"
    );
}

/// Samples have the first 256 bytes of a packet; the program has all of it, and a rule by what is not there meets nothing.
#[test]
fn headers_that_are_longer_than_a_sample_make_no_rule() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let mut frame = wire.far.mac_bytes("far0").to_vec();
    frame.extend([2, 0, 0, 0, 0, 1, 0x86, 0xDD, 0x60, 0, 0, 0, 1, 8, 60, 64]);
    frame.extend([1; 16]);
    frame.extend([2; 16]);
    // Destination options of 256 bytes, all of them padding, and UDP.
    frame.extend([17, 31]);
    frame.resize(54 + 256, 0);
    frame.extend([0, 123, 0, 7, 0, 8, 0, 0]);
    let made = |number: u64| Made::whole(1_700_000_000_000_000_000 + number * MS / 20, frame.clone());
    let file = PLAIN.write(&lab, "long.pcap", &(0..40_000).map(made).collect::<Vec<_>>());
    let running = guard(&lab, &wire, &["--threshold", "malformed=2kpps"]);
    replay(&lab, &wire, &file, &[]);
    running.signal(Signal::SIGINT);
    let ended = running.wait(Duration::from_secs(30));
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(ended.json()["blocks"], Value::Array(Vec::new()), "{ended}");
    assert!(ended.number("not_judged") > 1000, "{ended}");
    assert_eq!(ended.json()["judged"]["allowed"], 40_000, "{ended}");
}

/// Whoever waits for its line finds the guard, with its rules, in `top`.
#[test]
fn a_guard_is_told_before_it_says_that_it_guards() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let live = lab.path("live");
    let live = live.to_str().expect("a path");
    let guard = lab.dropless(&["guard", "--dev", "far0", "--json"]);
    let mut running = guard.within(&wire.far).env(LIVE_VARIABLE, live).spawn();
    running.wait_for("guarding far0", STARTING);
    let told = lab.dropless(&["top", "--json"]).env(LIVE_VARIABLE, live).run();
    assert_eq!(
        (&told.json()["phase"], told.json()["rules"]["generation"].is_u64()),
        (&"filtering".into(), true),
        "{told}"
    );
    running.signal(Signal::SIGINT);
    running.wait(Duration::from_secs(10));
}

/// What it has learned is kept meanwhile, at once where sources are known, and whoever comes after it goes on from there.
#[test]
fn a_killed_guard_leaves_what_is_usual_to_the_next() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let kept = lab.path("kept.json");
    let known = r#"{"version":1,"destinations":[],"sources":[{"prefix":"10.0.0.1","learned_ns":60000000000,"classes":[]}]}"#;
    fs::write(&kept, known).expect("a baseline");
    let arguments = ["--baseline", kept.to_str().expect("a path")];
    let running = guard(&lab, &wire, &arguments);
    let text = || fs::read_to_string(&kept).expect("text");
    assert!(until(STARTING, || text() != known), "{running:?}");
    running.signal(Signal::SIGKILL);
    running.wait(Duration::from_secs(10));
    assert!(text().contains("10.0.0.1"), "{}", text());
    let next = guard(&lab, &wire, &arguments);
    next.signal(Signal::SIGINT);
    let ended = next.wait(Duration::from_secs(10));
    assert_eq!(ended.code, Some(0), "{ended}");
    // It judges sources from its start, since it knows some.
    assert!(!has_note(&ended.json(), "sources_not_judged"), "{ended}");
}

#[test]
fn a_killed_guard_leaves_nothing_on_its_interface() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let running = guard(&lab, &wire, &[]);
    let has_program = || wire.far.ip(&["link", "show", "far0"]).contains("xdp");
    assert!(has_program());
    running.signal(Signal::SIGKILL);
    running.wait(Duration::from_secs(10));
    assert!(
        until(Duration::from_secs(10), || !has_program()),
        "the program is still there"
    );
}
