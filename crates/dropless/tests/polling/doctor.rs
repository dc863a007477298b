//! `dropless doctor` on this machine, and the glance before a run: what it prints, where, and what it leaves alone.

use std::collections::BTreeSet;

use crate::support::{Finished, Lab, require};

/// What a run says to find out whether a glance was taken.
fn glances(run: &Finished) -> usize {
    run.stderr
        .lines()
        .filter(|line| line.starts_with("doctor: "))
        .count()
}

fn send(lab: &Lab, further: &[&str]) -> Finished {
    let common = ["send", "--count", "1000", "--rate", "10kpps", "--json"];
    let run = lab.dropless(&[&common, further].concat()).run();
    assert!(!run.json()["version"].is_null(), "{run}");
    run
}

#[test]
fn every_check_has_its_finding_and_the_worst_is_the_exit_code() {
    let Some(lab) = require(&[]) else { return };
    let run = lab.dropless(&["doctor", "--watch", "100ms", "--json"]).run();
    let said = run.json();
    assert_eq!((&said["version"], run.stderr.as_str()), (&1.into(), ""), "{run}");
    let findings = said["findings"].as_array().expect("a list of findings");
    let names: BTreeSet<&str> = findings
        .iter()
        .filter_map(|finding| finding["check"].as_str())
        .collect();
    // A name for every row of what the design says is to be looked at.
    for name in [
        "housekeeping",
        "isolation",
        "irq",
        "managed-irq",
        "irqbalance",
        "tick",
        "rcu",
        "workqueues",
        "rt-limit",
        "cpu-quota",
        "watchdog",
        "vmstat",
        "timer-migration",
        "thp",
        "ksm",
        "numa-balancing",
        "compaction",
        "c-states",
        "frequency",
        "smi",
        "machine-checks",
        "steal",
        "tsc",
        "smt",
        "numa",
        "ring",
        "hugepages",
        "reached-by",
        "iommu",
        "driver-library",
        "pcie",
        "af-xdp",
    ] {
        assert!(names.contains(name), "{name} is missing: {run}");
    }
    let is_troubled = findings
        .iter()
        .any(|finding| finding["verdict"] == "bad" || finding["verdict"] == "warning");
    assert_eq!(run.code, Some(i32::from(is_troubled)), "{run}");
    let workers = said["workers"].as_str().expect("a list of cores");
    assert_ne!(
        workers,
        said["housekeeping"].as_str().expect("a list of cores"),
        "{run}"
    );
}

#[test]
fn people_get_a_row_for_each_and_a_sum() {
    let Some(lab) = require(&[]) else { return };
    let run = lab
        .dropless(&["doctor", "--watch", "0", "--cores", "0", "--port", "ring"])
        .run();
    assert!(run.stdout.starts_with("Planned: workers on core 0"), "{run}");
    assert!(run.stdout.contains("  ring can be opened\n"), "{run}");
    let last = run.stdout.lines().rev().take(2).collect::<String>();
    assert!(last.contains(" cannot tell."), "{run}");
}

/// Columns of the labels of a finding.
const LABELS: usize = 19;

#[test]
fn without_a_terminal_columns_says_how_wide_it_is() {
    let Some(lab) = require(&[]) else { return };
    let run = lab
        .dropless(&["doctor", "--watch", "0"])
        .env("COLUMNS", "60")
        .run();
    // Neither a command nor a path is ever broken; a command stands behind `fix` or `undo`, or below it.
    let is_command = |line: &str| line.contains(" > /") || line.contains("kernel command line: ");
    // What stands behind a label such as `read`: a path alone, as of hugepages where there are none.
    let is_one_word = |line: &str| !line.get(LABELS..).unwrap_or(line).trim().contains(' ');
    let wide: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| line.chars().count() > 60 && !is_one_word(line) && !is_command(line))
        .collect();
    assert!(wide.is_empty(), "{wide:?}\n{run}");
    assert!(run.stdout.lines().any(|line| line.chars().count() > 50), "{run}");
}

#[test]
fn it_changes_nothing() {
    let Some(lab) = require(&[]) else { return };
    let files = [
        "/proc/irq/default_smp_affinity",
        "/proc/sys/vm/stat_interval",
        "/sys/devices/virtual/workqueue/cpumask",
    ];
    let read = || files.map(|file| std::fs::read_to_string(file).ok());
    let before = read();
    lab.dropless(&["doctor", "--watch", "50ms"]).run();
    assert_eq!(read(), before);
}

#[test]
fn a_run_tells_three_things_at_most_unless_told_not_to() {
    let Some(lab) = require(&[]) else { return };
    assert!(glances(&send(&lab, &[])) <= 3);
    assert_eq!(glances(&send(&lab, &["--no-doctor"])), 0);
    let quiet = send(&lab, &["--quiet"]);
    assert_eq!(glances(&quiet), 0, "{quiet}");
}

#[test]
fn who_asked_for_json_gets_an_object_also_of_an_error() {
    let Some(lab) = require(&[]) else { return };
    for wrong in [
        vec!["doctor", "--json", "--watch", "2h"],
        vec!["tune", "--json", "--cores", "8000"],
        vec!["send", "--json", "--no-such-flag"],
        vec!["reflect", "--json", "--port", "pci:zz"],
    ] {
        let run = lab.dropless(&wrong).run();
        assert_eq!(run.code, Some(2), "{run}");
        let error = run.json()["error"].as_str().expect("what went wrong").to_owned();
        assert_eq!(run.stderr, format!("dropless: {error}\n"), "{run}");
    }
}
