//! `report.html` in a real browser: charts are really drawn, and answer to the pointer and to the keyboard.

#![allow(clippy::expect_used, reason = "a helper of tests fails the test by panicking")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{Lab, Need, require};

const NEEDS: [Need; 3] = [
    Need::Tool("chromium"),
    Need::Tool("chromedriver"),
    Need::File("/usr/lib/python3/dist-packages/selenium/__init__.py"),
];

/// A run of a second with loss, and where its directory is.
fn run(lab: &Lab, further: &[&str]) -> String {
    let common = [
        "send",
        "--rate",
        "20kpps",
        "--duration",
        "1s",
        "--interval",
        "10ms",
        "--json",
    ];
    let run = lab.dropless(&[&common, further].concat()).run();
    run.json()["run"].as_str().expect("a run directory").to_owned()
}

/// What is to be seen on a page; its pictures are left in `DROPLESS_PICTURES`, where that is set.
fn look(lab: &Lab, page: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/look.py");
    let pictures =
        std::env::var_os("DROPLESS_PICTURES").map_or_else(|| lab.directory().to_owned(), Into::into);
    let output = Command::new("timeout")
        .args(["120", "/usr/bin/python3"])
        .args([&script, page, &pictures])
        .env("HOME", lab.directory())
        .output()
        .expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn names(seen: &Value, pointer: &str) -> Vec<String> {
    let list = seen.pointer(pointer).and_then(Value::as_array).expect("a list");
    list.iter()
        .map(|item| item.as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Every chart has lines or cells, not only axes: more colours than text and grid have.
fn all_drawn(seen: &Value, scheme: &str) -> Vec<String> {
    let charts = seen[scheme]["charts"].as_array().expect("charts");
    for chart in charts {
        assert!(
            chart["drawn"].as_u64() > Some(2000) && chart["colours"].as_u64() > Some(8),
            "{chart}"
        );
        assert!(
            chart["label"].as_str().is_some_and(|label| label.len() > 10),
            "{chart}"
        );
    }
    charts
        .iter()
        .filter_map(|chart| Some(chart["kind"].as_str()?.to_owned()))
        .collect()
}

fn is_sound(seen: &Value) {
    assert_eq!(seen["log"], Value::Array(Vec::new()), "{seen}");
    assert_eq!(seen["resources"], Value::Array(Vec::new()), "it loaded something");
    assert_eq!(seen["unnamed"], 0, "a part of the page has no name");
    assert_ne!(seen["light"]["back"], seen["dark"]["back"]);
    assert_eq!(seen["print"]["is_pdf"], true);
    assert_eq!(seen["print"]["buttons"], false);
}

#[test]
fn a_run_is_drawn_and_answers() {
    let Some(lab) = require(&NEEDS) else { return };
    let directory = run(&lab, &["--fault", "drop=1%"]);
    let seen = look(&lab, &lab.directory().join(directory).join("report.html"));
    is_sound(&seen);
    let kinds = all_drawn(&seen, "light");
    for kind in ["rates", "loss", "latency", "heat-0", "percentiles", "pacing"] {
        assert!(
            kinds.iter().any(|drawn| drawn == kind),
            "{kind} is missing of {kinds:?}"
        );
    }
    assert_eq!(all_drawn(&seen, "dark"), kinds);
    // Hovering over one chart tells the values there, and those of the same moment in the others.
    assert!(
        names(&seen, "/hover/rates")
            .iter()
            .any(|value| value.contains("pps")),
        "{seen}"
    );
    assert!(
        names(&seen, "/hover/loss")
            .iter()
            .any(|value| value.contains('%')),
        "{seen}"
    );
    // Dragging zooms every chart over time, a double click shows all again.
    assert_eq!(seen["drag"][0], 0, "{seen}");
    assert!(seen["drag"][1].as_u64() >= Some(3), "{seen}");
    assert_eq!(seen["drag"][2], 0, "{seen}");
    assert!(
        seen["keyboard"]["said"]
            .as_str()
            .is_some_and(|said| said.contains("pps")),
        "{seen}"
    );
    assert!(seen["keyboard"]["zoomed"][0].as_u64() >= Some(3), "{seen}");
    assert_eq!(seen["keyboard"]["zoomed"][1], 0, "{seen}");
    assert!(
        seen["verdict"]
            .as_str()
            .is_some_and(|words| words.contains("VALID: ")),
        "{seen}"
    );
    // Intended to accepted to received, and what was dropped on purpose.
    assert!(seen["flows"][0]["ribbons"].as_u64() >= Some(3), "{seen}");
    assert!(
        seen["flows"][0]["words"]
            .as_str()
            .is_some_and(|words| words.contains("fault_drop")),
        "{seen}"
    );
}

#[test]
fn several_runs_and_an_older_file_share_their_charts() {
    let Some(lab) = require(&NEEDS) else { return };
    let (one, two) = (run(&lab, &[]), run(&lab, &["--fault", "drop=2%"]));
    let rows = (1..=20_000).map(|ms| {
        format!(
            "{ms},20,{},{},0.05\n",
            if ms == 777 { 0 } else { 20 },
            if ms == 777 { 100 } else { 0 }
        )
    });
    let csv = format!(
        "time,tx_packets,rx_packets,drop_rate,avg_latency\n{}",
        rows.collect::<String>()
    );
    std::fs::write(lab.path("old.csv"), csv).expect("a file");
    let made = lab
        .dropless(&["report", &one, &two, "old.csv", "--html", "all.html"])
        .run();
    assert_eq!(made.code, Some(0), "{made}");
    let seen = look(&lab, &lab.path("all.html"));
    is_sound(&seen);
    all_drawn(&seen, "light");
    assert_eq!(seen["flows"].as_array().map(Vec::len), Some(2), "{seen}");
    assert!(seen["drag"][1].as_u64() >= Some(3), "{seen}");
}
