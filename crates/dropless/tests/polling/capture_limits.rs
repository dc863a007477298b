//! `dropless capture` where something has an end: slow readers, full disks, memory, names that are taken.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use capture::ring::share::Joined;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::capture::{assert_balanced, capture, fields, path, send};
use crate::restart::{rows, run_directory};
use crate::support::wire::{Wire, assert_refused, charged, has_note, interrupted};
use crate::support::{Finished, Lab, Mount, Need, require, until};

const READ: [Need; 2] = [Need::Namespaces, Need::Tool("tshark")];
const LIMIT: Duration = Duration::from_secs(60);

/// What a field of the file's packets or blocks comes to, all together.
fn sum(lines: &[String]) -> u64 {
    lines.iter().filter_map(|line| line.parse::<u64>().ok()).sum()
}

/// A counter of the statistics at the end of a file.
fn statistic(file: &str, name: &str) -> u64 {
    let field = format!("pcapng.options.option.data.interface.{name}");
    let output = std::process::Command::new("tshark")
        .args([
            "-X",
            "read_format:MIME Files Format",
            "-r",
            file,
            "-T",
            "fields",
            "-e",
            &field,
        ])
        .output()
        .expect("tshark");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    sum(&text.trim().split(',').map(str::to_owned).collect::<Vec<_>>())
}

/// The only result below a directory of runs.
fn summary(lab: &Lab) -> Value {
    let mut runs = std::fs::read_dir(lab.path("captures")).expect("runs");
    let run = runs.next().expect("a run").expect("a directory").path();
    let text = std::fs::read_to_string(run.join("summary.json")).expect("a result");
    serde_json::from_str(&text).expect("JSON")
}

/// What a consumer took and lost, which is all that it was offered.
fn taken_and_lost(consumer: &Value) -> (u64, u64) {
    let number = |name: &str| consumer[name].as_u64().expect("a count");
    assert_eq!(number("offered"), number("taken") + number("lost"), "{consumer}");
    assert_eq!(number("left"), 0, "{consumer}");
    (number("taken"), number("lost"))
}

/// What the ring had no place for stands in the file: the packet that comes next says how many were lost before it.
#[test]
fn the_file_says_what_a_slow_reader_lost() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    let (file, go, pid) = (path(&lab, "slow.pcapng"), path(&lab, "go"), lab.path("pid"));
    let script = format!(
        "(echo $BASHPID > {pid}; exec {} capture --port packet:far0 --stdout --ring-size 2MiB --no-huge --no-doctor --runs {}) | \
         (while [ ! -e {go} ]; do sleep 0.05; done; cat > {file})",
        env!("CARGO_BIN_EXE_dropless"),
        lab.path("captures").display(),
        pid = pid.display(),
    );
    let mut running = wire.far.spawn("bash", &["-c", &script]);
    running.wait_for("capturing from", Duration::from_secs(30));
    let flood = send(
        &lab,
        &wire,
        &[
            "--size",
            "1518",
            "--rate",
            "20kpps",
            "--count",
            "6000",
            "--backlog",
            "6000",
        ],
    );
    assert_eq!(flood.number("sent"), 6000, "{flood}");
    std::fs::write(&go, "").expect("writing");
    // Once all that was in the ring has gone, there is room again.
    let drained = || std::fs::metadata(&file).is_ok_and(|file| file.len() > 1 << 20);
    assert!(until(LIMIT, drained));
    std::thread::sleep(Duration::from_millis(200));
    let later = send(
        &lab,
        &wire,
        &["--rate", "5kpps", "--count", "100", "--backlog", "100"],
    );
    assert_eq!(later.number("sent"), 100, "{later}");
    let pid = std::fs::read_to_string(pid).expect("the id of the process");
    let pid = nix::unistd::Pid::from_raw(pid.trim().parse().expect("a number"));
    nix::sys::signal::kill(pid, Signal::SIGINT).expect("signalling");
    let ended = running.wait(LIMIT);
    let summary = summary(&lab);
    let place = |name: &str| charged(&summary["ledger"], name);
    let lost = place("ring_full") + place("rx_missed");
    assert!(place("ring_full") > 0, "{ended} {summary}");
    let told = sum(&fields(&file, "frame.drop_count", &["frame.drop_count"]));
    assert_eq!(told, lost, "{summary}");
    let captured = summary["captured"].as_u64().expect("a count");
    assert_eq!(fields(&file, "frame", &["frame.number"]).len() as u64, captured);
    assert_eq!(statistic(&file, "dropped_by_os"), place("ring_full"));
    assert_eq!(statistic(&file, "dropped"), place("rx_missed"));
    assert_eq!(statistic(&file, "delivered_to_user"), captured);
    assert_eq!(
        Some(statistic(&file, "received")),
        summary["ledger"]["entered"].as_u64()
    );
}

