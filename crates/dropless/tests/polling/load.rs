//! What `send` puts on the wire is what was asked: streams, sizes, headers, verification, and a plan that replays.

use std::path::PathBuf;

use crate::support::wire::{assert_all_back, has_note};
use crate::support::{Finished, Lab, require};

/// One core and room to catch up: every packet is sent also on a busy machine.
const CALM: &[&str] = &["--backlog", "1000000", "--cores", "0"];

fn send(lab: &Lab, arguments: &[&[&str]]) -> Finished {
    let common: &[&str] = &["send", "--json", "--quiet", "--seed", "7"];
    lab.dropless(&[common, &arguments.concat()].concat()).run()
}

/// Everything came back, once, and nothing is open.
fn assert_clean(run: &Finished, sent: u64) {
    assert_all_back(run);
    assert_eq!(
        (run.number("sent"), run.number("received")),
        (sent, sent),
        "{run}"
    );
    let none = [
        "lost",
        "duplicate",
        "corrupt",
        "late",
        "unexplained",
        "pool.leaked",
    ];
    assert_eq!(none.map(|name| run.number(name)), [0; 6], "{run}");
    assert_eq!(run.number("ledger.arrived.frames"), sent, "{run}");
}

fn streams(run: &Finished) -> Vec<(String, u64, u64)> {
    let json = run.json();
    let streams = json["streams"].as_array().expect("streams").iter();
    let one = |stream: &serde_json::Value| {
        let count = |name: &str| stream[name].as_u64().expect("a count");
        (
            stream["name"].as_str().expect("a name").to_owned(),
            count("sent"),
            count("received"),
        )
    };
    streams.map(one).collect()
}

/// Mean frame size with FCS, as the two rates of the report give it.
fn mean_size(run: &Finished) -> f64 {
    let rate = |name: &str| run.json()[name].as_f64().expect("a rate");
    rate("rate_tx_bps_l2") / rate("rate_tx_pps") / 8.0
}

/// One pause, before them or between them, is all that such a run can have: no rate was kept too low.
#[test]
fn one_packet_or_two_are_a_valid_run_too() {
    let Some(lab) = require(&[]) else { return };
    for (count, sent) in [("1", 1), ("2", 2)] {
        let run = send(&lab, &[&["--count", count]]);
        assert_clean(&run, sent);
        assert_eq!(run.code, Some(0), "{run}");
    }
}

#[test]
fn streams_share_exactly_by_their_rates() {
    let Some(lab) = require(&[]) else { return };
    let three = [
        "--stream",
        "name=a,rate=30kpps",
        "--stream",
        "name=b,rate=10kpps,size=512",
        "--stream",
        "name=c,rate=20kpps",
    ];
    let run = send(&lab, &[&three, &["--count", "18k"], CALM]);
    assert_clean(&run, 18_000);
    assert!(!has_note(&run.json(), "stream_rates"), "{run}");
    let wanted = [("a", 9000), ("b", 3000), ("c", 6000)].map(|(name, count)| (name.to_owned(), count, count));
    assert_eq!(streams(&run), wanted, "{run}");
    assert!(
        (run.json()["rate_asked_pps"].as_f64().expect("a rate") - 60_000.0).abs() < 1.0,
        "{run}"
    );
}

#[test]
fn a_hundred_streams_without_rates_share_evenly() {
    let Some(lab) = require(&[]) else { return };
    let names: Vec<String> = (0..100).map(|index| format!("name=s{index},flows=3")).collect();
    let flags: Vec<&str> = names.iter().flat_map(|name| ["--stream", name]).collect();
    let run = send(&lab, &[&flags, &["--count", "50k"]]);
    assert_clean(&run, 50_000);
    assert!(
        streams(&run)
            .iter()
            .all(|(_, sent, received)| (*sent, *received) == (500, 500)),
        "{run}"
    );
    assert_eq!(run.number("streams.99.flows_sent"), 3, "{run}");
}

#[test]
fn sizes_in_a_list_go_out_in_equal_parts() {
    let Some(lab) = require(&[]) else { return };
    let run = send(
        &lab,
        &[&["--size", "64,512,1518", "--count", "30k", "--verify", "payload"]],
    );
    assert_clean(&run, 30_000);
    assert!((mean_size(&run) - 698.0).abs() < 0.01, "{}", mean_size(&run));
}

