//! Names that others gave, of directories and files, in everything that is printed: none gets at a terminal.

use std::fs;
use std::path::Path;

use report::input::is_unsafe;

use crate::support::{Finished, Lab, require};

/// Clears the screen, colours, rings, turns the writing round, breaks the line and begins a script.
const HOSTILE: &str = "h\x1b[2J\x1b[1;32mVALID\u{9b}31m\x07\u{202e}gnp\u{2028}\r\n<script>";

fn is_clean(shown: &Finished) {
    for text in [&shown.stdout, &shown.stderr] {
        let mut lines = text.lines();
        assert!(lines.all(|line| !line.contains(is_unsafe)), "{text:?}");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a run directory").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
}

fn run_in(lab: &Lab, runs: &str) -> Finished {
    let run = lab
        .dropless(&["send", "--count", "2000", "--rate", "max", "--runs", runs])
        .run();
    is_clean(&run);
    run
}

#[test]
fn no_name_of_a_directory_reaches_the_terminal_as_it_is() {
    let Some(lab) = require(&[]) else { return };
    run_in(&lab, HOSTILE);
    let refused = lab
        .dropless(&["send", "--runs", &format!("/proc/{HOSTILE}")])
        .run();
    assert_eq!(refused.code, Some(2), "{refused}");
    is_clean(&refused);
    let made = fs::read_dir(lab.path(HOSTILE)).expect("run directories");
    let run = made.flatten().next().expect("a run directory").path();
    let (hostile, plain) = (format!("{HOSTILE}/{HOSTILE}"), "plain");
    copy(&run, &lab.path(&hostile));
    copy(&run, &lab.path(plain));
    // Of one that did not end the name is told by other sentences.
    let killed = format!("{HOSTILE}/killed{HOSTILE}");
    fs::create_dir(lab.path(&killed)).expect("a directory");
    fs::write(lab.path(&killed).join("plan.json"), "{\"command\": \"compare\"}").expect("a plan");
    let page = format!("{HOSTILE}/p.html");
    for runs in [
        &[hostile.as_str()][..],
        &[plain, &hostile],
        &[&killed],
        &[&hostile, plain, plain, plain, plain, &killed],
        &[&format!("{HOSTILE}/absent")],
    ] {
        for form in [
            &[][..],
            &["--csv"],
            &["--json"],
            &["--html", "-"],
            &["--html", &page],
        ] {
            is_clean(&lab.dropless(&[&["report"], runs, form].concat()).run());
        }
    }
    let judged = [
        "report",
        plain,
        &hostile,
        "--fail-if",
        "rate_tx worse 0%",
        "--fail-if",
        "sent worse 1k",
    ];
    is_clean(&lab.dropless(&judged).run());
    // In the file, too, a name is no markup and turns nothing round.
    let page = fs::read_to_string(lab.path(&page)).expect("a page");
    assert!(!page.contains("<script>h") && !page.contains("gnp\u{2028}") && !page.contains('\u{202e}'));
    assert_eq!(page.matches("<script").count(), page.matches("</script").count());
}