/// So does what the port missed while the program stood still.
#[test]
fn the_file_says_what_the_port_missed() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    let file = path(&lab, "missed.pcapng");
    let port = ["--port", "packet:far0", "--to", &file, "--descriptors", "64"];
    let running = capture(&lab, &wire.far, &[&port[..], &["--interval", "100ms"]].concat());
    running.signal(Signal::SIGSTOP);
    let flood = send(
        &lab,
        &wire,
        &["--rate", "10kpps", "--count", "3000", "--backlog", "3000"],
    );
    running.signal(Signal::SIGCONT);
    assert_eq!(flood.number("sent"), 3000, "{flood}");
    let later = send(
        &lab,
        &wire,
        &["--rate", "1kpps", "--count", "100", "--backlog", "100"],
    );
    assert_eq!(later.number("sent"), 100, "{later}");
    // It is told while the run goes: what came to be captured, and what not.
    let mut told = String::new();
    let tells_all = || {
        let said = running.stderr();
        told = said.lines().last().unwrap_or_default().to_owned();
        let number = |name: &str| -> Option<u64> {
            let (_, rest) = told.split_once(name)?;
            let digits: String = rest.split(", ").next()?.split(',').collect();
            digits.trim().parse().ok()
        };
        let both = number("captured ").zip(number("lost "));
        both.is_some_and(|(captured, lost)| lost > 0 && captured + lost == 3100)
    };
    assert!(until(LIMIT, tells_all), "{told}");
    // The row of the interval follows.
    let directory = run_directory(&lab, "capture");
    let counts = directory.join("intervals.csv");
    let of_rows = |column: usize| -> u64 {
        let rows = rows(counts.clone());
        rows.iter()
            .filter_map(|row| row.get(column)?.parse::<u64>().ok())
            .sum()
    };
    assert!(until(LIMIT, || of_rows(2) + of_rows(4) == 3100), "{running:?}");
    let run = interrupted(running);
    assert_balanced(&run);
    let missed = run.number("ports.0.rx_missed");
    assert!(missed > 0, "{run}");
    assert_eq!(directory, lab.path(run.json()["run"].as_str().expect("a path")));
    let text = std::fs::read_to_string(&counts).expect("rows");
    assert_eq!(
        text.lines().next(),
        Some("time,rx_packets,captured,dropped,missed")
    );
    assert_eq!(of_rows(4), missed, "{run}");
    assert_eq!(run.code, Some(1), "{run}");
    assert_eq!(missed + run.number("captured"), 3100, "{run}");
    assert_eq!(
        sum(&fields(&file, "frame.drop_count", &["frame.drop_count"])),
        missed,
        "{run}"
    );
    assert_eq!(statistic(&file, "dropped"), missed, "{run}");
    assert_eq!(statistic(&file, "received"), 3100, "{run}");
}

