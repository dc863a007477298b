//! `compare` on the real machine: every way moves packets, nothing is left behind, and the advice follows from the numbers.

use std::process::Command;
use std::time::Duration;

use crate::support::wire::{assert_refused, has_note, note};
use crate::support::{Dropless, Finished, Lab, Need, namespaces, require, until};
use nix::sys::signal::Signal;
use serde_json::Value;

const NEEDS: [Need; 1] = [Need::Namespaces];
/// Short trials. Each rate and each trial of a search costs a start of the program and more, for every way.
const SHORT: [&str; 6] = [
    "compare",
    "--json",
    "--duration",
    "300ms",
    "--latency-rate",
    "1kpps",
];
const FEW: [&str; 4] = ["--trials", "1", "--rates", "2kpps"];
const LIMIT: Duration = Duration::from_secs(240);

/// A comparison of few and short trials.
fn short(lab: &Lab) -> Dropless {
    lab.dropless(&[&SHORT[..], &FEW].concat())
}

/// Namespaces of comparisons that are there now.
fn left() -> Vec<String> {
    let all = namespaces().into_iter();
    all.filter(|name| name.starts_with("dropless-compare-")).collect()
}

fn methods(run: &Finished) -> Vec<Value> {
    run.json()["methods"].as_array().expect("a list of ways").clone()
}

/// What holds of every way that was measured, whatever the machine.
fn assert_measured(run: &Finished, method: &Value) {
    assert_eq!(method["missing"], Value::Null, "{run}");
    let trials = [&method["flood"], &method["latency"], &method["at_rates"][0]];
    for trial in trials {
        let count = |name: &str| trial[name].as_u64().expect("a count");
        assert!(
            count("sent") > 0 && count("lost") < count("sent"),
            "{trial} in {run}"
        );
    }
    // Whoever stands still through a trial this short looks at nothing in it, or has used nothing: but not in each.
    let near_cores = |trial: &Value| trial["cpu"]["near_cores"].as_f64();
    assert!(trials.iter().any(|trial| near_cores(trial) > Some(0.0)), "{run}");
    let latency = &method["latency"]["latency_ns"];
    assert!(latency["p50"].as_u64() <= latency["p999"].as_u64(), "{latency}");
    assert!(latency["p50"].as_u64() > Some(0), "{latency}");
    // Whoever lost nothing in any trial carried something without loss, and whoever lost something in each did not.
    let made = method["search"].as_array().expect("trials").iter();
    let made = made.chain(method["at_rates"].as_array().expect("trials"));
    let mut lossless = made.chain([&method["flood"]]).map(|trial| trial["lost"] == 0);
    if method["lossless_pps"].is_null() {
        assert!(!lossless.all(|is_lossless| is_lossless), "{run}");
    } else {
        assert!(lossless.any(|is_lossless| is_lossless), "{run}");
        let best = &method["at_lossless"];
        assert_eq!(best["lost"], 0, "{run}");
        // The rate that was asked for, or if that was not reached, what was sent.
        assert!(
            [&best["asked_pps"], &best["sent_pps"]].contains(&&method["lossless_pps"]),
            "{run}"
        );
        let each = &method["cpu_ns_per_packet"];
        assert!(each.is_null() || each.as_f64() > Some(0.0), "{run}");
    }
}

