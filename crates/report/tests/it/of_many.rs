//! A search and a comparison of ways, read back from real directories: their pages, their text, and what cannot be read.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use measure::Summary;
use report::compare::fail_if::{Judgement, Rule};
use report::export::{csv, json};
use report::kind::Standing;
use report::kinds::search::Searched;
use report::load::{self, Loaded};
use report::{Style, html, terminal};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn read(name: &str) -> Loaded {
    load::load(&golden(name)).unwrap()
}

fn page(name: &str) -> String {
    html::page(&[read(name)]).unwrap()
}

fn has(page: &str, words: &[&str]) {
    for word in words {
        assert!(page.contains(word), "no {word:?} in the page");
    }
}

#[test]
fn a_search_shows_every_trial_and_both_bounds() {
    let run = read("search");
    let searched = run.result_of::<Searched>().expect("a search");
    let page = page("search");
    assert_eq!(searched.trials.len(), 18);
    let all = page.split("Around the bounds").next().unwrap();
    assert_eq!(all.matches("<g><title>trial ").count(), 18);
    has(
        &page,
        &[
            "FOUND: 18 trials",
            "ndr, frames of 64: 62.42 kpps carried, not 69.30 kpps; the limit is our sender",
            "our sender could not offer more",
            "class=\"bound carried\"",
            "class=\"bound refused\"",
            "no loss",
            "Trials in the order in which they were made",
        ],
    );
    assert!(!page.contains("nothing is drawn over time"), "it is of many runs");
}

#[test]
fn rfc_2544_has_its_tables() {
    has(
        &page("rfc2544"),
        &[
            "(RFC 2544, section 26.2)",
            "Frame loss rate (section 26.3)",
            "Back-to-back (section 26.4)",
        ],
    );
}

#[test]
fn a_comparison_begins_with_what_to_take() {
    let page = page("compare");
    let verdict = page.find("class=\"words\">").unwrap();
    let tables = page.find("Ways compared").unwrap();
    assert!(verdict < tables);
    has(
        &page,
        &[
            "no loss up to",
            "Lost at each rate offered",
            "p99.9",
            "a packet",
            "class=\"bar\"",
            "memif",
        ],
    );
}

#[test]
fn the_terminal_and_json_have_the_same() {
    let style = Style::plain();
    let text = terminal::runs(&[read("search")], &style);
    assert!(text.contains("FOUND") && text.contains("62.42 kpps"), "{text}");
    let text = terminal::runs(&[read("compare")], &style);
    assert!(text.contains("Which one to take"), "{text}");
    let object = serde_json::to_value(json::object(&[read("search"), read("compare")], &[])).unwrap();
    assert_eq!(object["runs"][0]["summary"]["command"], "search");
    assert_eq!(object["runs"][1]["summary"]["command"], "compare");
}

#[test]
fn two_searches_lie_side_by_side_and_a_slower_one_fails_the_rule() {
    // The second goal is the one that got worse: no other may hide it.
    let slower = |text: &str| {
        let (first, second) = text.split_once("\"pdr\"").expect("two goals");
        first.to_owned() + "\"pdr\"" + &second.replace("62417.0", "50000.0")
    };
    let runs = [read("search"), broken("search", "search.json", slower).unwrap()];
    let text = terminal::runs(&runs, &Style::plain());
    assert!(
        text.contains("throughput 64 ndr") && text.contains("-19.9 %  worse"),
        "{text}"
    );
    assert!(html::page(&runs).unwrap().contains("throughput 64 pdr"));
    assert!(csv::table(&runs).contains(",throughput 64 pdr,pps,50000,62417,-12417,"));
    let rule: Rule = "throughput worse 10%".parse().unwrap();
    let Judgement::Failed(line) = rule.judge(&runs[0], &runs[1]) else {
        panic!("19.9 % are more than 10 %");
    };
    assert!(line.contains("64 pdr: 50.00 kpps"), "{line}");
    assert!(matches!(rule.judge(&runs[0], &runs[0]), Judgement::Holds(_)));
    // What the other does not have cannot be judged; nor can a figure of single runs.
    let compared = read("compare");
    assert!(matches!(rule.judge(&runs[0], &compared), Judgement::Unknown(_)));
    assert!(matches!(rule.judge(&compared, &compared), Judgement::Holds(_)));
    let loss: Rule = "loss worse 10%".parse().unwrap();
    assert!(matches!(loss.judge(&runs[0], &runs[1]), Judgement::Unknown(_)));
}

