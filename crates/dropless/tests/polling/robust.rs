//! What goes wrong around a run (signals, stdout, the disk, a paused receiver) and what is left of it: the result.

use std::path::PathBuf;
use std::time::Duration;

use crate::support::wire::{assert_all_back, has_note, note};
use crate::support::{Finished, Lab, Need, Running, require};
use nix::sys::signal::Signal;

const LIMIT: Duration = Duration::from_secs(20);
/// A run that ends by itself only long after the test has ended it.
const LONG: &[&str] = &[
    "send",
    "--rate",
    "20kpps",
    "--cores",
    "0",
    "--backlog",
    "1000000",
    "--duration",
    "60s",
];

/// Starts a long run and waits until it sends.
fn under_way(lab: &Lab, extra: &[&str]) -> Running {
    let mut running = lab.dropless(&[LONG, extra].concat()).spawn();
    running.until_sending(LIMIT);
    running
}

fn run_directory(lab: &Lab, run: &Finished) -> PathBuf {
    let directory = run.json()["run"].as_str().map(PathBuf::from);
    lab.directory().join(directory.expect("the run directory"))
}

/// Ended in the second second, in order: measured so far, everything in the files, every buffer back.
fn ends_in_order(signal: Signal) {
    let Some(lab) = require(&[]) else { return };
    let mut running = under_way(&lab, &["--json", "--interval", "10ms"]);
    running.wait_for("1.0 s  sending", LIMIT);
    running.signal(signal);
    let run = running.wait(LIMIT);
    assert_all_back(&run);
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
    assert!(has_note(&run.json(), "interrupted"), "{run}");
    let directory = run_directory(&lab, &run);
    let rows = std::fs::read_to_string(directory.join("intervals.csv")).expect("intervals.csv");
    let sent: u64 = rows
        .lines()
        .skip(1)
        .map(|row| {
            row.split(',')
                .nth(1)
                .expect("sent")
                .parse::<u64>()
                .expect("a count")
        })
        .sum();
    // On a machine that has no time for control a row may be late, and what it lacks is told.
    let late: u64 = run.json()["notes"]
        .as_array()
        .expect("notes")
        .iter()
        .filter_map(|note| note["text"].as_str()?.split_once(" packets are missing from"))
        .filter_map(|(count, _)| count.replace(',', "").parse::<u64>().ok())
        .sum();
    let lacking = run.number("sent").checked_sub(sent);
    assert!(
        lacking.is_some_and(|lacking| lacking <= late),
        "{lacking:?} in no row, {late} told: {run}"
    );
    for file in [
        "summary.json",
        "ledger.json",
        "plan.json",
        "host.json",
        "latency.hgrm",
    ] {
        assert!(directory.join(file).is_file(), "{file}: {run}");
    }
}

#[test]
fn ctrl_c_ends_a_run_in_order() {
    ends_in_order(Signal::SIGINT);
}

#[test]
fn sigterm_ends_a_run_in_order() {
    ends_in_order(Signal::SIGTERM);
}

#[test]
fn a_second_ctrl_c_ends_the_process_at_once() {
    let Some(lab) = require(&[]) else { return };
    // What is held back keeps it draining for a minute.
    let mut running = under_way(&lab, &["--fault", "delay=1%:60s", "--drain", "60s"]);
    running.signal(Signal::SIGINT);
    running.wait_for("draining", LIMIT);
    assert!(running.is_alive());
    running.signal(Signal::SIGINT);
    let run = running.wait(Duration::from_secs(5));
    assert_eq!(
        (run.code, run.signal),
        (None, Some(Signal::SIGINT as i32)),
        "{run}"
    );
}

#[test]
fn reflect_ends_in_order_too() {
    let Some(lab) = require(&[]) else { return };
    let running = lab.dropless(&["reflect", "--port", "null", "--json"]).spawn();
    let moving = crate::support::until(LIMIT, || running.stderr().contains("reflecting"));
    assert!(moving, "{running:?}");
    std::thread::sleep(Duration::from_millis(200));
    running.signal(Signal::SIGTERM);
    let run = running.wait(LIMIT);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        run.number("received") > 0 && run.number("pool.leaked") == 0,
        "{run}"
    );
    assert_eq!(run.number("received"), run.number("returned"), "{run}");
}

/// A short run in a shell, whose output goes where `to` says.
fn in_shell(to: &str) -> Option<(Lab, Finished)> {
    let lab = require(&[])?;
    let script = format!("\"$DROPLESS\" send --rate 20kpps --count 2000 --backlog 100000 --cores 0 {to}");
    let run = lab.shell(&script).wait(LIMIT);
    Some((lab, run))
}

