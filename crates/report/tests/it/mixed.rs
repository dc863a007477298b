//! Runs of every kind together, and many of one kind: any mixture is shown, and like is compared with like.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};

use report::export::{csv, json};
use report::load::{self, DRAWN_MAX, Loaded};
use report::{Style, html, terminal};

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
        "\nsend ",
        "\nreflect ",
        "\nsearch ",
        "\ncompare ",
        "\nnoise ",
        "  [8] ",
    ] {
        assert!(text.contains(words), "no {words:?}: {text}");
    }
    // v1, its intervals alone, and v1 again; and noise twice.
    assert_eq!(text.matches("Side by side").count(), 2, "{text}");
    let page = html::page(&runs).unwrap();
    for words in [
        "Side by side: send",
        "Side by side: noise",
        "What each run came to",
        "<details><summary>All of v1</summary>",
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
        text.contains("  [15]") && !text.contains("Side by side"),
        "{text}"
    );
    assert_eq!(runs.iter().filter(|run| run.series.is_some()).count(), DRAWN_MAX);
    let page = html::page(&runs).unwrap();
    assert_eq!(page.matches("<svg class=flow").count(), DRAWN_MAX);
    assert!(page.contains("those of the first 12 runs"));
    let figures = |run: &Loaded| csv::table(std::slice::from_ref(run));
    assert_eq!(figures(&runs[0]), figures(&runs[DRAWN_MAX + 2]));
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
        let text = terminal::runs(&runs, &style);
        let longer: Vec<&str> = text.lines().filter(|line| line.chars().count() > width).collect();
        assert!(longer.is_empty(), "{width}: {longer:#?}");
    }
}
