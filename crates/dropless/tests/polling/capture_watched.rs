//! A capture has what every run has: a status, metrics, `top`, a page, and a name for whoever took its core.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::capture::{assert_balanced, capture, path, send};
use crate::support::served::{samples, scraped, serve};
use crate::support::terminal::Terminal;
use crate::support::wire::{Wire, assert_refused, charged, interrupted};
use crate::support::{Need, require, until};

const LIMIT: Duration = Duration::from_secs(60);

/// While it goes and at its end the metrics say what the ledger says, of each consumer, too.
#[test]
fn metrics_and_top_have_its_consumers() {
    let Some(lab) = require(&[]) else { return };
    let file = path(&lab, "watched.pcapng");
    let arguments = [
        "capture",
        "--to",
        &file,
        "udp",
        "and",
        "less",
        "100",
        "--metrics-linger",
        "60s",
    ];
    let (mut running, address) = serve(&lab, &arguments);
    let taken = "dropless_consumer_taken_packets_total{consumer=\"files\",kind=\"lossless\"}";
    let filtered = "dropless_place_packets_total{place=\"filtered\"}";
    let rises = || {
        let seen = scraped(address);
        seen.get(filtered) > Some(&1000.0) && seen.contains_key(taken)
    };
    assert!(until(LIMIT, rises), "{:?}", scraped(address));
    let mut terminal = Terminal::top(&lab, "", 40, 130);
    terminal.wait_for("dropless capture");
    terminal.wait_for("Consumers");
    terminal.wait_for("Left out");
    terminal.wait_for("captured");
    assert!(
        !terminal.text().contains("unsent"),
        "it sends nothing: {}",
        terminal.text()
    );
    terminal.rises("rx");
    terminal.press("q");
    terminal.has_left(0);
    // A run without a duration ends in no other way, and its last values are served all the same.
    running.signal(Signal::SIGINT);
    let ended = || scraped(address).get("dropless_run_phase{phase=\"ended\"}") == Some(&1.0);
    assert!(until(LIMIT, ended), "{:?}", scraped(address));
    let last = scraped(address);
    // The page is written in between.
    let lingers = || {
        running
            .stderr()
            .contains("the last values are served for 60 s more")
    };
    assert!(until(LIMIT, lingers), "{running:?}");
    // The same wish to end, so soon after the first one, would not be another.
    std::thread::sleep(Duration::from_millis(600));
    assert!(running.is_alive(), "{running:?}");
    running.signal(Signal::SIGINT);
    let run = running.wait(LIMIT);
    assert_eq!(run.code, Some(0), "{run}");
    assert_balanced(&run);
    let received = last["dropless_received_packets_total"];
    assert!(
        (received - run.number("received") as f64).abs() < 0.5,
        "{last:?} {run}"
    );
    let captured = last["dropless_captured_packets_total"];
    assert!(
        captured < received && (captured - run.number("captured") as f64).abs() < 0.5,
        "{last:?} {run}"
    );
    let of_ledger = charged(&run.json()["ledger"], "filtered");
    assert!((last[filtered] - of_ledger as f64).abs() < 0.5, "{last:?} {run}");
    let directory = lab.path(run.json()["run"].as_str().expect("a path"));
    for name in [
        "plan.json",
        "host.json",
        "summary.json",
        "intervals.csv",
        "stalls.csv",
        "report.html",
    ] {
        assert!(directory.join(name).is_file(), "no {name} in {directory:?}");
    }
}

#[test]
fn promtool_finds_nothing_to_say() {
    let Some(lab) = require(&[Need::Tool("promtool")]) else {
        return;
    };
    let file = path(&lab, "checked.pcapng");
    let (running, address) = serve(&lab, &["capture", "--to", &file]);
    let mut page = String::new();
    let has_consumer = || {
        page = crate::support::served::get(address, "/metrics")
            .expect("an answer")
            .1;
        samples(&page)
            .keys()
            .any(|name| name.starts_with("dropless_consumer_behind_segments"))
    };
    assert!(until(LIMIT, has_consumer));
    std::fs::write(lab.path("metrics.txt"), &page).expect("writing");
    let check = lab.shell("promtool check metrics < metrics.txt").wait(LIMIT);
    assert_eq!(
        (check.code, check.stdout + &check.stderr),
        (Some(0), String::new()),
        "{page}"
    );
    let _ = interrupted(running);
}

/// Conditions decide the exit code; one that cannot be asked of a capture is refused.
#[test]
fn expectations_decide() {
    let Some(lab) = require(&[]) else { return };
    let run = |conditions: &[&str]| {
        let mut arguments = vec!["capture", "--json", "--count", "1000", "greater", "500"];
        arguments.extend(conditions.iter().flat_map(|condition| ["--expect", condition]));
        lab.dropless(&arguments).run()
    };
    let met = run(&["loss==0", "captured==1000", "filtered>captured"]);
    assert_eq!(met.code, Some(0), "{met}");
    assert_eq!(
        met.json()["expectations"].as_array().map(Vec::len),
        Some(3),
        "{met}"
    );
    let unmet = run(&["captured==1000", "filtered==0"]);
    assert_eq!(unmet.code, Some(1), "{unmet}");
    assert!(unmet.stderr.contains("FAILED  filtered==0"), "{unmet}");
    assert_refused(&run(&["latency_p99<1ms"]), &["latency_p99", "sampled_out"]);
}

/// A program that takes all it gets of a core.
struct Thief(Child);

impl Drop for Thief {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Packets that its port missed while another program had its core are charged to that program.
#[test]
fn what_was_missed_is_charged_to_the_thief() {
    let needs = [
        Need::Root,
        Need::Namespaces,
        Need::Processors(2),
        Need::File("/sys/kernel/tracing/trace_clock"),
        Need::Tool("taskset"),
    ];
    let Some(lab) = require(&needs) else { return };
    let wire = Wire::between(&lab, 1);
    let arguments = [
        "--port",
        "packet:far0",
        "--cores",
        "1",
        "--descriptors",
        "64",
        "--explain",
    ];
    let running = capture(&lab, &wire.far, &arguments);
    let program = lab.path("dl-thief");
    std::fs::copy("/usr/bin/yes", &program).expect("yes is part of every system");
    let thief = Command::new("taskset")
        .args(["-c", "1", "nice", "-n", "-10"])
        .arg(&program)
        .stdout(Stdio::null())
        .spawn();
    let thief = Thief(thief.expect("taskset is there"));
    let sent = send(
        &lab,
        &wire,
        &["--cores", "0", "--rate", "50kpps", "--duration", "3s"],
    );
    drop(thief);
    let run = interrupted(running);
    assert_balanced(&run);
    let missed = run.number("explanation.missed");
    assert!(missed > 0, "the thief cost nothing: {run}");
    assert_eq!(missed, run.number("ports.0.rx_missed"), "{run}");
    assert!(run.number("explanation.explained") <= missed, "{run}");
    assert!(
        sent.number("sent") >= run.number("captured") + missed,
        "{sent} {run}"
    );
    let causes = run.json()["explanation"]["causes"].clone();
    let causes = causes.as_array().expect("causes").iter();
    // Others may have had the core as well, each with what it cost.
    let thief = causes
        .filter(|cause| cause["core"] == 1)
        .find(|cause| {
            let said = cause["cause"].as_str();
            said.is_some_and(|said| said.contains("preempted by dl-thief ("))
        })
        .unwrap_or_else(|| panic!("the thief is not named: {run}"));
    assert!(thief["lost"].as_u64() > Some(0), "{run}");
}