#[test]
fn every_way_is_measured_and_nothing_is_left_behind() {
    let Some(lab) = require(&NEEDS) else { return };
    // The rate that is needed is the only one, also of the list that has others by itself.
    let run = lab
        .dropless(&SHORT)
        .arg("--trials=2")
        .arg("--rate=1500pps")
        .arg("--rates=1500pps")
        .limit(LIMIT)
        .run();
    let all = methods(&run);
    let names: Vec<&str> = all.iter().filter_map(|method| method["name"].as_str()).collect();
    assert_eq!(
        names,
        ["kernel", "kernel-mmsg", "kernel-uring", "packet", "xdp", "memif"],
        "{run}"
    );
    for method in &all {
        assert_measured(&run, method);
    }
    // Its rings hold back: all packets of the slowest trials fit into them, for as long as somebody else has the cores.
    assert!(all[5]["lossless_pps"].is_number(), "{run}");
    let limits = all.iter().filter_map(|method| method["limit"].as_str());
    let by_us = limits
        .filter(|limit| ["sender", "receiver"].contains(limit))
        .count();
    assert_eq!(has_note(&run.json(), "limited_by_us"), by_us > 0, "{run}");
    let advice = &run.json()["recommendation"];
    let said = advice["sentences"].to_string();
    // With an answer the exit code says so, and the answer is a way that was measured to carry the rate.
    if let Some(chosen) = advice["method"].as_str() {
        assert_eq!(run.code, Some(0), "{run}");
        let method = all
            .iter()
            .find(|method| method["name"] == chosen)
            .expect("a way of the table");
        let carried = method["lossless_pps"].as_f64() >= Some(1500.0);
        assert!(carried && said.contains("1.500 kpps"), "{run}");
    } else {
        assert_eq!(run.code, Some(1), "{run}");
        assert!(
            said.contains("Nothing here carries") || said.contains("No way to a network"),
            "{run}"
        );
    }
    assert_eq!(left(), Vec::<String>::new());
    let directory = lab
        .directory()
        .join(run.json()["run"].as_str().expect("a directory"));
    let kept = std::fs::read_to_string(directory.join("compare.json")).expect("compare.json");
    assert_eq!(serde_json::from_str::<Value>(&kept).expect("JSON"), run.json());
    assert!(directory.join("trials/kernel-01.json").is_file());
}

#[test]
fn firewall_rules_are_passed_by_the_kernels_packets() {
    let needs = [Need::Namespaces, Need::Tool("nft")];
    let Some(lab) = require(&needs) else { return };
    let run = short(&lab)
        .arg("--methods=kernel-mmsg")
        .arg("--firewall-rules=300")
        .limit(LIMIT)
        .run();
    assert_measured(&run, &methods(&run)[0]);
    let method = &methods(&run)[0];
    let cost = |key: &str| {
        method["firewall"][key]
            .as_f64()
            .unwrap_or_else(|| panic!("no {key}: {run}"))
    };
    assert_eq!(
        (run.number("firewall_rules"), cost("rules") as u64),
        (300, 300),
        "{run}"
    );
    assert!(cost("with_pps") < cost("without_pps"), "{run}");
    let said = run.json()["recommendation"]["sentences"].to_string();
    assert!(said.contains("What 300 firewall rules cost"), "{run}");
    assert_eq!(left(), Vec::<String>::new());
}

#[test]
fn another_machine_is_compared_by_its_address() {
    let needs = [Need::Namespaces, Need::Tool("ethtool")];
    let Some(lab) = require(&needs) else { return };
    let (near, far) = (lab.namespace("near"), lab.namespace("far"));
    near.veth("near0", &far, "far0");
    near.up("near0", &["198.18.0.1/24"]);
    far.up("far0", &[]);
    // The reflector sees whole frames, and returns checksums as they are.
    near.without_offload("near0");
    near.wait_for_link("near0");
    let mut reflector = lab
        .dropless(&["reflect", "--port", "packet:far0", "--no-doctor"])
        .within(&far)
        .spawn();
    reflector.wait_for("reflecting on", Duration::from_secs(30));
    let run = short(&lab)
        .arg("--far=198.18.0.2")
        .arg("--methods=kernel,packet,memif")
        // The other core is the other machine's affair.
        .arg("--cores=0")
        .within(&near)
        .limit(LIMIT)
        .run();
    let all = methods(&run);
    assert_measured(&run, &all[0]);
    assert_measured(&run, &all[1]);
    assert_eq!(
        all[2]["missing"], "shared memory does not reach another machine",
        "{run}"
    );
    assert_eq!(all[0]["latency"]["cpu"]["far_cores"], Value::Null, "{run}");
    assert!(
        !run.json()["recommendation"].to_string().contains("virtual wire"),
        "{run}"
    );
}

