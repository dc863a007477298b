//! `dropless forward`: kernels talk through it, its rules count every packet once, and others come into force without a seam.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::attach::{assert_balanced, attach};
use crate::support::served::{get, samples, serve};
use crate::support::wire::{assert_balance, assert_invalid, assert_refused, interrupted};
use crate::support::{Finished, Lab, Namespace, Need, Running, require, until};

pub const LIMIT: Duration = Duration::from_secs(60);
pub const PINGS: u64 = 20;
pub const DATAGRAMS: u64 = 7;
/// How often rules are exchanged under load.
const SWAPS: usize = 40;

/// Two kernels, each at the end of a wire whose other end is in the namespace of the forwarder.
pub struct Path {
    pub left: Namespace,
    pub middle: Namespace,
    pub right: Namespace,
}

impl Path {
    pub fn new(lab: &Lab) -> Self {
        let [left, middle, right] = ["left", "middle", "right"].map(|name| lab.namespace(name));
        for (end, interface, near, address) in [
            (&left, "l0", "ml", "10.77.0.1/24"),
            (&right, "r0", "mr", "10.77.0.2/24"),
        ] {
            end.veth(interface, &middle, near);
            end.without_offload(interface);
            end.without_ipv6(interface);
            middle.without_ipv6(near);
            middle.up(near, &[]);
            end.up(interface, &[address]);
            end.wait_for_link(interface);
        }
        Self { left, middle, right }
    }

    pub fn forward(&self, lab: &Lab, kind: &str, arguments: &[&str]) -> Running {
        let mut running = self.between(lab, ("forward", kind), arguments);
        running.wait_for("forwarding between", LIMIT);
        running
    }

    /// A command between the two ends in the middle.
    pub fn between(&self, lab: &Lab, (command, kind): (&str, &str), arguments: &[&str]) -> Running {
        let ports = [format!("{kind}:ml"), format!("{kind}:mr")];
        let all = [
            command,
            "--json",
            "--no-doctor",
            "--port",
            &ports[0],
            "--port",
            &ports[1],
        ];
        lab.dropless(&[&all[..], arguments].concat())
            .within(&self.middle)
            .spawn()
    }

    /// The left kernel asks the right one, which answers every time.
    pub fn ping(&self) {
        let count = PINGS.to_string();
        let said = self
            .left
            .run("ping", &["-c", &count, "-i", "0.02", "-W", "10", "10.77.0.2"]);
        assert!(said.contains(&format!("{count} received")), "{said}");
    }

    /// Datagrams to port 9 of the right kernel.
    pub fn datagrams(&self) {
        let send = format!("for i in $(seq {DATAGRAMS}); do echo x >/dev/udp/10.77.0.2/9; done");
        self.left.run("bash", &["-c", &send]);
    }
}

/// What a rule met, as it is spelled.
fn met(run: &Finished, rule: &str) -> u64 {
    let json = run.json();
    let rules = json["rules"]["judged"]["rules"]
        .as_array()
        .expect("rules")
        .clone();
    let found: Vec<&Value> = rules.iter().filter(|found| found["rule"] == rule).collect();
    assert!(!found.is_empty(), "there is no rule {rule:?}: {run}");
    found.iter().filter_map(|found| found["packets"].as_u64()).sum()
}

/// Each way adds up by itself, the drivers confirm it, and every frame met a rule where there are some.
pub fn assert_sound(run: &Finished) {
    assert_adds_up(&run.json(), run);
}

