//! `dropless filter run`: each packet is judged by one whole rule set and counted at one rule, whatever is done to the filter.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::wire::{Wire, assert_refused, has_note, interrupted, note};
use crate::support::{Dropless, Finished, Lab, Mount, Need, Running, require, until};

const NEEDS: [Need; 1] = [Need::Namespaces];
const STARTING: Duration = Duration::from_secs(30);
const LIMIT: Duration = Duration::from_secs(60);
/// Flows to ports 7 and 8 in turn.
pub const BOTH: [&str; 4] = ["--to", "198.18.0.2:7-8", "--flows", "2"];

/// Writes a rule file, whole at once: whoever reads it meanwhile has the one before or this one.
pub fn rules(lab: &Lab, text: &str) {
    fs::write(lab.path("next.rules"), text).expect("a rule file");
    fs::rename(lab.path("next.rules"), lab.path("edge.rules")).expect("a rule file");
}

/// A filter by `edge.rules` at the far end, in force.
pub fn filter(lab: &Lab, wire: &Wire, arguments: &[&str]) -> Running {
    let mut running = start(lab, wire, arguments);
    running.wait_for("in force on far0", STARTING);
    running
}

/// The same, on its way.
fn start(lab: &Lab, wire: &Wire, arguments: &[&str]) -> Running {
    command(lab, wire, arguments).spawn()
}

pub fn command(lab: &Lab, wire: &Wire, arguments: &[&str]) -> Dropless {
    let run = ["filter", "run", "edge.rules", "--dev", "far0", "--json"];
    lab.dropless(&[&run[..], arguments].concat()).within(&wire.far)
}

