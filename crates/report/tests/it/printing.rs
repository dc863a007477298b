//! A reader that goes away, a full disk behind `>`, and where the text goes: with a process of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The example that prints all reports; cargo builds examples before it runs tests.
fn show(arguments: &[&str]) -> Command {
    let tests = std::env::current_exe().unwrap();
    let built: PathBuf = tests.parent().unwrap().parent().unwrap().join("examples/show");
    assert!(
        built.exists(),
        "not built by `cargo test --test`: run `cargo build -p report --examples` before"
    );
    let mut command = Command::new(built);
    command.args(arguments);
    command
}

#[test]
fn json_alone_on_stdout_and_words_on_stderr() {
    let output = show(&["--json"]).output().unwrap();
    assert!(output.status.success());
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["verdict"], "valid");
    assert!(String::from_utf8(output.stderr).unwrap().contains("\nVALID: "));
}

#[test]
fn words_on_stdout_without_json_and_no_colour_in_a_pipe() {
    let output = show(&[]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\nVALID: ") && !text.contains('\x1b'), "{text}");
    assert_eq!(output.stderr.len(), 0);
}

#[test]
fn quiet_prints_nothing_but_the_json() {
    let quiet = show(&["--quiet"]).output().unwrap();
    assert!(quiet.stdout.is_empty() && quiet.stderr.is_empty());
    let json = show(&["--quiet", "--json"]).output().unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&json.stdout).is_ok());
    assert_eq!(json.stderr.len(), 0);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for arguments in [&[][..], &["--json"]] {
        let mut child = show(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert!(child.wait().unwrap().success(), "{errors}");
        assert!(
            !errors.contains("panicked") && !errors.contains("cannot write"),
            "{errors}"
        );
    }
}

#[test]
fn both_streams_gone_is_no_panic_either() {
    let mut child = show(&["--json", "live"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_full_disk_behind_stdout_is_one_line_and_an_exit_code() {
    let full: File = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = show(&["--quiet", "--json"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("cannot write to standard output: No space left"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);
}
