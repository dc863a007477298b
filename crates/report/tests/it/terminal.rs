//! The report for people, as it stands in golden files. `UPDATE_GOLDEN=1 cargo test -p report` writes them anew.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use crate::common;
use crate::golden_files::assert_golden;

use std::collections::BTreeMap;
use std::path::Path;

use measure::{Balance, Note, Place, Validity};
use report::Style;
use report::terminal::render;
use unicode_width::UnicodeWidthStr;

fn at(width: usize) -> Style {
    Style {
        width,
        ..Style::plain()
    }
}

#[test]
fn reports_look_as_they_did() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/terminal");
    let texts = [
        ("clean-80.txt", render(&common::clean(), &at(80))),
        ("lossy-80.txt", render(&common::lossy(), &at(80))),
        ("lossy-120.txt", render(&common::lossy(), &at(120))),
        ("reflect-80.txt", render(&common::reflected(), &at(80))),
    ];
    assert_golden(&texts.map(|(name, text)| (folder.join(name), text)));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [80, 100, 120] {
        for text in [
            render(&common::lossy(), &at(width)),
            render(&common::reflected(), &at(width)),
        ] {
            let wide: Vec<&str> = text.lines().filter(|line| line.width() > width).collect();
            assert!(wide.is_empty(), "at {width}: {wide:#?}");
        }
    }
}

#[test]
fn colours_change_no_character() {
    let coloured = render(
        &common::lossy(),
        &Style {
            color: true,
            ..at(80)
        },
    );
    assert!(coloured.contains("\x1b["));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, render(&common::lossy(), &at(80)));
}

#[test]
fn the_verdict_comes_last_in_plain_words() {
    let last = |summary: &measure::Summary| {
        let text = render(summary, &at(80));
        text.rsplit("\n\n")
            .next()
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    let mut summary = common::clean();
    assert_eq!(
        last(&summary),
        "VALID: 35,000,000 packets sent, every one came back"
    );
    summary.duplicate = 3;
    assert_eq!(
        last(&summary),
        "VALID: 35,000,000 packets sent, every one came back, but 3 came more than once"
    );
    assert_eq!(
        last(&common::lossy()),
        "VALID: 35,000,000 packets sent, 1,234 lost (0.0035 %, 4 of them late)"
    );
    summary.verdict = Validity::Invalid;
    summary.reasons = vec![Note::new("nothing_received", "nothing was received")];
    assert_eq!(last(&summary), "INVALID: nothing was received");
    summary
        .reasons
        .push(Note::new("link_lost", "port ring lost its link"));
    let text = render(&summary, &at(80));
    assert!(
        text.contains("\n\nINVALID for 2 reasons:\n  - nothing was received\n  - port ring lost its link\n"),
        "{text}"
    );
}

/// What was never sent is not returned, whatever a driver took.
#[test]
fn a_reflector_has_returned_what_was_sent() {
    let words = |summary: &measure::ReflectSummary| {
        let text = render(summary, &at(80));
        text.lines().last().unwrap().to_owned()
    };
    let mut summary = measure::ReflectSummary {
        dropped: BTreeMap::new(),
        received: 1000,
        returned: 1000,
        ..common::reflected()
    };
    assert_eq!(
        words(&summary),
        "VALID: 1,000 frames received, every one returned"
    );
    let mut with = |entered, left, places: &[(&'static str, u64)]| {
        let places = places.iter().map(|(name, count)| (Place::named(name), *count));
        summary.ledger = Balance::of(entered, left, places);
        words(&summary)
    };
    assert_eq!(
        with(1000, 990, &[("tx_dropped", 10)]),
        "VALID: 1,000 frames received, 990 returned, 10 lost"
    );
    assert_eq!(
        with(1500, 1000, &[("rx_missed", 500)]),
        "VALID: 1,000 frames received, every one returned, 500 missed by its ports"
    );
    // As many copies as were dropped on purpose.
    assert_eq!(
        with(1010, 1000, &[("fault_drop", 10)]),
        "VALID: 1,000 frames received, 1,000 returned"
    );
}

#[test]
fn the_figures_are_between_the_run_directory_and_the_verdict() {
    let text = render(&common::lossy(), &at(80));
    let heads = [
        "\nrun directory: runs/2025-11-20T23-30-45Z-send\n",
        "\nRate ",
        "\nLoss ",
        "\nLatency ",
        "\nVALID: ",
    ];
    let places = heads.map(|head| text.find(head).unwrap());
    assert!(places.is_sorted(), "{places:?} {text}");
    // What a terminal of 24 lines still shows.
    assert!(text[places[1]..].lines().count() < 24, "{text}");
}

#[test]
fn every_place_is_named_even_with_nothing_lost() {
    let text = render(&common::clean(), &at(80));
    for place in [
        "late",
        "corrupt",
        "tx_error",
        "rx_nombuf",
        "rx_missed",
        "rx_error",
        "unexplained",
    ] {
        let (_, none) = text.split_once("  0 each: ").unwrap();
        let (none, _) = none.split_once("\n  balances").unwrap();
        let mut names = none.split([',', ' ', '\n']);
        assert!(names.any(|name| name == place), "{place}: {none}");
    }
    assert!(text.contains("\n  balances: every packet is accounted for\n"));
}

#[test]
fn a_ledger_that_does_not_balance_says_so_whatever_the_verdict() {
    let mut summary = common::clean();
    summary.ledger.accepted += 1;
    assert!(render(&summary, &at(80)).contains("DOES NOT BALANCE"));
}

#[test]
fn a_run_that_measured_nothing_still_prints() {
    let text = render(&measure::Summary::default(), &at(80));
    assert!(
        text.ends_with("\nINVALID: these numbers must not be believed\n"),
        "{text}"
    );
    assert!(
        text.contains("unexplained  0") || text.contains("unexplained"),
        "{text}"
    );
    render(&measure::ReflectSummary::default(), &at(40));
}

#[test]
fn a_thousand_streams_show_the_worst() {
    let mut summary = common::lossy();
    let one = summary.streams[0].clone();
    summary.streams = (0..1000)
        .map(|number| measure::StreamSummary {
            name: format!("s{number}"),
            lost: number % 500,
            ..one.clone()
        })
        .collect();
    let text = render(&summary, &at(80));
    assert!(
        text.contains("  s499 ") && text.contains("  s999 ") && !text.contains("  s0 "),
        "{text}"
    );
    assert!(
        text.contains("the 16 with the most loss of 1000; all are in summary.json"),
        "{text}"
    );
}

/// One packet of two thousand million is lost: the chart says so, as the page does.
#[test]
fn a_loss_is_never_none_of_something() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows.csv");
    let rows = "time,rx_packets,captured,dropped,missed\n1000,1999999999,1999999999,0,1\n";
    std::fs::write(&file, rows).unwrap();
    let run = report::load::load(&file).unwrap();
    let text = report::terminal::runs(std::slice::from_ref(&run), &Style::plain());
    assert!(text.contains("up to <0.0001 %"), "{text}");
    assert!(
        report::html::page(&[run])
            .unwrap()
            .contains("at most &lt;0.0001 %")
    );
}
