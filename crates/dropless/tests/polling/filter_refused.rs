//! What a filter cannot do here is said in one line that names the fix: rights, the kernel, who else is there, and where the
//! interface went.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::filter_run::{Pins, command, filter, has_program, rules, send, sent};
use crate::support::wire::{Wire, assert_refused, has_note, interrupted};
use crate::support::{Lab, Need, Running, require};

const NEEDS: [Need; 1] = [Need::Namespaces];
const RIGHTS: [Need; 2] = [Need::Namespaces, Need::Tool("setpriv")];
const STARTING: Duration = Duration::from_secs(30);

/// `dropless filter run` at the far end, started by a shell there in this way.
fn by(lab: &Lab, wire: &Wire, before: &str, more: &str) -> Running {
    rules(lab, "deny udp dport 7\n");
    let (program, place) = (env!("CARGO_BIN_EXE_dropless"), lab.directory().display());
    let run = format!("cd {place} && {before} {program} filter run edge.rules --dev far0 --json {more}");
    wire.far.spawn("sh", &["-c", &run])
}

#[test]
fn who_may_not_load_programs_is_told_so() {
    let Some(lab) = require(&RIGHTS) else { return };
    let wire = Wire::between(&lab, 1);
    for (without, missing) in [
        ("-bpf,-sys_admin,-net_admin", "takes CAP_NET_ADMIN and CAP_BPF"),
        ("-net_admin,-sys_admin", "takes CAP_NET_ADMIN"),
        ("-perfmon,-sys_admin", "takes CAP_PERFMON"),
    ] {
        let before =
            format!("setpriv --bounding-set {without} --inh-caps {without} --clear-groups --reuid 0 --");
        let refused = by(&lab, &wire, &before, "").wait(STARTING);
        assert_refused(&refused, &["--dev far0", missing, "fix: sudo dropless"]);
    }
    assert!(!has_program(&wire));
}

/// Who may not see whose program it is must not say that there are no rules.
#[test]
fn who_may_not_look_does_not_say_that_nothing_is_there() {
    let Some(lab) = require(&RIGHTS) else { return };
    let wire = Wire::between(&lab, 1);
    let status = |before: &str| {
        let program = env!("CARGO_BIN_EXE_dropless");
        let look = format!("{before} {program} filter status");
        wire.far.spawn("sh", &["-c", &look]).wait(STARTING)
    };
    let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups --";
    let nothing = status(nobody);
    assert_eq!(nothing.code, Some(0), "{nothing}");
    rules(&lab, "deny udp dport 7\n");
    let mut filter = command(&lab, &wire, &[]).spawn();
    filter.wait_for("in force on far0", STARTING);
    assert_refused(
        &status(nobody),
        &["far0 has an XDP program", "sudo dropless filter status"],
    );
    assert!(status("").stdout.contains("far0"));
    assert_eq!(interrupted(filter).code, Some(0));
}

/// What is no capture does not give way to samples, the rules themselves least of all; and no pipe is waited for.
#[test]
fn samples_overwrite_captures_alone() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    rules(&lab, "deny udp dport 7\n");
    nix::unistd::mkfifo(&lab.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    for name in ["edge.rules", "pipe"] {
        let refused = command(&lab, &wire, &["--sample", name]).run();
        assert_refused(&refused, &["--sample", name, "is no capture"]);
    }
    let kept = std::fs::read_to_string(lab.path("edge.rules")).expect("the rules");
    assert_eq!(kept, "deny udp dport 7\n");
    for _ in 0..2 {
        let run = command(&lab, &wire, &["--sample", "drops.pcapng", "--duration", "100ms"]).run();
        assert_eq!(run.code, Some(0), "{run}");
    }
    let read = lab.dropless(&["read", "drops.pcapng"]).run();
    assert!(
        read.code == Some(0) && !read.stderr.contains("has no end of a capture"),
        "{read}"
    );
}

/// The kernel's own description of its types is not needed: its absence stops nobody.
#[test]
fn a_kernel_that_hides_its_types_filters() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let before = "unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf 2>/dev/null; exec \"$@\"' sh";
    let run = by(&lab, &wire, before, "--duration 100ms").wait(STARTING);
    assert_eq!(run.code, Some(0), "{run}");
}

#[test]
fn more_groups_than_there_is_room_for() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    rules(&lab, "rate 10pps per source\n");
    let refused = command(&lab, &wire, &["--groups", "4000000000"]).run();
    assert_refused(&refused, &["--groups"]);
    assert!(!has_program(&wire));
}

/// A process that was stopped hears nothing: who waits for it is told so, and it does what it was asked when it goes on.
#[test]
fn a_stopped_run_is_told_of() {
    let Some(lab) = require(&NEEDS) else { return };
    // One is asked to read its rules again, the other to end: who asks waits for a while, both at once.
    let wires = [Wire::between(&lab, 1), Wire::between(&lab, 1)];
    rules(&lab, "deny udp dport 7\n");
    let [mut reloads, stops] = wires.each_ref().map(|wire| filter(&lab, wire, &[]));
    let process = reloads.id().to_string();
    let [reload_goes_on, stop_goes_on] =
        [&reloads, &stops].map(|run| format!("fix: kill -CONT {}", run.id()));
    for run in [&reloads, &stops] {
        run.signal(Signal::SIGSTOP);
    }
    rules(&lab, "deny udp dport 7\ndeny udp dport 8\n");
    let refused = lab.dropless(&["filter", "reload", &process]).spawn();
    let stop = lab.dropless(&["filter", "stop", "far0"]).within(&wires[1].far);
    let stop = stop.spawn();
    assert_refused(&refused.wait(STARTING), &["is stopped", &reload_goes_on]);
    assert_refused(&stop.wait(STARTING), &["is stopped", &stop_goes_on]);
    for run in [&reloads, &stops] {
        run.signal(Signal::SIGCONT);
    }
    reloads.wait_for("2 rules in force", STARTING);
    for ended in [stops.wait(STARTING), interrupted(reloads)] {
        assert_eq!(ended.code, Some(0), "{ended}");
    }
    assert!(!wires.iter().any(has_program));
}

