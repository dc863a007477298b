//! The books of `send` against what the fault injector did: equal to the packet, on every path inside this process.

use std::time::Duration;

use crate::support::wire::{assert_no_rate_of_its_backlog, assert_valid_but_for_time, column, has_note};
use crate::support::{Finished, Lab, require};
use nix::sys::signal::Signal;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

/// As fast as it goes, on as many cores as there are.
const FAST: &[&str] = &["--count", "300k"];
/// Slow, and with room to catch up: on a machine that does other things too, every packet is still sent.
const SLOW: &[&str] = &[
    "--count",
    "10k",
    "--rate",
    "20kpps",
    "--backlog",
    "1000000",
    "--cores",
    "0",
];

fn send(lab: &Lab, arguments: &[&[&str]]) -> Finished {
    let mut all = vec!["send", "--json", "--quiet", "--seed", "7"];
    all.extend(arguments.concat());
    if !all.contains(&"--drain") {
        // It ends when every packet is accounted for: a second more is for a machine that stands still meanwhile.
        all.extend(["--drain", "10s"]);
    }
    lab.dropless(&all).run()
}

/// The evidence counter `name`, 0 where there is none.
fn raw(run: &Finished, name: &str) -> u64 {
    run.json()["ledger"]["raw"][name].as_u64().unwrap_or(0)
}

fn place(run: &Finished, name: &str) -> u64 {
    run.json()["ledger"]["lost_at"][name].as_u64().unwrap_or(0)
}

/// What holds whatever was injected: nothing unexplained, nothing leaked, every probe seen by the injector.
fn assert_sound(run: &Finished) {
    assert_valid_but_for_time(run);
    assert_eq!(run.number("unexplained"), 0, "{run}");
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
    assert_eq!(run.number("ledger.intended"), run.number("sent"), "{run}");
    assert_eq!(
        run.number("sent"),
        run.number("received") + run.number("lost"),
        "{run}"
    );
}

/// The report finds exactly what was injected; returns how many probes suffered `fault`.
fn exact(run: &Finished, fault: &str) -> u64 {
    assert_sound(run);
    assert_eq!(raw(run, "fault_seen"), run.number("sent"), "{run}");
    assert_eq!(place(run, "fault_drop"), raw(run, "fault_drop"), "{run}");
    // What a machine that stands still leaves no place for is counted, too: it may have been any of them.
    let refused = raw(run, "reflector_tx_full");
    let spoiled = raw(run, "fault_drop") + raw(run, "fault_corrupt");
    let lost = run.number("lost");
    assert!((spoiled..=spoiled + refused).contains(&lost), "{run}");
    assert_eq!(
        lost,
        place(run, "fault_drop") + run.number("corrupt") + place(run, "reflector_tx_full"),
        "{run}"
    );
    for (found, name) in [
        ("corrupt", "fault_corrupt"),
        ("duplicate", "fault_duplicate"),
        ("reordered", "fault_reorder"),
    ] {
        let (found, done) = (run.number(found), raw(run, name));
        assert!(found <= done && done <= found + refused, "{name}: {run}");
    }
    assert_eq!(run.number("late"), 0, "{run}");
    assert_eq!(
        run.number("ledger.arrived.frames"),
        raw(run, "reflector_returned"),
        "{run}"
    );
    let done = raw(run, &format!("fault_{fault}"));
    assert!(done > 0, "no {fault} was injected: {run}");
    done
}

/// One fault alone, fast and slow.
fn alone(fault: &str, share: &str) {
    let Some(lab) = require(&[]) else { return };
    for speed in [FAST, SLOW] {
        exact(
            &send(&lab, &[speed, &["--fault", &format!("{fault}={share}")]]),
            fault,
        );
    }
}

#[test]
fn drops_are_found_to_the_packet() {
    alone("drop", "1%");
}

#[test]
fn duplicates_are_found_to_the_packet() {
    alone("duplicate", "1%");
}

#[test]
fn reordered_packets_are_found_to_the_packet() {
    alone("reorder", "1%");
}

#[test]
fn corrupt_packets_are_found_to_the_packet() {
    alone("corrupt", "1%");
}

#[test]
fn delayed_packets_are_reordered_and_not_lost() {
    alone("delay", "1%:2ms");
}

