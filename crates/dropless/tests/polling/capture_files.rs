//! `dropless capture --to`: whose a file is, what is none, and how long one may be.

use std::os::unix::fs::symlink;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::capture::{assert_balanced, path};
use crate::support::wire::{assert_refused, interrupted, note};
use crate::support::{Lab, Need, require, until};

const LIMIT: Duration = Duration::from_secs(60);
/// A capture of the embedded ring, as small as one can be.
const CAPTURE: [&str; 4] = ["capture", "--json", "--no-huge", "--no-doctor"];

fn refused(lab: &Lab, arguments: &[&str], words: &[&str]) {
    assert_refused(
        &lab.dropless(&[&["capture"][..], arguments].concat()).run(),
        words,
    );
}

/// Two captures of one file would destroy it for each other: the second one does not begin, and the first has all of its own.
#[test]
fn a_file_has_one_writer() {
    let Some(lab) = require(&[Need::Tool("tshark")]) else {
        return;
    };
    let file = path(&lab, "same.pcapng");
    let mut first = lab.dropless(&[&CAPTURE[..], &["--to", &file]].concat()).spawn();
    first.wait_for("capturing from", LIMIT);
    let len = || std::fs::metadata(&file).map_or(0, |file| file.len());
    assert!(until(LIMIT, || len() > 1 << 20), "nothing is written");
    let words = ["same.pcapng", "another process writes it", "choose another name"];
    refused(&lab, &["--to", &file, "--count", "100"], &words);
    // Whoever reads it is not asked.
    let read = lab.dropless(&["read", &file, "--count", "3"]).run();
    assert_eq!((read.code, read.stdout.lines().count()), (Some(0), 3), "{read}");
    let run = interrupted(first);
    assert_balanced(&run);
    let there = lab.dropless(&["read", &file, "--connections", "--json"]).run();
    assert_eq!(there.code, Some(0), "{there}");
    let counted = std::process::Command::new("tshark")
        .args(["-r", &file, "-T", "fields", "-e", "frame.len"])
        .output()
        .expect("tshark");
    assert!(counted.status.success(), "{counted:?}");
    let packets = String::from_utf8_lossy(&counted.stdout).lines().count() as u64;
    assert_eq!(run.number("files.packets"), packets, "{run}");
    // Once it has ended the name is free again.
    let again = lab.dropless(&[&CAPTURE[..], &["--to", &file, "--count", "100"]].concat());
    let again = again.run();
    assert_eq!(again.code, Some(0), "{again}");
}

/// What is no regular file is named at once, and nothing waits for a reader.
#[test]
fn what_is_no_file_is_refused_in_a_line() {
    let Some(lab) = require(&[]) else { return };
    let (pipe, link) = (path(&lab, "pipe"), path(&lab, "link"));
    mkfifo(&lab.path("pipe"), Mode::S_IRWXU).expect("a pipe");
    let _reader = lab.shell("exec cat pipe");
    refused(&lab, &["--to", &pipe], &["pipe", "no regular file", "--stdout"]);
    std::fs::write(lab.path("target"), "precious").expect("writing");
    symlink(lab.path("target"), &link).expect("a link");
    refused(
        &lab,
        &["--to", &link],
        &["a link, which is not followed", "--stdout"],
    );
    let target = std::fs::read_to_string(lab.path("target"));
    assert_eq!(target.expect("the target"), "precious");
    refused(
        &lab,
        &["--to", "/dev/stdout"],
        &["a link, which is not followed", "--stdout"],
    );
    refused(&lab, &["--to", "."], &["a directory"]);
    let theirs = path(&lab, "theirs.pcapng");
    std::fs::write(&theirs, "theirs").expect("writing");
    if std::os::unix::fs::chown(&theirs, Some(65534), None).is_ok() {
        let words = ["theirs.pcapng: it is a file of user 65534's", "remove it first"];
        refused(&lab, &["--to", &theirs], &words);
        assert_eq!(std::fs::read_to_string(&theirs).expect("theirs"), "theirs");
    }
    refused(&lab, &["--to", "-"], &["--to -", "--stdout"]);
    assert!(!lab.path("-").exists());
    refused(
        &lab,
        &["--to", "a.pcapng", "--count", "0"],
        &["--count 0", "from 1 on"],
    );
    assert!(!lab.path("a.pcapng").exists());
}

/// A file may be no longer than `ulimit -f` says: that is an error like a full disk, and no end of the process.
#[test]
fn a_file_that_may_grow_no_longer_ends_nothing() {
    let Some(lab) = require(&[]) else { return };
    // Of 512 bytes; the ring's memory is a file, too.
    let refused = "ulimit -f 4000; exec $DROPLESS capture --to none.pcapng";
    let words = [
        "--ring-size",
        "64 MiB in memory",
        "2000 KiB",
        "`ulimit -f`",
        "a smaller ring",
    ];
    assert_refused(&lab.shell(refused).wait(LIMIT), &words);
    let script = "ulimit -f 10000; exec $DROPLESS capture --json --no-huge --no-doctor --ring-size 4MiB --duration 2s --to limited.pcapng";
    let run = lab.shell(script).wait(LIMIT);
    assert_eq!(run.code, Some(1), "{run}");
    assert_balanced(&run);
    let refused = note(&run.json(), "disk_refused");
    assert!(refused.is_some_and(|text| text.contains("ulimit -f")), "{run}");
    let there = lab.dropless(&["read", "limited.pcapng", "--connections"]).run();
    assert_eq!(there.code, Some(0), "{there}");
    assert!(
        run.number("files.packets") > 0 && run.number("files.errors") > 0,
        "{run}"
    );
}