/// The one run of this lab is in its directory, whole.
fn assert_written(lab: &Lab) {
    let runs = std::fs::read_dir(lab.path("runs"))
        .expect("runs")
        .map(|entry| entry.expect("an entry").path());
    let summaries: Vec<PathBuf> = runs.map(|run| run.join("summary.json")).collect();
    let text = std::fs::read_to_string(&summaries[0]).expect("summary.json");
    let summary: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (summaries.len(), &summary["received"]),
        (1, &2000.into()),
        "{text}"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for to in ["--json | true", "| head -0", "--json 2>&1 | head -0"] {
        let Some((lab, run)) = in_shell(&format!("{to}; echo ended >&2")) else {
            return;
        };
        assert!(
            run.stderr.contains("ended") && !run.stderr.contains("panicked"),
            "{run}"
        );
        assert_written(&lab);
    }
}

#[test]
fn closed_output_changes_nothing_of_the_run() {
    for to in [">&-", "--json >&-", ">&- 2>&-", "--json >&- 2>&- <&-"] {
        let Some((lab, run)) = in_shell(to) else { return };
        assert_eq!(run.code, Some(0), "{to}: {run}");
        assert_written(&lab);
    }
}

#[test]
fn json_onto_a_full_disk_is_an_error_that_names_the_run() {
    let Some((lab, run)) = in_shell("--json >/dev/full") else {
        return;
    };
    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stderr.contains("cannot write to standard output"), "{run}");
    assert_written(&lab);
}

#[test]
fn a_full_disk_under_the_run_directory_costs_files_and_nothing_else() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let namespace = lab.namespace("disk");
    std::fs::create_dir(lab.path("small")).expect("a mount point");
    // `ip netns exec` gives a mount namespace of its own, which goes with the process.
    let program = env!("CARGO_BIN_EXE_dropless");
    let flags = "--rate 20kpps --duration 1s --backlog 100000 --cores 0 --interval 1ms --json --quiet";
    let script = format!(
        "cd {} && mount -t tmpfs -o size=64k none small && exec {program} send --runs small {flags}",
        lab.directory().display()
    );
    let run = namespace.spawn("sh", &["-c", &script]).wait(LIMIT);
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(run.json()["verdict"], "valid", "{run}");
    assert_eq!(run.number("sent"), run.number("received"), "{run}");
    let told = note(&run.json(), "directory_incomplete").expect("a note");
    for words in ["intervals.csv", "No space left"] {
        assert!(told.contains(words), "{words:?} is missing: {run}");
    }
    let all = run.json()["notes"].to_string();
    assert_eq!(all.matches("directory_incomplete").count(), 1, "told once: {run}");
}

/// A capture that is cut off by a full disk is not what was sent.
#[test]
fn a_full_disk_under_a_pcap_file_makes_the_run_invalid() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let namespace = lab.namespace("disk");
    std::fs::create_dir(lab.path("small")).expect("a mount point");
    let program = env!("CARGO_BIN_EXE_dropless");
    let flags = "--tx-only --count 20k --json --quiet";
    let script = format!(
        "cd {} && mount -t tmpfs -o size=64k none small && exec {program} send --port pcap:-,small/out.pcap {flags}",
        lab.directory().display()
    );
    let run = namespace.spawn("sh", &["-c", &script]).wait(LIMIT);
    assert_eq!(run.code, Some(2), "{run}");
    let reasons = run.json()["reasons"].to_string();
    assert!(
        reasons.contains("out.pcap lacks") && reasons.contains("disk full"),
        "{run}"
    );
}

#[test]
fn a_place_where_no_run_directory_can_be_is_told_before_anything_starts() {
    let Some(lab) = require(&[]) else { return };
    std::fs::write(lab.path("file"), "in the way").expect("a file");
    for runs in ["file", "file/below", "/proc/runs"] {
        let run = lab.dropless(&["send", "--count", "10", "--runs", runs]).run();
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run}");
        assert!(
            run.stderr.contains("cannot make a run directory") && run.stderr.contains("fix: "),
            "{run}"
        );
        assert_eq!(run.stderr.lines().count(), 1, "{run}");
    }
}

#[test]
fn a_plan_without_ports_is_refused() {
    let Some(lab) = require(&[]) else { return };
    let first = lab
        .dropless(&["send", "--json", "--quiet", "--count", "1000"])
        .run();
    let file = run_directory(&lab, &first).join("plan.json");
    let text = std::fs::read_to_string(&file).expect("plan.json");
    let mut plan: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    plan["machine"]["ports"] = serde_json::json!([]);
    std::fs::write(lab.path("plan.json"), plan.to_string()).expect("a plan");
    let run = lab.dropless(&["send", "--plan", "plan.json"]).run();
    assert_eq!(run.code, Some(2), "{run}");
    assert!(
        run.stderr.contains("no port") && run.stderr.lines().count() == 1,
        "{run}"
    );
}

