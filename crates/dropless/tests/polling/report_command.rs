//! `dropless report`: what it takes, what it prints, what it refuses, and the page that every run leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Finished, Lab, require, until};

pub const OLDER: &str = "time,tx_packets,rx_packets,drop_rate,avg_latency\n";

pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden/v1")
}

pub fn report(lab: &Lab, arguments: &[&str]) -> Finished {
    lab.dropless(&[&["report"], arguments].concat()).run()
}

/// A run that is valid on any machine: as fast as it goes, there is no pace to fall behind.
fn run_of(lab: &Lab, further: &[&str]) -> PathBuf {
    let common = ["send", "--count", "20000", "--rate", "max", "--json"];
    let run = lab.dropless(&[&common, further].concat()).run();
    lab.directory()
        .join(run.json()["run"].as_str().expect("a run directory"))
}

#[test]
fn every_run_leaves_its_page() {
    let Some(lab) = require(&[]) else { return };
    let run = run_of(&lab, &["--fault", "drop=1%"]);
    let page = fs::read_to_string(run.join("report.html")).expect("report.html");
    for part in [
        "VALID: ",
        "data-chart=\"rates\"",
        "fault_drop",
        "<svg class=\"flow\"",
        "uPlot",
        "</html>",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(!page.contains("INVALID: "), "the run is not valid");
    assert!(
        !page.contains("src=") && !page.contains("<link"),
        "it would load something"
    );
    for file in ["pacing.hgrm", "doctor.json"] {
        assert!(run.join(file).exists(), "{file}");
    }
}

#[test]
fn the_first_format_is_read_for_ever() {
    let Some(lab) = require(&[]) else { return };
    let directory = golden().display().to_string();
    let shown = report(&lab, &[&directory, "--terminal"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{shown}");
    for words in ["1,234 lost", "Over 4.000 s, 4 intervals", "loss, largest"] {
        assert!(shown.stdout.contains(words), "{words}: {shown}");
    }
    let reflected = golden().join("reflect").display().to_string();
    let shown = report(&lab, &[&reflected, "--html", "reflect.html"]);
    assert_eq!(shown.code, Some(0), "{shown}");
    assert!(
        fs::read_to_string(lab.path("reflect.html"))
            .expect("a page")
            .contains("frames received")
    );
}

#[test]
fn a_rule_that_fails_is_exit_1_and_named() {
    let Some(lab) = require(&[]) else { return };
    fs::write(
        lab.path("before.csv"),
        format!("{OLDER}1,100,100,0,1\n2,100,99,0.01,1\n"),
    )
    .expect("a file");
    fs::write(
        lab.path("after.csv"),
        format!("{OLDER}1,100,100,0,1\n2,100,90,0.1,2\n"),
    )
    .expect("a file");
    let judged = |rule: &str| report(&lab, &["before.csv", "after.csv", "--fail-if", rule, "--json"]);
    let failed = judged("loss worse 10%");
    assert_eq!(failed.code, Some(1), "{failed}");
    assert!(
        failed
            .stderr
            .contains("dropless: worse: loss worse 10%: 5.0000 % in after.csv, 0.5000 % in before.csv"),
        "{failed}"
    );
    assert_eq!(
        failed.json()["failed"].as_array().map(Vec::len),
        Some(1),
        "{failed}"
    );
    assert_eq!(judged("loss worse 900%").code, Some(0));
    assert_eq!(judged("latency_mean worse 500us").code, Some(0));
    assert_eq!(judged("latency_mean worse 400us").code, Some(1));
    assert_eq!(judged("rate_rx worse 4%").code, Some(1));
    let unknown = judged("latency p99.9 worse 10%");
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert!(
        unknown.stderr.contains("before.csv has no latency_p999"),
        "{unknown}"
    );
    for (rule, words) in [
        ("loss 10%", "is not `METRIC worse AMOUNT`"),
        ("colour worse 10%", "there is no metric"),
        ("loss worse 5us", "percentage points"),
        ("loss worse -3%", "is no amount of loss"),
    ] {
        let refused = judged(rule);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(
            refused.stderr.contains(words) && refused.stderr.lines().count() == 1,
            "{refused}"
        );
    }
    let alone = report(&lab, &["after.csv", "--fail-if", "loss worse 1%"]);
    assert_eq!(alone.code, Some(2), "{alone}");
    let csv = report(&lab, &["before.csv", "after.csv", "--csv"]);
    assert!(
        csv.stdout
            .starts_with("run,metric,unit,value,baseline,difference,percent\n"),
        "{csv}"
    );
    assert!(
        csv.stdout.contains("after.csv,lost,packets,10,1,9,900\n"),
        "{csv}"
    );
}

#[test]
fn what_runs_were_not_made_alike_in_is_said() {
    let Some(lab) = require(&[]) else { return };
    let runs = ["64", "512"].map(|size| {
        run_of(&lab, &["--size", size, "--seed", size])
            .display()
            .to_string()
    });
    let shown = report(&lab, &[&runs[0], &runs[1]]);
    assert!(
        shown.stdout.contains("Made with") && shown.stdout.contains("streams.size"),
        "{shown}"
    );
    let compared = report(&lab, &[&runs[0], &runs[1], "--json"]);
    let sizes = serde_json::json!([{ "name": "streams.size", "values": ["64", "512"] }]);
    assert_eq!(compared.json()["settings"], sizes, "{compared}");
    let judged = report(&lab, &[&runs[0], &runs[1], "--fail-if", "lost worse 1M", "--csv"]);
    assert_eq!(
        (judged.code, judged.stderr.as_str()),
        (Some(0), "note: not made alike: streams.size was 64 and is 512\n"),
        "{judged}"
    );
    let alike = report(&lab, &[&runs[0], &runs[0]]);
    assert!(!alike.stdout.contains("Made with"), "{alike}");
}

/// What `kill -9` leaves is read as that: whatever there is, and no error.
#[test]
fn what_a_killed_sender_leaves_is_shown() {
    let Some(lab) = require(&[]) else { return };
    let sender = lab.dropless(&[
        "send",
        "--rate",
        "10kpps",
        "--duration",
        "60s",
        "--interval",
        "10ms",
    ]);
    let sender = sender.spawn();
    let intervals = || {
        let runs = fs::read_dir(lab.path("runs")).ok()?;
        runs.flatten().map(|run| run.path().join("intervals.csv")).next()
    };
    let rows = || intervals().and_then(|file| fs::read_to_string(file).ok());
    let has_rows = || rows().is_some_and(|text| text.lines().count() > 3);
    assert!(
        until(Duration::from_secs(60), has_rows),
        "no interval was written"
    );
    sender.kill();
    let file = intervals().expect("a file of intervals");
    let run = file.parent().expect("its directory").display().to_string();
    let shown = report(&lab, &[&run]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(2), ""), "{shown}");
    assert!(
        shown.stdout.contains("\nDID NOT END: it has no summary.json"),
        "{shown}"
    );
    let object = report(&lab, &[&run, "--json"]);
    assert_eq!(object.code, Some(2), "{object}");
    let object = &object.json()["runs"][0];
    assert_eq!(object["ended"], false);
    assert!(
        object["metrics"]["sent"].as_f64().is_some_and(|sent| sent > 0.0),
        "{object}"
    );
    // Ended before its first row was written.
    fs::write(&file, "").expect("an empty file");
    let shown = report(&lab, &[&run]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(2), ""), "{shown}");
    assert!(shown.stdout.contains("it left no interval"), "{shown}");
}

/// Among others it is a line, and the others are shown.
#[test]
fn a_run_that_did_not_end_is_a_line_among_others() {
    let Some(lab) = require(&[]) else { return };
    let words = "it has no summary.json, so it was killed or is still at work";
    fs::create_dir(lab.path("killed")).expect("a directory");
    fs::copy(golden().join("intervals.csv"), lab.path("killed/intervals.csv")).expect("a golden file");
    fs::create_dir(lab.path("young")).expect("a directory");
    fs::write(lab.path("young/plan.json"), "{}").expect("a plan");
    let alone = report(&lab, &["killed", "--html", "out.html"]);
    assert_eq!((alone.code, alone.stderr.as_str()), (Some(2), ""), "{alone}");
    let page = fs::read_to_string(lab.path("out.html")).expect("a page");
    assert!(page.contains("DID NOT END: ") && page.contains("id=\"data\""));
    let good = golden().display().to_string();
    let nothing = report(&lab, &["killed", "young"]);
    assert_eq!(
        (nothing.code, nothing.stderr.as_str()),
        (Some(2), ""),
        "{nothing}"
    );
    let shown = report(&lab, &[&good, "killed", "young"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{shown}");
    assert!(
        shown.stdout.contains("  0.0035 %  ") && shown.stdout.matches("  DID NOT END").count() == 2,
        "{shown}"
    );
    let object = report(&lab, &[&good, "killed", "young", "--json"]).json();
    assert_eq!(object["runs"][0]["kind"], "send");
    assert!(
        object["runs"][1]["says"]
            .as_str()
            .is_some_and(|says| says.contains(words))
    );
    assert!(object["runs"][1]["summary"].is_null() && object["runs"][2]["kind"].is_null());
    let page = report(&lab, &[&good, "killed", "young", "--html", "out.html"]);
    assert_eq!(page.code, Some(0), "{page}");
    let page = fs::read_to_string(lab.path("out.html")).expect("a page");
    assert!(page.contains("DID NOT END: ") && page.contains("1,234 lost"));
    let judged = report(&lab, &[&good, "killed", "--fail-if", "loss worse 1%"]);
    assert_eq!(judged.code, Some(2), "{judged}");
}

/// What a shell hands over is read as it comes, and the page goes where everything else goes.
#[test]
fn standard_input_and_output_are_files_too() {
    let Some(lab) = require(&[]) else { return };
    fs::write(
        lab.path("old.csv"),
        format!("{OLDER}1,100,99,0.01,1\n2,100,99,0.01,1\n"),
    )
    .expect("a file");
    let limit = Duration::from_secs(60);
    for script in [
        "cat old.csv | \"$DROPLESS\" report /dev/stdin --csv",
        "\"$DROPLESS\" report /dev/stdin --csv < old.csv",
        "\"$DROPLESS\" report /dev/fd/3 --csv 3< old.csv",
    ] {
        let shown = lab.shell(script).wait(limit);
        assert_eq!(shown.code, Some(0), "{shown}");
        assert!(shown.stdout.contains(",lost,packets,2,2,0,0\n"), "{shown}");
    }
    let page = report(&lab, &["old.csv", "--html", "-"]);
    assert_eq!((page.code, page.stderr.as_str()), (Some(0), ""), "{page}");
    assert!(page.stdout.starts_with("<!DOCTYPE html>") && page.stdout.ends_with("</html>\n"));
    assert!(!lab.path("-").exists());
}

/// What the user calls a run stands in its plan and its result, and for it wherever it is shown.
#[test]
fn a_run_has_the_name_it_was_given() {
    let Some(lab) = require(&[]) else { return };
    let named = |name: &str| {
        let common = [
            "send", "--count", "20000", "--rate", "max", "--json", "--name", name,
        ];
        let run = lab.dropless(&common).run();
        assert_eq!(run.json()["label"], name, "{run}");
        assert!(
            run.stderr.starts_with("note: ") || run.stderr.contains(&format!("Run {name}\n")),
            "{run}"
        );
        lab.directory()
            .join(run.json()["run"].as_str().expect("a run directory"))
    };
    let runs = [named("before"), named("after the change")];
    for file in ["plan.json", "summary.json"] {
        let text = fs::read_to_string(runs[0].join(file)).expect(file);
        assert!(text.contains("\"label\": \"before\""), "{file}: {text}");
    }
    let page = fs::read_to_string(runs[1].join("report.html")).expect("a page");
    assert!(
        page.contains("<title>after the change - dropless"),
        "the page has another title"
    );
    let paths = runs.map(|run| run.display().to_string());
    let both = report(&lab, &[&paths[0], &paths[1]]);
    assert!(
        both.stdout
            .contains("Side by side        before  after the change  "),
        "{both}"
    );
    let list = report(&lab, &["--list", &paths[0]]);
    assert!(list.stdout.contains("  send     before  VALID"), "{list}");
    // Its plan is another run's, which has its own name or none.
    let plan = format!("{}/plan.json", paths[0]);
    let again = lab.dropless(&["send", "--plan", &plan, "--json"]).run();
    assert!(
        again.json()["label"].is_null() && again.code == Some(0),
        "{again}"
    );
    for (wrong, words) in [("", "a name has letters"), ("a\nb", "a name is one line")] {
        let refused = lab.dropless(&["send", "--name", wrong]).run();
        assert!(
            refused.code == Some(2) && refused.stderr.contains(words),
            "{refused}"
        );
    }
}
