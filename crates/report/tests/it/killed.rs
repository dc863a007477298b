//! Run directories without a result: what was written until then is shown, as that of a run that did not end.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use report::export::{csv, json};
use report::load::{self, Loaded};
use report::{Style, html, intervals, terminal};
use serde_json::Value;

const ROWS: &str = "1000.000,100,90,10,0.5,1000.000,10,0,0,0,0,100.000,90.000,1,2,3,4,5,6\n\
                    2000.000,100,100,0,0.5,1000.000,0,0,0,0,0,100.000,100.000,1,2,3,4,5,6\n";

/// A directory as `kill -9` leaves it, whose `intervals.csv` holds `rows`.
fn killed(run: &Path, rows: &str) -> Loaded {
    fs::write(run.join("plan.json"), r#"{"version": 1, "command": "send"}"#).unwrap();
    fs::write(run.join("intervals.csv"), rows).unwrap();
    load::load(run).unwrap()
}

/// What is said of it in the terminal, and as JSON.
fn said(run: Loaded) -> (String, Value) {
    let runs = [run];
    let object = serde_json::to_value(json::object(&runs, &[])).unwrap();
    assert!(html::page(&runs).unwrap().contains("DID NOT END"));
    csv::table(&runs);
    let style = Style {
        width: 1000,
        ..Style::plain()
    };
    (terminal::runs(&runs, &style), object)
}

#[test]
fn the_rows_so_far_are_shown_and_are_no_result() {
    let dir = tempfile::tempdir().unwrap();
    let run = killed(dir.path(), &format!("{}\n{ROWS}", intervals::COLUMNS));
    assert!(!run.has_ended() && run.is_invalid());
    assert_eq!(run.series.as_ref().unwrap().rows, 2);
    let (text, object) = said(run);
    assert!(
        text.contains("\nDID NOT END: it has no summary.json") && text.contains("it left 2 intervals"),
        "{text}"
    );
    let run = &object["runs"][0];
    assert_eq!(
        (&run["ended"], &run["summary"]),
        (&Value::Bool(false), &Value::Null)
    );
    assert_eq!(
        (&run["metrics"]["lost"], &run["intervals"]),
        (&10.0.into(), &2.into())
    );
}

/// The kernel ends a write of many rows in the middle, too.
#[test]
fn a_row_that_was_being_written_is_left_out() {
    let whole = format!("{}\n{ROWS}", intervals::COLUMNS);
    for cut in 0..whole.len() {
        let dir = tempfile::tempdir().unwrap();
        let run = killed(dir.path(), &whole[..cut]);
        let rows = whole[..cut].matches('\n').count().saturating_sub(1);
        let found = run.series.as_ref().map_or(0, |series| series.rows);
        assert_eq!(
            (found, run.missing.as_slice()),
            (rows as u64, &[][..]),
            "cut at {cut}"
        );
        let (text, object) = said(run);
        assert!(
            text.starts_with("DID NOT END: ") || text.contains("\nDID NOT END: "),
            "{text}"
        );
        assert_eq!(text.contains("it left no interval"), rows == 0, "{text}");
        assert_eq!(object["runs"][0]["ended"], false);
    }
}

/// What cannot be read is said; the rest is shown all the same.
#[test]
fn damage_in_it_is_told_and_hides_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("host.json"), "{\"cpu\":").unwrap();
    let run = killed(dir.path(), "nonsense\n1,2\n");
    assert_eq!(run.missing.len(), 2, "{:?}", run.missing);
    let (text, _) = said(run);
    assert!(
        text.contains("host.json is damaged") && text.contains("intervals.csv"),
        "{text}"
    );
}

#[test]
fn a_file_of_intervals_without_rows_is_not_called_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("intervals.csv");
    for text in [String::new(), format!("{}\n", intervals::COLUMNS)] {
        fs::write(&file, &text).unwrap();
        let error = load::load(&file).unwrap_err().to_string();
        assert!(
            error.contains("has no rows: the run that writes it was ended"),
            "{error}"
        );
    }
}