#[test]
fn reflecting_nothing_is_no_measurement() {
    let Some(lab) = require(&[]) else { return };
    // A capture of no packets: the header alone.
    let header = [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65535, 1]
        .map(u32::to_le_bytes)
        .concat();
    std::fs::write(lab.path("empty.pcap"), header).expect("a capture");
    let run = lab
        .dropless(&[
            "reflect",
            "--port",
            "pcap:empty.pcap,-",
            "--duration",
            "200ms",
            "--json",
            "--quiet",
        ])
        .run();
    assert_eq!(run.code, Some(2), "{run}");
    assert_eq!(
        (&run.json()["verdict"], run.number("received")),
        (&"invalid".into(), 0),
        "{run}"
    );
    assert!(
        run.json()["reasons"]
            .to_string()
            .contains("no packet was received"),
        "{run}"
    );
}

/// A receiver on `port` that stalls for longer than its ring holds while packets are on their way back to it.
fn paused(port: &str) {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, far) = (lab.namespace("near"), lab.namespace("far"));
    near.veth("n0", &far, "f0");
    near.up("n0", &[]);
    far.up("f0", &[]);
    near.wait_for_link("n0");
    // What the far side holds back is still to come when this side is paused.
    let held = [
        "reflect",
        "--port",
        "packet:f0",
        "--fault",
        "delay=100%:200ms",
        "--address",
        "10.98.0.2",
        "--cores",
        "1",
    ];
    let mut far_side = lab.dropless(&held).within(&far).spawn();
    far_side.wait_for("reflecting", LIMIT);
    let flags = [
        "--port",
        port,
        "--to",
        "10.98.0.2",
        "--from",
        "10.98.0.1",
        "--rate",
        "15kpps",
        "--duration",
        "2s",
    ];
    let common = [
        "send",
        "--json",
        "--backlog",
        "1000000",
        "--cores",
        "0",
        "--drain",
        "1s",
    ];
    let mut running = lab
        .dropless(&[&common[..], &flags].concat())
        .within(&near)
        .spawn();
    running.wait_for("1.0 s  sending", LIMIT);
    running.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(400));
    running.signal(Signal::SIGCONT);
    let run = running.wait(LIMIT);
    drop(far_side);
    assert!(run.number("lost") > 0, "nothing overflowed: {run}");
    assert_eq!(
        (run.code, &run.json()["verdict"]),
        (Some(2), &"invalid".into()),
        "{run}"
    );
    let reasons = run.json()["reasons"].to_string();
    assert!(
        reasons.contains("the receiver on core") && reasons.contains("stalled for"),
        "{reasons}"
    );
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
}

#[test]
fn a_receiver_paused_for_longer_than_its_ring_holds_makes_the_run_invalid() {
    paused("packet:n0");
}

#[test]
fn a_receiver_paused_on_af_xdp_makes_the_run_invalid() {
    paused("xdp:n0");
}

/// Quiet is no silence: why the numbers may not be believed is said in a line.
#[test]
fn a_quiet_run_that_is_invalid_says_why() {
    let Some(lab) = require(&[]) else { return };
    let flags = ["--rate", "1kpps", "--count", "10", "--drain", "100ms", "--quiet"];
    let run = lab
        .dropless(&[&["send", "--port", "pcap:-,out.pcap"][..], &flags].concat())
        .run();
    assert_eq!((run.code, &*run.stdout), (Some(2), ""), "{run}");
    assert_eq!(run.stderr, "dropless: INVALID: nothing was received\n", "{run}");
}

/// What a command could not leave behind is told at its end, its own result among it.
#[test]
fn a_result_that_could_not_be_written_is_told() {
    for command in [
        &["noise", "--no-trace", "--cores", "1"][..],
        &["reflect", "--port", "null"],
    ] {
        let Some(lab) = require(&[]) else { return };
        let running = lab
            .dropless(&[command, &["--duration", "1s", "--json"]].concat())
            .spawn();
        let runs = lab.path("runs");
        let begun = || std::fs::read_dir(&runs).is_ok_and(|mut runs| runs.next().is_some());
        assert!(crate::support::until(LIMIT, begun), "{running:?}");
        std::thread::sleep(Duration::from_millis(500));
        std::fs::remove_dir_all(&runs).expect("the run's directory");
        let run = running.wait(LIMIT);
        let notes = run.json()["notes"].to_string();
        assert_eq!(notes.matches("is incomplete").count(), 1, "{run}");
        // One file before the result, and the result.
        assert!(notes.contains("(and 1 more)"), "{run}");
    }
}

/// The file of a result holds all that is printed.
#[test]
fn that_nobody_can_watch_is_in_the_file_too() {
    let Some(lab) = require(&[]) else { return };
    let run = lab
        .dropless(&["noise", "--no-trace", "--duration", "100ms", "--json"])
        .env("DROPLESS_LIVE_DIR", "/proc/nowhere")
        .run();
    let notes = run.json()["notes"].to_string();
    assert!(notes.contains("not_watchable"), "{run}");
    let file = run_directory(&lab, &run).join("summary.json");
    let text = std::fs::read_to_string(file).expect("summary.json");
    let summary: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(summary, run.json(), "{run}");
}
