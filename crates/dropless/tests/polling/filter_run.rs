//! `dropless filter run`: each packet is judged by one whole rule set and counted at one rule, whatever is done to the filter.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::wire::{Wire, assert_refused, interrupted};
use crate::support::{Finished, Lab, Need, Running, require, until};

const NEEDS: [Need; 1] = [Need::Namespaces];
const STARTING: Duration = Duration::from_secs(30);
const LIMIT: Duration = Duration::from_secs(60);
const EXTRA: [&str; 0] = [];

/// Writes a rule file.
fn rules(lab: &Lab, text: &str) {
    fs::write(lab.path("edge.rules"), text).expect("a rule file");
}

/// A filter by `edge.rules` at the far end, in force.
fn filter(lab: &Lab, wire: &Wire, arguments: &[&str]) -> Running {
    let mut running = start(lab, wire, arguments);
    running.wait_for("in force on far0", STARTING);
    running
}

/// The same, on its way.
fn start(lab: &Lab, wire: &Wire, arguments: &[&str]) -> Running {
    command(lab, wire, arguments).spawn()
}

fn command(lab: &Lab, wire: &Wire, arguments: &[&str]) -> crate::support::Dropless {
    let run = ["filter", "run", "edge.rules", "--dev", "far0", "--json"];
    lab.dropless(&[&run[..], arguments].concat()).within(&wire.far)
}

/// Probes to ports 7 and 8 in turn, from the near end; nobody answers.
fn send(lab: &Lab, wire: &Wire, arguments: &[&str]) -> crate::support::Dropless {
    let common = [
        "--to-mac",
        "02:00:00:00:00:01",
        "--to",
        "198.18.0.2:7-8",
        "--flows",
        "2",
        "--drain",
        "10ms",
        "--no-doctor",
    ];
    wire.send(lab, "packet", &[&common[..], arguments].concat())
}

/// What got past the filter at the far end.
fn behind(lab: &Lab, wire: &Wire, file: &str) -> Running {
    let capture = ["capture", "--port", "packet:far0", "--json", "--to", file, "udp"];
    let mut running = lab.dropless(&capture).within(&wire.far).spawn();
    running.wait_for("capturing", STARTING);
    running
}

/// Packets of a capture that are for this port.
fn for_port(lab: &Lab, file: &str, port: u16) -> u64 {
    let counted = lab
        .dropless(&["read", file, "--filter", &format!("udp dst port {port}")])
        .run();
    assert_eq!(counted.code, Some(0), "{counted}");
    counted.stdout.lines().count() as u64
}

/// What was counted at the rule spelled so.
fn at(run: &Finished, rule: &str) -> u64 {
    let json = run.json();
    let rules = json["judged"]["rules"].as_array().expect("rules").clone();
    let found = rules.iter().filter(|found| found["rule"] == rule);
    found.filter_map(|found| found["packets"].as_u64()).sum()
}

/// Whether the far interface has a program.
fn has_program(wire: &Wire) -> bool {
    wire.far.ip(&["-d", "link", "show", "far0"]).contains("prog/xdp")
}

#[test]
fn every_packet_is_counted_at_its_rule() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    for mode in ["native", "generic"] {
        rules(&lab, "deny udp dport 7\ndefault allow\n");
        let filter = filter(&lab, &wire, &["--mode", mode]);
        let behind = behind(&lab, &wire, "behind.pcapng");
        let sent = send(&lab, &wire, &["--rate", "5kpps", "--count", "4000"]).run();
        assert_eq!(sent.number("sent"), 4000, "{sent}");
        let behind = interrupted(behind);
        let judged = interrupted(filter);
        assert_eq!(judged.code, Some(0), "{judged}");
        assert_eq!(judged.json()["mode"], mode, "{judged}");
        assert_eq!(at(&judged, "deny udp dport 7"), 2000, "{judged}");
        assert_eq!(at(&judged, "default allow"), 2000, "{judged}");
        assert_eq!(behind.number("captured"), 2000, "{behind}");
        assert_eq!(for_port(&lab, "behind.pcapng", 8), 2000, "{behind}");
        // A veth counts packets before its program has them: another counter says the same.
        let checked = judged.json()["interface_check"]["judged"].as_u64();
        assert_eq!(checked, (mode == "native").then_some(4000), "{judged}");
        assert!(!has_program(&wire));
    }
}

