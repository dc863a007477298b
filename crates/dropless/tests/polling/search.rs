//! `dropless search` on real ports: limits that are a fact of the path, limits of our own, interruptions.

use std::path::PathBuf;
use std::time::Duration;

use crate::support::proc::children;
use crate::support::search::{LIMIT, SHORT, STEADY, goal, journal, lines_of, rate, run_directory};
use crate::support::wire::assert_refused;
use crate::support::{Finished, Lab, Running, require, until};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;

fn arguments(lab: &Lab, more: &[&str]) -> crate::support::Dropless {
    lab.dropless(&[&["search", "--json"][..], SHORT, STEADY, more].concat())
        .limit(LIMIT)
}

fn search(lab: &Lab, more: &[&str]) -> Finished {
    arguments(lab, more).run()
}

#[test]
fn a_dry_run_says_how_long_and_does_nothing() {
    let Some(lab) = require(&[]) else { return };
    let one = search(&lab, &["--dry-run"]);
    let two = search(
        &lab,
        &[
            "--dry-run",
            "--sizes",
            "64,imix",
            "--goal",
            "ndr",
            "--goal",
            "pdr",
        ],
    );
    assert_eq!((one.code, two.code), (Some(0), Some(0)), "{one}\n{two}");
    assert!(
        one.number("trials") > 0 && two.number("trials") > one.number("trials"),
        "{one}\n{two}"
    );
    assert!(two.number("trials_max") >= two.number("trials"), "{two}");
    // Where the highest rate is not known yet, no lowest one is too high for an estimate.
    let high = lab
        .dropless(&["search", "--dry-run", "--json", "--min-rate=12Mpps"])
        .run();
    assert_eq!(high.code, Some(0), "{high}");
    assert_eq!(two.json()["sizes"][1]["size"], "imix", "{two}");
    assert!(!lab.path("runs").exists(), "a dry run left something");
}

#[test]
fn a_size_whose_highest_rate_is_too_low_takes_nothing_from_the_others() {
    let Some(lab) = require(&[]) else { return };
    let run = search(&lab, &["--min-rate", "1000Gpps", "--sizes", "64,128"]);
    assert_eq!((run.code, run.number("trials")), (Some(2), 2), "{run}");
    let reasons = run.json()["reasons"].to_string();
    for said in ["size 64: --min-rate is", "size 128: --min-rate is"] {
        assert!(reasons.contains(said), "{run}");
    }
    assert!(journal(&lab).0.join("search.json").is_file(), "{run}");
}

/// An upgrade in the middle of a search: all trials are of the program that began it.
#[test]
fn a_search_goes_on_when_its_program_is_exchanged() {
    let Some(lab) = require(&[]) else { return };
    let program = lab.path("exchanged");
    std::fs::copy(env!("CARGO_BIN_EXE_dropless"), &program).expect("a copy of the program");
    let lab = lab.with_program(&program);
    let running = arguments(&lab, &["--max-rate", "20kpps"]).spawn();
    let trials = || run_directory(&lab).map_or(0, |directory| lines_of(&directory).len());
    assert!(until(LIMIT, || trials() > 0), "no trial");
    let before = trials();
    std::fs::remove_file(&program).expect("it can be removed");
    std::fs::write(&program, "another one").expect("another one at its place");
    let run = running.wait(LIMIT);
    assert_eq!(run.code, Some(0), "{run}");
    let (_, lines) = journal(&lab);
    assert!(lines.len() > before, "{} of {before} trials: {run}", lines.len());
}