/// What reading `name` says after `change` was made to its `file`.
fn broken(name: &str, file: &str, change: impl Fn(&str) -> String) -> Result<Loaded, String> {
    let base = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(golden(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), base.path().join(entry.file_name())).unwrap();
    }
    let path = base.path().join(file);
    fs::write(&path, change(&fs::read_to_string(&path).unwrap())).unwrap();
    load::load(base.path()).map_err(|error| error.to_string())
}

fn half(text: &str) -> String {
    text[..text.len() / 2].to_owned()
}

fn later(text: &str) -> String {
    text.replacen("\"version\": 1", "\"version\": 9", 1)
        .replacen("\"version\":1", "\"version\":9", 1)
}

#[test]
fn what_cannot_be_read_is_one_line() {
    for (name, file) in [("search", "search.json"), ("compare", "compare.json")] {
        let damaged = broken(name, file, half).unwrap_err();
        assert!(
            damaged.contains(file) && damaged.contains("is damaged"),
            "{damaged}"
        );
        let newer = broken(name, file, later).unwrap_err();
        assert!(newer.ends_with("fix: use a newer dropless"), "{newer}");
        let other = broken(name, file, |_| {
            "{\"version\": 1, \"command\": \"noise\"}".to_owned()
        })
        .unwrap_err();
        assert!(other.contains("is the result of `noise`"), "{other}");
        assert!([damaged, newer, other].iter().all(|line| !line.contains('\n')));
    }
    let newer = broken("search", "trials.jsonl", later).unwrap_err();
    assert!(newer.ends_with("fix: use a newer dropless"), "{newer}");
    let damaged = broken("search", "trials.jsonl", |text| text.replacen('{', "[", 1)).unwrap_err();
    assert!(damaged.contains("is damaged: line 1"), "{damaged}");
}

#[test]
fn no_name_breaks_out_of_the_page() {
    let nasty = |text: &str| text.replace("memif", "<script>alert(1)</script>");
    let run = broken("compare", "compare.json", nasty).unwrap();
    assert!(!html::page(&[run]).unwrap().contains("<script>alert"));
}

/// A search that ended has all its trials: what was cut off since is an error, not a picture without them.
#[test]
fn a_complete_search_with_trials_cut_off_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["search.json", "trials.jsonl"] {
        fs::copy(golden("search").join(name), dir.path().join(name)).unwrap();
    }
    let trials = dir.path().join("trials.jsonl");
    let whole = fs::read_to_string(&trials).unwrap();
    let refused = |text: &str| {
        fs::write(&trials, text).unwrap();
        load::load(dir.path()).unwrap_err().to_string()
    };
    let in_a_line = refused(&whole[..300]);
    assert!(
        in_a_line.contains("trials.jsonl is damaged: line 1") && in_a_line.lines().count() == 1,
        "{in_a_line}"
    );
    let (first, _) = whole.split_once('\n').unwrap();
    let between = refused(&format!("{first}\n"));
    assert!(
        between.contains("it has 1 whole trial, and search.json counts 18"),
        "{between}"
    );
    // The last trial of an interrupted one was being written: it is left out.
    let report = fs::read_to_string(dir.path().join("search.json")).unwrap();
    let unfinished = report.replacen("\"complete\": true", "\"complete\": false", 1);
    fs::write(dir.path().join("search.json"), unfinished).unwrap();
    fs::write(&trials, &whole[..whole.len() - 9]).unwrap();
    let run = load::load(dir.path()).unwrap();
    let searched = run.result_of::<Searched>().expect("a search");
    assert_eq!(searched.trials.len(), 17);
}

