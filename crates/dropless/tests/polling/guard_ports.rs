//! `dropless guard --port --port`: what goes from port to port is watched and judged in the poll loop, and every frame is
//! accounted for all the same.

use std::fs;
use std::time::Duration;

use measure::units::format_count;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::attach::{assert_balanced, attach};
use crate::forward::{PINGS, Path, assert_adds_up};
use crate::guard::{LEGITIMATE, OURS, RULE, floods, met, packets, udp};
use crate::support::pcap_file::{Made, PLAIN};
use crate::support::wire::interrupted;
use crate::support::{Finished, Lab, Need, Running, require, until};

const LIMIT: Duration = Duration::from_secs(60);
const NEEDS: [Need; 2] = [Need::Namespaces, Need::Tool("nft")];
/// Where what looks like the flood goes once that is over.
const LATER: u16 = 7777;
/// How much of it.
const STRAGGLERS: u64 = 20;

/// A guard between two kernels, of which the right one counts what it gets.
struct Guarded {
    path: Path,
    mac: [u8; 6],
}

impl Guarded {
    fn new(lab: &Lab) -> Self {
        let path = Path::new(lab);
        let counts = format!(
            "table inet c {{ counter ours {{ }}\n counter later {{ }}\n chain c {{ type filter hook prerouting priority -300;\n\
             udp dport {OURS} counter name ours\n udp dport {LATER} counter name later\n }}\n}}"
        );
        let file = lab.path("count.nft");
        fs::write(&file, counts).expect("a ruleset");
        path.right.run("nft", &["-f", &file.display().to_string()]);
        let mac = path.right.mac_bytes("r0");
        own_rules(lab, "");
        Self { path, mac }
    }

    fn start(&self, lab: &Lab, kind: &str, arguments: &[&str]) -> Running {
        let given = ["--rules", "own.rules", "--threshold", "amplification=2kpps"];
        let mut running = self
            .path
            .between(lab, ("guard", kind), &[&given[..], arguments].concat());
        running.wait_for("guarding ", LIMIT);
        running
    }

    /// The left end sends these packets.
    fn send(&self, lab: &Lab, packets: &[Made]) {
        let file = PLAIN.write(lab, "sent.pcap", packets);
        let all = ["replay", &file, "--json", "--port", "packet:l0"];
        let sent = lab.dropless(&all).within(&self.path.left).run();
        assert_eq!(sent.number("ports.0.tx_packets"), packets.len() as u64, "{sent}");
    }

    fn floods(&self, lab: &Lab, guard: &Running) -> u64 {
        let packets = packets(self.mac, 20_000);
        floods(guard, || self.send(lab, &packets))
    }

    /// What a counter of the right kernel says.
    fn counted(&self, name: &str) -> u64 {
        let arguments = ["-j", "list", "counter", "inet", "c", name];
        let listed = self.path.right.run("nft", &arguments);
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let objects = listed["nftables"].as_array().expect("a list");
        let found = objects
            .iter()
            .find_map(|object| object["counter"]["packets"].as_u64());
        found.expect("a count")
    }
}

/// The user's own rules.
fn own_rules(lab: &Lab, more: &str) {
    fs::write(lab.path("own.rules"), format!("allow udp dport {OURS}\n{more}")).expect("a rule file");
}

/// Forwarding adds up to the packet, the drivers confirm it, and what the guard says was judged is what forwarding judged; so
/// many frames were lost on the way, and counted.
fn assert_sound(run: &Finished) -> u64 {
    let json = run.json();
    let forward = &json["forward"];
    assert_adds_up(forward, run);
    assert_eq!(
        (&json["command"], &json["verdict"]),
        (&"guard".into(), &"valid".into()),
        "{run}"
    );
    assert_eq!(json["judged"], forward["rules"]["judged"], "{run}");
    let places = forward["ledger"]["places"].as_array().expect("places");
    let lost = places.iter().filter(|place| place["place"] != "denied");
    lost.filter_map(|place| place["charged"].as_u64()).sum()
}

fn rules(run: &Finished) -> Vec<String> {
    let json = run.json();
    let blocks = json["blocks"].as_array().expect("rules");
    let texts = blocks.iter().filter_map(|block| block["rule"].as_str());
    texts.map(ToOwned::to_owned).collect()
}

