//! A `guard` run, read back: its text, its page, and its figures.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};

use measure::{GuardRefusal, GuardSummary};
use report::load::{self, Loaded};
use report::{Style, html, terminal};

use crate::golden_files::assert_golden;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn run(name: &str) -> Loaded {
    load::load(&golden().join(name)).unwrap()
}

#[test]
fn the_terminal_shows_it_as_it_did() {
    let texts = [("guard", 120), ("guard-forward", 80)].map(|(name, width)| {
        let run = run(name);
        let guard = run.result_of::<GuardSummary>().expect("of guard");
        let style = Style {
            width,
            ..Style::plain()
        };
        let path = golden().join(format!("terminal/{name}-{width}.txt"));
        (path, terminal::render(guard, &style))
    });
    assert_golden(&texts);
}

#[test]
fn a_rule_that_costs_something_is_never_free() {
    let mut guard = run("guard")
        .result_of::<GuardSummary>()
        .expect("of guard")
        .clone();
    guard.blocks[0].made.cost = 0.0004;
    let text = terminal::render(&guard, &Style::plain());
    assert!(text.contains("  0.0400 %  "), "{text}");
}

#[test]
fn the_page_says_what_was_blocked_and_why_and_what_was_not() {
    let run = run("guard");
    let guard = run.result_of::<GuardSummary>().expect("of guard");
    assert!(!guard.blocks.is_empty() && !guard.refusals.is_empty());
    let page = html::page(std::slice::from_ref(&run)).unwrap();
    for words in [
        "Where each packet went",
        "Rules made",
        "Not blocked",
        "What was blocked, and why",
        "deny udp sport 123 to 192.0.2.1",
        "dport 23 from 198.18.7.7",
        "from 9.9.9.9",
        "it spoke with before",
        "amplification",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
}

#[test]
fn its_figures_are_those_of_its_rules() {
    let run = run("guard");
    let guard = run.result_of::<GuardSummary>().expect("of guard");
    assert_eq!(
        run.figures("blocks"),
        [(String::new(), guard.blocks.len() as f64)]
    );
}

/// A guard that let a flood through is not as fast as one that stopped all.
#[test]
fn what_was_not_stopped_has_no_time() {
    let with = |change: fn(&mut GuardSummary)| {
        let mut run = run("guard");
        let mut guard = run.result_of::<GuardSummary>().expect("of guard").clone();
        guard.refusals.clear();
        change(&mut guard);
        run.result = Box::new(guard);
        let tiles = run.result.tiles();
        let tile = tiles.into_iter().find(|tile| tile.name == "stopped after");
        (run.figure("stopped_after"), tile.map(|tile| tile.value))
    };
    assert_eq!(
        with(|_| {}),
        (Some(0.3e9), Some("300.0 ms".to_owned())),
        "the slower of two"
    );
    let changes: [fn(&mut GuardSummary); 4] = [
        |guard| guard.refusals.push(GuardRefusal::default()),
        |guard| guard.further_refusals = 1,
        |guard| guard.further_blocks = 1,
        |guard| guard.blocks[0].stopped_after_s = None,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        assert_eq!(with(change), (None, None), "{at}");
    }
}

#[test]
fn the_page_of_one_between_ports_has_what_forwarding_has() {
    let run = run("guard-forward");
    let page = html::page(std::slice::from_ref(&run)).unwrap();
    for words in [
        "Where each packet went",
        "What was blocked, and why",
        "deny udp sport 49152 dport 9 to 10.77.0.2",
        "edge, afternoon",
        "packet:ml",
        "net_af_packet",
        "core 1",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
}
