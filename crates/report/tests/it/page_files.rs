//! What a page is made of, read from files: thinned, of older versions, missing or broken.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(clippy::float_cmp, reason = "what was written must be read, to the bit")]

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use report::load;
use report::{RunDir, Style, html, terminal};
use serde_json::Value;

use crate::common;
use crate::page::{data, largest};

const OLDER: &str = "time,tx_packets,rx_packets,drop_rate,avg_latency\n";

/// 300,000 intervals, one of them bad: few points, and the one is there with its whole height.
#[test]
fn thinning_hides_no_spike() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.csv");
    let mut text = OLDER.to_owned();
    for ms in 1..=300_000 {
        text += match ms {
            254_321 => "254321,1000,0,1,0.9\n".to_owned(),
            123_456 => "123456,1000,1000,0,777.5\n".to_owned(),
            233_333 => "233333,0,0,0,0.05\n".to_owned(),
            _ => format!("{ms},1000,1000,0,0.05\n"),
        }
        .as_str();
    }
    fs::write(&path, &text).unwrap();
    let run = load::load(&path).unwrap();
    let series = run.series.as_ref().unwrap();
    assert_eq!((series.rows, series.totals.lost), (300_000, 1000.0));
    assert!(
        (2000..=4000).contains(&series.points().len()),
        "{}",
        series.points().len()
    );
    let run = [run];
    let page = html::page(&run).unwrap();
    let channels = &data(&page)["runs"][0]["series"]["channels"];
    assert_eq!(largest(&channels["loss"]["max"]), 100.0);
    assert_eq!(largest(&channels["mean"]["max"]), 777.5e6);
    for part in [
        "at most 100 % of an interval, that which ends at 254.3 s",
        "took 777.5 ms, in the interval that ends at 123.5 s",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let least = channels["sent"]["min"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .fold(1e9, f64::min);
    assert_eq!(least, 0.0);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());

    // Packed, in two frames, it is the same.
    let (one, two) = text.as_bytes().split_at(text.len() / 3);
    let pack = |part: &[u8]| zstd::encode_all(part, 1).unwrap();
    let packed = dir.path().join("long.csv.zst");
    fs::write(&packed, [pack(one), pack(two)].concat()).unwrap();
    let unpacked = load::load(&packed).unwrap().series.unwrap();
    assert_eq!(unpacked.points(), run[0].series.as_ref().unwrap().points());
}

fn series_of(path: &Path) -> load::Series {
    load::load(path).unwrap().series.unwrap()
}

#[test]
fn older_files_have_steps_of_any_length() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.csv");
    let rates = |rows: &str| {
        fs::write(&path, format!("{OLDER}{rows}")).unwrap();
        let series = series_of(&path);
        (
            series.whole.span(load::Channel::Sent).mean().unwrap(),
            series.step_ms,
        )
    };
    assert_eq!(
        rates("1,200,150,0.25,0.75\n2,200,0,1.0,\n"),
        (200_000.0, (1.0, 1.0))
    );
    assert_eq!(
        rates("0,200,200,0,0.75\r\n100,200,200,0,nan\r\n"),
        (2000.0, (100.0, 100.0))
    );
    assert_eq!(rates("100,200,200,0,0.75"), (2000.0, (100.0, 100.0)));
}

/// A histogram is there and back; a run without one has no curve, and no trouble.
#[test]
fn percentile_curves_are_read_back() {
    let base = tempfile::tempdir().unwrap();
    let run = RunDir::create(base.path(), "send", SystemTime::now()).unwrap();
    run.write_result(&common::clean()).unwrap();
    assert_eq!(load::load(run.path()).unwrap().latency.len(), 0);
    run.write_latency(&measure::Histogram::new(11)).unwrap();
    assert_eq!(load::load(run.path()).unwrap().latency.len(), 0);
    let mut latency = measure::Histogram::new(11);
    (1..=100_000).for_each(|ns| latency.record(ns, 1));
    run.write_latency(&latency).unwrap();
    run.write_pacing(&latency, 0.5).unwrap();
    let loaded = load::load(run.path()).unwrap();
    let (first, last) = (loaded.latency.first().unwrap(), loaded.latency.last().unwrap());
    assert_eq!((first.value_ns, last.value_ns, last.share), (1.0, 100_000.0, 1.0));
    assert_eq!(loaded.pacing.last().unwrap().value_ns, 50_000.0);
}

/// What a run must have written and is not there is told, on the page and in the terminal.
#[test]
fn a_missing_file_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1");
    for name in ["summary.json", "intervals.csv"] {
        fs::copy(from.join(name), dir.path().join(name)).unwrap();
    }
    let run = load::load(dir.path()).unwrap();
    let page = html::page(std::slice::from_ref(&run)).unwrap();
    let text = terminal::runs(&[run], &Style::plain());
    for missing in [
        "stalls.csv is not in the run directory",
        "latency.hgrm is not in the run directory",
    ] {
        assert!(page.contains(missing), "{missing}");
        assert!(text.contains(&format!("note: {missing}")), "{text}");
    }
    assert!(!text.contains("intervals.csv is not"), "{text}");
}

/// What is wrong with a file of intervals is one sentence, with what mends it.
#[test]
fn impossible_rows_and_broken_packing_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        load::load(&path)
    };
    let more = format!("{OLDER}100,10,250,2.5,1\n");
    let refused = file("drop.csv", more.as_bytes()).unwrap_err().to_string();
    assert!(
        refused.ends_with("line 2: drop_rate is 250 %, more than 100 %"),
        "{refused}"
    );
    let told = file(
        "more.csv",
        format!("{OLDER}100,10,20,0,1\n200,10,10,0,1\n").as_bytes(),
    )
    .unwrap();
    let told = terminal::runs(&[told], &Style::plain());
    assert!(
        told.contains("note: in 1 interval more packets came back than were sent"),
        "{told}"
    );

    let rows: Vec<String> = (1..5000).map(|ms| format!("{ms},{ms},{ms},0,1\n")).collect();
    let text = OLDER.to_owned() + &rows.concat();
    let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let cut = file("cut.csv.zst", &packed[..packed.len() / 2])
        .unwrap_err()
        .to_string();
    assert!(
        cut.contains("its zstd data is cut off or damaged; fix: "),
        "{cut}"
    );
    let followed = file("more.csv.zst", &[&packed[..], b"more".as_slice()].concat());
    let followed = followed.unwrap_err().to_string();
    assert!(
        followed.contains("something that is not zstd follows its zstd data; fix: "),
        "{followed}"
    );
    assert!(
        [cut, followed]
            .iter()
            .all(|line| !line.contains("Error") && !line.contains('\n'))
    );
}