/// A disk of 8 MiB ends nothing: what the ring could hold is kept, the rest is counted.
#[test]
fn a_full_disk_is_survived_and_counted() {
    let Some(lab) = require(&[&READ[..], &[Need::Root]].concat()) else {
        return;
    };
    let disk = lab.path("disk");
    let _disk = Mount::disk("8m", &disk);
    let script = "dd if=/dev/zero of=disk/direct bs=4096 count=1 oflag=direct 2>/dev/null; code=$?; rm disk/direct; exit $code";
    let is_direct = lab.shell(script).wait(LIMIT).code == Some(0);
    let wire = Wire::between(&lab, 1);
    let file = disk.join("full.pcapng").display().to_string();
    let running = capture(
        &lab,
        &wire.far,
        &["--port", "packet:far0", "--to", &file, "--ring-size", "4MiB"],
    );
    let sent = send(
        &lab,
        &wire,
        &[
            "--size",
            "1518",
            "--rate",
            "20kpps",
            "--count",
            "20000",
            "--backlog",
            "20000",
        ],
    );
    let run = interrupted(running);
    let packets = fields(&file, "frame", &["frame.number"]).len() as u64;
    assert_eq!(sent.number("sent"), 20_000, "{sent}");
    assert_balanced(&run);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(has_note(&run.json(), "disk_refused"), "{run}");
    assert_eq!(has_note(&run.json(), "files_cached"), !is_direct, "{run}");
    let said = run.stderr.matches("the disk refuses to be written").count();
    assert_eq!(said, 1, "at once, and once: {run}");
    let files = run.json()["consumers"][0].clone();
    assert_eq!(files["taken"].as_u64(), Some(packets), "{run}");
    assert!(packets > 3000, "most of 8 MiB: {run}");
    assert!(run.number("files.errors") > 0, "{run}");
}

/// Whoever reads standard output through a file gets no more than fits there; the rest is lost to it.
#[test]
fn what_standard_output_could_not_take_is_lost() {
    let Some(lab) = require(&[Need::Root]) else { return };
    let _disk = Mount::disk("1m", &lab.path("disk"));
    let script = "exec $DROPLESS capture --stdout --no-huge --no-doctor --runs captures > disk/full.pcapng";
    let ended = lab.shell(script).wait(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended}");
    let summary = summary(&lab);
    assert!(has_note(&summary, "stream_ended"), "{summary}");
    let (taken, lost) = taken_and_lost(&summary["consumers"][0]);
    assert!(taken > 0 && lost > 0, "{summary}");
}

/// Whoever stands still keeps no run from its end. Each run waits some seconds for its own, both at once.
#[test]
fn consumers_that_stand_still_do_not_keep_the_run() {
    let Some(lab) = require(&[]) else { return };
    // It reads nothing until the run has ended, and then all.
    let script = "mkfifo ended
        { $DROPLESS capture --stdout --duration 1s --no-huge --no-doctor --runs captures; echo $? > ended; } |
        { read code < ended; cat > some.pcapng; exit $code; }";
    let reader = lab.shell(script);
    a_consumer_that_stands_still_loses_and_one_that_left_does_not(&lab);
    let ended = reader.wait(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended}");
    let summary = summary(&lab);
    assert!(has_note(&summary, "stream_ended"), "{summary}");
    // What is in no pipe is lost.
    let (taken, lost) = taken_and_lost(&summary["consumers"][0]);
    assert_eq!(taken + lost, summary["captured"], "{summary}");
    assert!(lost > 0, "{summary}");
}