#[test]
fn what_is_asked_and_carried_is_no_limit_of_the_path() {
    let Some(lab) = require(&[]) else { return };
    let run = search(&lab, &["--max-rate", "20kpps", "--sizes", "64,imix"]);
    assert_eq!(run.code, Some(0), "{run}");
    for size in 0..2 {
        let goal = goal(&run, size, 0);
        assert_eq!(
            (goal["limit"].as_str(), goal["complete"].as_bool()),
            (Some("max_rate"), Some(true)),
            "{run}"
        );
        assert_eq!(goal["throughput_pps"].as_f64(), Some(20e3), "{run}");
        assert!(goal["upper"].is_null(), "{run}");
    }
    let (l1, l2) = ("rate_bps_l1", "rate_bps_l2");
    let lower = goal(&run, 0, 0)["lower"].clone();
    assert_eq!(
        (lower[l2].as_f64(), lower[l1].as_f64()),
        (Some(64.0 * 8.0 * 20e3), Some(84.0 * 8.0 * 20e3))
    );
    let (directory, lines) = journal(&lab);
    assert_eq!(lines.len() as u64, run.number("trials"), "{run}");
    let kept = std::fs::read_to_string(directory.join("search.json")).expect("search.json");
    assert_eq!(serde_json::from_str::<Value>(&kept).expect("JSON"), run.json());
    // Every trial's own run directory is there, at the place that its line names.
    for line in &lines {
        let summary = directory
            .join(line["run"].as_str().expect("a directory"))
            .join("summary.json");
        assert!(summary.is_file(), "{}", summary.display());
    }
}

/// The sender of no machine offers a thousand million packets per second.
#[test]
fn what_our_sender_cannot_offer_is_not_the_paths_limit() {
    let Some(lab) = require(&[]) else { return };
    let run = search(
        &lab,
        &[
            "--max-rate",
            "1000Mpps",
            "--min-rate",
            "1kpps",
            // Of the many rates each is tried once.
            "--goal",
            "ndr,sum=100ms",
        ],
    );
    let goal = goal(&run, 0, 0);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(
        ["sender", "receiver"].contains(&goal["limit"].as_str().expect("a limit")),
        "{run}"
    );
    assert!(
        rate(&goal["upper"]) < 1e9 || goal["throughput_pps"].is_null(),
        "{run}"
    );
    let (_, lines) = journal(&lab);
    let first = &lines[0];
    assert!(first["offered"].as_u64() < first["due"].as_u64(), "{first}");
}

/// Without a highest rate it is measured, and carrying it says nothing of the path.
#[test]
fn the_highest_rate_is_measured_where_none_is_given() {
    let Some(lab) = require(&[]) else { return };
    let run = search(&lab, &[]);
    let range = run.json()["sizes"][0]["range"].clone();
    assert_eq!(range["ceiling"], "sender", "{run}");
    let (directory, lines) = journal(&lab);
    assert_eq!(lines[0]["ceiling"], "sender", "{run}");
    assert_eq!(lines[0]["rate_pps"], range["max_pps"], "{run}");
    assert_eq!(run.code, Some(1), "{run}");
    assert_ne!(goal(&run, 0, 0)["limit"], "path", "{run}");
    // That trial counts, too: what tells the run again compares the two, and would call it damaged.
    assert_eq!(run.number("trials"), lines.len() as u64, "{run}");
    let again = lab.dropless(&["report", &directory.display().to_string()]).run();
    assert!(again.code == Some(0) && again.stderr.is_empty(), "{again}");
}

/// One packet in a hundred is dropped on the way at any rate: without loss nothing is carried, with 5 % everything is.
#[test]
fn goals_of_one_search_have_answers_of_their_own() {
    let Some(lab) = require(&[]) else { return };
    let arguments = [
        "--fault",
        "drop=1%",
        "--min-rate",
        "10kpps",
        "--max-rate",
        "20kpps",
    ];
    let goals = ["--goal", "ndr", "--goal", "loss=5%"];
    let run = search(&lab, &[&arguments[..], &goals].concat());
    assert_eq!(run.code, Some(1), "{run}");
    let (none, some) = (goal(&run, 0, 0), goal(&run, 0, 1));
    assert_eq!(
        (none["name"].as_str(), none["limit"].as_str()),
        (Some("ndr"), Some("min_rate")),
        "{run}"
    );
    assert!(none["throughput_pps"].is_null(), "{run}");
    assert_eq!(
        (some["name"].as_str(), some["limit"].as_str()),
        (Some("loss=5%"), Some("max_rate")),
        "{run}"
    );
    let forwarded = some["conditional_throughput_pps"].as_f64().expect("a rate");
    assert!(forwarded < 20e3 && forwarded > 19e3, "{run}");
}