#[test]
fn all_faults_at_once_are_told_apart_to_the_packet() {
    let Some(lab) = require(&[]) else { return };
    let faults = "drop=1%,duplicate=2%,reorder=1.5%,corrupt=0.5%,delay=1%:2ms";
    for speed in [FAST, SLOW] {
        let run = send(&lab, &[speed, &["--fault", faults]]);
        for fault in ["drop", "duplicate", "reorder", "corrupt", "delay"] {
            exact(&run, fault);
        }
        assert!(has_note(&run.json(), "seed"), "{run}");
        let code = if run.json()["verdict"] == "valid" { 1 } else { 2 };
        assert_eq!(
            run.code,
            Some(code),
            "loss must be an exit code of its own: {run}"
        );
    }
}

#[test]
fn faults_of_a_reflector_in_another_process_are_found_to_the_packet() {
    let Some(lab) = require(&[]) else { return };
    let faults = "drop=1%,duplicate=1%,reorder=1%,corrupt=1%,delay=1%:2ms";
    let far = [
        "reflect",
        "--json",
        "--port",
        "memif:m.sock,server",
        "--fault",
        faults,
        "--seed",
        "7",
    ];
    let mut far = lab.dropless(&far).spawn();
    far.wait_for("reflecting", Duration::from_secs(20));
    let near = send(
        &lab,
        &[
            SLOW,
            // What was lost over there is not known here, and waited for.
            &[
                "--port",
                "memif:m.sock",
                "--to-mac",
                "02:00:00:00:00:09",
                "--drain",
                "2s",
            ],
        ],
    );
    far.signal(Signal::SIGINT);
    let far = far.wait(Duration::from_secs(20));
    let fault = |name: &str| far.number(&format!("faults.{name}"));
    let seeds = [&near, &far].map(|run| has_note(&run.json(), "seed"));
    assert_eq!(seeds, [false, true], "who injects says how: {near} {far}");
    assert_eq!(far.number("received"), near.number("sent"), "{near} {far}");
    assert_eq!(
        far.number("returned"),
        near.number("ledger.arrived.frames"),
        "{near} {far}"
    );
    assert!(fault("drop") > 0 && fault("delay") > 0, "{far}");
    assert_eq!(
        near.number("lost"),
        fault("drop") + fault("corrupt"),
        "{near} {far}"
    );
    assert_eq!(
        near.number("unexplained"),
        fault("drop"),
        "only the far side knows what it dropped: {near}"
    );
    assert_eq!(near.number("corrupt"), fault("corrupt"), "{near} {far}");
    assert_eq!(near.number("duplicate"), fault("duplicate"), "{near} {far}");
    assert_eq!(near.number("reordered"), fault("reorder"), "{near} {far}");
    assert_eq!(
        (near.number("pool.leaked"), far.number("pool.leaked")),
        (0, 0),
        "{near} {far}"
    );
}

#[test]
fn rare_faults_are_found_too() {
    let Some(lab) = require(&[]) else { return };
    exact(
        &send(&lab, &[FAST, &["--fault", "drop=0.01%,corrupt=0.01%"]]),
        "drop",
    );
}

#[test]
fn the_same_seed_injects_the_same_faults() {
    let Some(lab) = require(&[]) else { return };
    let drops = |speed| {
        exact(
            &send(&lab, &[speed, &["--count", "20k", "--fault", "drop=1%"]]),
            "drop",
        )
    };
    let slow: &[&str] = &["--rate", "40kpps", "--backlog", "1000000", "--cores", "0"];
    assert_eq!(
        drops(&[]),
        drops(slow),
        "the speed must not change what is injected"
    );
}

#[test]
fn packets_delayed_beyond_the_drain_are_late() {
    let Some(lab) = require(&[]) else { return };
    let run = send(&lab, &[SLOW, &["--drain", "300ms", "--fault", "delay=1%:700ms"]]);
    assert_sound(&run);
    assert!(raw(&run, "fault_delay") > 0, "{run}");
    assert_eq!(run.number("late"), raw(&run, "fault_delay"), "{run}");
    assert_eq!(
        run.number("lost"),
        run.number("late") + place(&run, "reflector_held"),
        "{run}"
    );
}