/// A search that was killed has no answers, and can go on.
#[test]
fn a_killed_search_says_how_to_go_on() {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(
        golden("search").join("trials.jsonl"),
        dir.path().join("trials.jsonl"),
    )
    .unwrap();
    let run = load::load(dir.path()).unwrap();
    let words = run.result.verdict().words();
    let wanted = format!("go on with: dropless search --resume {}", dir.path().display());
    assert!(!run.has_ended() && words.ends_with(&wanted), "{words}");
}

/// The page and the terminal write a number in one way: neither cuts what the other rounds.
#[test]
fn the_terminal_and_the_page_of_a_comparison_agree() {
    let fraction = |text: &str| {
        let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
        value["methods"][0]["cpu_ns_per_packet"] = serde_json::json!(9202.63);
        value["methods"][0]["missing"] = serde_json::Value::Null;
        value["recommendation"]["sentences"][0] = "Measure again (`dropless noise` names who).".into();
        value.to_string()
    };
    let run = broken("compare", "compare.json", fraction).unwrap();
    let page = html::page(std::slice::from_ref(&run)).unwrap();
    has(&page, &["9.203 us", "<code>dropless noise</code>"]);
    let text = terminal::runs(&[run], &Style::plain());
    assert!(text.contains("9.203 us") && !text.contains("9.202 us"), "{text}");
}

/// Caveats, notes and reasons are sentences of any length: they end at the edge of the terminal, between two words.
#[test]
fn what_trials_of_latency_lost_is_said() {
    let mut run = read("rfc2544");
    let shown = |run: &Loaded| terminal::runs(std::slice::from_ref(run), &Style::plain());
    assert!(!shown(&run).contains("have no latency"));
    let mut searched = run.result_of::<Searched>().expect("a search").clone();
    let further = searched.report.sizes[0].result.rfc2544.as_mut().unwrap();
    further.latency.as_mut().unwrap().lost = Some(1234);
    run.result = Box::new(searched);
    let words = "1,234 packets of these trials never came, and have no latency";
    assert!(shown(&run).contains(words), "{}", shown(&run));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for name in ["search", "rfc2544", "compare", "v1", "noise", "replay"] {
        let run = read(name);
        let wide = terminal::runs(std::slice::from_ref(&run), &Style::plain());
        let words: Vec<&str> = wide.split_whitespace().collect();
        for width in [80, 90, 100, 120] {
            let style = Style {
                width,
                ..Style::plain()
            };
            let text = terminal::runs(std::slice::from_ref(&run), &style);
            let longer: Vec<&str> = text
                .lines()
                .filter(|line| line.chars().count() > width && !line.starts_with("run directory: "))
                .collect();
            assert!(longer.is_empty(), "{name} at {width}: {longer:#?}");
            let cut = |word: &&str| word.ends_with('~');
            assert_eq!(text.split_whitespace().find(cut), None, "{name} at {width}");
        }
        assert!(words.len() > 20, "{name}: {wide}");
    }
}

/// What the gate says of a large change is what the table says.
#[test]
fn a_large_change_is_one_number_of_times() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, latency: &str| {
        let path = dir.path().join(name);
        let text = format!("time,tx_packets,rx_packets,drop_rate,avg_latency\n100,10,10,0,{latency}\n");
        fs::write(&path, text).unwrap();
        load::load(&path).unwrap()
    };
    let runs = [file("before.csv", "0.006"), file("after.csv", "10.0")];
    let rule: Rule = "latency mean worse 10%".parse().unwrap();
    let Judgement::Failed(line) = rule.judge(&runs[0], &runs[1]) else {
        panic!("it is worse");
    };
    assert!(line.ends_with("(1,667 times)"), "{line}");
    assert!(terminal::runs(&runs, &Style::plain()).contains("1,667 times"));
}