/// Probes from the near end; nobody answers.
pub fn send(lab: &Lab, wire: &Wire, arguments: &[&str]) -> Dropless {
    let common = ["--to-mac", "02:00:00:00:00:01", "--drain", "10ms", "--no-doctor"];
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
pub fn at(run: &Finished, rule: &str) -> u64 {
    let json = run.json();
    let rules = json["judged"]["rules"].as_array().expect("rules").clone();
    let found = rules.iter().filter(|found| found["rule"] == rule);
    found.filter_map(|found| found["packets"].as_u64()).sum()
}

/// Of a sequence of numbers that is the same in each run: Knuth's.
fn next(seed: u64) -> u64 {
    seed.wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

/// Whether the far interface has a program.
pub fn has_program(wire: &Wire) -> bool {
    wire.far.ip(&["-d", "link", "show", "far0"]).contains("prog/xdp")
}

/// How many packets this run said it sent.
pub fn sent(run: &Finished) -> u64 {
    run.number("sent")
}

#[test]
fn every_packet_is_counted_at_its_rule() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    for mode in ["native", "generic"] {
        rules(&lab, "deny udp dport 7\ndefault allow\n");
        let filter = filter(&lab, &wire, &["--mode", mode]);
        let behind = behind(&lab, &wire, "behind.pcapng");
        let to = |port: &str| {
            let to = format!("198.18.0.2:{port}");
            sent(&send(&lab, &wire, &["--rate", "5kpps", "--count", "1500", "--to", &to]).run())
        };
        let (denied, allowed) = (to("7"), to("8"));
        let behind = interrupted(behind);
        let judged = interrupted(filter);
        assert_eq!(judged.code, Some(0), "{judged}");
        assert_eq!(judged.json()["mode"], mode, "{judged}");
        assert!(denied > 0 && allowed > 0, "{judged}");
        assert_eq!(at(&judged, "deny udp dport 7"), denied, "{judged}");
        assert_eq!(at(&judged, "default allow"), allowed, "{judged}");
        assert_eq!(behind.number("captured"), allowed, "{behind}");
        assert_eq!(for_port(&lab, "behind.pcapng", 8), allowed, "{behind}");
        // A veth counts packets before its program has them: another counter says the same.
        let checked = judged.json()["interface_check"]["judged"].as_u64();
        assert_eq!(
            checked,
            (mode == "native").then_some(denied + allowed),
            "{judged}"
        );
        assert!(!has_program(&wire));
    }
}

/// What rules do not see is said: tags beside the frame, and in generic mode packets that were joined.
#[test]
fn what_xdp_does_not_see_is_noted() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    for (mode, joined) in [("native", false), ("generic", true)] {
        rules(&lab, "deny vlan 5\ndefault allow\n");
        let judged = interrupted(filter(&lab, &wire, &["--mode", mode]));
        assert_eq!(judged.code, Some(0), "{judged}");
        let judged = judged.json();
        let stripped = note(&judged, "vlan-stripped");
        assert!(
            stripped.is_some_and(|text| text.contains("txvlan off")),
            "{judged}"
        );
        assert_eq!(has_note(&judged, "packets-joined"), joined, "{judged}");
    }
    let guard = ["guard", "--dev", "far0", "--mode", "generic", "--json"];
    let mut guard = lab.dropless(&guard).within(&wire.far).spawn();
    guard.wait_for("guarding far0", STARTING);
    let guarded = interrupted(guard).json();
    assert!(
        has_note(&guarded, "vlan-stripped") && has_note(&guarded, "packets-joined"),
        "{guarded}"
    );
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
    let filter = filter(&lab, &wire, &[]);
    let process = filter.id().to_string();
    let behind = behind(&lab, &wire, "behind.pcapng");
    let load = [&BOTH[..], &["--rate", "5kpps", "--count", "10000", "--quiet"]].concat();
    let mut sending = send(&lab, &wire, &load).spawn();
    let mut swaps = 0_u64;
    while sending.is_alive() || swaps < 25 {
        swaps += 1;
        rules(&lab, sets[swaps as usize % 2]);
        let reloaded = lab.dropless(&["filter", "reload", &process, "--json"]).run();
        assert_eq!(reloaded.code, Some(0), "{reloaded}");
        assert_eq!(reloaded.number("generation"), swaps + 1, "{reloaded}");
    }
    let sent = sent(&sending.wait(LIMIT));
    let behind = interrupted(behind);
    let judged = interrupted(filter);
    assert_eq!(judged.code, Some(0), "{judged}");
    let denied = [at(&judged, "deny udp dport 7"), at(&judged, "deny udp dport 7-7")];
    let allowed = [
        at(&judged, "allow udp dport 8"),
        at(&judged, "allow udp dport 8-8"),
    ];
    assert!(denied.iter().chain(&allowed).all(|met| *met > 0), "{judged}");
    assert_eq!(denied.iter().chain(&allowed).sum::<u64>(), sent, "{judged}");
    assert_eq!(at(&judged, "default deny"), 0, "{judged}");
    assert_eq!(behind.number("captured"), allowed[0] + allowed[1], "{behind}");
    assert_eq!(for_port(&lab, "behind.pcapng", 7), 0, "{behind}");
    assert_eq!(judged.number("reloads"), swaps, "{judged}");
}

#[test]
fn wrong_rules_are_refused_while_those_before_stay() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    rules(&lab, "deny udp dport 7\n");
    let mut filter = filter(&lab, &wire, &[]);
    rules(&lab, "deny udp dport 8\ndeni udp\n");
    let refused = lab.dropless(&["filter", "reload"]).run();
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("edge.rules:2:1: "), "{refused}");
    assert!(
        refused.stderr.contains("the rules before stay in force"),
        "{refused}"
    );
    filter.wait_for("the rules before stay in force", STARTING);
    // Who looks later is told, too.
    let status = lab.dropless(&["filter", "status"]).within(&wire.far).run();
    assert!(
        status.stdout.contains("NOT in force") && status.stdout.contains("edge.rules:2:1: "),
        "{status}"
    );
    // Who looks where it does not publish is not told of zeros.
    let elsewhere = lab.path("elsewhere").display().to_string();
    let blind = lab.dropless(&["filter", "status", "--json"]).within(&wire.far);
    let blind = blind.env("DROPLESS_LIVE_DIR", &elsewhere).run();
    let blind = &blind.json()["filters"][0];
    assert_eq!(blind["process"], filter.id(), "{blind}");
    assert!(blind["allowed"].is_null() && blind["rules"].is_null(), "{blind}");
    // A signal asks for the same. What root may read because it is root is read again, too.
    rules(&lab, "deny udp dport 7\ndeny udp dport 9\n");
    let closed = lab
        .shell("chown 65534 edge.rules && chmod 0600 edge.rules")
        .wait(STARTING);
    assert_eq!(closed.code, Some(0), "{closed}");
    filter.signal(Signal::SIGHUP);
    filter.wait_for("2 rules in force", STARTING);
    let load = ["--count", "100", "--rate", "1kpps", "--to", "198.18.0.2:7"];
    let sent = sent(&send(&lab, &wire, &load).run());
    let judged = interrupted(filter);
    assert_eq!(at(&judged, "deny udp dport 7"), sent, "{judged}");
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
        seed = next(seed);
        let running = start(&lab, &wire, &[]);
        std::thread::sleep(Duration::from_millis(seed >> 33 & 0xFF));
        if seed >> 60 & 1 == 1 && running.stderr().contains("in force on") {
            // In the middle of a swap.
            running.signal(Signal::SIGHUP);
            std::thread::sleep(Duration::from_millis(seed >> 43 & 0x1F));
        }
        let killed = running.kill();
        assert!(until(STARTING, || !has_program(&wire)), "round {round}: {killed}");
    }
    let again = filter(&lab, &wire, &[]);
    assert_eq!(interrupted(again).code, Some(0));
    assert!(!has_program(&wire));
}

