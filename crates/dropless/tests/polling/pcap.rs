//! Capture files: tshark reads every frame that `send` and `reflect` write as good, and finds exactly what was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::support::wire::{assert_conserved, assert_invalid};
use crate::support::{Finished, Lab, Need, require};

const NEEDS: [Need; 1] = [Need::Tool("tshark")];
const FIELDS: [&str; 13] = [
    "frame.len",
    "ip.checksum.status",
    "udp.checksum.status",
    "_ws.malformed",
    "eth.src",
    "eth.dst",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "udp.srcport",
    "udp.dstport",
    "vlan.id",
    "ieee8021ad.id",
];

/// What tshark says of one frame: its fields by name.
type Frame = BTreeMap<&'static str, String>;

/// Lets tshark read a capture; every checksum that a frame has must be good.
fn frames(lab: &Lab, name: &str) -> Vec<Frame> {
    let mut tshark = Command::new("tshark");
    tshark
        .args(["-n", "-r"])
        .arg(lab.path(name))
        .args(["-T", "fields", "-E", "separator=|"]);
    tshark.args(["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]);
    // A payload that happens to look like some application's is not that, and not malformed.
    tshark.args(["-d", "udp.port==1-65535,data"]);
    for field in FIELDS {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().expect("running tshark");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("fields are text");
    text.lines().map(frame).collect()
}

fn frame(line: &str) -> Frame {
    let frame: Frame = FIELDS
        .into_iter()
        .zip(line.split('|').map(str::to_owned))
        .collect();
    assert_eq!(frame.len(), FIELDS.len(), "{line}");
    assert_eq!(frame["_ws.malformed"], "", "{line}");
    let good = |status: &str| matches!(status, "1" | "Good");
    assert!(good(&frame["udp.checksum.status"]), "UDP checksum: {line}");
    assert!(
        frame["ip.src"].is_empty() || good(&frame["ip.checksum.status"]),
        "IPv4 checksum: {line}"
    );
    frame
}

/// `send` into out.pcap with these arguments, which must go well.
fn sent(lab: &Lab, arguments: &[&str]) -> Vec<Frame> {
    let fixed = [
        "send",
        "--json",
        "--port=pcap:-,out.pcap",
        "--tx-only",
        "--rate=max",
    ];
    let run = lab.dropless(&[&fixed[..], arguments].concat()).run();
    assert_eq!(run.code, Some(0), "{run}");
    assert_conserved(&run);
    let frames = frames(lab, "out.pcap");
    assert_eq!(run.number("sent"), frames.len() as u64, "{run}");
    let lengths = lengths(&frames).into_iter();
    let bits: u64 = lengths.map(|(len, count)| (len + 4) * 8 * count as u64).sum();
    let rate = |name: &str| run.json()[name].as_f64().expect("a rate");
    let told = rate("rate_tx_bps_l2") / rate("rate_tx_pps") * frames.len() as f64;
    assert!((told - bits as f64).abs() < 1.0, "{bits} bits: {run}");
    frames
}

/// How many frames there are of each length, which is the size without the FCS.
fn lengths(frames: &[Frame]) -> BTreeMap<u64, usize> {
    let mut lengths = BTreeMap::new();
    for frame in frames {
        *lengths
            .entry(frame["frame.len"].parse().expect("a length"))
            .or_default() += 1;
    }
    lengths
}

fn distinct(frames: &[Frame], fields: &[&str]) -> usize {
    let tuples = frames
        .iter()
        .map(|frame| fields.iter().map(|field| &frame[*field]).collect::<Vec<_>>());
    tuples.collect::<BTreeSet<_>>().len()
}

fn all(frames: &[Frame], field: &str, value: &str) -> bool {
    frames.iter().all(|frame| frame[field] == value)
}

#[test]
fn ipv4_is_as_asked() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(
        &lab,
        &[
            "--count",
            "1000",
            "--to",
            "10.1.2.3:4000",
            "--from",
            "10.1.2.4:5000",
        ],
    );
    assert_eq!(lengths(&frames), BTreeMap::from([(60, 1000)]));
    assert!(all(&frames, "ip.src", "10.1.2.4") && all(&frames, "ip.dst", "10.1.2.3"));
    assert!(all(&frames, "udp.srcport", "5000") && all(&frames, "udp.dstport", "4000"));
}

#[test]
fn ipv6_is_as_asked() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(&lab, &["--count", "1000", "--to", "2001:db8::2"]);
    assert_eq!(lengths(&frames), BTreeMap::from([(80, 1000)]));
    assert!(all(&frames, "ipv6.src", "2001:2::1"));
}

#[test]
fn a_vlan_tag_is_as_asked() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(&lab, &["--count", "500", "--vlan", "5"]);
    assert_eq!(lengths(&frames), BTreeMap::from([(64, 500)]));
    assert!(all(&frames, "vlan.id", "5") && all(&frames, "ieee8021ad.id", ""));
}

#[test]
fn two_vlan_tags_are_as_asked() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(&lab, &["--count", "500", "--vlan", "5,6", "--to", "2001:db8::2"]);
    assert_eq!(lengths(&frames), BTreeMap::from([(88, 500)]));
    assert!(all(&frames, "ieee8021ad.id", "5") && all(&frames, "vlan.id", "6"));
}