#[test]
fn stalls_are_counted_in_stalls() {
    let run = [read("v1")];
    assert!(
        csv::table(&run).contains(",pauses,pauses,1,"),
        "{}",
        csv::table(&run)
    );
    for text in ["stalls worse 10", "pauses worse 10"] {
        let rule: Result<Rule, _> = text.parse();
        assert!(rule.is_ok_and(|rule| matches!(rule.judge(&run[0], &run[0]), Judgement::Holds(_))));
    }
}

/// A run with ten times the stalls must not pass since there was room for as many only.
#[test]
fn stalls_that_found_no_room_are_judged_too() {
    let baseline = read("v2");
    let with = |stalls: [Option<u64>; 2], dropped| {
        let mut run = baseline.clone();
        let mut result = run.result_of::<Summary>().expect("of send").clone();
        result.workers.truncate(2);
        for (worker, stalls) in result.workers.iter_mut().zip(stalls) {
            worker.stalls = stalls;
            worker.stalls_dropped = dropped;
        }
        result.workers[1].poll_gap_ns_max = 50_000_000;
        run.result = Box::new(result);
        run
    };
    let figures = |run: &Loaded| (run.figure("pauses"), run.figure("pause_max"));
    let many = with([Some(70_000), Some(2)], 4_464);
    assert_eq!(figures(&many), (Some(70_002.0), Some(5e7)));
    assert_eq!(
        figures(&with([Some(0), Some(0)], 0)),
        (Some(0.0), Some(0.0)),
        "none"
    );
    for text in ["stalls worse 10%", "stall_max worse 20us"] {
        let rule: Rule = text.parse().unwrap();
        assert!(
            matches!(rule.judge(&baseline, &many), Judgement::Failed(_)),
            "{text}"
        );
    }
    // A result that does not say how many there were, beside a file with room for no more.
    let mut full = baseline.clone();
    full.stalls.as_mut().expect("its stalls").all.count = 1 << 16;
    assert_eq!(figures(&full), (None, None));
    let rule: Rule = "stalls worse 10%".parse().unwrap();
    assert!(matches!(rule.judge(&baseline, &full), Judgement::Unknown(_)));
}

#[test]
fn more_that_came_back_than_was_sent_is_no_run_without_loss() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, rows: &str| {
        let path = dir.path().join(name);
        fs::write(
            &path,
            format!("time,tx_packets,rx_packets,drop_rate,avg_latency\n{rows}"),
        )
        .unwrap();
        load::load(&path).unwrap()
    };
    let whole = file("whole.csv", "100,10,9,0.1,\n200,10,10,0,\n");
    let odd = file("odd.csv", "100,10,5,0.5,\n200,10,16,0,\n");
    assert_eq!((odd.figure("loss"), odd.figure("lost")), (None, None));
    let verdict = odd.result.verdict();
    assert_eq!(verdict.standing, Standing::Plain);
    assert_eq!(
        verdict.words(),
        "20 packets sent, 21 came back: what was lost nobody knows"
    );
    for text in ["loss worse 10%", "lost worse 10%"] {
        let rule: Rule = text.parse().unwrap();
        assert!(
            matches!(rule.judge(&whole, &odd), Judgement::Unknown(_)),
            "{text}"
        );
    }
    let page = html::page(&[odd]).unwrap();
    assert!(!page.contains("Nothing was lost"), "nobody knows");
}

#[test]
fn the_mark_of_a_verdict_is_no_part_of_its_sentence() {
    let marks = ["v1", "v2", "search", "compare", "noise", "guard"].map(|name| {
        let verdict = read(name).result.verdict();
        let begins = verdict.words().starts_with(&format!("{}: ", verdict.word()));
        assert_eq!(begins, verdict.mark.is_some(), "{}", verdict.words());
        verdict.word()
    });
    assert_eq!(marks, ["VALID", "VALID", "FOUND", "-", "-", "VALID"]);
}
