//! Two programs that poll on one machine: the second takes another core than the first, or says with whom it shares one.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Lab, Need, require};

const LIMIT: Duration = Duration::from_secs(30);

/// What runs say that send to a reflector, which polls a core of its own choice, and what that says: each with further arguments.
fn beside<const N: usize>(lab: &Lab, runs: [&[&str]; N]) -> ([Value; N], Value, u32) {
    let reflect = [
        "reflect",
        "--json",
        "--no-doctor",
        "--port",
        "memif:m.sock,server",
    ];
    let mut reflect = lab.dropless(&reflect).spawn();
    reflect.wait_for("reflecting", LIMIT);
    let send = [
        "send",
        "--json",
        "--quiet",
        "--port",
        "memif:m.sock",
        "--count",
        "100",
    ];
    let told = runs.map(|arguments| lab.dropless(&[&send[..], arguments].concat()).run().json());
    let process = reflect.id();
    reflect.signal(Signal::SIGINT);
    (told, reflect.wait(LIMIT).json(), process)
}

fn core(run: &Value) -> u64 {
    run["workers"][0]["core"].as_u64().expect("a worker has a core")
}

#[test]
fn a_core_that_another_run_polls_is_left() {
    let Some(lab) = require(&[Need::Processors(2)]) else {
        return;
    };
    let ([send], reflect, _) = beside(&lab, [&[]]);
    assert_ne!(core(&send), core(&reflect), "{send}");
}

#[test]
fn who_must_share_a_core_is_told_first_with_whom() {
    let Some(lab) = require(&[Need::Processors(2)]) else {
        return;
    };
    let (runs, reflect, process) = beside(&lab, [&["--cores", "0"], &["--cores", "1"]]);
    for run in runs {
        let first = &run["notes"][0];
        let is_shared = core(&run) == core(&reflect);
        assert_eq!(first["code"] == "core_polled_too", is_shared, "{run}");
        let text = first["text"].as_str().unwrap_or_default();
        let names = text.contains(&format!("of process {process}, too")) && text.contains("--cores");
        assert_eq!(names, is_shared, "{text}");
    }
}

/// Who chooses at the same moment does not see the other's worker yet.
#[test]
fn two_that_start_at_once_take_two_cores() {
    let Some(lab) = require(&[Need::Processors(2)]) else {
        return;
    };
    let run = |port: &'static str| {
        let send = [
            "send",
            "--json",
            "--quiet",
            "--no-doctor",
            "--tx-only",
            "--rate",
            "1kpps",
        ];
        let arguments = [&send[..], &["--duration", "300ms", "--port", port]].concat();
        lab.dropless(&arguments).spawn()
    };
    for _ in 0..5 {
        let both = [run("null:a"), run("null:b")].map(|run| core(&run.wait(LIMIT).json()));
        assert_ne!(both[0], both[1]);
    }
}