/// The same of what `json` says of a run.
pub fn assert_adds_up(json: &Value, run: &Finished) {
    assert_eq!(json["verdict"], "valid", "{run}");
    // What was on its way to somebody who had gone is lost, and counted.
    let lost = json["ledger"]["places"].as_array().expect("places");
    let is_loss = |place: &Value| {
        ["tx_full", "tx_dropped", "rx_missed", "rx_nombuf"]
            .iter()
            .any(|lost| place["place"] == *lost)
    };
    let lost = lost.iter().any(is_loss);
    assert_eq!(run.code, Some(i32::from(lost)), "{run}");
    assert_balance(&json["ledger"], run);
    let ways = json["ways"].as_array().expect("ways");
    assert_eq!(ways.len(), 2, "{run}");
    let mut left = 0;
    for (way, [from, to]) in ways.iter().zip([[0, 1], [1, 0]]) {
        assert_balance(&way["ledger"], run);
        let [came, leaves] = [from, to].map(|port| &json["ports"][port]);
        assert_eq!(way["received"], came["rx_packets"], "{run}");
        let sent = leaves["tx_packets"].as_u64().expect("a count");
        assert_eq!(taken(json, to), sent, "{run}");
        // What the interface threw away, its driver has counted; where that is nothing, nothing stands there.
        let thrown_away = leaves.get("tx_dropped").map_or(Some(0), Value::as_u64);
        let forwarded = sent.saturating_sub(thrown_away.expect("a count"));
        assert_eq!(way["forwarded"], forwarded, "{run}");
        assert_eq!(way["ledger"]["left"], forwarded, "{run}");
        left += forwarded;
    }
    assert_eq!(
        (&json["forwarded"], &json["ledger"]["left"]),
        (&left.into(), &left.into()),
        "{run}"
    );
    assert_eq!(json.get("rules").is_some(), run.was_given("--rules"), "{run}");
    if let Some(rules) = json.get("rules") {
        let judged = &rules["judged"];
        let [allowed, denied] = ["allowed", "denied"].map(|name| judged[name].as_u64().expect("a count"));
        assert_eq!(json["received"], allowed + denied, "{run}");
    }
}

/// What the queues of a port handed to its driver.
fn taken(json: &Value, port: usize) -> u64 {
    let queues = json["queues"].as_array().expect("queues");
    let mut queues: Vec<&Value> = queues.iter().collect();
    queues.retain(|queue| queue["port"] == port && queue["direction"] == "tx");
    assert!(!queues.is_empty(), "port {port} has no transmit queue: {json}");
    queues.iter().filter_map(|queue| queue["packets"].as_u64()).sum()
}

fn kernels_talk_through_it(kind: &str, further: &[&str]) {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping")]) else {
        return;
    };
    let path = Path::new(&lab);
    fs::write(
        lab.path("edge.rules"),
        "allow icmp type echo-request\nallow icmp type echo-reply\nallow arp\ndeny udp dport 9\ndefault deny\n",
    )
    .unwrap();
    let running = path.forward(&lab, kind, &[&["--rules", "edge.rules"], further].concat());
    path.datagrams();
    // What is answered came after them.
    path.ping();
    let run = interrupted(running);
    assert_sound(&run);
    assert_eq!(met(&run, "allow icmp type echo-request"), PINGS, "{run}");
    assert_eq!(met(&run, "allow icmp type echo-reply"), PINGS, "{run}");
    assert_eq!(met(&run, "deny udp dport 9"), DATAGRAMS, "{run}");
    assert_eq!(run.number("rules.judged.denied"), DATAGRAMS, "{run}");
    assert!(met(&run, "allow arp") >= 2, "{run}");
}

#[test]
fn kernels_talk_through_af_packet() {
    kernels_talk_through_it("packet", &["--cores", "0"]);
}

#[test]
fn kernels_talk_through_af_xdp() {
    kernels_talk_through_it("xdp", &[]);
}

/// With `mac` each kernel sees the forwarder's own address, and is reached by its own.
#[test]
fn frames_are_addressed_anew() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping")]) else {
        return;
    };
    let path = Path::new(&lab);
    let [left, right] = [path.left.mac("l0"), path.right.mac("r0")];
    let [near_left, near_right] = ["ml", "mr"].map(|name| path.middle.mac(name));
    // ARP tells of addresses in its own bytes, which stay.
    let neighbour = |end: &Namespace, address: &str, mac: &str, interface: &str| {
        end.ip(&["neighbour", "replace", address, "lladdr", mac, "dev", interface]);
    };
    neighbour(&path.left, "10.77.0.2", &near_left, "l0");
    neighbour(&path.right, "10.77.0.1", &near_right, "r0");
    let macs = ["--mode", "mac", "--to-mac", &left, "--to-mac", &right];
    let running = path.forward(&lab, "packet", &macs);
    path.ping();
    assert_sound(&interrupted(running));
}

