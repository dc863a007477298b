//! Files that are whole and say what cannot be, or what would harm who reads them: refused by one line, or made harmless.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::common::files::{OLDER, report, runs};
use report::compare::fail_if::{Judgement, Rule};
use report::{input, load};
use serde_json::json;

/// A file in `base` with this content, and what the report says of it.
fn said(base: &Path, name: &str, content: &[u8]) -> Result<String, String> {
    let path = base.join(name);
    fs::write(&path, content).unwrap();
    report(&path)
}

/// Sentences as if the terminal were endless.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn packets_under_way_at_an_edge_are_not_lost() {
    let base = tempfile::tempdir().unwrap();
    let edges = |last: &str| format!("{OLDER}10,100,50,0.5,1\n20,100,150,-0.5,1\n30,100,50,0.5,1\n{last}");
    let text = said(base.path(), "whole.csv", edges("40,100,150,-0.5,1\n").as_bytes()).unwrap();
    assert!(text.contains("whole.csv,lost,packets,0,"), "{text}");
    assert!(text.contains("whole.csv,loss,ratio,0,"), "{text}");
    assert!(
        text.contains("loss, largest") && text.contains("up to 50.0000 %"),
        "{text}"
    );
    assert!(
        unwrapped(&text).contains("note: in 2 intervals more packets came back"),
        "{text}"
    );
    let text = said(base.path(), "lossy.csv", edges("40,100,130,-0.3,1\n").as_bytes()).unwrap();
    assert!(text.contains("lossy.csv,lost,packets,20,"), "{text}");
    let text = said(base.path(), "more.csv", edges("40,100,350,-2.5,1\n").as_bytes()).unwrap();
    assert!(
        !text.contains("more.csv,lost,") && !text.contains("more.csv,loss,"),
        "{text}"
    );
    assert!(
        unwrapped(&text).contains("and in all: of loss the file says nothing"),
        "{text}"
    );
    let other = format!("{OLDER}10,100,50,0,1\n20,100,50,0.5,1\n");
    let text = said(base.path(), "other.csv", other.as_bytes()).unwrap();
    assert!(
        unwrapped(&text).contains("note: in 1 interval drop_rate is not what"),
        "{text}"
    );
}

/// Late packets leave within a fraction of a millisecond after the end: a rate of that would be nobody's.
#[test]
fn the_rest_of_a_run_belongs_to_its_last_interval() {
    let base = tempfile::tempdir().unwrap();
    let header = report::intervals::COLUMNS;
    let columns: Vec<&str> = header.trim_end().split(',').collect();
    let row = |end_ms: f64, length_ms: f64, packets: u64| {
        let cell = |name: &&str| match *name {
            "time" => end_ms.to_string(),
            "duration" => length_ms.to_string(),
            "tx_packets" | "rx_packets" => packets.to_string(),
            name if name.starts_with("latency") || name == "avg_latency" => String::new(),
            _ => "0".to_owned(),
        };
        columns.iter().map(cell).collect::<Vec<_>>().join(",")
    };
    let rows = [
        row(1000.0, 1000.0, 1000),
        row(2000.0, 1000.0, 1000),
        row(2000.5, 0.5, 100),
    ];
    let text = format!("{}\n{}\n", header.trim_end(), rows.join("\n"));
    let text = said(base.path(), "late.csv", text.as_bytes()).unwrap();
    assert!(
        text.contains("2 intervals") && text.contains("up to 1.099 kpps"),
        "{text}"
    );
    assert!(text.contains("late.csv,sent,packets,2100,"), "{text}");
}

#[test]
fn rows_that_cannot_be_are_refused() {
    let base = tempfile::tempdir().unwrap();
    let ours = report::intervals::COLUMNS;
    for (rows, words) in [
        ("10,1e308,0,1,1\n", "line 2: tx_packets is 1e308, which cannot be"),
        ("10,1,inf,1,1\n", "line 2: rx_packets is inf, which cannot be"),
        ("10,10,5,9,1\n", "line 2: drop_rate is 900 %, more than 100 %"),
        (
            "10,10,5,-5,1\n",
            "drop_rate is -500 %, and not more came back (5) than was sent (10)",
        ),
        ("1e300,10,5,0.5,1\n", "line 2: time is 1e300, which cannot be"),
        ("2e12,10,5,0.5,1\n", "more than 30 years"),
        (
            "1,10,5,0.5,1\n1.00001,10,5,0.5,1\n",
            "line 3: time goes from 1 to 1.00001 ms; a step is 1 us or more",
        ),
        (
            "1,1e12,5,0.5,1\n",
            "packets in 1 ms are more than any network carries",
        ),
        (
            "1,10,5,0.5,1\n2,1e12,5,0.5,1\n",
            "line 3: 1000000000000 packets in 1 ms",
        ),
    ] {
        let line = said(base.path(), "rows.csv", format!("{OLDER}{rows}").as_bytes()).unwrap_err();
        assert!(line.contains(words), "{line}");
    }
    let long = format!("{OLDER}1,{},2,0,0\n", "x".repeat(60_000));
    let line = said(base.path(), "long.csv", long.as_bytes()).unwrap_err();
    assert!(
        line.contains("line 2: tx_packets is `xxx") && line.len() < 500,
        "{line}"
    );
    // Only a row of no length may end where the one before it does: older versions wrote such a rest.
    for (length, words) in [("0.000", Ok(())), ("1", Err("line 3: time goes from 1 to 1 ms"))] {
        let row = |length| format!("1.000,10,5,50,,{length},5,0,0,0,0,,,,,,,,\n");
        let rows = format!("{ours}\n{}{}", row("1.000"), row(length));
        let line = said(base.path(), "twice.csv", rows.as_bytes());
        match words {
            Ok(()) => assert!(line.is_ok(), "{line:?}"),
            Err(words) => assert!(line.is_err_and(|line| line.contains(words))),
        }
    }
    let row = format!("{ours}\n1,10,5,50,,1,11,0,0,0,0,,,,,,,,\n");
    let line = said(base.path(), "ours.csv", row.as_bytes()).unwrap_err();
    assert!(line.contains("line 2: lost is 11 of 10 sent"), "{line}");
}

