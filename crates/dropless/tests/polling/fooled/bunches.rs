//! A sender that is stopped now and then catches up in bunches, and a policer loses them at any rate.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::support::proc::{children, is_alive};
use crate::support::search::{LIMIT, goal, journal, rate};
use crate::support::wire::{Wire, interrupted};
use crate::support::{Need, require};

const LIMIT_PPS: f64 = 20_100.0;
const WIDTH: f64 = 0.1;
/// Some hundred packets at the limit, where the policer takes 50 at once.
const STOPPED: Duration = Duration::from_millis(10);
/// Every second or third trial is hit.
const BETWEEN: Duration = Duration::from_millis(700);

/// Stops the trial that `search` makes, again and again, for a moment each.
fn stop_trials(search: u32) {
    while is_alive(search) {
        for trial in children(search) {
            if kill(trial, Signal::SIGSTOP).is_ok() {
                std::thread::sleep(STOPPED);
                let _ = kill(trial, Signal::SIGCONT);
            }
        }
        std::thread::sleep(BETWEEN);
    }
}

#[test]
fn what_our_own_bunches_lose_is_no_limit_of_the_path() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let fault = format!("limit={LIMIT_PPS}pps:50");
    let reflector = wire.reflect_far(&lab, "packet", &["--fault", &fault]);
    let arguments = [
        "search",
        "--json",
        "--port",
        "packet:near0",
        "--max-rate",
        "40kpps",
        "--min-rate",
        "500pps",
        "--width",
        "10%",
        "--initial-duration",
        "300ms",
        "--final-duration",
        "300ms",
        "--duration-sum",
        "600ms",
        "--cores",
        "0",
        "--backlog",
        "4096",
    ];
    let search = lab.dropless(&arguments).within(&wire.near).limit(LIMIT).spawn();
    let id = search.id();
    let thief = std::thread::spawn(move || stop_trials(id));
    let run = search.wait(LIMIT);
    let _ = thief.join();
    let _ = interrupted(reflector);
    let goal = goal(&run, 0, 0);
    let (_, lines) = journal(&lab);
    // Where it has an answer about the path, it is the path's.
    if goal["limit"] == "path" {
        assert!(
            rate(&goal["upper"]) > LIMIT_PPS * (1.0 - WIDTH),
            "{run}\n{lines:#?}"
        );
    } else {
        assert_eq!(goal["limit"], "sender", "{run}\n{lines:#?}");
    }
    let bunched = |line: &&serde_json::Value| {
        line["bunches"]
            .as_array()
            .is_some_and(|bunches| !bunches.is_empty())
    };
    assert!(
        lines.iter().any(|line| bunched(&line)),
        "nothing was stopped: {lines:#?}"
    );
}