#[test]
fn everything_lost_is_no_measurement_and_a_hundred_percent_in_the_file() {
    let Some(lab) = require(&[]) else { return };
    let run = send(&lab, &[SLOW, &["--drain", "100ms", "--fault", "drop=100%"]]);
    assert_eq!(run.code, Some(2), "{run}");
    assert_eq!(run.json()["verdict"], "invalid", "{run}");
    assert_eq!(place(&run, "fault_drop"), run.number("sent"), "{run}");
    assert_eq!(run.number("unexplained"), 0, "{run}");
    assert!(run.json()["latency_ns"]["p50"].is_null(), "{run}");
    let rates = column(&lab, &run, "drop_rate");
    let sent = column(&lab, &run, "tx_packets");
    for (rate, sent) in rates.iter().zip(&sent) {
        assert_eq!(rate, if sent == "0" { "" } else { "100" }, "{run}");
    }
    assert!(rates.contains(&"100".to_owned()), "{rates:?}");
    assert!(column(&lab, &run, "avg_latency").iter().all(String::is_empty));
}

#[test]
fn a_ring_without_reflector_returns_everything() {
    let Some(lab) = require(&[]) else { return };
    for speed in [FAST, SLOW] {
        let run = send(&lab, &[speed, &["--port", "ring,direct"]]);
        assert_sound(&run);
        assert_eq!(
            (run.code, run.number("lost"), run.number("duplicate")),
            (Some(0), 0, 0),
            "{run}"
        );
    }
}

#[test]
fn a_null_port_takes_everything_when_nothing_is_awaited() {
    let Some(lab) = require(&[]) else { return };
    let run = send(&lab, &[FAST, &["--port", "null", "--tx-only"]]);
    assert_valid_but_for_time(&run);
    assert_eq!((run.number("sent"), run.number("lost")), (300_000, 0), "{run}");
    assert_eq!(run.number("ports.0.tx_packets"), 300_000, "{run}");
    // Its rows say no other than its result.
    let of_rows = |name| column(&lab, &run, name);
    assert!(of_rows("lost").iter().all(|lost| lost == "0"), "{run}");
    assert!(of_rows("drop_rate").iter().all(String::is_empty), "{run}");
}

#[test]
fn a_rate_that_only_the_backlog_keeps_up_with_is_none() {
    let Some(lab) = require(&[]) else { return };
    let null = ["--port", "null", "--tx-only", "--duration", "0.1s"];
    // It takes four times as long, and another second is waited for.
    assert_no_rate_of_its_backlog(|more| send(&lab, &[&null, more]));
}

#[test]
fn a_null_port_returns_nothing_and_that_is_said_before_anything_is_sent() {
    let Some(lab) = require(&[]) else { return };
    let run = send(&lab, &[FAST, &["--port", "null"]]);
    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stderr.contains("--tx-only"), "{run}");
}

#[test]
fn several_ports_share_a_count_exactly() {
    let Some(lab) = require(&[]) else { return };
    let run = send(
        &lab,
        &[&[
            "--port", "ring:a", "--port", "ring:b", "--count", "100001", "--fault", "drop=1%",
        ]],
    );
    exact(&run, "drop");
    assert_eq!(run.number("sent"), 100_001, "{run}");
    assert_eq!(run.number("ports.0.tx_packets"), 50_001, "{run}");
    assert_eq!(run.number("ports.1.tx_packets"), 50_000, "{run}");
    // Neither ring hears the other.
    assert!(!has_note(&run.json(), "several_ports"), "{run}");
}

#[test]
fn every_queue_sends_its_share_and_everything_is_found() {
    let Some(lab) = require(&[]) else { return };
    let queues = &[
        "--tx-queues",
        "2",
        "--rx-queues",
        "2",
        "--flows",
        "1000",
        "--fault",
        "drop=1%,duplicate=1%",
    ];
    let run = send(&lab, &[FAST, queues]);
    exact(&run, "drop");
    let json = run.json();
    let of = |direction: &str| -> Vec<u64> {
        let queues = json["queues"].as_array().expect("queues");
        let queues = queues.iter().filter(|queue| queue["direction"] == direction);
        queues
            .map(|queue| queue["packets"].as_u64().expect("packets"))
            .collect()
    };
    assert_eq!(of("tx"), [150_000, 150_000], "{run}");
    assert_eq!(of("rx").len(), 2, "{run}");
    assert_eq!(
        of("rx").iter().sum::<u64>(),
        run.number("ledger.arrived.frames"),
        "{run}"
    );
    assert_eq!(run.number("streams.0.flows_sent"), 1000, "{run}");
}