#[test]
fn imix_and_a_range_of_every_size_come_back_whole() {
    let Some(lab) = require(&[]) else { return };
    for (size, mean) in [
        ("imix", (7.0 * 64.0 + 4.0 * 594.0 + 1518.0) / 12.0),
        ("64-1518", 791.0),
    ] {
        let run = send(
            &lab,
            &[&["--size", size, "--count", "29100", "--verify", "payload"]],
        );
        assert_clean(&run, 29_100);
        assert!(
            (mean_size(&run) - mean).abs() < 0.01,
            "{size}: {}",
            mean_size(&run)
        );
    }
}

#[test]
fn every_level_of_verification_takes_sound_packets() {
    let Some(lab) = require(&[]) else { return };
    for verify in ["none", "checksum", "payload"] {
        assert_clean(
            &send(&lab, &[&["--verify", verify, "--size", "200", "--count", "50k"]]),
            50_000,
        );
    }
}

#[test]
fn payload_verification_finds_what_is_damaged() {
    let Some(lab) = require(&[]) else { return };
    let faults = &[
        "--verify",
        "payload",
        "--size",
        "1518",
        "--fault",
        "corrupt=1%",
        "--count",
        "20k",
    ];
    let run = send(&lab, &[faults]);
    assert!(run.number("corrupt") > 0, "{run}");
    assert_eq!(
        run.number("corrupt"),
        run.number("ledger.raw.fault_corrupt"),
        "{run}"
    );
    assert_eq!(run.number("lost"), run.number("corrupt"), "{run}");
}

#[test]
fn tagged_and_ipv6_probes_come_back_whole() {
    let Some(lab) = require(&[]) else { return };
    for headers in [
        &["--vlan", "5"][..],
        &["--vlan", "100,200"],
        &["--to", "2001:2::2"],
        &["--to", "[2001:2::2]:9", "--vlan", "100,200"],
        &[
            "--to",
            "10.1.2.3:7-9",
            "--dscp",
            "46",
            "--ttl",
            "3",
            "--flows",
            "60k",
        ],
    ] {
        let run = send(&lab, &[headers, &["--count", "20k", "--verify", "payload"]]);
        assert_clean(&run, 20_000);
    }
}

#[test]
fn faults_are_exact_behind_tags_and_over_ipv6() {
    let Some(lab) = require(&[]) else { return };
    let faults = "drop=1%,duplicate=1%,reorder=1%,corrupt=1%";
    for headers in [&["--vlan", "100,200"][..], &["--to", "2001:2::2"]] {
        let run = send(&lab, &[headers, &["--count", "50k", "--fault", faults]]);
        let raw = |name: &str| run.number(&format!("ledger.raw.fault_{name}"));
        assert!(raw("drop") > 0 && raw("corrupt") > 0, "{run}");
        assert_eq!(run.number("lost"), raw("drop") + raw("corrupt"), "{run}");
        assert_eq!(run.number("duplicate"), raw("duplicate"), "{run}");
        assert_eq!(run.number("reordered"), raw("reorder"), "{run}");
        assert_eq!(run.number("unexplained"), 0, "{run}");
    }
}

#[test]
fn a_plan_replays_with_the_same_streams_and_the_same_faults() {
    let Some(lab) = require(&[]) else { return };
    // No cycle of packets that is short enough has the last one's share.
    let three = [
        "--stream",
        "name=voice,rate=10kpps,size=128,dscp=46",
        "--stream",
        "name=bulk,rate=20kpps,size=64,512",
        "--stream",
        "name=rare,rate=50.3pps",
    ];
    let first = send(
        &lab,
        &[
            &three,
            &["--count", "12k", "--fault", "drop=1%", "--drain", "500ms"],
            CALM,
        ],
    );
    let plan = PathBuf::from(first.json()["run"].as_str().expect("the run directory")).join("plan.json");
    let plan = plan.to_str().expect("a path of text");
    let second = lab.dropless(&["send", "--json", "--quiet", "--plan", plan]).run();
    assert_eq!(streams(&first), streams(&second), "{first}\n{second}");
    assert!(has_note(&first.json(), "stream_rates"), "{first}");
    for same in ["sent", "received", "lost", "ledger.raw.fault_drop"] {
        assert_eq!(
            first.number(same),
            second.number(same),
            "{same}: {first}\n{second}"
        );
    }
    let read = |run: &Finished| {
        let directory = run.json()["run"]
            .as_str()
            .map(PathBuf::from)
            .expect("the run directory");
        std::fs::read_to_string(lab.directory().join(directory).join("plan.json")).expect("plan.json")
    };
    assert_eq!(read(&first), read(&second), "a replayed plan is the same plan");
}