/// An interface takes its rules along to another network namespace: there they are found, and who put them there.
#[test]
fn rules_that_moved_with_their_interface() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let pins = Pins::mount(&lab);
    let third = lab.namespace("third");
    rules(&lab, "deny udp dport 7\n");
    let there = |arguments: &[&str]| {
        let run = lab.dropless(&[&["filter"][..], arguments].concat());
        pins.on(run.within(&third)).run()
    };
    let has_moved_program = || third.ip(&["-d", "link", "show", "far0"]).contains("prog/xdp");
    let running = filter(&lab, &wire, &[]);
    let process = running.id().to_string();
    wire.far.ip(&["link", "set", "far0", "netns", third.name()]);
    let status = there(&["status", "--json"]);
    assert_eq!(status.json()["filters"][0]["process"], running.id(), "{status}");
    let end = format!("fix: end that: kill {process}");
    assert_refused(&there(&["stop", "far0"]), &["another network namespace", &end]);
    let reloaded = there(&["reload", &process, "--json"]);
    assert_eq!(reloaded.code, Some(0), "{reloaded}");
    interrupted(running);
    assert!(!has_moved_program());
    third.ip(&["link", "set", "far0", "netns", wire.far.name()]);
    // And what stays without a process, also where the interface gets another number.
    third.veth("other0", &third, "other1");
    let mut stays = pins.stay(&lab, &wire).spawn();
    stays.wait_for("in force on far0", STARTING);
    interrupted(stays);
    wire.far.ip(&["link", "set", "far0", "netns", third.name()]);
    let left = pins.filter(&lab, &wire, &["status", "--json"]);
    assert_eq!(left.json()["filters"][0]["is_elsewhere"], true, "{left}");
    let nothing = pins.filter(&lab, &wire, &["stop", "far0"]);
    assert_refused(&nothing, &["far0 is in another network namespace"]);
    assert!(has_moved_program(), "{nothing}");
    let status = there(&["status", "--json"]);
    assert_eq!(status.json()["filters"][0]["stays"], true, "{status}");
    let stopped = there(&["stop", "far0", "--json"]);
    assert_eq!(stopped.code, Some(0), "{stopped}");
    assert!(!has_moved_program(), "{stopped}");
    let left = pins.filter(&lab, &wire, &["status", "--json"]);
    assert_eq!(left.json()["filters"].as_array().map(Vec::len), Some(0), "{left}");
}

/// An interface that goes takes its rules along for good: what is left of them is told, removed when that is asked, and by who
/// puts rules on the next interface of that name.
#[test]
fn rules_whose_interface_went() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let pins = Pins::mount(&lab);
    rules(&lab, "deny udp dport 7\n");
    let stay = || {
        let mut stays = pins.stay(&lab, &wire).spawn();
        stays.wait_for("in force on far0", STARTING);
        stays
    };
    let go = |stays: Running| {
        interrupted(stays);
        wire.far.ip(&["link", "delete", "far0"]);
    };
    let make = || {
        wire.near.veth("near0", &wire.far, "far0");
        wire.near.up("near0", &[]);
        wire.far.up("far0", &[]);
    };
    let is_left = || pins.filter(&lab, &wire, &["status", "--json"]).json()["filters"] != json!([]);
    let stays = stay();
    let load = ["--count", "50", "--rate", "2kpps", "--to", "198.18.0.2:7"];
    let sent = sent(&send(&lab, &wire, &load).run());
    go(stays);
    let status = pins.filter(&lab, &wire, &["status"]);
    let fix = "or, if they should not: dropless filter stop far0";
    assert!(status.stdout.contains(fix), "{status}");
    let stopped = pins.filter(&lab, &wire, &["stop", "far0", "--json"]);
    assert_eq!(stopped.number("denied"), sent, "{stopped}");
    assert!(!is_left(), "{stopped}");
    let again = pins.filter(&lab, &wire, &["stop", "far0"]);
    assert_refused(&again, &["no interface is called far0"]);
    // One of that name is there again, with another number.
    make();
    go(stay());
    make();
    let stopped = pins.filter(&lab, &wire, &["stop", "far0"]);
    assert_eq!(stopped.code, Some(0), "{stopped}");
    assert!(!is_left(), "{stopped}");
    go(stay());
    make();
    let heir = pins.on(command(&lab, &wire, &["--stay", "--duration", "100ms"]));
    let heir = heir.run();
    assert!(has_note(&heir.json(), "filter_was_gone"), "{heir}");
    let status = pins.filter(&lab, &wire, &["status", "--json"]);
    assert_eq!(
        status.json()["filters"].as_array().map(Vec::len),
        Some(1),
        "{status}"
    );
    let stopped = pins.filter(&lab, &wire, &["stop", "far0"]);
    assert!(!is_left(), "{stopped}");
}
