//! A `noise` run, read back: its page, its text, its figures, and what cannot be.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use measure::NoiseSummary;
use report::compare::fail_if::{Judgement, Rule};
use report::export::csv;
use report::kind::Standing;
use report::load::{self, Loaded};
use report::{Style, html, terminal};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/noise")
}

fn run() -> Loaded {
    load::load(&golden()).unwrap()
}

#[test]
fn the_page_says_who_took_each_core_and_when() {
    let page = html::page(&[run()]).unwrap();
    for words in [
        "2 cores watched",
        "Who took core 0",
        "Who took core 1",
        "<h2>How long stalls were</h2>",
        "What took the core, the most of its time first",
        "<title>from 0 ns: ",
        "Was every interrupt recorded?",
        "Stalls of the workers",
        "data-chart=\"stalls\"",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
    let stalls = run().stalls.unwrap();
    let counted: u64 = stalls.lengths.values().map(|cause| cause.count).sum();
    assert_eq!(counted, stalls.all.count, "every stall has a length");
    let longest = stalls.lengths.last_key_value().unwrap();
    assert_eq!(stalls.all.max_ns.ilog2(), *longest.0);
    assert!(!page.contains("intervals.csv"), "such a run has none");
    assert!(
        page.contains("class=\"verdict plain\""),
        "nothing is good or bad without a rate"
    );
}

#[test]
fn the_terminal_has_what_noise_itself_prints() {
    let run = run();
    let noise = run.result_of::<NoiseSummary>().expect("of noise");
    let text = terminal::runs(std::slice::from_ref(&run), &Style::plain());
    assert!(
        text.starts_with(&terminal::render(noise, &Style::plain())),
        "{text}"
    );
    for core in &noise.cores {
        let first = format!("Core {}: ", core.core);
        assert!(
            text.contains(&first) && text.contains(" stalls in 1.0 s, "),
            "{text}"
        );
    }
}

#[test]
fn its_figures_are_those_of_the_worst_core() {
    let run = run();
    let noise = run.result_of::<NoiseSummary>().expect("of noise");
    let longest = noise.cores.iter().map(|core| core.max_ns).fold(0.0, f64::max);
    let all: u64 = noise.cores.iter().map(|core| core.gaps).sum();
    assert_eq!(run.figures("pause_max"), [(String::new(), longest)]);
    assert_eq!(run.figures("pauses"), [(String::new(), all as f64)]);
    let lossless = noise.cores.iter().filter_map(|core| core.lossless_pps);
    let least = lossless.fold(f64::INFINITY, f64::min);
    assert_eq!(run.figures("stall_lossless"), [(String::new(), least)]);
    let table = csv::table(std::slice::from_ref(&run));
    assert!(
        table.contains(",stall_share,ratio,") && table.contains(",stall_lossless,pps,"),
        "{table}"
    );
}

#[test]
fn a_noisier_run_fails_the_rule() {
    let quiet = run();
    let mut noisy = quiet.clone();
    let mut result = noisy.result_of::<NoiseSummary>().expect("of noise").clone();
    result.cores[0].taken_share = 0.99;
    noisy.result = Box::new(result);
    let rule: Rule = "stall_share worse 10%".parse().unwrap();
    assert!(matches!(rule.judge(&quiet, &noisy), Judgement::Failed(_)));
    assert!(matches!(rule.judge(&noisy, &quiet), Judgement::Holds(_)));
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |from: &str, to: &str| {
        let dir = tempfile::tempdir().unwrap();
        let text = fs::read_to_string(golden().join("summary.json")).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(dir.path().join("summary.json"), text.replacen(from, to, 1)).unwrap();
        let error = load::load(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("summary.json is damaged: ") && !error.contains('\n'),
            "{error}"
        );
        error
    };
    assert!(refused("\"taken_share\": 0.", "\"taken_share\": 7.").ends_with("which cannot be"));
    assert!(refused("\"gaps\":", "\"gabs\":").ends_with("it has no `cores[].gaps`"));
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("summary.json"),
        "{\"version\": 1, \"command\": \"noise\", \"threshold_ns\": 1, \"ring\": 1, \"cores\": [], \"notes\": []}",
    )
    .unwrap();
    let error = load::load(dir.path()).unwrap_err().to_string();
    assert!(error.ends_with("it has no core"), "{error}");
}

#[test]
fn a_run_without_its_stalls_says_so() {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(golden().join("summary.json"), dir.path().join("summary.json")).unwrap();
    let run = load::load(dir.path()).unwrap();
    assert_eq!(
        run.missing,
        ["gaps.csv is not in the run directory: each stall cannot be shown"]
    );
    fs::write(dir.path().join("gaps.csv"), "core,start\n").unwrap();
    let error = load::load(dir.path()).unwrap_err().to_string();
    assert!(
        error.ends_with("is damaged: line 1: not the columns of a gaps.csv"),
        "{error}"
    );
}

/// The golden run, with its result changed.
fn changed(change: impl FnOnce(&mut NoiseSummary)) -> Loaded {
    let mut run = run();
    let mut result = run.result_of::<NoiseSummary>().expect("of noise").clone();
    change(&mut result);
    run.result = Box::new(result);
    run
}

const FIGURES: [&str; 5] = [
    "pauses",
    "pause_max",
    "stall_share",
    "stall_lossless",
    "stall_lost",
];

#[test]
fn what_ended_early_is_not_held_against_what_did_not() {
    let early = changed(|noise| {
        noise.interrupted = true;
        noise.rate_pps = Some(1e6);
        noise.cores.iter_mut().for_each(|core| core.lost = Some(0.0));
    });
    let verdict = early.result.verdict();
    assert_eq!(verdict.standing, Standing::Plain, "{}", verdict.words());
    // A share is one of any length.
    let known: Vec<_> = FIGURES
        .into_iter()
        .filter(|name| early.figure(name).is_some())
        .collect();
    assert_eq!(known, ["stall_share"]);
    for text in ["stalls worse 10%", "stall_max worse 20us", "stall_lost worse 10%"] {
        let rule: Rule = text.parse().unwrap();
        assert!(
            matches!(rule.judge(&early, &early), Judgement::Unknown(_)),
            "{text}"
        );
    }
}

/// Of before there was a reason, too.
#[test]
fn stalls_that_found_no_room_are_no_clean_core() {
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(golden()).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    let mut result = serde_json::to_value(run().result_of::<NoiseSummary>()).unwrap();
    assert!(result.get("reasons").is_none());
    result["cores"][1]["gaps_dropped"] = 5.into();
    fs::write(dir.path().join("summary.json"), result.to_string()).unwrap();
    let run = load::load(dir.path()).unwrap();
    let noise = run.result_of::<NoiseSummary>().expect("of noise");
    assert_eq!(noise.exit_code(), 2);
    assert_eq!(noise.reasons[0].code, "stalls_dropped");
    assert!(run.is_invalid() && run.result.verdict().words().starts_with("INVALID: "));
    assert!(FIGURES.iter().all(|name| run.figure(name).is_none()));
    let text = terminal::render(noise, &Style::plain());
    assert!(text.contains("INVALID: core 1: 5 stalls found no room"), "{text}");
}