#[test]
fn a_search_says_how_many_trials_it_made_and_how_to_go_on() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("trials.jsonl"), "{}\n{}\n{\"ver").unwrap();
    let (text, object) = said(load::load(dir.path()).unwrap());
    assert!(
        text.contains("a search of 2 trials so far") && text.contains("dropless search --resume "),
        "{text}"
    );
    assert_eq!(object["runs"][0]["ended"], false);
}

/// What a capture kept it did not send; what it missed counts as lost, of all that came.
#[test]
fn of_a_capture_packets_are_captured_and_not_sent() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "time,rx_packets,captured,dropped,missed\n1000,900,800,60,100\n2000,1000,1000,0,0\n";
    let run = killed(dir.path(), rows);
    let series = run.series.as_ref().unwrap();
    let loss = series.whole.span(load::Channel::Loss);
    assert!((loss.max - 16.0).abs() < 1e-9, "160 of 1000: {loss:?}");
    let (text, object) = said(run);
    let metrics = &object["runs"][0]["metrics"];
    assert_eq!(
        (&metrics["captured"], &metrics["lost"], &metrics["received"]),
        (&1800.0.into(), &160.0.into(), &1900.0.into())
    );
    assert!(
        metrics["sent"].is_null() && metrics["rate_tx"].is_null(),
        "{metrics}"
    );
    assert!(
        (metrics["loss"].as_f64().unwrap() - 0.08).abs() < 1e-9,
        "160 of 2000: {metrics}"
    );
    assert!(!text.contains("sent") && !text.contains("rate_tx"), "{text}");
    // As it was before there was a column for what was missed.
    let before = killed(
        dir.path(),
        "time,rx_packets,captured,dropped\n1000,900,840,60\n2000,1000,1000,0\n",
    );
    assert!((before.figure("lost").unwrap() - 60.0).abs() < 1e-9);
}

/// What a port missed, or took and did not send, is known where a column has it, and else nobody says that it was nothing.
#[test]
fn what_ports_missed_is_not_0_where_nothing_says_so() {
    let dir = tempfile::tempdir().unwrap();
    for (columns, [first, second]) in [
        (
            "time,rx_packets,tx_packets,dropped",
            ["1000,900,900,0", "2000,1000,1000,0"],
        ),
        (
            "time,rx_packets,tx_packets,dropped,denied",
            ["1000,900,900,0,0", "2000,1000,1000,0,0"],
        ),
    ] {
        let file = dir.path().join("rows.csv");
        fs::write(&file, format!("{columns}\n{first}\n{second}\n")).unwrap();
        let before = load::load(&file).unwrap();
        assert_eq!((before.figure("loss"), before.figure("lost")), (None, None));
        assert_eq!(before.figure("received"), Some(1900.0));
        let words = before.result.verdict().words();
        assert!(
            words.ends_with("0 dropped; what its ports missed or did not send is not in the file"),
            "{words}"
        );
        let page = html::page(&[before]).unwrap();
        assert!(page.contains("what its ports missed or did not send is not in intervals.csv"));

        fs::write(&file, format!("{columns},missed\n{first},100\n{second},0\n")).unwrap();
        let then = load::load(&file).unwrap();
        assert_eq!((then.figure("loss"), then.figure("lost")), (None, None));
        let page = html::page(&[then]).unwrap();
        for part in [
            "100 frames missed or dropped in all",
            "what its ports took and did not send is not in intervals.csv",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }

        // What the second interval did not send had come in the first.
        let denied = if columns.ends_with("denied") { ",0" } else { "" };
        let rows = format!("{first},100,0\n{second},0,300\n3000,0,0,0{denied},0,100\n");
        fs::write(&file, format!("{columns},missed,tx_lost\n{rows}")).unwrap();
        let now = load::load(&file).unwrap();
        let figures = ["sent", "lost"].map(|name| now.figure(name));
        assert_eq!(figures, [Some(1500.0), Some(500.0)]);
        assert!((now.figure("loss").unwrap() - 0.25).abs() < 1e-9, "500 of 2000");
        let words = now.result.verdict().words();
        assert!(
            words.ends_with("1,500 packets returned, 500 lost (25.0000 %)")
                || words.ends_with("1,500 packets forwarded, 500 lost (25.0000 %)"),
            "{words}"
        );
        let series = now.series.as_ref().unwrap();
        let losses = series
            .points()
            .iter()
            .map(|point| point.span(load::Channel::Loss).max);
        let losses: Vec<u64> = losses.map(|percent| percent.round() as u64).collect();
        assert_eq!(losses, [10, 30, 100], "and never more than all");
        let least = series.whole.span(load::Channel::Sent).min;
        assert!(least.abs() < 1e-9, "no rate is below none: {least}");
    }
}