#[test]
fn the_tests_of_rfc_2544_follow_each_other() {
    let Some(lab) = require(&[]) else { return };
    let tests = [
        "--method",
        "rfc2544",
        "--test",
        "latency,frame-loss,back-to-back",
        "--settle",
        "0ms",
    ];
    let short = [
        "--trial-duration",
        "200ms",
        "--latency-trials",
        "2",
        "--latency-duration",
        "100ms",
        "--burst-repeats",
        "2",
        "--burst-duration",
        "200ms",
        "--max-rate",
        "5kpps",
    ];
    let run = lab
        .dropless(&[&["search", "--json"][..], STEADY, &tests, &short].concat())
        .limit(LIMIT)
        .run();
    assert_eq!(run.code, Some(0), "{run}");
    let further = run.json()["sizes"][0]["rfc2544"].clone();
    assert_eq!(further["latency"]["trials"], 2, "{run}");
    assert!(further["latency"]["mean_ns"].as_f64() > Some(0.0), "{run}");
    assert_eq!(further["frame_loss"].as_array().map(Vec::len), Some(2), "{run}");
    assert_eq!(further["back_to_back"]["packets_mean"], 1000.0, "{run}");
    assert_eq!(further["back_to_back"]["corrected_buffer_s"], 0.0, "{run}");
    // One of throughput, two of latency, two clean ones of frame loss, two bursts; and those spoiled on a busy machine.
    let (_, lines) = journal(&lab);
    let counted = lines.iter().filter(|line| !is_again(line)).count();
    assert_eq!((counted, lines.len() as u64), (7, run.number("trials")), "{run}");
    // A burst at a far side that takes nothing more ends as well.
    let directory = lab
        .directory()
        .join(run.json()["run"].as_str().expect("a directory"));
    let trial = lines
        .last()
        .and_then(|line| line["run"].as_str())
        .expect("the last trial");
    let burst = std::fs::read_to_string(directory.join(trial).join("plan.json")).expect("its plan");
    let burst: Value = serde_json::from_str(&burst).expect("JSON");
    assert_eq!(burst["count"], 1000, "{burst}");
    assert!(burst["duration_ns"].as_u64() > Some(200_000_000), "{burst}");
}

/// Whether it was made in the place of one that was spoiled.
fn is_again(line: &Value) -> bool {
    !line["again"].is_null() && line["again"] != "unsure"
}

#[test]
fn a_trial_that_somebody_kills_is_made_again() {
    let Some(lab) = require(&[]) else { return };
    // A goal of its own: trials long enough to be met.
    let goal_of_a_second = ["--goal", "ndr,initial=1s,final=1s,sum=1s", "--max-rate", "10kpps"];
    let running = arguments(&lab, &goal_of_a_second).spawn();
    assert!(kill_trial(&running, None).is_some(), "{running:?}");
    let run = running.wait(LIMIT);
    assert_eq!(run.code, Some(0), "{run}");
    let (_, lines) = journal(&lab);
    let reason = lines[0]["invalid"][0]["text"].as_str().expect("a reason");
    assert!(reason.contains("SIGKILL"), "{reason}");
    assert!(is_again(&lines[1]), "{lines:?}");
    assert_eq!(goal(&run, 0, 0)["throughput_pps"], 10e3, "{run}");
}

/// Three in a row that cannot be believed are enough.
#[test]
fn a_search_whose_trials_are_all_killed_gives_up() {
    let Some(lab) = require(&[]) else { return };
    let goal_of_a_second = ["--goal", "ndr,initial=1s,final=1s,sum=1s", "--max-rate", "10kpps"];
    let running = arguments(&lab, &goal_of_a_second).spawn();
    let mut last = None;
    for _ in 0..3 {
        last = kill_trial(&running, last);
        assert!(last.is_some(), "{running:?}");
    }
    let run = running.wait(LIMIT);
    assert_eq!(run.code, Some(2), "{run}");
    let reasons = run.json()["reasons"].clone();
    let codes: Vec<_> = reasons
        .as_array()
        .expect("reasons")
        .iter()
        .map(|reason| &reason["code"])
        .collect();
    assert_eq!(codes, ["killed", "given_up"], "{run}");
    assert_eq!(journal(&lab).1.len(), 3, "{run}");
}