/// One interface, one program: whoever comes second is told who was first, and an interface that goes ends the run.
#[test]
fn others_on_the_interface_are_refused_in_both_orders() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    rules(&lab, "deny udp dport 7\n");
    let first = filter(&lab, &wire, &[]);
    let holder = format!("another dropless (process {}) has far0", first.id());
    let port = lab
        .dropless(&["reflect", "--port", "xdp:far0", "--duration", "1s"])
        .within(&wire.far);
    // Both wait for a moment whether it ends: at once.
    let (port, second) = (port.spawn(), command(&lab, &wire, &[]).spawn());
    assert_refused(&second.wait(STARTING), &["--dev far0", &holder]);
    assert_refused(&port.wait(STARTING), &["port xdp:far0", &holder]);
    assert_eq!(interrupted(first).code, Some(0));
    let port = wire.reflect_far(&lab, "xdp", &[]);
    let holder = format!("another dropless (process {}) has far0", port.id());
    assert_refused(&command(&lab, &wire, &[]).run(), &["--dev far0", &holder]);
    interrupted(port);
    let last = filter(&lab, &wire, &[]);
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

/// A bpffs of this test's own: what it holds goes with it.
pub struct Pins {
    directory: String,
    _mount: Mount,
}

impl Pins {
    pub fn mount(lab: &Lab) -> Self {
        let at = lab.path("bpf");
        Self {
            directory: at.join("dropless").display().to_string(),
            _mount: Mount::new(&["-t", "bpf", "bpf"], &at),
        }
    }

    pub fn on(&self, run: Dropless) -> Dropless {
        run.env("DROPLESS_BPF_DIR", &self.directory)
    }

    pub fn stay(&self, lab: &Lab, wire: &Wire) -> Dropless {
        self.on(command(lab, wire, &["--stay"]))
    }

    /// `dropless filter ARGUMENTS` at the far end.
    pub fn filter(&self, lab: &Lab, wire: &Wire, arguments: &[&str]) -> Finished {
        let run = lab.dropless(&[&["filter"][..], arguments].concat());
        self.on(run.within(&wire.far)).run()
    }
}