/// The events of the log, with the rule of each.
fn log(lab: &Lab, run: &Finished) -> Vec<Value> {
    let directory = run.json()["run"].as_str().expect("a directory").to_owned();
    let log = fs::read_to_string(lab.path(&format!("{directory}/guard.jsonl"))).expect("the log");
    let lines = log.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.collect()
}

fn the_flood_ends_and_legitimate_packets_arrive(kind: &str) {
    let Some(lab) = require(&NEEDS) else { return };
    let guarded = Guarded::new(&lab);
    let running = guarded.start(&lab, kind, &["--expire", "30s"]);
    let floods = guarded.floods(&lab, &running);
    let run = interrupted(running);
    let (lost, json) = (assert_sound(&run), run.json());
    assert_eq!(rules(&run), [RULE], "{run}");
    let judged = &json["judged"];
    let denied = judged["denied"].as_u64().expect("a count");
    assert!(denied > 0 && denied == met(judged, RULE), "{run}");
    // How long it takes is the machine's to say; that it is measured, ours.
    let after = json["blocks"][0]["stopped_after_s"].as_f64();
    assert!(after.is_some_and(|after| after > 0.0), "{run}");
    // All that were sent passed the rules, or were lost at a place that says so; nothing else was lost for them.
    let (sent, passed, got) = (
        LEGITIMATE * floods,
        met(judged, "dport 4433"),
        guarded.counted("ours"),
    );
    assert!(
        passed <= sent && got <= passed,
        "{got} of {passed} of {sent}: {run}"
    );
    assert!(got + lost >= sent, "{got} of {sent}, {lost} lost: {run}");
    assert!(run.number("samples") > 0, "{run}");
}

#[test]
fn over_af_packet_the_flood_ends_and_legitimate_packets_arrive() {
    the_flood_ends_and_legitimate_packets_arrive("packet");
}

#[test]
fn over_af_xdp_the_flood_ends_and_legitimate_packets_arrive() {
    the_flood_ends_and_legitimate_packets_arrive("xdp");
}

#[test]
fn a_dry_run_between_ports_blocks_nothing() {
    let Some(lab) = require(&NEEDS) else { return };
    let guarded = Guarded::new(&lab);
    let running = guarded.start(&lab, "packet", &["--dry-run"]);
    // It can be looked into, as whatever forwards.
    let tap = attach(&lab, &running, &[]);
    guarded.floods(&lab, &running);
    let run = interrupted(running);
    let seen = tap.wait(LIMIT);
    assert_balanced(&seen);
    assert!(seen.number("captured") > 0, "{seen}");
    assert_sound(&run);
    assert_eq!(rules(&run), [RULE], "{run}");
    assert_eq!(run.number("judged.denied"), 0, "{run}");
    assert_eq!(run.json()["blocks"][0]["stopped_after_s"], Value::Null, "{run}");
}