/// A row of many intervals has no percentiles of its own, and a mean of theirs would hide the worst.
#[test]
fn a_row_of_many_intervals_has_their_largest_percentiles() {
    let dir = tempfile::tempdir().unwrap();
    let row = |at: u64| {
        let p99 = if at == 30 { 7000 } else { 2000 };
        format!("{at}.000,10,10,0,0.001,1.000,0,0,0,0,0,,,1000,1000,1000,{p99},9000,9000\n")
    };
    let rows: String = (1..=48).map(row).collect();
    let run = killed(dir.path(), &format!("{}\n{rows}", intervals::COLUMNS));
    let page = html::page(&[run]).unwrap();
    for words in ["largest p50", "largest p99", "<td class=\"n\">7.000 us</td>"] {
        assert!(page.contains(words), "no {words:?}");
    }
}

/// What is left of a run behind its last whole interval is drawn with that, and no slow packet of it becomes a fast one.
#[test]
fn slow_packets_of_a_short_last_row_are_slow_in_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let row = |end_ms: &str, length_ms: &str, of: u64, ns: u64| {
        format!(
            "{end_ms},{of},{of},0,0.001,{length_ms},0,0,0,0,0,,,{}\n",
            [ns; 6].map(|ns| ns.to_string()).join(",")
        )
    };
    let rows = [
        row("100.000", "100.000", 1000, 1000),
        row("101.000", "1.000", 1500, 9_000_000),
    ];
    let run = killed(dir.path(), &format!("{}\n{}", intervals::COLUMNS, rows.concat()));
    let stretches = run.series.unwrap().heat.unwrap().stretches;
    assert_eq!((stretches.len(), stretches[0].packets), (1, 2500.0));
    assert!(stretches[0].within_ns.unwrap()[0] >= 9e6, "{stretches:?}");
}

/// A last interval of nearly half the others is one; of a rest the loss and the percentiles are not thinned out.
#[test]
fn what_went_wrong_in_a_short_last_row_is_told() {
    let good = |end_ms: u64| {
        format!(
            "{end_ms}.000,1000,1000,0,0.010,100.000,0,0,0,0,0,,,{}\n",
            "9000,".repeat(5) + "9000"
        )
    };
    let slow = ["5000000"; 6].join(",");
    for (last, points, loss) in [
        (
            "245.000,450,0,100,,45.000,450,0,0,0,0,,,,,,,,".to_owned(),
            3,
            450.0 / 2450.0,
        ),
        (
            format!("240.000,400,200,50,5.0,40.000,200,0,0,0,0,,,{slow}"),
            3,
            200.0 / 2400.0,
        ),
        (
            format!("209.000,90,45,50,5.0,9.000,45,0,0,0,0,,,{slow}"),
            2,
            45.0 / 2090.0,
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let rows = format!("{}\n{}{}{last}\n", intervals::COLUMNS, good(100), good(200));
        let series = killed(dir.path(), &rows).series.unwrap();
        assert_eq!(series.points().len(), points, "{last}");
        let lost = series.whole.span(load::Channel::Loss);
        assert!(lost.max >= 50.0, "{last}: {lost:?}");
        assert!(
            (lost.mean().unwrap() - 100.0 * loss).abs() < 1e-9,
            "{last}: {lost:?}"
        );
        let shown = series.points().last().unwrap().span(load::Channel::P99).mean();
        assert!(shown.is_none_or(|p99| p99 >= 5e6), "{last}: {shown:?}");
    }
}
