//! Runs of every kind in a directory of the test's own, to be damaged; and what the report says of them.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails the test by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use measure::Histogram;
use report::export::{csv, json};
use report::{RunDir, Style, html, input, load, terminal};

pub const OLDER: &str = "time,tx_packets,rx_packets,drop_rate,avg_latency\n";

/// A run of each kind with all of its files, and an older file plain and packed; each is named as a user would.
pub fn runs(base: &Path) -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut runs = Vec::new();
    for name in [
        "v1",
        "v1/reflect",
        "search",
        "rfc2544",
        "compare",
        "noise",
        "replay",
        "filter",
        "guard",
    ] {
        let run = base.join(name.replace('/', "-"));
        fs::create_dir(&run).unwrap();
        for entry in fs::read_dir(golden.join(name)).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                fs::copy(entry.path(), run.join(entry.file_name())).unwrap();
            }
        }
        fs::write(
            run.join("host.json"),
            serde_json::json!({"cpu": "x86", "cores": 2}).to_string(),
        )
        .unwrap();
        runs.push(run);
    }
    let mut histogram = Histogram::new(5);
    (1..2000).for_each(|n| histogram.record(n * n, n));
    let send = RunDir::reopen(&runs[0]);
    send.write_latency(&histogram).unwrap();
    send.write_pacing(&histogram, 0.5).unwrap();
    send.write_json(
        "doctor.json",
        &serde_json::json!({"version": 1, "findings": [{"id": "governor"}]}),
    )
    .unwrap();
    let rows = "10,100,90,0.1,0.5\n20,100,110,0,0.25\n30,0,0,,\n";
    let reflected = format!("time,rx_packets,tx_packets,dropped\n{}", "10,5,4,1\n20,5,5,0\n");
    fs::write(runs[1].join("intervals.csv"), reflected).unwrap();
    for (name, text) in [
        ("older.csv", format!("{OLDER}{rows}").into_bytes()),
        (
            "older.csv.zst",
            zstd::encode_all(format!("{OLDER}{rows}").as_bytes(), 1).unwrap(),
        ),
    ] {
        fs::write(base.join(name), text).unwrap();
        runs.push(base.join(name));
    }
    runs
}

/// What the report says of `path`: drawn in every form without anything that could get at a terminal, or why not.
pub fn report(path: &Path) -> Result<String, String> {
    let run = load::load(path).map_err(|error| error.to_string())?;
    let runs = [run];
    let text = terminal::runs(&runs, &Style::plain()) + &csv::table(&runs);
    assert!(
        text.lines().all(|line| !line.contains(input::is_unsafe)),
        "{text:?}"
    );
    serde_json::to_string(&json::object(&runs, &[])).unwrap();
    html::page(&runs).unwrap();
    Ok(text)
}