/// A sender, a forwarder and a reflector, joined by shared memory, which loses nothing.
struct Chain {
    forward: Running,
    reflect: Running,
}

impl Chain {
    fn new(lab: &Lab, arguments: &[&str]) -> Self {
        let ports = ["--port", "memif:a.sock,server", "--port", "memif:b.sock,server"];
        let start = |arguments: &[&str]| {
            let all = [arguments, &["--json", "--no-doctor", "--no-huge"]].concat();
            lab.dropless(&all).spawn()
        };
        let mut forward = start(&[&["forward"], &ports[..], arguments].concat());
        forward.wait_for("forwarding between", LIMIT);
        let mut reflect = start(&["reflect", "--port", "memif:b.sock"]);
        reflect.wait_for("reflecting on", LIMIT);
        Self { forward, reflect }
    }

    fn send(lab: &Lab, arguments: &[&str]) -> Running {
        let all = [
            "send",
            "--json",
            "--no-doctor",
            "--no-huge",
            "--port",
            "memif:a.sock",
        ];
        let room = ["--rate", "2kpps", "--backlog", "1000000", "--drain", "5s"];
        lab.dropless(&[&all[..], &room, arguments].concat()).spawn()
    }
}

#[test]
fn rules_are_exchanged_under_load_without_a_seam() {
    let Some(lab) = require(&[]) else { return };
    // Both sets let x and what the reflector returns pass, and deny y: no packet may ever meet a default.
    let sets = [
        "allow arp\nallow udp dport 5000\nallow udp sport 5000\ndeny udp dport 5001\ndefault deny\n",
        "deny malformed\ndeny tcp\ndeny udp dport 5001,6001\nallow udp dport 4000-5000\nallow udp sport 4000-5000\n\
         rate 1Mpps per source udp dport 5000\nallow arp\ndefault deny\n",
    ];
    let put = |set: &str| {
        fs::write(lab.path("new.rules"), set).unwrap();
        fs::rename(lab.path("new.rules"), lab.path("edge.rules")).unwrap();
    };
    put(sets[0]);
    let chain = Chain::new(&lab, &["--rules", "edge.rules"]);
    let streams = [
        "--stream",
        "name=x,to=198.18.0.2:5000",
        "--stream",
        "name=y,to=198.18.0.2:5001",
    ];
    let mut sender = Chain::send(&lab, &[&streams[..], &["--duration", "300s"]].concat());
    sender.wait_for("sending: tx", LIMIT);
    for swap in 1..=SWAPS {
        put(sets[swap % 2]);
        chain.forward.signal(Signal::SIGHUP);
        let is_in_force = || chain.forward.stderr().matches("in force").count() == swap;
        assert!(until(LIMIT, is_in_force), "{swap}: {}", chain.forward.stderr());
    }
    let sent = interrupted(sender);
    let reflect = interrupted(chain.reflect);
    let run = interrupted(chain.forward);
    assert_sound(&run);
    let of = |name: &str, count: &str| {
        let json = sent.json();
        let streams = json["streams"].as_array().expect("streams").clone();
        let stream = streams.iter().find(|stream| stream["name"] == name);
        stream.expect("the stream")[count].as_u64().expect("a count")
    };
    assert!(of("x", "sent") > 1000, "{sent}");
    assert_eq!(of("x", "received"), of("x", "sent"), "{sent}\n{run}");
    assert_eq!(of("y", "received"), 0, "{sent}");
    // Of y every packet was denied, by one set or the other.
    let denied = met(&run, "deny udp dport 5001") + met(&run, "deny udp dport 5001,6001");
    assert_eq!(denied, of("y", "sent"), "{sent}\n{run}");
    // Of x every one passed, and so did the sender's questions for what the reflector counted.
    let passed = met(&run, "allow udp dport 5000") + met(&run, "allow udp dport 4000-5000");
    assert_eq!(
        passed,
        of("x", "sent") + reflect.number("told"),
        "{sent}\n{reflect}\n{run}"
    );
    let back = met(&run, "allow udp sport 5000") + met(&run, "allow udp sport 4000-5000");
    assert_eq!(back, passed, "{run}");
    assert_eq!(met(&run, "default deny"), 0, "{run}");
    assert_eq!(run.number("rules.generation"), 1 + SWAPS as u64, "{run}");
}