/// The first golden run with some values of `file` replaced, or added to it.
fn with(base: &Path, golden: &str, file: &str, changes: &serde_json::Value) -> Result<String, String> {
    let run = runs(base).into_iter().find(|run| run.ends_with(golden)).unwrap();
    let text = fs::read_to_string(run.join(file)).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (key, change) in changes.as_object().unwrap() {
        match value.pointer_mut(key) {
            Some(place) => *place = change.clone(),
            None => value[&key[1..]] = change.clone(),
        }
    }
    fs::write(run.join(file), value.to_string()).unwrap();
    report(&run)
}

#[allow(clippy::too_many_lines, reason = "a table")]
#[test]
fn a_result_that_contradicts_itself_is_refused() {
    for (golden, file, changes, words) in [
        (
            "v1",
            "summary.json",
            json!({"/lost": 999_999_999_999_u64}),
            "it has 999999999999 packets lost of 35000000 sent",
        ),
        (
            "v1",
            "summary.json",
            json!({"/lost": 7}),
            "it says VALID, and its 34998766 packets received and 7 lost",
        ),
        (
            "v1",
            "summary.json",
            json!({"/reasons": ["x"]}),
            "it says VALID, and has reasons against it",
        ),
        (
            "v1",
            "summary.json",
            json!({"/verdict": "invalid"}),
            "it says INVALID, and has no reason for it",
        ),
        (
            "v1",
            "summary.json",
            json!({"/rate_tx_pps": -1.0}),
            "`rate_tx_pps` is -1.0, which cannot be",
        ),
        (
            "v1",
            "summary.json",
            json!({"/ports/1/rx_missed": u64::MAX}),
            "`rx_missed` is 18446744073709551615",
        ),
        (
            "v1",
            "summary.json",
            json!({"/workers/0/busy_share": 12}),
            "`busy_share` is 12",
        ),
        (
            "v1",
            "summary.json",
            json!({"/ledger": {}}),
            "it has no `ledger.accepted`",
        ),
        (
            "v1",
            "summary.json",
            json!({"/explanation": {"missed": 9, "explained": 0, "causes": [{"lost": 5}]}}),
            "its causes of stalls have 5 packets missed, of 0 in all stalls",
        ),
        (
            "v1",
            "summary.json",
            json!({"/streams/0": {}}),
            "it has no `streams[].name`",
        ),
        (
            "search",
            "search.json",
            json!({"/sizes": []}),
            "it says complete, and has no frame size",
        ),
        (
            "search",
            "search.json",
            json!({"/seconds": 1e300}),
            "`seconds` is 1e+300",
        ),
        (
            "compare",
            "compare.json",
            json!({"/methods/0": {}}),
            "it has no `methods[].name`",
        ),
        (
            "compare",
            "compare.json",
            json!({"/methods/0/flood/lost": 1e15 as u64}),
            "a trial of",
        ),
    ] {
        let base = tempfile::tempdir().unwrap();
        let line = with(base.path(), golden, file, &changes).unwrap_err();
        assert!(
            line.contains(&format!("{file} is damaged: ")) && line.contains(words),
            "{line}"
        );
    }
    for (command, file) in [
        ("send", "summary.json"),
        ("reflect", "summary.json"),
        ("search", "search.json"),
        ("compare", "compare.json"),
    ] {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("trials.jsonl"), "").unwrap();
        fs::write(
            base.path().join(file),
            json!({"version": 1, "command": command}).to_string(),
        )
        .unwrap();
        let line = report(base.path()).unwrap_err();
        assert!(
            line.contains(&format!("{file} is damaged: it has no `")),
            "{line}"
        );
    }
}

