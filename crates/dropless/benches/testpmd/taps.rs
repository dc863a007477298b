//! A run that is looked into: by a capture that keeps up, and by one that is stopped.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::ours::{full_rate, sent, watched};
use crate::rounds::{Bench, Measured};
use crate::support::terminal::LIVE_VARIABLE;
use crate::support::{Lab, until};

const LIMIT: Duration = Duration::from_secs(30);

/// `dropless send`, with what comes back verified on the same core, and a tap on both directions.
pub fn keeps_up(bench: &Bench, lab: &Lab) -> Measured {
    send(bench, lab, false)
}

/// The same, and nobody reads the tap.
pub fn is_stopped(bench: &Bench, lab: &Lab) -> Measured {
    send(bench, lab, true)
}

fn send(bench: &Bench, lab: &Lab, is_stopped: bool) -> Measured {
    let live = lab.path("live").display().to_string();
    let sender = lab
        .dropless(&["send", "--json", "--quiet"])
        .env(LIVE_VARIABLE, &live);
    let worker = bench.worker();
    let sender = full_rate(bench, sender, &["--port", "ring,direct", "--cores", &worker]).spawn();
    let process = sender.id().to_string();
    let socket = lab.path("live").join(format!("{process}.tap"));
    assert!(until(LIMIT, || socket.exists()), "{sender:?}");
    let arguments = [
        "capture",
        "--attach",
        &process,
        "--to",
        "tap.pcapng",
        "--file-size",
        "64M",
        "--files",
        "2",
    ];
    let mut tap = lab.dropless(&arguments).env(LIVE_VARIABLE, &live).spawn();
    tap.wait_for("looking into", LIMIT);
    if is_stopped {
        tap.signal(Signal::SIGSTOP);
    }
    let (run, share) = watched(bench, sender, &[]);
    drop(tap);
    sent(&run, share)
}
