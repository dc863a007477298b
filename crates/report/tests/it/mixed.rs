//! Runs of every kind together, and many of one kind: any mixture is shown, and like is compared with like.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use report::export::{csv, json};
use report::load::{self, DRAWN_MAX, Loaded};
use report::{Style, html, terminal};
use serde_json::json as value;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn all(names: &[&str]) -> Vec<Loaded> {
    let paths: Vec<PathBuf> = names.iter().map(|name| golden(name)).collect();
    load::all(&paths).unwrap()
}

const EVERY: [&str; 11] = [
    "v1",
    "noise",
    "search",
    "v1/reflect",
    "compare",
    "v1/intervals.csv",
    "noise",
    "v1",
    "replay",
    "filter",
    "guard",
];

#[test]
fn every_kind_has_its_table_and_is_compared_with_its_like() {
    let runs = all(&EVERY);
    let text = terminal::runs(&runs, &Style::plain());
    for words in [
        "  send     v1        VALID         1  3.500 Mpps   0.0035 %  8.765 us\n",
        "  reflect  reflect   VALID         0 ",
        "  search   search    FOUND ",
        "  -        interva~  - ",
        "  noise    noise     - ",
    ] {
        assert!(text.contains(words), "no {words:?}: {text}");
    }
    assert!(
        !text.contains("Side by side"),
        "what is of several kinds is listed: {text}"
    );
    let page = html::page(&runs).unwrap();
    for words in [
        "Side by side: send",
        "Side by side: noise",
        "What each run came to",
        "<details><summary>All of [1]</summary>",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
    let table = csv::table(&runs);
    // The baseline is the first run of the same kind, not the first of all.
    let noise: Vec<&str> = table
        .lines()
        .filter(|line| line.contains("/noise,stall_share,"))
        .collect();
    assert_eq!(noise.len(), 2, "{table}");
    assert!(noise.iter().all(|line| line.ends_with(",0,0")), "{noise:?}");
    let object = serde_json::to_value(json::object(&runs, &[])).unwrap();
    let kinds: Vec<_> = object["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["kind"].clone())
        .collect();
    assert_eq!(
        serde_json::json!(kinds),
        serde_json::json!([
            "send", "noise", "search", "reflect", "compare", null, "noise", "send", "replay", "filter",
            "guard"
        ])
    );
    let compared = object["differences"].as_array().unwrap();
    let reflect = golden("v1/reflect").display().to_string();
    assert!(
        compared.iter().all(|one| one["run"] != reflect),
        "it has nobody to be compared with"
    );
}

#[test]
fn many_runs_are_a_row_each_and_the_first_are_drawn() {
    let runs = all(&vec!["v1"; DRAWN_MAX + 3]);
    let text = terminal::runs(&runs, &Style::plain());
    assert!(
        text.matches("  send  ").count() == DRAWN_MAX + 3 && !text.contains("Side by side"),
        "{text}"
    );
    assert_eq!(runs.iter().filter(|run| run.series.is_some()).count(), DRAWN_MAX);
    let page = html::page(&runs).unwrap();
    assert_eq!(page.matches("<svg class=\"flow\"").count(), DRAWN_MAX);
    assert!(page.contains("those of the first 12 runs"));
    let figures = |run: &Loaded| csv::table(std::slice::from_ref(run));
    assert_eq!(figures(&runs[0]), figures(&runs[DRAWN_MAX + 2]));
}

/// What is told of few runs in a frame each is told of many, too.
#[test]
fn what_failed_or_is_missing_is_told_of_many_runs() {
    let dir = tempfile::tempdir().unwrap();
    let run =
        report::RunDir::create(&dir.path().join("failed"), "send", std::time::SystemTime::now()).unwrap();
    run.write_result(&common::lossy()).unwrap();
    let mut runs = vec![load::load(run.path()).unwrap(); 5];
    for run in &mut runs {
        run.path = PathBuf::from("runs/1");
    }
    assert_eq!((runs[0].failed(), runs[0].missing.is_empty()), (1, false));

    let text = terminal::runs(&runs, &Style::plain());
    assert!(text.contains("  verdict  FAILED  "), "{text}");
    assert_eq!(text.matches("  VALID         1  ").count(), 5, "{text}");
    let none = terminal::runs(&all(&["noise"; 5]), &Style::plain());
    assert!(!none.contains("FAILED"), "{none}");
    let text = terminal::runs(&runs[..2], &Style::plain());
    assert_eq!(text.matches("VALID, 1 expectation FAILED: ").count(), 2, "{text}");
    let page = html::page(&runs).unwrap();
    assert_eq!(page.matches("VALID, 1 expectation FAILED: ").count(), 5);
    let line = "intervals.csv is not in the run directory";
    assert_eq!(page.matches(line).count(), 5);
    assert_eq!(
        html::page(&runs[..2]).unwrap().matches(line).count(),
        2,
        "once each"
    );
    let row = serde_json::to_value(report::list::Row::of(&runs[0])).unwrap();
    assert_eq!(
        (&row["verdict"], &row["expectations_failed"]),
        (&value!("VALID"), &value!(1))
    );
}

/// memif reaches no network, so that no comparison recommends it.
#[test]
fn the_rate_of_a_comparison_is_that_of_a_way_to_a_network() {
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(golden("compare").join("compare.json")).unwrap();
    let text = text.replace("\"lossless_pps\": 20000.0", "\"lossless_pps\": 5255000.0");
    fs::write(dir.path().join("compare.json"), text).unwrap();
    let run = load::load(dir.path()).unwrap();
    assert_eq!(run.figures("throughput").last().unwrap().1 as u64, 5_255_000);
    assert_eq!(
        report::list::Row::of(&run).rate_pps.map(|rate| rate as u64),
        Some(56_350)
    );
}

#[test]
fn no_list_is_wider_than_the_terminal() {
    for width in [80, 100, 120] {
        let style = Style {
            width,
            ..Style::plain()
        };
        let mut runs = all(&["v1", "noise", "noise", "v1/reflect", "v1", "v1", "v1", "v1"]);
        for (at, run) in runs.iter_mut().enumerate() {
            run.path = PathBuf::from(format!("runs/2026-11-22T06-19-5{at}Z-send"));
        }
        for run in &mut runs {
            run.folder = "2026-11-22T06-19-50Z-send".into();
            run.label = Some("what somebody calls a run in many words".into());
        }
        let text = terminal::runs(&runs, &style);
        assert_eq!(text.matches("  VALID").count(), 6, "{text}");
        let longer: Vec<&str> = text.lines().filter(|line| line.chars().count() > width).collect();
        assert!(longer.is_empty(), "{width}: {longer:#?}");
    }
}

/// What a shell makes of `runs/*`: what did not end or cannot be read is a line, wherever it stands.
#[test]
fn runs_that_cannot_be_read_are_lines_of_the_list_and_the_newest_is_last() {
    let base = tempfile::tempdir().unwrap();
    let made = |name: &str, file: &str, text: &str| {
        let dir = base.path().join(name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(file), text).unwrap();
        dir
    };
    let summary = fs::read_to_string(golden("v1/summary.json")).unwrap();
    let paths = [
        made(
            "2025-11-20T23-30-47Z-noise",
            "summary.json",
            "{\"version\": 1, \"comm",
        ),
        made(
            "2025-11-20T23-30-46Z-reflect-2",
            "plan.json",
            "{\"label\": \"dies\"}",
        ),
        made("2025-11-20T23-30-45Z-send", "summary.json", &summary),
        made(
            "2025-11-20T23-30-48Z-send",
            "summary.json",
            "{\"version\": 99, \"command\": \"send\"}",
        ),
    ];
    let runs = load::all(&paths).unwrap();
    let wide = Style {
        width: 120,
        ..Style::plain()
    };
    let text = terminal::runs(&runs, &wide);
    let lines: Vec<&str> = text.lines().collect();
    for (line, begins) in lines.iter().skip(1).zip([
        "2025-11-20 23:30:45  send     [3]   VALID             1  3.500 Mpps  0.0035 %  8.765 us",
        "2025-11-20 23:30:46  reflect  dies  DID NOT END ",
        "2025-11-20 23:30:47  noise    [1]   UNREADABLE ",
        "2025-11-20 23:30:48  send     [4]   UNREADABLE ",
    ]) {
        assert!(line.starts_with(begins), "{line:?} is not {begins:?} in {text}");
    }
    assert!(
        text.contains("note: [4]: UNREADABLE: ") && text.contains("use a newer dropless"),
        "{text}"
    );
    let object = serde_json::to_value(json::object(&runs, &[])).unwrap();
    let row = |at: usize| &object["runs"][at]["row"];
    assert_eq!(row(1)["label"], "dies");
    assert_eq!(row(2)["when"], "2025-11-20T23:30:45Z");
    assert_eq!(row(2)["latency_p99_ns"], 8765.0);
    assert_eq!(
        (&object["runs"][0]["readable"], row(0)["verdict"].as_str()),
        (&false.into(), Some("UNREADABLE"))
    );
    // One that is not there was not meant, and one alone is an error.
    let absent = [paths[2].clone(), base.path().join("absent")];
    assert!(load::all(&absent).is_err() && load::all(&paths[..1]).is_err());
}

/// A label stands for a run among others, but for one that has it alone.
#[test]
fn labels_stand_for_runs() {
    let base = tempfile::tempdir().unwrap();
    let labelled = |name: &str, label: &str| {
        let dir = base.path().join(name);
        fs::create_dir(&dir).unwrap();
        let summary = fs::read_to_string(golden("v1/summary.json")).unwrap();
        let summary = summary.replacen('{', &format!("{{\"label\": \"{label}\","), 1);
        fs::write(dir.join("summary.json"), summary).unwrap();
        dir
    };
    let (one, other) = (labelled("one", "before"), labelled("two", "after <tuning>"));
    let runs = load::all(&[one.clone(), other.clone()]).unwrap();
    let text = terminal::runs(&runs, &Style::plain());
    assert!(
        text.contains("Side by side          before  after <tuning>  change"),
        "{text}"
    );
    let page = html::page(&runs).unwrap();
    for words in [
        "<title>before, after &lt;tuning&gt; - dropless",
        "<h2>The machine of before</h2>",
    ] {
        assert!(page.contains(words), "no {words}");
    }
    // Also in lines, where a run without a label is its path.
    let table = csv::table(&runs);
    assert!(
        table.contains("\nbefore,") && table.contains("\nafter <tuning>,"),
        "{table}"
    );
    let rule: report::compare::fail_if::Rule = "rate_rx worse 1%".parse().unwrap();
    let report::compare::fail_if::Judgement::Holds(line) = rule.judge(&runs[0], &runs[1]) else {
        panic!("{rule:?}")
    };
    assert!(
        line.contains(" in after <tuning>, ") && line.contains(" in before "),
        "{line}"
    );
    let plain = load::all(&[golden("v1")]).unwrap();
    assert!(csv::table(&plain).contains(&golden("v1").display().to_string()));
    // Whoever names the directory of them is told how to name them.
    fs::write(one.join("plan.json"), "{}").unwrap();
    let told = load::all(&[base.path().to_owned()]).unwrap_err().to_string();
    assert!(
        told.ends_with(&format!("name them, {}/*", base.path().display())),
        "{told}"
    );
    let alone = load::all(std::slice::from_ref(&one)).unwrap();
    assert!(html::page(&alone).unwrap().contains("<title>before - dropless"));
    let names = |paths: &[PathBuf]| -> Vec<String> {
        load::all(paths)
            .unwrap()
            .into_iter()
            .map(|run| run.name)
            .collect()
    };
    assert_eq!(
        names(&[one.clone(), other.clone(), one]),
        ["[1]", "after <tuning>", "[3]"]
    );
    assert_eq!(names(&[golden("v1"), other]), ["[1]", "after <tuning>"]);
}