/// What the ring kept for a lossless consumer that did not take it is lost; one that left wanted no more.
fn a_consumer_that_stands_still_loses_and_one_that_left_does_not(lab: &Lab) {
    let door = lab.path("still.ring");
    let arguments = ["capture", "--json", "--no-huge", "--no-doctor", "--ring"];
    let mut running = lab
        .dropless(&[&arguments[..], &[&path(lab, "still.ring")]].concat())
        .spawn();
    running.wait_for("capturing from", LIMIT);
    let left = Joined::new(&door, "left", true).expect("a seat");
    let still = Joined::new(&door, "still", true).expect("a seat");
    // There are packets since both came, and neither has taken any.
    let first = still.consumer.next_segment();
    assert!(until(LIMIT, || {
        let segment = still.consumer.segment(first);
        segment.is_ok_and(|segment| segment.is_some_and(|segment| segment.packets > 0))
    }));
    drop(left);
    let run = interrupted(running);
    assert_balanced(&run);
    assert_eq!(run.code, Some(1), "{run}");
    let json = run.json();
    let consumers = json["consumers"].as_array().expect("consumers");
    let of = |name: &str, field: &str| {
        let mut named = consumers
            .iter()
            .filter(|it| it["name"].to_string().contains(name));
        named.next().and_then(|it| it[field].as_u64()).expect("a count")
    };
    assert!(of("still", "lost") > 0 && of("still", "left") == 0, "{run}");
    assert!(of("left", "left") > 0 && of("left", "lost") == 0, "{run}");
    assert!(
        has_note(&json, "consumer_cut") && has_note(&json, "consumer_left"),
        "{run}"
    );
}

/// What fails before the first packet leaves what was there.
#[test]
fn a_file_that_is_there_survives_a_capture_that_does_not_start() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let file = path(&lab, "old.pcapng");
    std::fs::write(&file, "precious").expect("writing");
    let kept = |run: &Finished, words: &[&str]| {
        assert_refused(run, words);
        assert_eq!(
            std::fs::read_to_string(&file).expect("the file"),
            "precious",
            "{run}"
        );
    };
    let with = |arguments: &[&str]| {
        lab.dropless(&[&["capture", "--to", &file][..], arguments].concat())
            .run()
    };
    kept(&with(&["--port", "packet:nowhere0"]), &["nowhere0"]);
    kept(&with(&["--filter", "nonsense and"]), &["--filter"]);
    kept(
        &with(&["--ring-size", "64GiB"]),
        &["--ring-size", "MiB", "smaller"],
    );
    kept(&with(&["--ring-size", "1TiB"]), &["--ring-size", "64 GiB"]);
    let ring = path(&lab, "taken.ring");
    let mut first = lab.dropless(&["capture", "--ring", &ring]).spawn();
    first.wait_for("Ctrl-C ends it", Duration::from_secs(30));
    kept(
        &with(&["--ring", &ring]),
        &["--ring", "another capture has this name"],
    );
    assert!(first.is_alive());
    let _ = interrupted(first);
}

/// Under sudo a file is the caller's; one that was there stays whose it was.
#[test]
fn a_file_belongs_to_whoever_called_sudo() {
    const USER: u32 = 65534;
    let Some(lab) = require(&[Need::Root]) else { return };
    let (new, old) = (path(&lab, "new.pcapng"), path(&lab, "old.pcapng"));
    std::fs::write(&old, "old").expect("writing");
    for file in [&new, &old] {
        let run = lab
            .dropless(&["capture", "--json", "--to", file, "--count", "100"])
            .env("SUDO_UID", &USER.to_string())
            .env("SUDO_GID", &USER.to_string())
            .run();
        assert_eq!(run.code, Some(0), "{run}");
    }
    let about = |file: &str| std::fs::metadata(file).expect("a file");
    assert_eq!((about(&new).uid(), about(&new).gid()), (USER, USER));
    assert_eq!(about(&new).mode() & 0o777, 0o600);
    assert_eq!(about(&old).uid(), 0);
    let packed = path(&lab, "packed.pcapng");
    let arguments = [
        "capture",
        "--json",
        "--to",
        &packed,
        "--compress",
        "--count",
        "100",
    ];
    let run = lab
        .dropless(&arguments)
        .env("SUDO_UID", &USER.to_string())
        .env("SUDO_GID", &USER.to_string())
        .run();
    assert_eq!(run.code, Some(0), "{run}");
    let packed = about(&format!("{packed}.zst"));
    assert_eq!((packed.uid(), packed.mode() & 0o777), (USER, 0o600));
}