/// Two sets that mean the same and are spelled differently: whichever judged a packet, its fate is the same, and it is counted at a
/// rule of one of them.
#[test]
fn no_packet_is_judged_by_neither_set_while_rules_are_swapped() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let sets = [
        "deny udp dport 7\nallow udp dport 8\ndefault deny\n",
        "allow udp dport 8-8\ndeny udp dport 7-7\ndefault deny\n",
    ];
    rules(&lab, sets[0]);
    let filter = filter(&lab, &wire, &EXTRA);
    let process = filter.id().to_string();
    let behind = behind(&lab, &wire, "behind.pcapng");
    let mut sending = send(&lab, &wire, &["--rate", "10kpps", "--count", "60000", "--quiet"]).spawn();
    let mut swaps = 0_u64;
    while sending.is_alive() || swaps < 100 {
        swaps += 1;
        rules(&lab, sets[swaps as usize % 2]);
        let reloaded = lab.dropless(&["filter", "reload", &process, "--json"]).run();
        assert_eq!(reloaded.code, Some(0), "{reloaded}");
        assert_eq!(reloaded.number("generation"), swaps + 1, "{reloaded}");
    }
    let sent = sending.wait(LIMIT);
    assert_eq!(sent.number("sent"), 60000, "{sent}");
    let behind = interrupted(behind);
    let judged = interrupted(filter);
    assert_eq!(judged.code, Some(0), "{judged}");
    let denied = [at(&judged, "deny udp dport 7"), at(&judged, "deny udp dport 7-7")];
    let allowed = [
        at(&judged, "allow udp dport 8"),
        at(&judged, "allow udp dport 8-8"),
    ];
    assert!(denied.iter().chain(&allowed).all(|met| *met > 0), "{judged}");
    assert_eq!(denied[0] + denied[1], 30000, "{judged}");
    assert_eq!(allowed[0] + allowed[1], 30000, "{judged}");
    assert_eq!(at(&judged, "default deny"), 0, "{judged}");
    assert_eq!(behind.number("captured"), 30000, "{behind}");
    assert_eq!(for_port(&lab, "behind.pcapng", 7), 0, "{behind}");
    assert_eq!(judged.number("reloads"), swaps, "{judged}");
}

#[test]
fn wrong_rules_are_refused_while_those_before_stay() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    rules(&lab, "deny udp dport 7\n");
    let mut filter = filter(&lab, &wire, &EXTRA);
    rules(&lab, "deny udp dport 8\ndeni udp\n");
    let refused = lab.dropless(&["filter", "reload"]).run();
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("edge.rules:2:1: "), "{refused}");
    assert!(
        refused.stderr.contains("the rules before stay in force"),
        "{refused}"
    );
    filter.wait_for("the rules before stay in force", STARTING);
    // A signal asks for the same.
    rules(&lab, "deny udp dport 7\ndeny udp dport 9\n");
    filter.signal(Signal::SIGHUP);
    filter.wait_for("2 rules in force", STARTING);
    let sent = send(&lab, &wire, &["--count", "100", "--rate", "1kpps"]).run();
    assert_eq!(sent.number("sent"), 100, "{sent}");
    let judged = interrupted(filter);
    assert_eq!(at(&judged, "deny udp dport 7"), 50, "{judged}");
    assert_eq!(
        (judged.number("reloads"), judged.number("reloads_refused")),
        (2, 1),
        "{judged}"
    );
    assert_refused(
        &lab.dropless(&["filter", "reload"]).run(),
        &["no run with rules is active"],
    );
}