#[test]
fn wrong_rules_are_refused_while_it_goes_and_those_before_stay() {
    let Some(lab) = require(&[Need::Tool("promtool")]) else {
        return;
    };
    fs::write(lab.path("edge.rules"), "deny udp dport 7\n").unwrap();
    let arguments = ["forward", "--port", "null:a", "--port", "null:b", "--cores", "0"];
    let machine = ["--no-doctor", "--no-huge", "--rules", "edge.rules"];
    let (running, address) = serve(&lab, &[&arguments[..], &machine].concat());
    let value = |name: &str| {
        let (_, page) = get(address, "/metrics").unwrap_or_default();
        samples(&page).get(name).copied()
    };
    let denied = "dropless_rule_packets_total{rule=\"deny udp dport 7\",verdict=\"deny\"}";
    assert!(until(LIMIT, || value(denied).is_some_and(|count| count > 0.0)));
    fs::write(lab.path("edge.rules"), "deny udp dport seven\n").unwrap();
    running.signal(Signal::SIGHUP);
    assert!(until(LIMIT, || value("dropless_rules_refused") == Some(1.0)));
    let before = value(denied);
    assert!(until(LIMIT, || value(denied) > before), "it still judges");
    let (_, page) = get(address, "/metrics").expect("an answer");
    fs::write(lab.path("metrics.txt"), page).unwrap();
    let check = lab.shell("promtool check metrics < metrics.txt").wait(LIMIT);
    assert_eq!(check.code, Some(0), "{check}");
    fs::write(lab.path("edge.rules"), "allow udp\n").unwrap();
    running.signal(Signal::SIGHUP);
    let allowed = "dropless_rule_packets_total{rule=\"allow udp\",verdict=\"allow\"}";
    assert!(until(LIMIT, || value(allowed).is_some_and(|count| count > 0.0)));
    // A worker may judge by them before all do, and they are in force.
    assert!(until(LIMIT, || value("dropless_rules_refused") == Some(0.0)));
    assert_eq!(value("dropless_rules_generation"), Some(2.0));
    let run = interrupted(running);
    assert_sound(&run);
    assert_eq!(run.number("rules.asked"), 2, "{run}");
    assert!(
        met(&run, "deny udp dport 7") > 0 && met(&run, "allow udp") > 0,
        "{run}"
    );
}

#[test]
fn without_rules_it_goes_on_when_asked_to_read_them_again() {
    let Some(lab) = require(&[]) else { return };
    let machine = ["--no-doctor", "--no-huge", "--cores", "0"];
    let ports = ["forward", "--json", "--port", "null:a", "--port", "null:b"];
    let mut running = lab.dropless(&[&ports[..], &machine].concat()).spawn();
    running.wait_for("forwarding between", LIMIT);
    running.signal(Signal::SIGHUP);
    running.wait_for("there is no --rules that could be read again", LIMIT);
    assert!(running.is_alive(), "{}", running.stderr());
    let run = interrupted(running);
    assert_sound(&run);
    assert!(run.json()["rules"].is_null(), "{run}");
}

#[test]
fn a_capture_looks_into_it() {
    let Some(lab) = require(&[]) else { return };
    let chain = Chain::new(&lab, &[]);
    let seen = attach(&lab, &chain.forward, &[]);
    let sent = Chain::send(&lab, &["--count", "2000"]).wait(LIMIT);
    assert_eq!(sent.number("received"), 2000, "{sent}");
    let _ = interrupted(chain.reflect);
    let run = interrupted(chain.forward);
    assert_sound(&run);
    let seen = seen.wait(LIMIT);
    assert_balanced(&seen);
    // What came in by each port, and what left by it.
    let json = run.json();
    let ways = json["ways"].as_array().expect("ways");
    let moved: u64 = ways
        .iter()
        .map(|way| way["received"].as_u64().unwrap_or(0) + way["forwarded"].as_u64().unwrap_or(0))
        .sum();
    assert_eq!(seen.number("ledger.entered"), moved, "{seen}\n{run}");
    let queues = seen.json()["queues"].as_array().expect("queues").len();
    assert_eq!(queues, 4, "{seen}");
}

