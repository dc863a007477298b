//! What comes from elsewhere: plans that would do more than send packets, pipes in the place of files, links in the place
//! of what is written.

use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::time::Duration;

use nix::sys::stat::Mode;
use serde_json::{Value, json};

use crate::support::{Finished, Lab, Need, require, until};

/// Nobody waits for a pipe as long.
const LIMIT: Duration = Duration::from_secs(20);

fn refused(run: &Finished, words: &[&str]) {
    assert_eq!((run.code, run.stderr.lines().count()), (Some(2), 1), "{run}");
    for word in words {
        assert!(run.stderr.contains(word), "no `{word}`: {run}");
    }
}

/// The plan of a short run, changed.
fn plan(lab: &Lab, change: impl Fn(&mut Value)) {
    let made = lab.dropless(&["send", "--json", "--quiet", "--count", "500", "--rate", "max"]);
    let run = made.run().json()["run"]
        .as_str()
        .expect("a run directory")
        .to_owned();
    let text = fs::read_to_string(lab.path(&run).join("plan.json")).expect("a plan");
    let mut plan: Value = serde_json::from_str(&text).expect("JSON");
    change(&mut plan);
    fs::write(lab.path("plan.json"), plan.to_string()).expect("a plan");
}

#[test]
fn a_plan_that_does_more_than_send_packets_says_so_and_wants_trust() {
    let Some(lab) = require(&[]) else { return };
    plan(&lab, |plan| {
        plan["machine"]["ports"] = json!(["pcap:-,planted.pcap"]);
        plan["tx_only"] = true.into();
    });
    let send = ["send", "--json", "--quiet", "--plan", "plan.json"];
    let run = lab.dropless(&send).run();
    refused(&run, &["pcap:-,planted.pcap", "--trust-plan"]);
    assert!(!lab.path("planted.pcap").exists());
    let run = lab.dropless(&[&send[..], &["--trust-plan"]].concat()).run();
    assert!(run.stderr.contains("note: --plan plan.json does more"), "{run}");
    assert!(
        run.json()["sent"] == 500 && lab.path("planted.pcap").exists(),
        "{run}"
    );
    plan(&lab, |plan| plan["machine"]["eal"] = "-d evil.so".into());
    refused(&lab.dropless(&send).run(), &["`-d evil.so`", "--trust-plan"]);
    // A name in it gets at no terminal.
    plan(&lab, |plan| {
        plan["machine"]["eal"] = "\u{1b}[2J-d x.so".into();
    });
    refused(&lab.dropless(&send).run(), &["`?[2J-d x.so`"]);
}

#[test]
fn a_search_that_goes_on_is_a_plan_from_elsewhere_too() {
    let Some(lab) = require(&[]) else { return };
    let words = ["search", "--max-rate", "10kpps", "--eal", "--no-telemetry"];
    let dry = lab.dropless(&[&words[..], &["--dry-run"]].concat()).run();
    assert_eq!(dry.code, Some(0), "the user's own words need no trust: {dry}");
    // Its plan is written before its first trial, which takes longer than we look.
    let search = lab.dropless(&words).spawn();
    let made = || {
        fs::read_dir(lab.path("runs"))
            .ok()?
            .flatten()
            .map(|run| run.path())
            .next()
    };
    let is_begun = || made().is_some_and(|run| run.join("trials.jsonl").exists());
    assert!(until(LIMIT, is_begun), "no search was begun");
    search.kill();
    let run = made().expect("a run directory").display().to_string();
    let resume = ["search", "--resume", &run];
    refused(
        &lab.dropless(&resume).run(),
        &["`--no-telemetry`", "--trust-plan"],
    );
    let dry = lab
        .dropless(&[&resume[..], &["--dry-run", "--trust-plan"]].concat())
        .run();
    assert_eq!(dry.code, Some(0), "{dry}");
}

#[test]
fn no_named_pipe_is_waited_for() {
    let Some(lab) = require(&[]) else { return };
    let pipe = |name: &str| {
        nix::unistd::mkfifo(&lab.path(name), Mode::S_IRWXU).expect("a pipe");
    };
    pipe("plan.json");
    let run = lab.dropless(&["send", "--plan", "plan.json"]).limit(LIMIT).run();
    refused(
        &run,
        &[
            "--plan plan.json: it is a named pipe",
            "plan.json of a `dropless send` run",
        ],
    );
    let resume = |directory: &str| {
        let run = lab
            .dropless(&["search", "--resume", directory])
            .limit(LIMIT)
            .run();
        assert_eq!(run.code, Some(2), "{run}");
        run.stderr
    };
    assert!(resume(".").contains("it is a named pipe"));
    // A plan that is sound, beside a journal that is none.
    let search = lab
        .dropless(&["search", "--max-rate", "10kpps", "--runs", "made"])
        .spawn();
    let plan = || {
        let mut runs = fs::read_dir(lab.path("made")).ok()?.flatten();
        runs.find_map(|run| fs::read(run.path().join("plan.json")).ok())
    };
    assert!(until(LIMIT, || plan().is_some()), "{search:?}");
    search.kill();
    fs::create_dir(lab.path("search")).expect("a directory");
    fs::write(lab.path("search/plan.json"), plan().expect("a plan")).expect("a plan");
    pipe("search/trials.jsonl");
    let said = resume("search");
    assert!(said.contains("search/trials.jsonl"), "{said}");
    fs::remove_file(lab.path("search/trials.jsonl")).expect("removing it");
    fs::write(lab.path("target"), "untouched").expect("a file");
    symlink(lab.path("target"), lab.path("search/trials.jsonl")).expect("a link");
    let said = resume("search");
    assert!(said.contains("search/trials.jsonl"), "{said}");
    assert_eq!(
        fs::read_to_string(lab.path("target")).expect("the file"),
        "untouched"
    );
}

#[test]
fn a_link_of_another_user_does_not_say_what_is_replaced() {
    let Some(lab) = require(&[Need::Root]) else { return };
    let old = "time,tx_packets,rx_packets,drop_rate,avg_latency\n1,9,9,0,1\n";
    fs::write(lab.path("old.csv"), old).expect("a file");
    for target in ["page.html", "thesis.tex"] {
        fs::write(lab.path(target), "untouched").expect("a file");
    }
    let write = |link: &str| lab.dropless(&["report", "old.csv", "--html", link]).run();
    symlink("page.html", lab.path("theirs.html")).expect("a link");
    lchown(lab.path("theirs.html"), Some(65534), None).expect("giving it away");
    refused(
        &write("theirs.html"),
        &["cannot write theirs.html: it is a link of user 65534's"],
    );
    // Of our own link the name is not what is replaced.
    symlink("thesis.tex", lab.path("ours.html")).expect("a link");
    refused(&write("ours.html"), &["would replace a file that is no page"]);
    for target in ["page.html", "thesis.tex"] {
        assert_eq!(fs::read_to_string(lab.path(target)).expect("a file"), "untouched");
    }
    symlink("page.html", lab.path("own.html")).expect("a link");
    assert_eq!(write("own.html").code, Some(0));
    assert!(lab.path("own.html").is_symlink());
    let page = fs::read_to_string(lab.path("page.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"));
}