#[test]
fn every_size_is_there_once() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(&lab, &["--count", "1455", "--size", "64-1518"]);
    assert_eq!(lengths(&frames), (60..=1514).map(|length| (length, 1)).collect());
}

#[test]
fn every_size_of_tagged_ipv6_is_there_once() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(
        &lab,
        &[
            "--count",
            "1427",
            "--size",
            "92-1518",
            "--vlan",
            "7,8",
            "--to",
            "2001:db8::2",
        ],
    );
    assert_eq!(lengths(&frames), (88..=1514).map(|length| (length, 1)).collect());
}

#[test]
fn listed_sizes_have_equal_shares() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(&lab, &["--count", "900", "--size", "64,512,1518"]);
    assert_eq!(
        lengths(&frames),
        BTreeMap::from([(60, 300), (508, 300), (1514, 300)])
    );
}

#[test]
fn imix_is_seven_four_one() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(&lab, &["--count", "1200", "--size", "imix"]);
    assert_eq!(
        lengths(&frames),
        BTreeMap::from([(60, 700), (590, 400), (1514, 100)])
    );
}

#[test]
fn one_flow_is_one_flow() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(&lab, &["--count", "1000", "--flows", "1"]);
    assert_eq!(
        distinct(&frames, &["ip.src", "ip.dst", "udp.srcport", "udp.dstport"]),
        1
    );
}

#[test]
fn a_hundred_thousand_flows_are_all_different() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(&lab, &["--count", "100k", "--flows", "100k"]);
    assert_eq!(frames.len(), 100_000);
    assert_eq!(
        distinct(&frames, &["ip.src", "ip.dst", "udp.srcport", "udp.dstport"]),
        100_000
    );
}

#[test]
fn a_range_of_ports_is_used_in_full() {
    let Some(lab) = require(&NEEDS) else { return };
    let frames = sent(
        &lab,
        &["--count", "1000", "--flows", "500", "--to", "10.1.2.3:4000-4009"],
    );
    assert_eq!(distinct(&frames, &["udp.dstport"]), 10);
    assert_eq!(
        distinct(&frames, &["ip.src", "ip.dst", "udp.srcport", "udp.dstport"]),
        500
    );
}

#[test]
fn streams_have_their_own_fields() {
    let Some(lab) = require(&NEEDS) else { return };
    let streams = [
        "--stream",
        "name=a,size=128,to=10.0.0.2:1000",
        "--stream",
        "name=b,size=256,to=[2001:db8::2]:2000,vlan=9",
    ];
    let frames = sent(&lab, &[&streams[..], &["--count", "1000"]].concat());
    assert_eq!(lengths(&frames), BTreeMap::from([(124, 500), (252, 500)]));
    for frame in &frames {
        let second = frame["frame.len"] == "252";
        assert_eq!(frame["udp.dstport"], if second { "2000" } else { "1000" });
        assert_eq!(frame["vlan.id"], if second { "9" } else { "" });
    }
}

fn reflected(lab: &Lab, arguments: &[&str]) -> Finished {
    let fixed = ["reflect", "--json", "--port=pcap:out.pcap,back.pcap"];
    lab.dropless(&[&fixed[..], arguments].concat()).run()
}

#[test]
fn a_reflected_capture_has_its_addresses_swapped() {
    let Some(lab) = require(&NEEDS) else { return };
    for to in ["198.18.0.2", "2001:2::2"] {
        let there = sent(
            &lab,
            &[
                "--count", "1000", "--flows", "100", "--size", "256,1024", "--to", to,
            ],
        );
        let run = reflected(&lab, &[]);
        assert_eq!(run.code, Some(0), "{run}");
        assert_eq!(
            (run.number("received"), run.number("returned")),
            (1000, 1000),
            "{run}"
        );
        let back = frames(&lab, "back.pcap");
        assert_eq!(lengths(&there), lengths(&back));
        for (there, back) in there.iter().zip(&back) {
            for (one, other) in [
                ("eth.src", "eth.dst"),
                ("ip.src", "ip.dst"),
                ("udp.srcport", "udp.dstport"),
            ] {
                assert_eq!(
                    (&there[one], &there[other]),
                    (&back[other], &back[one]),
                    "{one} and {other}"
                );
            }
        }
    }
}

#[test]
fn only_ours_lets_nothing_else_back() {
    let Some(lab) = require(&NEEDS) else { return };
    let _ = sent(&lab, &["--count", "300"]);
    let run = reflected(&lab, &["--only-ours"]);
    assert_eq!(run.number("returned"), 300, "{run}");
}

/// Probes of another run, recorded, are not taken for this run's.
#[test]
fn a_recorded_run_is_not_received() {
    let Some(lab) = require(&NEEDS) else { return };
    // Of sizes fewer than there are: rates in bits are those of what was sent.
    let _ = sent(&lab, &["--count", "500", "--size", "64-1518"]);
    let arguments = [
        "send",
        "--json",
        "--port=pcap:out.pcap,again.pcap",
        "--count=500",
        "--rate=10kpps",
        "--drain=200ms",
    ];
    let run = lab.dropless(&arguments).run();
    assert_invalid(&run, "nothing was received");
    assert_conserved(&run);
    assert_eq!((run.number("received"), run.number("duplicate")), (0, 0), "{run}");
    assert_eq!(run.json()["rate_asked_pps"], 10_000.0, "{run}");
    assert_eq!(frames(&lab, "again.pcap").len(), 500);
}
