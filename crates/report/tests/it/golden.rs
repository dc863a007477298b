//! Version 1 of the files: what is written today is byte for byte what was written then, and reads back the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use crate::common;
use crate::golden_files;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use measure::result::Stall;
use measure::{ReflectSummary, Summary};
use report::load::{self, Channel, Series};
use report::rundir::file;
use report::{IntervalWriter, RunDir, read};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v2")
}

/// What was written before notes and reasons had codes.
fn before() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

fn run() -> (tempfile::TempDir, RunDir) {
    let base = tempfile::tempdir().unwrap();
    let run = RunDir::create(base.path(), "send", SystemTime::now()).unwrap();
    (base, run)
}

fn assert_golden(run: &RunDir, name: &str, as_name: &str) {
    let written = fs::read_to_string(run.file(name)).unwrap();
    let path = golden().join(as_name);
    // Only a file that is not there yet is written: a version never changes.
    if !path.exists() {
        return golden_files::assert_golden(&[(path, written)]);
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert!(
        written == golden,
        "{as_name} is not what this version is; it is now:\n{written}"
    );
}

#[test]
fn summary_and_ledger() {
    let (_base, run) = run();
    run.write_json(file::LEDGER, &common::lossy().ledger).unwrap();
    run.write_result(&common::lossy()).unwrap();
    assert_golden(&run, "summary.json", "summary.json");
    assert_golden(&run, "ledger.json", "ledger.json");
    assert_eq!(read::summary(run.path()).unwrap(), common::lossy());
    assert_eq!(read::summary(&golden()).unwrap(), common::lossy());
    let old = read::summary(&before()).unwrap();
    assert_eq!((old.version, Summary { version: 2, ..old }), (1, common::lossy()));
}

#[test]
fn reflect_summary() {
    let (_base, run) = run();
    run.write_result(&common::reflected()).unwrap();
    assert_golden(&run, "summary.json", "reflect/summary.json");
    assert_eq!(
        read::reflect_summary(&golden().join("reflect")).unwrap(),
        common::reflected()
    );
    let old = read::reflect_summary(&before().join("reflect")).unwrap();
    let newer = ReflectSummary { version: 2, ..old };
    assert_eq!(newer, common::reflected());
}

fn intervals(path: &Path) -> Series {
    load::load(path).unwrap().series.unwrap()
}

#[test]
fn intervals_and_streams() {
    let (_base, run) = run();
    let mut writer = IntervalWriter::create(&run, &["voice".to_owned(), "bulk, 1518 bytes".to_owned()], true);
    writer.push(&common::interval(0, 3_500_000, 3_500_000, 1_234));
    writer.push(&common::interval(1, 3_500_000, 3_499_999, 1_300));
    writer.push(&common::interval(2, 3_500_000, 0, 0)); // everything lost
    writer.push(&common::interval(3, 0, 0, 0)); // nothing sent
    writer.finish().unwrap();
    assert_golden(&run, "intervals.csv", "intervals.csv");
    assert_golden(&run, "streams.csv", "streams.csv");

    let series = intervals(&golden().join("intervals.csv"));
    let figures: Vec<_> = series
        .points()
        .iter()
        .map(|point| {
            let mean = |channel| point.span(channel).mean();
            (point.end_ms, mean(Channel::Loss), mean(Channel::Mean))
        })
        .collect();
    let expected = [
        (1000.0, Some(0.0), Some(1234.0)),
        (2000.0, Some(100.0 / 3_500_000.0), Some(1300.0)),
        (3000.0, Some(100.0), None),
        (4000.0, None, None),
    ];
    assert_eq!(figures, expected);
    assert_eq!(Some(series.points()[1].counts.lost), Some(1.0));
    assert_eq!(series.points()[2].span(Channel::P99).mean(), None);
}

/// Packets that were late leave in no time, and what is left of a run is no rate that anybody sent at.
#[test]
fn what_is_left_of_a_run_has_no_rate() {
    let (_base, run) = run();
    let mut writer = IntervalWriter::create(&run, &["default".to_owned()], true);
    writer.push(&common::interval(0, 1000, 1000, 1_234));
    for (index, length_ns) in [(1, 100_000_000), (2, 2_000)] {
        let mut row = common::interval(index, 10, 10, 1_234);
        row.end_ns = row.start_ns + length_ns;
        writer.push(&row);
    }
    writer.finish().unwrap();
    let text = fs::read_to_string(run.file("intervals.csv")).unwrap();
    let rates = |line: &str| line.split(',').skip(11).take(2).collect::<Vec<_>>().join(",");
    let rates: Vec<String> = text.lines().skip(1).map(rates).collect();
    assert_eq!(rates, ["1000.000,1000.000", "100.000,100.000", ","]);
    assert_eq!(intervals(&run.file("intervals.csv")).totals.sent as u64, 1020);
}

#[test]
fn stalls() {
    let (_base, run) = run();
    let stall = Stall {
        core: 4,
        role: "receive".to_owned(),
        at_ns: 2_500_812_000,
        gap_ns: 812_000,
        ring_holds_ns: 585_142,
        cause: Some("IRQ 57 mlx5_comp3".to_owned()),
        moved: 32,
        next: 128,
        lost: 1980,
        sequences: "0:70210-72189".to_owned(),
    };
    run.write_stalls(&[stall]).unwrap();
    assert_golden(&run, "stalls.csv", "stalls.csv");
}

#[test]
fn one_stream_needs_no_streams_file() {
    let (_base, run) = run();
    IntervalWriter::create(&run, &["default".to_owned()], true)
        .finish()
        .unwrap();
    assert!(run.file("intervals.csv").exists() && !run.file("streams.csv").exists());
}

#[test]
fn intervals_of_the_older_project_read_too() {
    let (_base, run) = run();
    fs::write(
        run.file("intervals.csv"),
        "time,tx_packets,rx_packets,drop_rate,avg_latency\n1000,200,150,0.25,0.75\n2000,200,0,1.0,\n",
    )
    .unwrap();
    let series = intervals(&run.file("intervals.csv"));
    let mean = |at: usize, channel| series.points()[at].span(channel).mean();
    assert_eq!(series.rows, 2);
    assert_eq!(
        (mean(0, Channel::Loss), mean(0, Channel::Mean)),
        (Some(25.0), Some(750_000.0))
    );
    assert_eq!(
        (mean(1, Channel::Loss), mean(1, Channel::Mean)),
        (Some(100.0), None)
    );
}

#[test]
fn what_cannot_be_read_is_one_clear_line() {
    let (_base, run) = run();
    let absent = read::summary(run.path()).unwrap_err().to_string();
    assert!(absent.ends_with(" a run directory?"), "{absent}");
    let error = |text: &str| {
        fs::write(run.file("summary.json"), text).unwrap();
        let error = read::summary(run.path()).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    assert!(error("{\"version\": 7, \"command\": \"later\"}").ends_with("fix: use a newer dropless"));
    assert!(
        error("{\"version\": 1, \"command\": \"reflect\"}")
            .ends_with("is the result of `reflect`, not of `send`")
    );
    assert!(error("{\"version\": 1, \"comm").contains("is damaged: EOF"));
    assert!(error("{}").contains("it has no format version"));
    assert!(
        error("{\"version\": 1, \"command\": \"send\", \"sent\": -1}").contains("is damaged: invalid value")
    );

    fs::write(
        run.file("intervals.csv"),
        "time,tx_packets,rx_packets,drop_rate,avg_latency\n1,2\n",
    )
    .unwrap();
    let error = load::load(&run.file("intervals.csv")).unwrap_err().to_string();
    assert!(
        error.ends_with("is damaged: line 2: 2 fields under 5 columns"),
        "{error}"
    );
}
