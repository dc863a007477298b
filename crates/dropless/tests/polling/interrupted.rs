//! Ctrl-C on a terminal: the terminal's own `^C` is glued to nothing, and the settings stay.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getsid};

use crate::support::terminal::Terminal;
use crate::support::{require, until};

const LIMIT: Duration = Duration::from_secs(30);
const COMPARE: &str = "compare --methods memif --rates 2kpps --duration 2s";
const SEARCH: &str = "search --no-huge --max-rate 5kpps --min-rate 1kpps --backlog=1000000";
const SEND: &str = "send --no-huge --no-doctor --port ring --rate 5kpps --duration 60s";
const FORWARD: &str = "forward --no-huge --no-doctor --port null:a --port null:b";
const REFLECT: &str = "reflect --no-huge --no-doctor --port null";

#[test]
fn nothing_is_glued_to_the_echo_of_ctrl_c() {
    let Some(lab) = require(&[]) else { return };
    for (arguments, goes, told) in [
        (COMPARE, "for its latency", "Compared over"),
        (SEARCH, "trial 1", "NOT FINISHED: interrupted"),
        (SEND, "sending", "run directory"),
        (REFLECT, "reflecting on", "run directory"),
        (&format!("{SEND} --runs silent 2>/dev/null; :"), "", ""),
    ] {
        // High enough for all that is printed.
        let mut terminal = Terminal::dropless(&lab, arguments, 80, 120);
        terminal.wait_for(goes);
        if goes.is_empty() {
            // Only its rows say that it sends.
            let sends = until(LIMIT, || {
                let runs = std::fs::read_dir(lab.path("silent"));
                let mut runs = runs.into_iter().flatten().flatten();
                runs.any(|run| {
                    let rows = std::fs::read_to_string(run.path().join("intervals.csv"));
                    rows.is_ok_and(|rows| rows.lines().count() > 1)
                })
            });
            assert!(sends, "{arguments}:\n{}", terminal.text());
        }
        terminal.press("\x03");
        terminal.wait_for("code ");
        terminal.wait_for(told);
        terminal.wait_for("restored");
        let text = terminal.text();
        assert!(!text.contains("^C"), "{arguments}:\n{text}");
    }
}

/// Nor does who draws keep the run waiting that is to be told about, nor its end.
#[test]
fn a_terminal_that_is_stopped_makes_nobody_deaf() {
    let Some(lab) = require(&[]) else { return };
    let mut terminal = Terminal::dropless(&lab, REFLECT, 40, 120);
    // Ctrl-S: from here on it takes nothing.
    terminal.press("\x13");
    let ended_with = |file: &str| {
        let runs = std::fs::read_dir(lab.path("runs"));
        let mut runs = runs.into_iter().flatten().flatten();
        runs.any(|run| run.path().join(file).exists())
    };
    assert!(until(LIMIT, || ended_with("intervals.csv")), "never begun");
    let program = Pid::from_raw(terminal.program());
    kill(program, Signal::SIGINT).expect("signalling");
    assert!(until(LIMIT, || ended_with("summary.json")), "deaf");
    // The result is printed, which nobody takes: one more ends the process at once.
    let is_gone = || kill(program, Signal::SIGINT).is_err();
    assert!(until(LIMIT, is_gone), "deaf to the second");
}

/// SIGHUP asks these to read rules again, but not when it comes since the terminal is gone.
#[test]
fn what_reads_rules_again_ends_with_its_terminal() {
    let Some(lab) = require(&[]) else { return };
    std::fs::write(lab.path("edge.rules"), "allow udp\n").expect("a rule file");
    for rules in ["", "--rules edge.rules"] {
        let terminal = Terminal::dropless(&lab, &format!("{FORWARD} {rules}"), 40, 120);
        terminal.wait_for("forwarding between");
        let program = Pid::from_raw(terminal.program());
        // With the leader of a session its terminal goes.
        let shell = getsid(Some(program)).expect("a session");
        kill(shell, Signal::SIGKILL).expect("signalling");
        let has_ended = until(LIMIT, || kill(program, None).is_err());
        // Nobody else would end it: it would poll beside all tests that follow.
        let _ = kill(program, Signal::SIGKILL);
        assert!(has_ended, "{rules}:\n{}", terminal.text());
    }
}