#[test]
fn xdp_is_not_tried_on_the_interface_of_the_default_route() {
    let Some(lab) = require(&NEEDS) else { return };
    let (near, far) = (lab.namespace("near"), lab.namespace("far"));
    near.veth("near0", &far, "far0");
    near.up("near0", &["198.18.0.1/24"]);
    let dry = |arguments: &[&str]| {
        let all = ["compare", "--dry-run", "--json", "--far", "198.18.0.2"];
        let run = lab.dropless(&[&all[..], arguments].concat()).within(&near).run();
        run.json()["ways"].as_array().expect("ways").clone()
    };
    let why = |way: &Value| way["missing"].as_str().unwrap_or_default().to_owned();
    let told = "near0 carries the default route of this machine; fix: --near-port xdp:near0";
    let before = dry(&["--methods", "packet,xdp"]);
    assert!(!why(&before[1]).contains("default route"), "{before:?}");
    near.run("ip", &["route", "add", "default", "via", "198.18.0.2"]);
    let after = dry(&["--methods", "packet,xdp"]);
    assert!(why(&after[1]).contains(told), "{after:?}");
    assert!(!why(&after[0]).contains("default route"), "{after:?}");
    // Whoever names it means it.
    let named = dry(&["--methods", "packet,ports", "--near-port", "xdp:near0"]);
    let ports = named
        .iter()
        .find(|way| way["method"] == "ports")
        .expect("its way");
    assert!(!why(ports).contains("default route"), "{named:?}");
}

#[test]
fn an_interrupted_comparison_tells_what_it_has_and_cleans_up() {
    let Some(lab) = require(&NEEDS) else { return };
    let mut running = short(&lab).arg("--methods=kernel,xdp").spawn();
    running.wait_for("for its loss", Duration::from_secs(60));
    running.signal(Signal::SIGINT);
    let run = running.wait(Duration::from_secs(30));
    assert_eq!(run.code, Some(2), "{run}");
    let json = run.json();
    assert_eq!(json["interrupted"], true, "{run}");
    let told = note(&json, "interrupted");
    assert!(told.is_some_and(|text| text.contains("not begun: xdp")), "{run}");
    // What was finished is kept: at least its latency, and as fast as it goes.
    let all = methods(&run);
    assert_eq!(all[0]["missing"], Value::Null, "{run}");
    assert!(all[0]["latency"]["sent"].as_u64() > Some(0), "{run}");
    assert!(all[0]["flood"]["sent"].as_u64() > Some(0), "{run}");
    assert_eq!(all[1]["missing"], "not begun", "{run}");
    assert_eq!(json["recommendation"]["method"], Value::Null, "{run}");
    assert!(
        json["recommendation"]["sentences"]
            .to_string()
            .contains("was interrupted"),
        "{run}"
    );
    assert_eq!(left(), Vec::<String>::new());
}

/// Killed, it leaves its namespaces; but nothing runs in them, and the next comparison takes them away.
#[test]
fn what_a_killed_comparison_leaves_is_taken_away_by_the_next() {
    let Some(lab) = require(&NEEDS) else { return };
    let mut running = short(&lab).arg("--methods=kernel").spawn();
    running.wait_for("for its latency", Duration::from_secs(60));
    let name = format!("dropless-compare-{}-near", running.id());
    assert!(namespaces().contains(&name), "{running:?}");
    running.kill();
    let lives = || {
        let output = Command::new("ip").args(["netns", "pids", &name]).output();
        output.is_ok_and(|output| !output.stdout.trim_ascii().is_empty())
    };
    assert!(until(Duration::from_secs(10), || !lives()), "a child outlived it");
    let run = short(&lab).arg("--methods=kernel").limit(LIMIT).run();
    assert_measured(&run, &methods(&run)[0]);
    assert_eq!(left(), Vec::<String>::new());
}

#[test]
fn a_dry_run_says_what_is_missing_and_does_nothing() {
    let Some(lab) = require(&NEEDS) else { return };
    let run = lab
        .dropless(&["compare", "--dry-run", "--methods", "kernel,packet,ports"])
        .run();
    assert_eq!(run.code, Some(0), "{run}");
    for words in [
        "kernel:198.18.0.1",
        "packet:near0",
        "would be tried",
        "no ports given",
    ] {
        assert!(run.stdout.contains(words), "{words:?} is missing: {run}");
    }
    assert!(!lab.path("runs").exists(), "{run}");
}

#[test]
fn without_anything_to_compare_it_says_why() {
    let Some(lab) = require(&NEEDS) else { return };
    let run = lab.dropless(&["compare", "--methods", "ports"]).run();
    assert_refused(
        &run,
        &["nothing can be compared", "--near-port URI and --far-port URI"],
    );
}
