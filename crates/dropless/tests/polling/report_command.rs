//! `dropless report`: what it takes, what it prints, what it refuses, and the page that every run leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::{Finished, Lab, Need, require, until};

const OLDER: &str = "time,tx_packets,rx_packets,drop_rate,avg_latency\n";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden/v1")
}

fn report(lab: &Lab, arguments: &[&str]) -> Finished {
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
        "<svg class=flow",
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

/// Puts a run of the first version into the lab, with one file changed.
fn broken(lab: &Lab, name: &str, file: &str, content: &[u8]) -> String {
    let directory = lab.path(name);
    fs::create_dir(&directory).expect("a directory");
    for file in ["summary.json", "intervals.csv", "stalls.csv"] {
        fs::copy(golden().join(file), directory.join(file)).expect("a golden file");
    }
    fs::write(directory.join(file), content).expect("a file");
    name.to_owned()
}

/// A pipe that nobody will ever write to.
fn pipe(lab: &Lab, name: &str) -> String {
    let made = Command::new("mkfifo").arg(lab.path(name)).status();
    assert!(made.expect("mkfifo is part of coreutils").success());
    name.to_owned()
}

fn within_pipe(lab: &Lab) -> String {
    fs::create_dir(lab.path("waits")).expect("a directory");
    pipe(lab, "waits/summary.json");
    "waits".to_owned()
}

#[allow(clippy::too_many_lines, reason = "a table of all that can be wrong")]
#[test]
fn what_cannot_be_read_is_one_line_and_leaves_nothing() {
    let Some(lab) = require(&[]) else { return };
    fs::create_dir(lab.path("empty")).expect("a directory");
    let file = |name: &str, content: &[u8]| {
        fs::write(lab.path(name), content).expect("a file");
        name.to_owned()
    };
    let zstd: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD, 0x24, 0x05, 0x29];
    let older = |rows: &str| format!("{OLDER}{rows}").into_bytes();
    let golden_rows = fs::read(golden().join("intervals.csv")).expect("a golden file");
    let cases = [
        ("absent".to_owned(), "name a run directory"),
        ("empty".to_owned(), "it has no summary.json"),
        (file("photo.csv", b"\x89PNG\r\n\x1a\n\0\0"), "line 1: not text"),
        (file("void.csv", b""), "void.csv has no rows"),
        (
            file("foreign.csv", b"name,price\nx,1\n"),
            "its first line is `name,price`",
        ),
        (file("head.csv", OLDER.as_bytes()), "it has no rows"),
        (
            file("short.csv", &older("1,2,2\n")),
            "line 2: 3 fields under 5 columns",
        ),
        (
            file("words.csv", &older("1,2,many,0,0\n")),
            "line 2: rx_packets is `many`, not a number",
        ),
        (
            file("back.csv", &older("5,2,2,0,0\n4,2,2,0,0\n")),
            "line 3: time goes from 5 to 4 ms",
        ),
        (
            file("minus.csv", &older("1,-2,2,0,0\n")),
            "line 2: tx_packets is -2, which cannot be",
        ),
        (file("cut.csv.zst", zstd), "line 1: cannot be read"),
        (
            broken(
                &lab,
                "newer",
                "summary.json",
                b"{\"version\": 7, \"command\": \"send\"}",
            ),
            "use a newer dropless",
        ),
        (
            broken(&lab, "cut", "summary.json", b"{\"version\": 1, \"comm"),
            "is damaged",
        ),
        (
            broken(
                &lab,
                "unknown",
                "summary.json",
                b"{\"version\": 1, \"command\": \"unknown\"}",
            ),
            "is the result of `unknown`",
        ),
        (
            broken(
                &lab,
                "noise",
                "summary.json",
                b"{\"version\": 1, \"command\": \"noise\"}",
            ),
            "noise/summary.json is damaged: it has no `threshold_ns`",
        ),
        (
            broken(
                &lab,
                "rows",
                "intervals.csv",
                &golden_rows[..golden_rows.len() - 20],
            ),
            "is damaged: line 5",
        ),
        (
            broken(&lab, "pauses", "stalls.csv", b"time,core\n"),
            "is damaged: line 1: not the columns of a stalls.csv",
        ),
        (
            broken(&lab, "curve", "latency.hgrm", b"Value Percentile\n1 0.5\n"),
            "the file ends before its total count",
        ),
        (broken(&lab, "host", "host.json", b"{"), "is damaged"),
        (
            broken(
                &lab,
                "shell",
                "summary.json",
                b"{\"version\": 1, \"command\": \"send\"}",
            ),
            "shell/summary.json is damaged: it has no `verdict`",
        ),
        (
            broken(
                &lab,
                "escape",
                "summary.json",
                b"{\"version\": 1, \"command\": \"send\", \"verdict\": \"\\u001b[31m\\nVALID\"}",
            ),
            "escape/summary.json is damaged: unknown variant `?[31m?VALID`",
        ),
        (pipe(&lab, "pipe.csv"), "pipe.csv is a named pipe"),
        (within_pipe(&lab), "waits/summary.json is a named pipe"),
        ("/dev/zero".to_owned(), "/dev/zero is a device"),
        (
            file("steps.csv", &older("1,2,2,0,0\n1.0000001,2,2,0,0\n")),
            "a step is 1 us or more",
        ),
    ];
    for (path, words) in &cases {
        for output in [&["--html", "out.html"][..], &["--json"], &["--csv"], &[]] {
            // A good one before it: nothing of that may be drawn either.
            let good = golden().display().to_string();
            let refused = report(&lab, &[&[good.as_str(), path], output].concat());
            assert_eq!(refused.code, Some(2), "{path}: {refused}");
            if output == ["--json"] {
                let error = refused.json()["error"]
                    .as_str()
                    .expect("what went wrong")
                    .to_owned();
                assert_eq!(
                    refused.stderr,
                    format!("dropless: {error}\n"),
                    "{path}: {refused}"
                );
            } else {
                assert_eq!(refused.stdout, "", "{path}: {refused}");
            }
            assert!(
                refused.stderr.contains(words) && refused.stderr.lines().count() == 1,
                "{path}: {refused}"
            );
        }
    }
    assert!(!lab.path("out.html").exists());
    assert!(!lab.path(".out.html.tmp").exists());
    let unwritable = report(
        &lab,
        &[&golden().display().to_string(), "--html", "/nonexistent/out.html"],
    );
    assert_eq!(unwritable.code, Some(2), "{unwritable}");
    assert!(
        unwritable.stderr.contains("cannot write /nonexistent/out.html"),
        "{unwritable}"
    );
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
        shown.stdout.starts_with("DID NOT END: it has no summary.json"),
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
    assert!(page.contains("DID NOT END: ") && page.contains("id=data"));
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
        shown.stdout.contains("1,234 lost") && shown.stdout.matches("DID NOT END: ").count() >= 2,
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
    assert!(page.stdout.starts_with("<!doctype html>") && page.stdout.ends_with("</html>\n"));
    assert!(!lab.path("-").exists());
}

#[test]
fn a_directory_that_is_closed_is_not_called_something_else() {
    let Some(lab) = require(&[Need::Root, Need::Tool("setpriv")]) else {
        return;
    };
    let closed = lab.path("closed");
    fs::create_dir(&closed).expect("a directory");
    let mode = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(&closed, mode(0o700)).expect("closing it");
    fs::set_permissions(lab.directory(), mode(0o755)).expect("opening the directory");
    let script = "cp \"$DROPLESS\" program && setpriv --reuid 65534 --regid 65534 --clear-groups -- ./program report closed";
    let refused = lab.shell(script).wait(Duration::from_secs(60));
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused
            .stderr
            .contains("cannot read closed/search.json: Permission denied")
            && refused
                .stderr
                .contains("fix: as the user who measured, or with sudo")
            && refused.stderr.lines().count() == 1,
        "{refused}"
    );
}