/// Kills the trial that runs, other than the `last` one, and says which it was.
fn kill_trial(running: &Running, last: Option<Pid>) -> Option<Pid> {
    let mut trial = None;
    let is_sending = until(Duration::from_secs(60), || {
        trial = children(running.id())
            .first()
            .copied()
            .filter(|id| Some(*id) != last);
        // Not before it is what it will be: it starts as a copy of its parent.
        let arguments = trial.and_then(|id| std::fs::read_to_string(format!("/proc/{id}/cmdline")).ok());
        arguments.is_some_and(|arguments| arguments.contains("dropless\0send"))
    });
    let trial = trial.filter(|_| is_sending)?;
    nix::sys::signal::kill(trial, Signal::SIGKILL).expect("to kill the trial");
    Some(trial)
}

/// Killed, then interrupted, then left to its end: each goes on where the last one was.
#[test]
fn an_interrupted_search_goes_on_without_repeating_a_trial() {
    let Some(lab) = require(&[]) else { return };
    let arguments = arguments(
        &lab,
        &[
            "--fault",
            "drop=0.01%",
            "--max-rate",
            "30kpps",
            "--goal",
            "ndr,sum=2s",
        ],
    );
    let running = arguments.spawn();
    let (directory, first) = after_trials(&lab, &running, 2);
    let _ = running.kill();
    // What the killed one was about to write: half a line.
    let path = directory.join("trials.jsonl");
    let text = std::fs::read_to_string(&path).expect("the journal");
    std::fs::write(&path, text + "{\"version\":1,\"numb").expect("a torn line");

    let shown = directory.display().to_string();
    let again = |limit| {
        lab.dropless(&["search", "--json", "--resume", &shown])
            .limit(limit)
    };
    let running = again(LIMIT).spawn();
    let (_, second) = after_trials(&lab, &running, first.len() + 2);
    running.signal(Signal::SIGINT);
    let stopped = running.wait(Duration::from_secs(30));
    assert_eq!(
        (stopped.code, stopped.json()["complete"].as_bool()),
        (Some(2), Some(false)),
        "{stopped}"
    );
    let reason = stopped.json()["reasons"][0]["text"]
        .as_str()
        .expect("a reason")
        .to_owned();
    assert!(
        reason.contains(&format!("dropless search --resume {shown}")),
        "{stopped}"
    );

    let run = again(LIMIT).run();
    assert_eq!(run.json()["complete"], true, "{run}");
    let lines = lines_of(&directory);
    assert_eq!(lines[..first.len()], first[..], "{run}");
    assert_eq!(lines[..second.len()], second[..], "{run}");
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["number"].as_u64()).collect();
    assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>(), "{run}");
    assert_eq!(run.number("trials"), lines.len() as u64, "{run}");
    assert!(
        !directory.join("trial-plan.json").exists(),
        "the plan of the last trial was left behind"
    );
    // Going on with what is finished says the same, and makes no trial.
    let same = again(LIMIT).run();
    assert_eq!(
        (same.json()["sizes"].clone(), lines_of(&directory).len()),
        (run.json()["sizes"].clone(), lines.len())
    );
}

