//! The page of a run: what it holds, what thinning keeps, and what hostile names cannot do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(clippy::float_cmp, reason = "what was written must be read, to the bit")]

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use report::load::{self, Loaded};
use report::{RunDir, Style, html, terminal};
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

const OLDER: &str = "time,tx_packets,rx_packets,drop_rate,avg_latency\n";

fn golden() -> Loaded {
    load::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")).unwrap()
}

/// The numbers that the page's script draws.
pub fn data(page: &str) -> Value {
    let (_, rest) = page.split_once(r#"id="data" type="application/json">"#).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

pub fn largest(values: &Value) -> f64 {
    values
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .fold(0.0, f64::max)
}

#[test]
fn everything_of_the_first_version_is_on_the_page() {
    let page = html::page(&[golden()]).unwrap();
    for part in [
        "1,234 lost",
        "Rates",
        "Loss is charged to the interval in which the packet was sent",
        "Stalls of the workers",
        "IRQ 57 mlx5_comp3",
        "Latency heat map",
        "The ledger balances",
        "Streams",
        "bulk, 1518 bytes",
        "core 4",
        "port 1 rx 0",
        "transparent hugepages are on",
        "Permission is hereby granted",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    for loads in ["src=", "href=", "url(", "@import", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(loads), "{loads}");
    }
    let series = &data(&page)["runs"][0]["series"];
    assert_eq!(series["time"], serde_json::json!([1.0, 2.0, 3.0, 4.0]));
    assert_eq!(series["channels"]["loss"]["mean"][2], 100.0);
    assert_eq!(series["channels"]["p99"]["mean"][2], Value::Null);
}

#[test]
fn places_without_packets_share_a_line_that_opens() {
    let page = html::page(&[golden()]).unwrap();
    let (shown, folded) = page.split_once("<summary>0 each: ").unwrap();
    let (names, folded) = folded.split_once("</summary>").unwrap();
    let names: Vec<&str> = names.split(", ").collect();
    let row = |name: &str| format!(r#"<th scope="row">{name}</th>"#);
    for name in ["unsent", "corrupt", "rx_error", "unexplained", "duplicate"] {
        assert!(names.contains(&name), "{name}: {names:?}");
        assert!(
            !shown.contains(&row(name)) && folded.contains(&row(name)),
            "{name}"
        );
    }
    for name in ["intended", "rx_missed", "late", "foreign"] {
        assert!(!names.contains(&name) && shown.contains(&row(name)), "{name}");
    }
}

#[test]
fn hostile_names_stay_words() {
    let base = tempfile::tempdir().unwrap();
    let run = RunDir::create(base.path(), "send", SystemTime::now()).unwrap();
    let mut summary = common::lossy();
    let nasty = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{1b}[2J";
    summary.streams[0].name = nasty.to_owned();
    summary.notes = vec![measure::Note::new("", nasty)];
    summary.ledger.lost_at.insert(nasty.to_owned(), 5);
    summary.ports[0].uri = nasty.to_owned();
    run.write_result(&summary).unwrap();
    run.write_stalls(&[measure::result::Stall {
        cause: Some(nasty.to_owned()),
        gap_ns: 5,
        ..Default::default()
    }])
    .unwrap();
    let mut run = load::load(run.path()).unwrap();
    // A name that no file was read for: nobody has cleaned it before.
    run.name = format!("{nasty}\u{202e}\u{9b}\u{2028}");
    let page = html::page(&[run, golden()]).unwrap();
    assert!(!page.contains("<img") && !page.contains("<script>alert"));
    assert!(
        !page.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{2028}'])
            && page.contains("\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}")
    );
    assert_eq!(page.matches("</script>").count(), 3);
}

#[test]
fn the_terminal_draws_the_same_and_keeps_its_width() {
    let run = golden();
    for (width, unicode) in [(60, false), (80, true), (100, true), (120, false)] {
        let style = Style {
            color: false,
            width,
            unicode,
        };
        let text = terminal::runs(std::slice::from_ref(&run), &style);
        for part in [
            "Over 4.000 s, 4 intervals",
            "loss, largest",
            "up to 100 %",
            "Latency heat map",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let charts = text.split("\nLedger\n").next().unwrap();
        assert!(
            charts.lines().all(|line| line.width() <= width),
            "{width}: {charts}"
        );
        assert_eq!(text.is_ascii(), !unicode, "{text}");
    }
    let both = load::all(&[run.path.clone(), run.path]).unwrap();
    let both = terminal::runs(&both, &Style::plain());
    assert!(
        both.contains("Side by side") && both.contains("\n[2] v1\n"),
        "{both}"
    );
}

#[test]
fn the_chart_library_is_the_one_that_was_published() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/uplot");
    let checked = Command::new("sha256sum")
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(directory)
        .output();
    let checked = checked.expect("sha256sum is part of coreutils");
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stdout)
    );
}

/// One interval of a thousand is slow: every width says how slow, and has a full block for it.
#[test]
fn no_width_of_the_terminal_hides_a_peak() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("peak.csv");
    let rows: String = (1..=1000)
        .map(|ms| match ms {
            321 => "321,5000,5000,0,25.0\n".to_owned(),
            _ => format!("{ms},1000,1000,0,0.05\n"),
        })
        .collect();
    fs::write(&path, OLDER.to_owned() + &rows).unwrap();
    let run = load::load(&path).unwrap();
    for width in [60, 80, 100, 120] {
        let style = Style {
            width,
            unicode: true,
            ..Style::plain()
        };
        let text = terminal::runs(std::slice::from_ref(&run), &style);
        for (name, most) in [("latency, mean", "up to 25.00 ms"), ("sent", "up to 5.000 Mpps")] {
            let charts = text.split("Over 1.000 s").nth(1).unwrap();
            let line = charts.lines().find(|line| line.trim_start().starts_with(name));
            let line = line.unwrap_or_default();
            assert!(line.contains(most) && line.contains('█'), "{width}: {line}");
        }
    }
}

/// A percentile is the same wherever it stands: the rows of a `.hgrm` are no exact ones.
#[test]
fn percentiles_of_one_report_agree() {
    let base = tempfile::tempdir().unwrap();
    let run = RunDir::create(base.path(), "send", SystemTime::now()).unwrap();
    let mut latency = measure::Histogram::new(11);
    (1..=2000).for_each(|ns| latency.record(ns * 1000, 1));
    let mut summary = common::clean();
    summary.latency_ns = measure::Percentiles::from(&latency);
    run.write_result(&summary).unwrap();
    run.write_latency(&latency).unwrap();
    let run = load::load(run.path()).unwrap();
    let p99_ns = summary.latency_ns.p99.unwrap();
    assert_eq!(run.latency_within(0.99), Some(p99_ns as f64));
    let row = run.latency.iter().find(|row| row.share >= 0.99).unwrap();
    assert!(row.value_ns > p99_ns as f64, "no test: the row is exact");
    let shown = measure::units::format_duration(p99_ns);
    let text = terminal::runs(std::slice::from_ref(&run), &Style::plain());
    let line = text.lines().find(|line| line.contains("99 % within"));
    assert!(line.is_some_and(|line| line.ends_with(&shown)), "{shown}: {text}");
    let page = html::page(&[run]).unwrap();
    assert!(page.contains(&format!(
        "<th scope=\"row\">99 %</th><td class=\"n\">{shown}</td>"
    )));
    let labels = ["0 %", "50 %", "99.9 %", "99.99 %", "99.999 %", "100 %"];
    for label in labels.map(|label| format!("<th scope=\"row\">{label}</th>")) {
        assert!(page.contains(&label), "no {label}");
    }
}

/// Frames that were no probes are dropped, not lost, and what is returned is one number everywhere.
#[test]
fn the_page_of_a_reflector_says_one_thing() {
    let base = tempfile::tempdir().unwrap();
    let run = RunDir::create(base.path(), "reflect", SystemTime::now()).unwrap();
    let mut summary = measure::ReflectSummary {
        verdict: measure::Validity::Valid,
        received: 1004,
        returned: 1000,
        answered: 31,
        told: 124,
        ..Default::default()
    };
    summary.rate_tx_pps = 499.7;
    summary.rate_rx_pps = 501.7;
    summary.dropped.insert("not_udp".to_owned(), 4);
    run.write_result(&summary).unwrap();
    let rows = "time,rx_packets,tx_packets,dropped,duration\n1000,1,0,1,1000\n2000,1003,1000,3,1000\n";
    fs::write(run.file("intervals.csv"), rows).unwrap();
    let loaded = load::load(run.path()).unwrap();
    let page = html::page(std::slice::from_ref(&loaded)).unwrap();
    for part in [
        "1,004 frames received, 1,000 returned",
        "<tspan class=\"name\">returned</tspan> 1,000",
        "<tspan class=\"name\">probes</tspan> 845",
        "<dt>probes lost</dt><dd>0 %</dd>",
        "4 frames dropped in all",
        "None of these frames was a probe",
        "what its ports missed or did not send is not in intervals.csv",
        "<dt>returned</dt><dd>499.7 pps</dd>",
        "Returned 499.7 pps over all, 0 pps to 1.000 kpps in an interval; received 501.7 pps over all",
        "<h3>Dropped</h3>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for part in ["packets lost", "<h3>Loss</h3>", "<dt>sent</dt>"] {
        assert!(!page.contains(part), "{part}");
    }
    let text = terminal::runs(&[loaded], &Style::plain());
    assert!(
        text.contains("dropped, largest") && !text.contains("loss, largest"),
        "{text}"
    );
    // What the injector dropped were probes.
    summary.faults.insert("drop".to_owned(), 1);
    run.write_result(&summary).unwrap();
    let page = html::page(&[load::load(run.path()).unwrap()]).unwrap();
    assert!(page.contains("4 of these frames were no probes.") && !page.contains("no probe was lost"));
}

/// What its ports missed, and what they did not send, is lost in the drawing, the tiles and the chart alike.
#[test]
fn a_reflector_whose_ring_overflowed_does_not_look_clean() {
    let base = tempfile::tempdir().unwrap();
    let run = RunDir::create(base.path(), "reflect", SystemTime::now()).unwrap();
    let places = [("rx_missed", 500), ("tx_dropped", 200), ("not_udp", 4)];
    let places = places.map(|(name, count)| (measure::Place::of_reflecting(name), count));
    let mut summary = measure::ReflectSummary {
        verdict: measure::Validity::Valid,
        received: 1004,
        returned: 800,
        ledger: measure::Balance::of(1504, 800, places),
        ..Default::default()
    };
    summary.dropped.insert("not_udp".to_owned(), 4);
    run.write_result(&summary).unwrap();
    let rows =
        "time,rx_packets,tx_packets,dropped,missed,tx_lost\n1000,500,500,0,500,0\n2000,504,500,4,0,200\n";
    fs::write(run.file("intervals.csv"), rows).unwrap();
    let loaded = load::load(run.path()).unwrap();
    let value = |name: &str| loaded.result.figure(name);
    assert_eq!((value("sent"), value("lost")), (Some(800.0), Some(700.0)));
    assert!((value("loss").unwrap() - 700.0 / 1500.0).abs() < 1e-12);
    let page = html::page(std::slice::from_ref(&loaded)).unwrap();
    for part in [
        "1,004 frames received, 800 returned, 200 lost, 500 missed by its ports",
        "<tspan class=\"name\">arrived</tspan> 1,504",
        "<tspan class=\"name\">rx_missed</tspan> 500",
        "<tspan class=\"name\">tx_dropped</tspan> 200",
        "<dt>probes lost</dt><dd>46.6",
        "704 frames missed, dropped or not sent in all; at most 50",
        "4 of these frames were no probes.",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let text = terminal::runs(&[loaded], &Style::plain());
    for item in [["returned", "800"], ["rx_missed", "500"], ["tx_dropped", "200"]] {
        let mut lines = text.lines().map(str::split_whitespace);
        assert!(lines.any(|line| line.take(2).eq(item)), "{item:?}: {text}");
    }
}

/// What holds of all runs is said once, without a name.
#[test]
fn a_sentence_of_all_runs_stands_once() {
    let (one, mut other) = (golden(), golden());
    other.name = "other".to_owned();
    let page = html::page(&[one, other]).unwrap();
    let sentence = "Loss is charged to the interval in which the packet was sent.</p>";
    assert_eq!(page.matches(sentence).count(), 1);
    assert!(page.contains(&format!("<p>{sentence}")));
}

/// What a chart shows can be read without seeing it.
#[test]
fn every_chart_has_its_table() {
    let page = html::page(&[golden()]).unwrap();
    let figures: Vec<&str> = page.split("<figure>").skip(1).collect();
    assert!(figures.len() >= 5);
    for figure in &figures {
        let figure = figure.split("</figure>").next().unwrap();
        assert!(
            figure.contains("The same as a table") && figure.contains("<tbody><tr>"),
            "{figure}"
        );
    }
    let of = |kind: &str| {
        *figures
            .iter()
            .find(|figure| figure.contains(&format!("data-chart=\"{kind}")))
            .unwrap()
    };
    let stalls = of("stalls");
    for part in ["812.0 us", "1,980", "IRQ 57 mlx5_comp3", "A filled square"] {
        assert!(stalls.contains(part), "{part}: {stalls}");
    }
    assert!(
        of("heat-0").contains("<td class=\"n\">3,500,000</td>"),
        "{}",
        of("heat-0")
    );
}

/// Of many stalls the worst are in the table, and how many more there are.
#[test]
fn the_worst_of_many_stalls_are_told() {
    let base = tempfile::tempdir().unwrap();
    let run = RunDir::create(base.path(), "send", SystemTime::now()).unwrap();
    run.write_result(&common::clean()).unwrap();
    let stalls: Vec<_> = (1..=500_u64)
        .map(|at| measure::result::Stall {
            at_ns: at * 1_000_000,
            gap_ns: at * 1000,
            lost: u64::from(at == 7) * 42,
            ..Default::default()
        })
        .collect();
    run.write_stalls(&stalls).unwrap();
    fs::write(run.file("intervals.csv"), format!("{OLDER}1000,10,10,0,1\n")).unwrap();
    let page = html::page(&[load::load(run.path()).unwrap()]).unwrap();
    let (_, table) = page
        .split_once("what cost most first, then the longest; 480 more are in stalls.csv")
        .unwrap();
    let rows: Vec<&str> = table
        .split("</table>")
        .next()
        .unwrap()
        .split("<tr>")
        .skip(2)
        .collect();
    assert_eq!(rows.len(), 20);
    assert!(
        rows[0].contains("7.000 us") && rows[0].contains(">42<"),
        "{}",
        rows[0]
    );
    assert!(
        rows[1].contains("500.0 us") && rows[19].contains("482.0 us"),
        "{rows:?}"
    );
}

/// A burst has gaps of 0: the page says why its line begins late.
#[test]
fn gaps_of_zero_are_told() {
    let base = tempfile::tempdir().unwrap();
    let run = RunDir::create(base.path(), "send", SystemTime::now()).unwrap();
    let mut gaps = measure::Histogram::new(11);
    gaps.record(0, 750);
    gaps.record(5000, 250);
    let mut summary = common::clean();
    summary.gap_ns.max = gaps.max();
    run.write_result(&summary).unwrap();
    run.write_pacing(&gaps, 1.0).unwrap();
    let page = html::page(&[load::load(run.path()).unwrap()]).unwrap();
    assert!(page.contains("% of the gaps were 0, which a logarithmic axis cannot show"));
}

/// What nobody counted is not 0.
#[test]
fn without_being_asked_no_stall_is_said_to_have_missed_nothing() {
    let page = |cause: &str| {
        let base = tempfile::tempdir().unwrap();
        let run = RunDir::create(base.path(), "send", SystemTime::now()).unwrap();
        run.write_result(&common::clean()).unwrap();
        let stall = measure::result::Stall {
            at_ns: 1_000_000,
            gap_ns: 50_000,
            cause: Some(cause.to_owned()).filter(|cause| !cause.is_empty()),
            ..Default::default()
        };
        run.write_stalls(&[stall]).unwrap();
        fs::write(run.file("intervals.csv"), format!("{OLDER}1000,10,10,0,1\n")).unwrap();
        html::page(&[load::load(run.path()).unwrap()]).unwrap()
    };
    assert!(!page("").contains("0 packets missed meanwhile"));
    assert!(page("tick").contains("0 packets missed meanwhile"));
}

/// What was measured stands below the verdict; ledger and percentiles before what happened when.
#[test]
fn the_page_says_what_was_measured_and_answers_before_it_tells() {
    let base = tempfile::tempdir().unwrap();
    for file in ["summary.json", "intervals.csv"] {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden/v1")
            .join(file);
        fs::copy(golden, base.path().join(file)).unwrap();
    }
    let plan = r#"{"rate": "3.5Mpps", "streams": [{"size": "64"}, {"size": "512,1518"}, {"size": "64"}],
        "fault": {"limit": {"pps": 10000.0, "burst": 64}, "drop": 0.003, "duplicate": 0.0, "delay": 0.01, "delay_ns": 5000000}}"#;
    let host = r#"{"kernel": "6.1.0-28", "build": {"version": "0.1.0", "dpdk": "22.11.7", "command_line": "dropless send --to '<b>'"}}"#;
    fs::write(base.path().join("plan.json"), plan).unwrap();
    fs::write(base.path().join("host.json"), host).unwrap();
    let page = html::page(&[load::load(base.path()).unwrap()]).unwrap();
    let order = [
        "class=\"words\">",
        "<code>dropless send --to '&lt;b&gt;'</code>",
        "<dd>64 and 512, 1518 bytes</dd>",
        "<dd>3.5Mpps</dd>",
        "<dd>delay 1 % by 5 ms, drop 0.3 %, limit 10 kpps</dd>",
        "<dd>dropless 0.1.0, DPDK 22.11.7, Linux 6.1.0-28</dd>",
        "<h2>Where each packet went",
        "data-chart=\"pacing\"",
        "data-chart=\"rates\"",
        "<h2>The machine",
    ];
    let places: Vec<Option<usize>> = order.iter().map(|words| page.find(words)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?} of {order:?}"
    );
}