/// Whenever it is killed, nothing stays behind: not on the interface, and nobody else's way is blocked.
#[test]
fn kill_9_leaves_nothing() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    rules(&lab, "deny udp dport 7\n");
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    for round in 0..20 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let running = start(&lab, &wire, &EXTRA);
        std::thread::sleep(Duration::from_millis(seed >> 33 & 0x1FF));
        if seed >> 60 & 1 == 1 && running.stderr().contains("in force on") {
            // In the middle of a swap.
            running.signal(Signal::SIGHUP);
            std::thread::sleep(Duration::from_millis(seed >> 43 & 0x1F));
        }
        let killed = running.kill();
        assert!(until(STARTING, || !has_program(&wire)), "round {round}: {killed}");
    }
    let again = filter(&lab, &wire, &EXTRA);
    assert_eq!(interrupted(again).code, Some(0));
    assert!(!has_program(&wire));
}

/// One interface, one program: whoever comes second is told who was first, and an interface that goes ends the run.
#[test]
fn others_on_the_interface_are_refused_in_both_orders() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    rules(&lab, "deny udp dport 7\n");
    let first = filter(&lab, &wire, &EXTRA);
    let holder = format!("another dropless (process {}) has far0", first.id());
    assert_refused(&command(&lab, &wire, &EXTRA).run(), &["--dev far0", &holder]);
    let port = lab
        .dropless(&["reflect", "--port", "xdp:far0", "--duration", "1s"])
        .within(&wire.far);
    assert_refused(&port.run(), &["port xdp:far0", &holder]);
    assert_eq!(interrupted(first).code, Some(0));
    let port = wire.reflect_far(&lab, "xdp", &[]);
    let holder = format!("another dropless (process {}) has far0", port.id());
    assert_refused(&command(&lab, &wire, &EXTRA).run(), &["--dev far0", &holder]);
    interrupted(port);
    let last = filter(&lab, &wire, &EXTRA);
    wire.far.ip(&["link", "delete", "far0"]);
    let last = last.wait(STARTING);
    assert_eq!(last.code, Some(2), "{last}");
    assert_eq!(last.json()["reasons"][0]["code"], "displaced", "{last}");
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    rules(&lab, "deny tcp dport 22\n");
    let on = |dev: &str, more: &[&str]| {
        let run = ["filter", "run", "edge.rules", "--dev", dev];
        lab.dropless(&[&run[..], more].concat()).within(&wire.far)
    };
    assert_refused(
        &on("far1", &[]).run(),
        &[
            "no interface is called far1 (there are: far0, lo)",
            "fix: write --dev far0",
        ],
    );
    assert_refused(
        &on("lo", &[]).run(),
        &["--dev lo: the driver has no native XDP", "--mode generic"],
    );
    wire.far.up("far0", &["198.18.0.2/24"]);
    let session = "198.18.0.1 50000 198.18.0.2 22";
    assert_refused(
        &on("far0", &[]).env("SSH_CONNECTION", session).run(),
        &[
            "would cut off the SSH session",
            "edge.rules:1 `deny tcp dport 22`",
            "--force",
        ],
    );
    let forced = on("far0", &["--force", "--duration", "100ms"]).env("SSH_CONNECTION", session);
    assert_eq!(forced.run().code, Some(0));
    // A session that does not come in by this interface is none of its business.
    let elsewhere =
        on("far0", &["--duration", "100ms"]).env("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22");
    assert_eq!(elsewhere.run().code, Some(0));
    // What is refused at the start is refused when it is read again, too.
    rules(&lab, "deny udp dport 7\n");
    let mut filter = on("far0", &[]).env("SSH_CONNECTION", session).spawn();
    filter.wait_for("in force on far0", STARTING);
    rules(&lab, "deny tcp dport 22\n");
    assert_refused(
        &lab.dropless(&["filter", "reload"]).run(),
        &["would cut off the SSH session"],
    );
    assert_eq!(interrupted(filter).code, Some(0));
}
