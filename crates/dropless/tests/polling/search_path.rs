//! `dropless search` on paths whose limit is known: a token bucket between two bridged wires, a reflector with a policer.

use std::time::Duration;

use crate::support::search::{LIMIT, STEADY, goal, journal, rate};
use crate::support::wire::{interrupted, sum};
use crate::support::{Finished, Lab, Namespace, Need, require};
use serde_json::Value;

/// A wire with a bridge in its middle, whose far port lets a known rate through: 10,000 packets of 60 bytes (64 with
/// FCS, which the kernel does not see) per second, and a hundred at once.
struct Limited {
    near: Namespace,
    middle: Namespace,
    far: Namespace,
}

const LIMIT_PPS: f64 = 10e3;

impl Limited {
    fn new(lab: &Lab) -> Self {
        let (near, middle, far) = (
            lab.namespace("near"),
            lab.namespace("middle"),
            lab.namespace("far"),
        );
        near.veth("near0", &middle, "one");
        far.veth("far0", &middle, "two");
        middle.ip(&["link", "add", "bridge", "type", "bridge"]);
        for (namespace, interfaces) in [
            (&near, &["near0"][..]),
            (&far, &["far0"]),
            (&middle, &["one", "two", "bridge"]),
        ] {
            for interface in interfaces {
                // Nobody says anything of its own on this wire.
                let key = format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6");
                namespace.run("sh", &["-c", &format!("if [ -e {key} ]; then echo 1 >{key}; fi")]);
            }
        }
        for interface in ["one", "two"] {
            middle.ip(&["link", "set", interface, "master", "bridge"]);
        }
        let bucket = "tc qdisc add dev two root tbf rate 4800kbit burst 6000 limit 12000";
        middle.run("sh", &["-c", bucket]);
        near.up("near0", &[]);
        far.up("far0", &[]);
        for interface in ["one", "two", "bridge"] {
            middle.up(interface, &[]);
        }
        near.wait_for_link("near0");
        Self { near, middle, far }
    }

    /// Packets that the bucket has dropped.
    fn dropped(&self) -> u64 {
        let text = self
            .middle
            .run("tc", &["-s", "-j", "qdisc", "show", "dev", "two"]);
        let json: Value = serde_json::from_str(&text).expect("tc speaks JSON");
        json[0]["drops"]
            .as_u64()
            .unwrap_or_else(|| panic!("no drops in {text}"))
    }
}

/// The arguments of a search over a wire from `near0`.
const OVER_THE_WIRE: &[&str] = &[
    "search",
    "--json",
    "--port",
    "packet:near0",
    "--max-rate",
    "40kpps",
    "--min-rate",
    "500pps",
    "--goal",
    "loss=2%",
    "--width",
    "5%",
    "--initial-duration",
    "300ms",
    "--final-duration",
    "300ms",
    "--duration-sum",
    "600ms",
    "--drain",
    "2s",
];

/// The limit is a fact of the path. A busy machine may carry less, none carries more; and what was found is no further below the
/// lowest rate that was not carried, in any trial of this search, than its width. `loss` is what the goal tolerates.
fn assert_found(lab: &Lab, run: &Finished, loss: f64) {
    let goal = goal(run, 0, 0);
    let throughput = goal["throughput_pps"]
        .as_f64()
        .unwrap_or_else(|| panic!("nothing was found: {run}"));
    assert!(throughput < LIMIT_PPS * 1.25, "{throughput}: {run}");
    assert!(rate(&goal["upper"]) > throughput, "{run}");
    let (_, lines) = journal(lab);
    let is_carried = |line: &&Value| {
        let count = |name: &str| line[name].as_u64().expect("a count");
        let is_offered = line["short"].is_null() && count("due") <= count("offered") + 1;
        is_offered && sum(&line["lost"]) as f64 <= loss * count("offered") as f64
    };
    let missed = lines.iter().filter(|line| !is_carried(line)).map(rate);
    let lowest = missed.fold(f64::INFINITY, f64::min);
    // The wider of the two widths that are asked for here is 10 %.
    assert!(throughput > 0.85 * lowest, "{throughput} {lowest}: {lines:#?}");
}

/// What the limit dropped is what the path lost. Where our receiver stood still meanwhile, it is in doubt, and not
/// charged to the path.
fn assert_charged(lab: &Lab, dropped: u64) {
    let (_, lines) = journal(lab);
    let lost = |whose: &str| -> u64 { lines.iter().filter_map(|line| line["lost"][whose].as_u64()).sum() };
    let all: u64 = ["path", "receiver", "reflector", "sender"].map(lost).iter().sum();
    assert!(
        dropped > 0 && lost("path") <= dropped && dropped <= all,
        "{dropped}: {lines:#?}"
    );
}