/// Of a search that wants more trials than it ever makes, which nobody waits for here: they are copies of its first.
#[test]
fn a_search_without_an_end_gives_up() {
    let Some(lab) = require(&[]) else { return };
    let running = arguments(&lab, &["--goal", "ndr", "--max-rate", "10kpps"]).spawn();
    let (directory, lines) = after_trials(&lab, &running, 1);
    running.signal(Signal::SIGINT);
    running.wait(LIMIT);
    // Such a goal is refused at the start.
    let plan = directory.join("plan.json");
    let mut endless: Value =
        serde_json::from_str(&std::fs::read_to_string(&plan).expect("a plan")).expect("JSON");
    endless["goals"][0]["duration_sum_ns"] = 1_100_000_000_000_u64.into();
    std::fs::write(&plan, endless.to_string()).expect("another plan");
    // Whatever a busy machine made of it.
    let mut good = lines[0].clone();
    (good["offered"], good["due"], good["invalid"]) = (1000.into(), 1000.into(), Value::Array(Vec::new()));
    good["lost"] = serde_json::json!({"path": 0, "reflector": 0, "receiver": 0, "sender": 0});
    good["short"] = Value::Null;
    let copies = (1..=5000).map(|number| {
        good["number"] = number.into();
        format!("{good}\n")
    });
    std::fs::write(directory.join("trials.jsonl"), copies.collect::<String>()).expect("a journal");
    let directory = directory.to_str().expect("a path");
    let run = lab
        .dropless(&["search", "--json", "--quiet", "--resume", directory])
        .run();
    assert_eq!(run.code, Some(2), "{run}");
    assert_eq!(run.json()["reasons"][0]["code"], "unsteady", "{run}");
}

/// Waits until the journal has so many lines.
fn after_trials(lab: &Lab, running: &Running, wanted: usize) -> (PathBuf, Vec<Value>) {
    let there = until(Duration::from_secs(60), || {
        run_directory(lab).is_some_and(|directory| lines_of(&directory).len() >= wanted)
    });
    assert!(there, "no {wanted} trials: {running:?}");
    journal(lab)
}

#[test]
fn a_trial_that_cannot_run_is_no_path_that_loses_everything() {
    let Some(lab) = require(&[]) else { return };
    let run = lab
        .dropless(&[
            "search",
            "--json",
            "--no-huge",
            "--port",
            "packet:nosuch0",
            "--max-rate",
            "2kpps",
        ])
        .run();
    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stderr.contains("nosuch0"), "{run}");
    assert!(
        run.json()["error"]
            .as_str()
            .is_some_and(|error| error.contains("nosuch0")),
        "{run}"
    );
}

#[test]
fn wrong_uses_are_one_line() {
    let Some(lab) = require(&[]) else { return };
    let cases: [(&[&str], &[&str]); 12] = [
        (&["--goal", "best"], &["best", "ndr"]),
        (
            &["--goal", "ndr", "--goal", "ndr,width=1%"],
            &["two goals", "name="],
        ),
        (
            &["--max-rate", "1kpps", "--min-rate", "1Mpps"],
            &["--min-rate", "lower"],
        ),
        (&["--sizes", "20"], &["below the probe"]),
        (&["--sizes", "64,512,64"], &["64 twice"]),
        (&["--method", "rfc2544", "--goal", "pdr"], &["--goal", "mlr"]),
        (
            &["--method", "rfc2544", "--test", "speed"],
            &["speed", "back-to-back"],
        ),
        (
            &["--test", "latency", "--burst-repeats", "3"],
            &["--test, --burst-repeats", "--method rfc2544"],
        ),
        (
            &["--method", "rfc2544", "--duration-sum", "3s"],
            &["--duration-sum", "--method mlr", "--trial-duration"],
        ),
        (
            &[
                "--initial-duration=10ms",
                "--final-duration=10ms",
                "--duration-sum=60s",
            ],
            &["6000 trials", "--final-duration"],
        ),
        (&["--resume", "/nowhere"], &["/nowhere", "run directory"]),
        (
            &["--port", "null", "--max-rate", "1kpps"],
            &["nothing comes back"],
        ),
    ];
    let steady = |more: &[&str]| {
        let all = [&["search", "--json"][..], STEADY, more].concat();
        lab.dropless(&all).limit(LIMIT).run()
    };
    for (arguments, words) in cases {
        assert_refused(&steady(arguments), words);
    }
    assert!(!lab.path("runs").exists(), "a refused search left something");
    // A run directory of another command.
    let sent = lab.dropless(&["send", "--json", "--count", "1"]).run();
    let directory = sent.json()["run"].as_str().expect("a run directory").to_owned();
    assert_refused(&search(&lab, &["--resume", &directory]), &["plan of a send run"]);
}
