//! `report.html` in a real browser: charts are really drawn, and answer to the pointer and to the keyboard.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::{Lab, Need, require};
use nix::sys::signal::Signal;
use serde_json::Value;

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

/// What is to be seen on each page; pictures are taken where `DROPLESS_PICTURES` is set, and left there.
fn look(lab: &Lab, pages: &[PathBuf]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/look.py");
    let pictures = std::env::var_os("DROPLESS_PICTURES").unwrap_or_else(|| "-".into());
    let output = Command::new("timeout")
        .args(["180", "/usr/bin/python3"])
        .arg(&script)
        .arg(&pictures)
        .args(pages)
        .env("HOME", lab.directory())
        .output()
        .expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).expect("a list of JSON objects")
}

fn look_at(lab: &Lab, page: PathBuf) -> Value {
    look(lab, &[page]).remove(0)
}

fn names(seen: &Value, pointer: &str) -> Vec<String> {
    let list = seen.pointer(pointer).and_then(Value::as_array).expect("a list");
    list.iter()
        .map(|item| item.as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Every chart has lines or cells, not only axes: more colours than text and grid have.
fn all_drawn(seen: &Value, look: &str) -> Vec<String> {
    let charts = seen[look]["charts"].as_array().expect("charts");
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
    // Paper cannot be scrolled, and nobody points at it.
    assert_eq!(seen["print"]["too_wide"], 0, "{seen}");
    for legends in ["/idle", "/print/legends"] {
        for legend in names(seen, legends) {
            assert!(
                !legend.contains(':') && !legend.contains("time"),
                "{legends}: {legend}"
            );
        }
    }
    assert_eq!(seen["alone"], 0, "a picture without its table");
    for table in seen["tables"].as_array().expect("tables") {
        assert!(table["rows"].as_u64() >= Some(1), "{table}");
    }
    // The tabulator leads to whatever can be used, and shows where it is.
    let steps = seen["tabs"].as_array().expect("steps");
    assert!(steps.len() >= 2, "{seen}");
    for step in steps {
        assert!(
            step["shows"] == true && step["name"].as_str() > Some(""),
            "{step}"
        );
    }
    for chart in seen["light"]["charts"].as_array().expect("charts") {
        let is_chart = |step: &&Value| step["chart"] == chart["kind"];
        assert!(steps.iter().any(|step| is_chart(&step)), "no way to {chart}");
    }
    // The pointer tells of every mark of a picture what it is.
    for flow in seen["flows"].as_array().expect("pictures") {
        let marks = flow["marks"].as_array().expect("marks");
        assert!(
            !marks.is_empty() && marks.iter().all(|mark| mark.as_str() > Some("")),
            "{flow}"
        );
    }
}

#[test]
fn a_run_is_drawn_and_answers() {
    let Some(lab) = require(&NEEDS) else { return };
    let directory = run(&lab, &["--fault", "drop=1%"]);
    let seen = look_at(&lab, lab.directory().join(directory).join("report.html"));
    is_sound(&seen);
    let kinds = all_drawn(&seen, "light");
    for kind in ["rates", "loss", "latency", "heat-0", "percentiles", "pacing"] {
        assert!(
            kinds.iter().any(|drawn| drawn == kind),
            "{kind} is missing of {kinds:?}"
        );
    }
    assert_eq!(all_drawn(&seen, "dark"), kinds);
    assert_eq!(all_drawn(&seen, "print"), kinds);
    assert!(
        seen["hover"]["legend"]
            .as_str()
            .is_some_and(|legend| legend.contains("time")),
        "{seen}"
    );
    assert_eq!(
        seen["keyboard"]["pressed"],
        serde_json::json!(["true", "false", "false", "true", "true"]),
        "a line is shown or hidden, and stays so when all is drawn again"
    );
    assert_eq!(
        seen["nearly"],
        serde_json::json!([">99.9999 %", "99.99999 %", "99.9999999667 %", "99.99999999 %"])
    );
    // Hovering over one chart tells the values there, and those of the same moment in the others.
    assert!(
        names(&seen, "/hover/rates")
            .iter()
            .any(|value| value.contains("pps")),
        "{seen}"
    );
    // A dash where the machine had no time to send in that interval.
    assert!(
        names(&seen, "/hover/loss")
            .iter()
            .any(|value| value.contains('%') || value == "-"),
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
            i32::from(ms == 777)
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
    let seen = look_at(&lab, lab.path("all.html"));
    is_sound(&seen);
    all_drawn(&seen, "light");
    // In the middle of the file the runs have long ended: no value of theirs is of that moment.
    let rates = names(&seen, "/hover/rates");
    assert!(
        rates[1..5].iter().all(String::is_empty) && rates[5].contains("pps"),
        "{seen}"
    );
    assert_eq!(seen["flows"].as_array().map(Vec::len), Some(2), "{seen}");
    assert!(seen["drag"][1].as_u64() >= Some(3), "{seen}");
    assert_eq!(seen["drag"][2], 0, "{seen}");
    // The runs end long before the file does: what is all of theirs is a part of all.
    assert!(seen["keyboard"]["zoomed"][0].as_u64() >= Some(3), "{seen}");
    assert_eq!(seen["keyboard"]["zoomed"][1], 0, "{seen}");
}

/// A golden run of a search, of RFC 2544, of a comparison: its page is made by this program.
fn golden(lab: &Lab, name: &str) -> PathBuf {
    let run = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../report/tests/golden")
        .join(name);
    let page = lab.path(&format!("{name}.html"));
    let (run, file) = (run.display().to_string(), page.display().to_string());
    let made = lab.dropless(&["report", &run, "--html", &file]).run();
    assert_eq!(made.code, Some(0), "{made}");
    page
}

/// The page that a reflector leaves, beside a sender that is done.
fn reflected(lab: &Lab) -> PathBuf {
    let common = ["--no-huge", "--no-doctor", "--quiet", "--json"];
    let far = ["reflect", "--port", "memif:m.sock,server", "--interval", "50ms"];
    let near = [
        "send",
        "--port",
        "memif:m.sock",
        "--rate",
        "5kpps",
        "--duration",
        "500ms",
    ];
    let far = lab.dropless(&[&far[..], &common].concat()).spawn();
    let near = lab.dropless(&[&near[..], &common].concat()).run();
    assert!(near.number("received") > 0, "{near}");
    far.signal(Signal::SIGINT);
    let far = far.wait(Duration::from_secs(30));
    let directory = far.json()["run"].as_str().expect("a run directory").to_owned();
    lab.directory().join(directory).join("report.html")
}

/// Searches and comparisons have no chart over time, but pictures and bars; a reflector has charts of its own.
#[test]
fn pages_of_every_command_are_drawn_and_answer() {
    let Some(lab) = require(&NEEDS) else { return };
    let pages = [
        golden(&lab, "search"),
        golden(&lab, "rfc2544"),
        golden(&lab, "compare"),
        reflected(&lab),
    ];
    let all = look(&lab, &pages);
    all.iter().for_each(is_sound);
    let [search, rfc2544, compare, reflect] = all.as_slice() else {
        panic!("four pages: {all:?}");
    };
    let has = |seen: &Value, words: &str| {
        let captions = seen["tables"].as_array().expect("tables").iter();
        let found = captions
            .filter_map(|table| table["caption"].as_str())
            .any(|caption| caption.contains(words));
        assert!(found, "{words}: {seen}");
    };
    for seen in [search, rfc2544] {
        let marks = seen["flows"][0]["marks"].as_array().expect("marks");
        assert!(
            marks
                .iter()
                .all(|mark| mark.as_str().is_some_and(|words| words.starts_with("trial "))),
            "{seen}"
        );
        has(seen, "Trials in the order in which they were made");
    }
    has(rfc2544, "Frame loss rate");
    has(compare, "The highest rate that came back whole");
    let bars = |table: &Value| {
        table["bars"]
            .as_array()
            .expect("bars")
            .iter()
            .filter_map(Value::as_f64)
            .fold(0.0, f64::max)
    };
    assert!(bars(&compare["tables"][0]) > 50.0, "{compare}");

    let kinds = all_drawn(reflect, "light");
    assert!(
        ["rates", "loss"]
            .iter()
            .all(|kind| kinds.iter().any(|drawn| drawn == kind)),
        "{kinds:?}"
    );
    assert_eq!(all_drawn(reflect, "dark"), kinds);
    assert_eq!(all_drawn(reflect, "print"), kinds);
    assert!(
        names(reflect, "/hover/rates")
            .iter()
            .any(|value| value.contains("pps")),
        "{reflect}"
    );
    assert!(reflect["flows"][0]["ribbons"].as_u64() >= Some(1), "{reflect}");
}