/// `report` looks at every line itself.
#[test]
fn no_escape_of_a_file_gets_to_the_terminal() {
    const EVIL: &str = "x\u{1b}[31m\u{9b}2J\nVALID: \u{202e}";
    for (golden, file, changes) in [
        (
            "v1",
            "summary.json",
            json!({"/verdict": "invalid", "/reasons": [EVIL, EVIL], "/notes": [EVIL], "/run": EVIL, "/ports/0/uri": EVIL, "/ledger/lost_at": {EVIL: 1}}),
        ),
        (
            "v1",
            "summary.json",
            json!({"/verdict": "invalid", "/reasons": [EVIL]}),
        ),
        (
            "v1-reflect",
            "summary.json",
            json!({"/verdict": "invalid", "/reasons": [EVIL], "/dropped": {EVIL: 1}}),
        ),
        (
            "search",
            "search.json",
            json!({"/complete": false, "/reasons": [EVIL], "/sizes/0/size": EVIL, "/sizes/0/goals/0/name": EVIL, "/notes": [EVIL]}),
        ),
        (
            "compare",
            "compare.json",
            json!({"/link": EVIL, "/methods/0/name": EVIL, "/methods/0/missing": EVIL, "/recommendation/sentences": [EVIL], "/run": EVIL}),
        ),
    ] {
        let base = tempfile::tempdir().unwrap();
        let text = with(base.path(), golden, file, &changes).unwrap();
        assert!(text.contains("x?[31m?2J?VALID: ?"), "{text}");
    }
    let base = tempfile::tempdir().unwrap();
    let line = with(base.path(), "v1", "summary.json", &json!({"/verdict": EVIL})).unwrap_err();
    assert!(line.contains("x?[31m"), "{line}");
    let line = said(base.path(), "header.csv", EVIL.as_bytes()).unwrap_err();
    assert!(line.contains("x?[31m?2J"), "{line}");
    let line = said(base.path(), "row.csv", format!("{OLDER}1,{EVIL}").as_bytes()).unwrap_err();
    assert!(!line.contains(input::is_unsafe), "{line}");
}

#[test]
fn packed_files_are_unpacked_within_bounds() {
    let base = tempfile::tempdir().unwrap();
    let rows: Vec<String> = (1..2000).map(|ms| format!("{ms},100,100,0,1\n")).collect();
    let rows = rows.concat();
    let packed = zstd::encode_all(format!("{OLDER}{rows}").as_bytes(), 1).unwrap();
    // What pzstd writes in front, and frames to be skipped elsewhere.
    let skipped = [&0x184D_2A50_u32.to_le_bytes()[..], &4_u32.to_le_bytes(), b"skip"].concat();
    for parts in [
        vec![&skipped, &packed],
        vec![&packed, &skipped],
        vec![&skipped, &packed, &skipped, &skipped],
    ] {
        let content: Vec<u8> = parts.into_iter().flatten().copied().collect();
        let text = said(base.path(), "skipped.csv.zst", &content).unwrap();
        assert!(
            text.contains("1999 intervals") || text.contains("1,999 intervals"),
            "{text}"
        );
    }
    let refused = |name: &str, content: &[u8]| said(base.path(), name, content).unwrap_err();
    let mut summed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    summed.include_checksum(true).unwrap();
    summed.write_all(rows.as_bytes()).unwrap();
    let mut summed = summed.finish().unwrap();
    *summed.last_mut().unwrap() ^= 1;
    assert!(refused("sum.zst", &summed).contains("cut off or damaged"));
    assert!(refused("cut.zst", &skipped[..10]).contains("cut off or damaged"));
    // 2^31 bytes are to be remembered, in the head of a frame.
    let wide = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 21 << 3, 0x03, 0x00, 0x00];
    assert!(
        refused("wide.zst", &wide).contains("needs more than 128 MiB of memory"),
        "{}",
        refused("wide.zst", &wide)
    );
    // Empty lines and spaces without end, in some kB.
    let mut bomb = zstd::Encoder::new(Vec::new(), 1).unwrap();
    bomb.write_all(OLDER.as_bytes()).unwrap();
    let line = format!("{}\n", " ".repeat(65_000));
    for ms in 0..2000 {
        bomb.write_all(format!("{ms},1,1,0,{line}").as_bytes()).unwrap();
    }
    let line = refused("bomb.zst", &bomb.finish().unwrap());
    assert!(
        line.contains("unpacks to more than 1000 times its size"),
        "{line}"
    );
    let line = refused(
        "void.csv",
        format!("{OLDER}{}", "\n".repeat(1_000_000)).as_bytes(),
    );
    assert!(line.contains("line 1002: 1000 empty lines before it"), "{line}");
}

#[test]
fn a_rule_about_what_is_no_number_cannot_be_judged() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1");
    let sound = load::load(&golden).unwrap();
    for wrong in [f64::NAN, f64::INFINITY] {
        let mut other = sound.clone();
        let summary = other.result_of::<measure::Summary>().expect("of send").clone();
        other.result = Box::new(measure::Summary {
            rate_rx_pps: wrong,
            ..summary
        });
        let rule: Rule = "rate_rx worse 1%".parse().unwrap();
        for (baseline, now) in [(&sound, &other), (&other, &sound), (&other, &other)] {
            let judged = rule.judge(baseline, now);
            assert!(
                matches!(&judged, Judgement::Unknown(line) if line.ends_with("has a rate_rx that is no number")),
                "{judged:?}"
            );
        }
    }
}