#[test]
fn a_rule_between_ports_expires_and_own_rules_are_read_again() {
    let Some(lab) = require(&NEEDS) else { return };
    let guarded = Guarded::new(&lab);
    let mut running = guarded.start(&lab, "packet", &["--expire", "2s"]);
    guarded.floods(&lab, &running);
    running.wait_for("no longer blocked", LIMIT);
    // What looks like the flood passes again.
    let stragglers: Vec<Made> = (0..STRAGGLERS)
        .map(|number| {
            let at_ns = 1_700_000_000_000_000_000 + number * 10_000_000;
            Made::whole(at_ns, udp(guarded.mac, [10, 9, 0, 1], (123, LATER)))
        })
        .collect();
    // The workers take other rules over before this is said, or soon after.
    let passes = || {
        let before = guarded.counted("later");
        guarded.send(&lab, &stragglers);
        guarded.counted("later") == before + STRAGGLERS
    };
    assert!(until(LIMIT, passes), "{}", running.stderr());
    // The user's own rules come behind, and when they are read again, in the place of those before.
    own_rules(&lab, &format!("deny udp dport {LATER}\n"));
    running.signal(Signal::SIGHUP);
    running.wait_for("in force", LIMIT);
    let before = guarded.counted("later");
    guarded.send(&lab, &stragglers);
    assert_eq!(guarded.counted("later"), before, "{}", running.stderr());
    let run = interrupted(running);
    assert_sound(&run);
    let judged = &run.json()["judged"];
    assert_eq!(met(judged, "deny udp dport 7777"), STRAGGLERS, "{run}");
    let log = log(&lab, &run);
    // Who was kept from its core for long may have seen an end, and another flood.
    assert!(
        log.len() >= 2 && log.len() % 2 == 0,
        "{} events: {run}",
        log.len()
    );
    let [blocked, expired] = [&log[0], &log[1]];
    assert_eq!(
        (&blocked["event"], &blocked["rule"]),
        (&"blocked".into(), &RULE.into())
    );
    assert_eq!(
        (&expired["event"], &expired["rule"]),
        (&"expired".into(), &RULE.into())
    );
    assert!(
        expired["lasted_ns"]
            .as_u64()
            .is_some_and(|lasted| lasted >= 2_000_000_000),
        "{expired}"
    );
    assert!(run.json()["blocks"][0]["gone_s"].as_f64().is_some(), "{run}");
    // Log, terminal and result have one number, which the workers counted.
    let packets = expired["packets"].as_u64().expect("a count");
    assert_eq!(run.json()["blocks"][0]["packets"], packets, "{run}");
    assert_eq!(expired["counted"], true, "{run}");
    let said = format!("it met {} packets", format_count(packets));
    assert!(run.stderr.contains(&said), "{said}: {run}");
    if log.len() == 2 {
        assert_eq!(met(judged, RULE), packets, "{run}");
    }
    assert_eq!(run.json()["interrupted"], true, "{run}");
}

#[test]
fn a_killed_guard_leaves_its_ports_to_the_next() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping"), Need::Tool("nft")]) else {
        return;
    };
    let guarded = Guarded::new(&lab);
    let running = guarded.start(&lab, "xdp", &[]);
    guarded.path.ping();
    running.signal(Signal::SIGKILL);
    running.wait(LIMIT);
    let running = guarded.start(&lab, "xdp", &["--expect", "loss==0", "--expect", "received<1"]);
    guarded.path.ping();
    let run = interrupted(running);
    let json = run.json();
    assert_eq!(json["verdict"], "valid", "{run}");
    assert!(run.number("forward.received") >= 2 * PINGS, "{run}");
    // Conditions decide, as in forwarding: the second one does not hold.
    assert_eq!(run.code, Some(1), "{run}");
    let met: Vec<bool> = json["forward"]["expectations"]
        .as_array()
        .expect("expectations")
        .iter()
        .filter_map(|expectation| expectation["met"].as_bool())
        .collect();
    assert_eq!(met, [true, false], "{run}");
}

#[test]
fn what_does_not_go_with_ports_is_refused_in_one_line() {
    let Some(lab) = require(&[]) else { return };
    let ports = ["--port", "null:a", "--port", "null:b"];
    for (arguments, told) in [
        (
            &[&ports[..], &["--mode", "generic"]].concat()[..],
            "go with --dev",
        ),
        (&[&ports[..], &["--groups", "5"]].concat(), "--groups"),
        (&[&ports[..], &["--dev", "lo"]].concat(), "--dev"),
        (&ports[..2], "only null:a is"),
        (&["--dev", "lo", "--mode", "mac"], "goes with --port"),
        (&["--dev", "lo", "--queues", "2"], "--queues"),
        (&["--replay", "x.pcap", "--flows", "2"], "--flows"),
        (&["--replay", "x.pcap", "--force"], "--force"),
        (&["--replay", "x.pcap", "--verbose"], "--verbose"),
        (&["--dev", "lo", "--no-doctor"], "--no-doctor"),
        (&["--replay", "x.pcap", "--groups", "5"], "--groups"),
        (&["--replay", "x.pcap", "--mode", "native"], "--mode"),
        (&["--replay", "x.pcap", "--duration", "1s"], "--duration"),
        (&["--replay", "x.pcap", "--metrics", ":0"], "--metrics"),
    ] {
        let run = lab.dropless(&[&["guard"][..], arguments].concat()).run();
        assert_eq!(
            (run.code, run.stderr.trim_end().lines().count()),
            (Some(2), 1),
            "{run}"
        );
        assert!(run.stderr.contains(told), "{run}");
    }
}