/// The first trial waits for what it lost for the whole drain time, and later ones no longer than the path ever took.
fn assert_patient(lab: &Lab) {
    let (directory, lines) = journal(lab);
    // Whosever that was: it is waited for.
    let lossy = |line: &&Value| sum(&line["lost"]) > 0;
    let beyond = |line: &Value| Some(line["wall_s"].as_f64()? - line["duration_ns"].as_f64()? / 1e9);
    let mut latency_ns_max = 0;
    for (index, line) in lines.iter().enumerate() {
        let plan = directory
            .join(line["run"].as_str().expect("a run"))
            .join("plan.json");
        let plan: Value = serde_json::from_slice(&std::fs::read(plan).expect("a plan")).expect("JSON");
        match plan["quiet_ns"].as_u64() {
            None => assert_eq!(index, 0, "{line}"),
            Some(quiet) => assert!(quiet >= 10 * latency_ns_max, "{quiet} {latency_ns_max}: {line}"),
        }
        latency_ns_max = latency_ns_max.max(line["latency_ns"]["max"].as_u64().unwrap_or(0));
    }
    let times: Vec<f64> = lines.iter().filter(lossy).filter_map(beyond).collect();
    let (first, later) = (times[0], times[1..].iter().copied().fold(f64::INFINITY, f64::min));
    // What else a trial takes grows with what the machine does beside it, for all of them.
    assert!(lossy(&&lines[0]) && first > later, "{times:?} {lines:#?}");
}

#[test]
fn the_limit_of_a_real_path_is_found_and_what_it_dropped_is_all_that_was_lost() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("tc")]) else {
        return;
    };
    let path = Limited::new(&lab);
    let mut reflector = lab
        .dropless(&["reflect", "--json", "--port", "packet:far0"])
        .within(&path.far)
        .spawn();
    reflector.wait_for("reflecting on", Duration::from_secs(30));
    let run = lab.dropless(OVER_THE_WIRE).within(&path.near).limit(LIMIT).run();
    interrupted(reflector);
    assert_found(&lab, &run, 0.02);
    assert_charged(&lab, path.dropped());
    assert_patient(&lab);
}

#[test]
fn the_limit_of_a_policed_reflector_is_found_and_what_it_dropped_is_all_that_was_lost() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, far) = (lab.namespace("near"), lab.namespace("far"));
    near.veth("near0", &far, "far0");
    near.up("near0", &[]);
    far.up("far0", &[]);
    near.wait_for_link("near0");
    let mut reflector = lab
        .dropless(&["reflect", "--json", "--port", "packet:far0"])
        .arg("--fault")
        .arg(format!("limit={LIMIT_PPS}pps:200"))
        .within(&far)
        .spawn();
    reflector.wait_for("reflecting on", Duration::from_secs(30));
    let run = lab.dropless(OVER_THE_WIRE).within(&near).limit(LIMIT).run();
    let reflector = interrupted(reflector);
    assert_found(&lab, &run, 0.02);
    let policed = reflector.number("faults.limit");
    assert_eq!(reflector.number("faults.drop"), policed, "{reflector}");
    assert_charged(&lab, policed);
}

#[test]
fn halving_finds_the_limit_of_a_policed_reflector() {
    let Some(lab) = require(&[]) else { return };
    let run = lab
        .dropless(&[&["search", "--json", "--method", "rfc2544"][..], STEADY].concat())
        .arg("--fault")
        .arg(format!("limit={LIMIT_PPS}pps:1000"))
        .arg("--max-rate")
        .arg("40kpps")
        .arg("--trial-duration")
        .arg("500ms")
        .arg("--settle")
        .arg("0ms")
        .limit(LIMIT)
        .run();
    assert_found(&lab, &run, 0.0);
    let goal = goal(&run, 0, 0);
    if goal["limit"] == "path" {
        return;
    }
    // On a busy machine the sender bunches, and then it is not known whose the losses are.
    assert_eq!(goal["limit"], "sender", "{run}");
    let (_, lines) = journal(&lab);
    let upper = lines
        .iter()
        .filter(|line| line["rate_pps"] == goal["upper"]["rate_pps"]);
    for line in upper {
        let bunches = line["bunches"].as_array().map_or(&[][..], Vec::as_slice);
        let packets = |bunch: &Value| Some(bunch["due"].as_u64()? * bunch["times"].as_u64()?);
        let together: u64 = bunches.iter().filter_map(packets).sum();
        assert!(line["lost"]["path"].as_u64() <= Some(together), "{line}");
    }
}