#[test]
fn what_was_killed_leaves_nothing_in_the_way() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping")]) else {
        return;
    };
    let path = Path::new(&lab);
    path.forward(&lab, "xdp", &["--cores", "0"]).kill();
    let again = path.forward(&lab, "xdp", &["--cores", "0"]);
    path.ping();
    assert_sound(&interrupted(again));
}

/// What went to an interface whose link was lost nobody has counted: neither forwarded nor lost.
fn a_lost_link_makes_it_invalid(kind: &str) {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping")]) else {
        return;
    };
    let path = Path::new(&lab);
    let running = path.forward(&lab, kind, &["--cores", "0"]);
    path.ping();
    path.right.ip(&["link", "set", "r0", "down"]);
    path.right.ip(&["link", "set", "r0", "up"]);
    path.right.wait_for_link("r0");
    path.ping();
    assert_invalid(&interrupted(running), &format!("port {kind}:mr lost its link"));
}

#[test]
fn a_lost_link_makes_it_invalid_over_af_packet() {
    a_lost_link_makes_it_invalid("packet");
}

#[test]
fn a_lost_link_makes_it_invalid_over_af_xdp() {
    a_lost_link_makes_it_invalid("xdp");
}

/// Of embedded rings the other ends are in the same process: a demonstration that needs nothing.
#[test]
fn generators_send_through_rings() {
    let Some(lab) = require(&[]) else { return };
    let arguments = [
        "forward",
        "--json",
        "--no-doctor",
        "--no-huge",
        "--cores",
        "0",
        "--queues",
        "2",
    ];
    let ports = ["--port", "ring:a", "--port", "ring:b", "--duration", "1s"];
    let run = lab.dropless(&[&arguments[..], &ports].concat()).run();
    assert_sound(&run);
    assert!(run.number("received") > 1000, "{run}");
    assert_eq!(run.number("received"), run.number("forwarded"), "{run}");
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
}

/// Nothing that is not there, that would end here, or that has no other end.
#[test]
fn what_cannot_be_forwarded_is_refused() {
    let Some(lab) = require(&[]) else { return };
    fs::write(lab.path("bad.rules"), "deny udp\nalow tcp\n").unwrap();
    let wrong: [(&str, &[&str]); 10] = [
        ("--port null", &["two ports", "only null is given"]),
        ("--port null:a --port null:b --port null:c", &["3 are given"]),
        (
            "--port ring,direct --port null",
            &["gives back what is sent", "use ring"],
        ),
        (
            "--port pcap:x.pcap --port null",
            &["is a file", "dropless replay FILE"],
        ),
        (
            "--port kernel:127.0.0.1 --port null",
            &["is a socket", "--port packet:INTERFACE"],
        ),
        (
            "--port null:a --port null:b --mode mac",
            &["0 of 2 are given", "--to-mac MAC"],
        ),
        (
            "--port null:a --port null:b --to-mac 02:00:00:00:00:01",
            &["--mode mac alone"],
        ),
        (
            "--port null:a,queues=2 --port null:b",
            &["2 and 1 queues", "--queues"],
        ),
        (
            "--port null:a --port null:b --rules bad.rules",
            &["bad.rules:2:1", "alow"],
        ),
        (
            "--port null:a --port null:b --expect lsot<1",
            &["no metric \"lsot\"", "denied"],
        ),
    ];
    for (arguments, words) in wrong {
        let arguments: Vec<&str> = ["forward"].into_iter().chain(arguments.split(' ')).collect();
        assert_refused(&lab.dropless(&arguments).run(), words);
    }
}
