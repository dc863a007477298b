//! A full disk under the run directory: on a file system of 256 KiB, mounted where nobody else sees it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use crate::common;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use report::rundir::file;
use report::{IntervalWriter, RunDir, load, read};

const TINY: &str = "DROPLESS_TEST_TINY";

#[test]
fn a_full_disk_costs_files_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=256k tiny \"$0\" || exit 77; exec \"$1\" --exact disk_full::on_the_tiny_disk --ignored";
    let output = Command::new("unshare")
        .args([
            "--mount",
            "--map-root-user",
            "--propagation",
            "private",
            "sh",
            "-c",
            mount,
        ])
        .arg(dir.path())
        .arg(env::current_exe().unwrap())
        .env(TINY, dir.path())
        .output();
    let text = output.as_ref().map(|output| {
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    });
    match &output {
        Ok(output) if output.status.success() => assert!(text.unwrap().contains("1 passed"), "nothing ran"),
        // The inner test ran and failed: cargo's test harness ends with 101.
        Ok(output) if output.status.code() == Some(101) => panic!("{}", text.unwrap()),
        _ => crate::skip::skip(&format!(
            "needs leave to mount in a namespace of its own: {text:?}"
        )),
    }
}

#[test]
#[ignore = "a_full_disk_costs_files_and_nothing_else runs it on a disk of its own"]
fn on_the_tiny_disk() {
    let base = PathBuf::from(env::var_os(TINY).expect("run by a_full_disk_costs_files_and_nothing_else"));
    full_while_streaming(&base);
    full_at_the_end(&base);
    full_before_the_start(&base);
}

/// Rows until long after the disk is full: the file ends with a whole row, and how many are missing is told.
fn full_while_streaming(base: &Path) {
    let run = RunDir::create(base, "send", SystemTime::now()).unwrap();
    let mut writer = IntervalWriter::create(&run, &["voice".to_owned(), "bulk".to_owned()], true);
    for index in 0..3000 {
        writer.push(&common::interval(index, 1000, 999, 1234));
    }
    writer.finish().unwrap_err();
    let note = run.note().unwrap().text;
    assert!(
        note.contains("intervals.csv: ") && note.contains(" of 3000 rows are missing: No space left"),
        "{note}"
    );

    let text = fs::read_to_string(run.file("intervals.csv")).unwrap();
    assert!(text.ends_with('\n'));
    let series = load::load(&run.file("intervals.csv")).unwrap().series.unwrap();
    let lost: u64 = note
        .split("intervals.csv: ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(series.rows + lost, 3000);
    fs::remove_dir_all(run.path()).unwrap();
}

/// The summary does not fit: no half file under its name, no hidden one either, and room again is used again.
fn full_at_the_end(base: &Path) {
    let run = RunDir::create(base, "send", SystemTime::now()).unwrap();
    let ballast = fill(base);
    run.write_json(file::LEDGER, &common::lossy().ledger).unwrap_err();
    run.write_result(&common::lossy()).unwrap_err();
    let note = run.note().unwrap().text;
    assert!(
        note.contains("ledger.json: No space left") && note.ends_with("(and 1 more)"),
        "{note}"
    );
    assert_eq!(fs::read_dir(run.path()).unwrap().count(), 0);
    fs::remove_file(ballast).unwrap();
    run.write_result(&common::lossy()).unwrap();
    assert_eq!(read::summary(run.path()).unwrap(), common::lossy());
    fs::remove_dir_all(run.path()).unwrap();
}

/// Whether the directory can still be made or not, nothing panics and nothing is silent.
fn full_before_the_start(base: &Path) {
    let ballast = fill(base);
    match RunDir::create(base, "send", SystemTime::now()) {
        Err(error) => assert!(error.to_string().contains("; fix: free some space"), "{error}"),
        Ok(run) => {
            let mut writer = IntervalWriter::create(&run, &["default".to_owned()], true);
            writer.push(&common::interval(0, 1000, 1000, 1234));
            writer.finish().unwrap_err();
            assert!(run.note().unwrap().text.contains("No space left"));
        }
    }
    fs::remove_file(ballast).unwrap();
}

/// Takes every byte that is left.
fn fill(base: &Path) -> PathBuf {
    use std::io::Write;
    let path = base.join("ballast");
    let mut file = fs::File::create(&path).unwrap();
    while file.write_all(&[0; 64]).is_ok() {}
    path
}