#[test]
fn a_duration_intends_what_the_schedule_says() {
    let Some(lab) = require(&[]) else { return };
    let run = send(
        &lab,
        &[&[
            "--rate",
            "20kpps",
            "--duration",
            "500ms",
            "--backlog",
            "1000000",
            "--cores",
            "0",
        ]],
    );
    assert_sound(&run);
    assert_eq!(run.number("sent"), 10_000, "{run}");
}

#[test]
fn the_rows_of_the_intervals_add_up_to_the_totals() {
    let Some(lab) = require(&[]) else { return };
    let faults: &[&str] = &[
        "--interval",
        "1ms",
        "--fault",
        "drop=1%,duplicate=1%,reorder=1%,corrupt=1%",
    ];
    for speed in [FAST, SLOW] {
        let run = send(&lab, &[speed, faults]);
        assert_sound(&run);
        assert_rows_add_up(&lab, &run);
    }
}

fn assert_rows_add_up(lab: &Lab, run: &Finished) {
    for (name, total) in [
        ("tx_packets", "sent"),
        ("rx_packets", "received"),
        ("lost", "lost"),
        ("duplicate", "duplicate"),
        ("reordered", "reordered"),
        ("corrupt", "corrupt"),
        ("unsent", "ledger.unsent"),
    ] {
        let rows = column(lab, run, name);
        let sum: u64 = rows
            .iter()
            .map(|cell| cell.parse::<u64>().expect("a count"))
            .sum();
        assert_eq!(sum, run.number(total), "{name} of {} rows: {run}", rows.len());
    }
}

#[test]
fn what_leaves_after_the_end_is_in_a_row_too() {
    let Some(lab) = require(&[]) else { return };
    for backlog in ["1000000", "100"] {
        let mut running = lab
            .dropless(&[
                "send",
                "--json",
                "--rate",
                "20kpps",
                "--duration",
                "1500ms",
                "--interval",
                "500ms",
            ])
            .arg("--backlog")
            .arg(backlog)
            .spawn();
        // It says so after a second, and stands still until after its end: what was due meanwhile is late, or never sent.
        running.wait_for("sending", LIMIT);
        running.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(800));
        running.signal(Signal::SIGCONT);
        let run = running.wait(LIMIT);
        assert_rows_add_up(&lab, &run);
        let times = column(&lab, &run, "time");
        let last: f64 = times.last().expect("a row").parse().expect("a time");
        assert!(last > 1500.0, "{run}");
    }
}

#[test]
fn the_statistics_interval_does_not_change_the_pace() {
    let Some(lab) = require(&[]) else { return };
    let gaps = |interval: &str| {
        let pace = &[
            "--rate",
            "100kpps",
            "--count",
            "20k",
            "--backlog",
            "1000000",
            "--cores",
            "0",
        ];
        let run = send(&lab, &[pace, &["--interval", interval]]);
        assert_sound(&run);
        run.json()["gap_ns"].clone()
    };
    let pairs: Vec<_> = (0..3).map(|_| (gaps("1ms"), gaps("1s"))).collect();
    // Not the median gap: where the core is shared, a sender that had to wait catches up without gaps.
    for (percentile, bound) in [("p90", 1.25), ("p99", 2.0)] {
        let gap = |of: &Value| of[percentile].as_f64().expect("a gap");
        // What keeps the pace at least once is not what breaks it: whoever else has the core only makes gaps longer.
        let ratios: Vec<f64> = pairs
            .iter()
            .map(|(fine, coarse)| gap(fine) / gap(coarse))
            .collect();
        assert!(
            ratios.iter().any(|ratio| *ratio < bound),
            "{percentile}: {ratios:?} of {pairs:?}"
        );
    }
}

#[test]
fn an_expectation_that_is_met_decides_instead_of_plain_loss() {
    let Some(lab) = require(&[]) else { return };
    let faults = &["--fault", "drop=1%"];
    let met = send(
        &lab,
        &[
            FAST,
            faults,
            &["--expect", "loss<2%", "--expect", "unexplained==0"],
        ],
    );
    assert_eq!(met.code, Some(0), "{met}");
    let unmet = send(
        &lab,
        &[FAST, faults, &["--expect", "loss<2%", "--expect", "loss<0.5%"]],
    );
    assert_eq!(unmet.code, Some(1), "{unmet}");
    let said: Vec<Value> = unmet.json()["expectations"]
        .as_array()
        .expect("expectations")
        .clone();
    assert_eq!(
        said.iter().map(|one| one["met"].clone()).collect::<Vec<_>>(),
        [true, false],
        "{unmet}"
    );
}
