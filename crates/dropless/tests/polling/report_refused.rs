//! `dropless report` and what it cannot read: one line, and nothing is left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use crate::report_command::{OLDER, golden, report};
use crate::support::{Lab, Need, require};

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
            let refused = report(&lab, &[&[path.as_str()], output].concat());
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
    // Among others each is a line, but for one that is not there: that was not meant.
    let good = golden().display().to_string();
    let paths: Vec<&str> = cases.iter().map(|(path, _)| path.as_str()).collect();
    let refused = report(&lab, &[&["--html", "out.html", &good][..], &paths].concat());
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("absent") && refused.stderr.lines().count() == 1,
        "{refused}"
    );
    assert!(!lab.path("out.html").exists());
    let listed = report(&lab, &[&["--list", "--json", &good][..], &paths[1..]].concat());
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed}");
    let object = listed.json();
    let runs = object["runs"].as_array().expect("the list");
    // The good one, and all but the one that is not there.
    assert_eq!(runs.len(), cases.len(), "{listed}");
    for (run, (path, words)) in runs[1..].iter().zip(&cases[1..]) {
        let says = run["says"].as_str().expect("what is wrong");
        assert!(says.contains(words), "{path}: {says}");
    }
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