/// Killed at any moment and started again under load, with rules that are swapped and taken over: no packet gets past that should
/// not, none is lost that should pass, and none is counted twice or not at all.
#[test]
fn what_stays_counts_every_packet_whenever_its_process_dies() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let pins = Pins::mount(&lab);
    let sets = [
        "deny udp dport 7\nallow udp dport 8\ndefault deny\n",
        "allow udp dport 8-8\ndeny udp dport 7-7\ndefault deny\n",
    ];
    rules(&lab, sets[0]);
    let mut first = pins.stay(&lab, &wire).spawn();
    first.wait_for("in force on far0", STARTING);
    let behind = behind(&lab, &wire, "behind.pcapng");
    let load = [&BOTH[..], &["--rate", "4kpps", "--duration", "60s", "--quiet"]].concat();
    let mut sending = send(&lab, &wire, &load).spawn();
    first.kill();
    let mut seed = 0x5851_F42D_4C95_7F2D_u64;
    for round in 1..=10 {
        seed = next(seed);
        rules(&lab, sets[round % 2]);
        let running = pins.stay(&lab, &wire).spawn();
        // Reads, loads, takes over, folds; or swaps again and again, and folds.
        std::thread::sleep(Duration::from_millis(seed >> 33 & 0x7F));
        if seed >> 60 & 1 == 1 {
            until(STARTING, || running.stderr().contains("in force on far0"));
            for swap in 0..seed >> 50 & 7 {
                rules(&lab, sets[swap as usize % 2]);
                running.signal(Signal::SIGHUP);
                std::thread::sleep(Duration::from_millis(seed >> 40 & 0x1F));
            }
        }
        let killed = running.kill();
        assert!(has_program(&wire), "round {round}: {killed}");
        assert!(sending.is_alive(), "round {round}: {sending:?}");
    }
    let sent = sent(&interrupted(sending));
    let behind = interrupted(behind);
    let stopped = pins.filter(&lab, &wire, &["stop", "far0", "--json"]);
    assert_eq!(stopped.code, Some(0), "{stopped}");
    assert_eq!(
        stopped.number("allowed") + stopped.number("denied"),
        sent,
        "{stopped}"
    );
    assert_eq!(
        behind.number("captured"),
        stopped.number("allowed"),
        "{behind} {stopped}"
    );
    assert_eq!(for_port(&lab, "behind.pcapng", 7), 0, "{behind}");
    assert!(!has_program(&wire));
    let left = fs::read_dir(lab.path("bpf/dropless")).expect("the directory of pins");
    assert_eq!(left.count(), 0, "{stopped}");
}

#[test]
fn what_stays_is_told_of_taken_over_and_stopped() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let pins = Pins::mount(&lab);
    rules(&lab, "deny udp dport 7\n");
    let nowhere = command(&lab, &wire, &["--stay"]).env("DROPLESS_BPF_DIR", "/tmp/dropless");
    assert_refused(
        &nowhere.run(),
        &["which is not mounted at /tmp", "fix: mount -t bpf bpf /tmp"],
    );
    let mut first = pins.stay(&lab, &wire).spawn();
    first.wait_for("in force on far0", STARTING);
    let to_seven = |count: &str| {
        let load = ["--count", count, "--rate", "2kpps", "--to", "198.18.0.2:7"];
        sent(&send(&lab, &wire, &load).run())
    };
    let mut met = to_seven("300");
    let ended = interrupted(first);
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(at(&ended, "deny udp dport 7"), met, "{ended}");
    assert!(has_program(&wire), "{ended}");
    // Nobody looks after it, and it goes on.
    met += to_seven("200");
    let status = pins.filter(&lab, &wire, &["status", "--json"]);
    assert_eq!(status.number("filters.0.denied"), met, "{status}");
    assert_eq!(status.json()["filters"][0]["stays"], true, "{status}");
    assert!(status.json()["filters"][0]["process"].is_null(), "{status}");
    let stop = ["dropless filter stop far0"];
    assert_refused(&pins.on(command(&lab, &wire, &[])).run(), &stop);
    let port = lab.dropless(&["reflect", "--port", "xdp:far0"]).within(&wire.far);
    assert_refused(&pins.on(port).run(), &stop);
    let generic = pins.on(command(&lab, &wire, &["--stay", "--mode", "generic"]));
    assert_refused(&generic.run(), &["in native mode"]);
    // A table cannot grow: another one is made, and that is said.
    rules(&lab, "deny udp dport 7\nrate 1pps per source udp dport 9\n");
    let mut heir = pins
        .on(command(&lab, &wire, &["--stay", "--groups", "2M"]))
        .spawn();
    heir.wait_for("taken over with", STARTING);
    met += to_seven("100");
    let stopped = pins.filter(&lab, &wire, &["stop", "far0", "--json"]);
    assert_eq!(stopped.number("denied"), met, "{stopped}");
    let heir = heir.wait(LIMIT);
    assert_eq!(at(&heir, "deny udp dport 7"), met, "{heir}");
    assert!(heir.number("taken_over") > 0, "{heir}");
    assert!(has_note(&heir.json(), "rates_begin_anew"), "{heir}");
    assert!(!has_program(&wire));
}
