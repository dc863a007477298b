//! `dropless forward`, and testpmd beside it.

use std::time::Duration;

use crate::contest::{Rules, write_rules};
use crate::frames;
use crate::ours::{full_rate, rate, reasons, report, sent, watched, with_memory};
use crate::rounds::{Bench, Measured};
use crate::support::{Lab, Running, until};
use crate::theirs;

const STARTING: Duration = Duration::from_secs(20);

/// Two ports that swallow everything and make frames from nothing, on one core.
pub fn forward(bench: &Bench, lab: &Lab, mode: &str, rules: Option<Rules<'_>>) -> Measured {
    let mut forward = lab.dropless(&[
        "forward", "--json", "--quiet", "--port", "null:a", "--port", "null:b", "--mode", mode,
    ]);
    if let Some(rules) = rules {
        let path = write_rules(lab, rules).expect("the rules");
        forward = forward.arg("--rules").arg(path.display().to_string());
    }
    let forward = with_memory(bench, forward)
        .arg("--duration")
        .arg(bench.duration());
    let (run, share) = watched(bench, forward.arg("--cores").arg(bench.worker()).spawn(), &[]);
    let json = report(&run);
    Measured {
        rate_pps: rate(&json, "rate_tx_pps"),
        share,
        invalid: reasons(&json),
        ..Measured::default()
    }
}

pub fn forward_null(bench: &Bench, lab: &Lab) -> Measured {
    forward(bench, lab, "swap", None)
}

pub fn forward_50(bench: &Bench, lab: &Lab) -> Measured {
    forward(bench, lab, "io", Some(Rules::Tuples(&frames::disjoint(50))))
}

pub fn forward_10000(bench: &Bench, lab: &Lab) -> Measured {
    forward(bench, lab, "io", Some(Rules::Tuples(&frames::mixed(10_000))))
}

pub fn forward_500k(bench: &Bench, lab: &Lab) -> Measured {
    forward(
        bench,
        lab,
        "io",
        Some(Rules::Prefixes(&frames::prefixes(500_000, 1))),
    )
}

pub fn io_null(bench: &Bench, lab: &Lab) -> Measured {
    theirs::null_to_null(bench, lab, "io")
}

pub fn macswap_null(bench: &Bench, lab: &Lab) -> Measured {
    theirs::null_to_null(bench, lab, "macswap")
}

/// Through two shared memories, both ways, by the same sender.
pub fn forward_memif(bench: &Bench, lab: &Lab) -> Measured {
    let port = |name: &str| format!("memif:{},server", lab.path(name).display());
    let (a, b) = (port("a.sock"), port("b.sock"));
    let forward = lab.dropless(&["forward", "--json", "--port", &a, "--port", &b, "--mode", "swap"]);
    let forward = with_memory(bench, forward)
        .arg("--cores")
        .arg(bench.worker())
        .spawn();
    let measured = send_through(bench, lab, &forward);
    forward.signal(nix::sys::signal::Signal::SIGINT);
    let ended = forward.wait(STARTING);
    let reasons = reasons(&report(&ended));
    Measured {
        invalid: measured.invalid.clone().or(reasons),
        ..measured
    }
}

pub fn macswap_memif(bench: &Bench, lab: &Lab) -> Measured {
    let mut testpmd = theirs::between_memifs(bench, lab, &[lab.path("a.sock"), lab.path("b.sock")]);
    testpmd.start();
    let measured = send_through(bench, lab, testpmd.process());
    testpmd.quit();
    measured
}

fn send_through(bench: &Bench, lab: &Lab, forwarder: &Running) -> Measured {
    let made = until(STARTING, || {
        lab.path("a.sock").exists() && lab.path("b.sock").exists()
    });
    assert!(made, "{forwarder:?}");
    let port = |name: &str| format!("memif:{}", lab.path(name).display());
    let (a, b) = (port("a.sock"), port("b.sock"));
    let sender = lab.dropless(&[
        "send",
        "--json",
        "--quiet",
        "--port",
        &a,
        "--port",
        &b,
        "--to-mac",
        "02:00:00:00:00:09",
    ]);
    let sender = full_rate(bench, sender, &["--cores", &bench.second()]).spawn();
    let (run, share) = watched(bench, sender, &[forwarder.id()]);
    sent(&run, share)
}
