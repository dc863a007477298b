//! `dropless capture --attach`: what a running dropless receives and sends is seen, or counted, and the run does not notice.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use report::published::{Place, tap_socket};

use crate::capture::fields;
use crate::support::wire::{
    Wire, assert_all_back, assert_balance, assert_conserved, assert_refused, charged, has_note, interrupted,
};
use crate::support::{Finished, Lab, Need, Running, require, until};

const LIMIT: Duration = Duration::from_secs(60);
const TSHARK: [Need; 1] = [Need::Tool("tshark")];

/// A run over the embedded reflector that sends already.
fn host(lab: &Lab, arguments: &[&str]) -> Running {
    let all = [&["send", "--json", "--no-doctor", "--cores", "0"][..], arguments].concat();
    let mut running = lab.dropless(&all).spawn();
    running.until_sending(LIMIT);
    running
}

/// A capture that looks into it already.
pub fn attach(lab: &Lab, host: &Running, arguments: &[&str]) -> Running {
    let process = host.id().to_string();
    let all = [&["capture", "--json", "--attach", &process][..], arguments].concat();
    let mut running = lab.dropless(&all).spawn();
    running.wait_for("looking into", LIMIT);
    running
}

/// What the host counted is captured or charged to a place; returns what the places have.
pub fn assert_balanced(run: &Finished) -> u64 {
    assert_eq!(run.number("ledger.left"), run.number("captured"), "{run}");
    assert_balance(&run.json()["ledger"], run)
}

/// The sequence numbers of the probes in a file that went this way: 1 is received, 2 is sent.
fn sequences(file: &Path, way: u32) -> Vec<u64> {
    let filter = format!("frame.packet_flags_direction == {way}");
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-Y", &filter, "-T", "fields", "-e", "udp.payload"])
        .output()
        .expect("tshark");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    // Six bytes of a probe, from its seventh on.
    text.lines()
        .map(|payload| u64::from_str_radix(&payload[12..24], 16).expect("a sequence number"))
        .collect()
}

/// The rings of taps that a process has mapped, and the files that it has open.
pub fn rings(process: u32) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.lines().filter(|line| line.contains("dropless-ring")).count()
}

fn open_files(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

#[test]
fn every_probe_is_seen_as_it_leaves_and_as_it_comes_back() {
    let Some(lab) = require(&TSHARK) else { return };
    let host = host(&lab, &["--rate", "1kpps", "--duration", "60s"]);
    let file = lab.path("both.pcapng");
    let tap = attach(&lab, &host, &["--to", "both.pcapng"]);
    // A thousand each way.
    std::thread::sleep(Duration::from_secs(1));
    let (sent, seen) = (interrupted(host), tap.wait(LIMIT));
    assert_all_back(&sent);
    let all = sent.number("sent");
    let lost = assert_balanced(&seen);
    assert_eq!(
        (seen.code, seen.number("late")),
        (Some(i32::from(lost > 0)), 0),
        "{seen}"
    );
    let (out, back) = (sequences(&file, 2), sequences(&file, 1));
    assert_eq!((out.len() + back.len()) as u64, seen.number("captured"));
    // From the first that was seen on there is every one, up to the last, or it is among the lost: a worker that somebody
    // took from its core while it copied has less time for that afterwards.
    let mut missing = 0;
    for way in [&out, &back] {
        assert!(way.windows(2).all(|two| two[0] < two[1]), "{way:?}");
        missing += all - way[0] - way.len() as u64;
    }
    assert!(missing <= lost, "{missing} are missing: {seen}");
    assert!(out[0] + 100 < all, "it came too late to see much: {seen}");
}

#[test]
fn one_direction_is_one_direction_and_a_count_ends_it() {
    let Some(lab) = require(&TSHARK) else { return };
    let host = host(&lab, &["--rate", "1kpps", "--duration", "60s"]);
    let file = lab.path("out.pcapng");
    let arguments = [
        "--direction",
        "out",
        "--count",
        "50",
        "--to",
        "out.pcapng",
        "--snaplen",
        "64",
    ];
    let seen = attach(&lab, &host, &arguments).wait(LIMIT);
    assert_eq!(seen.number("captured"), 50, "{seen}");
    assert_balanced(&seen);
    assert_eq!(sequences(&file, 2).len(), 50);
    assert_eq!(sequences(&file, 1).len(), 0);
    // All of it, or its rate would be that of more packets than came in it.
    let times = fields(&file.display().to_string(), "frame", &["frame.time_relative"]);
    let lasted: f64 = times[49].parse().expect("a time");
    assert!(
        lasted <= seen.json()["duration_s"].as_f64().expect("a time"),
        "{lasted} s: {seen}"
    );
    assert_all_back(&interrupted(host));
}

#[test]
fn a_filter_sees_whole_frames_and_the_file_has_them_cut() {
    let Some(lab) = require(&TSHARK) else { return };
    let host = host(&lab, &["--rate", "1kpps", "--duration", "60s", "--size", "1000"]);
    // Of UDP there are 962 bytes, with its header: that is the last of them.
    let filter = "greater 500 and len = 996 and udp[961] >= 0";
    let arguments = ["--snaplen", "64", "--count", "50", "--to", "cut.pcapng", filter];
    let seen = attach(&lab, &host, &arguments).wait(LIMIT);
    assert_balanced(&seen);
    assert_eq!(seen.number("captured"), 50, "{seen}");
    assert_eq!(charged(&seen.json()["ledger"], "filtered"), 0, "{seen}");
    let file = lab.path("cut.pcapng").display().to_string();
    let lens = fields(&file, "frame", &["frame.len", "frame.cap_len"]);
    assert_eq!(lens, vec!["996\t64"; 50]);
    assert_all_back(&interrupted(host));
}

#[test]
fn a_tap_on_a_flood_loses_what_it_says_and_one_that_is_stopped_says_so_too() {
    let Some(lab) = require(&[]) else { return };
    // Long frames, of which the rings are soon full, however little time there is to copy them beside other programs.
    let host = host(&lab, &["--rate", "max", "--duration", "60s", "--size", "1000"]);
    let tap = attach(&lab, &host, &["--to", "flood.pcapng"]);
    tap.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_secs(1));
    tap.signal(Signal::SIGCONT);
    std::thread::sleep(Duration::from_millis(500));
    let seen = interrupted(tap);
    let lost = assert_balanced(&seen);
    // A disk that is busy otherwise may keep the capture's own ring full.
    let places = ["tap_budget", "tap_full", "ring_full"].map(|place| charged(&seen.json()["ledger"], place));
    assert!(places[0] > 0 && places[1] > 0, "{seen}");
    assert_eq!(lost, places.iter().sum::<u64>(), "{seen}");
    assert_eq!(seen.code, Some(1), "{seen}");
    let sent = interrupted(host);
    assert_conserved(&sent);
    assert_eq!(sent.number("ledger.unexplained"), 0, "{sent}");
    // Nobody saw more than there was.
    assert!(seen.number("ledger.entered") <= 2 * sent.number("sent"), "{sent}");
}

#[test]
fn a_reflector_is_seen_before_and_after_it_turns_a_frame_round() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("tshark")]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(&lab, "packet", &[]);
    let file = lab.path("reflect.pcapng");
    let tap = attach(&lab, &reflector, &["--to", "reflect.pcapng"]);
    let mac = wire.far.mac("far0");
    let sent = wire
        .send(
            &lab,
            "packet",
            &["--rate", "1kpps", "--count", "500", "--to-mac", &mac],
        )
        .run();
    assert_eq!(sent.number("received"), 500, "{sent}");
    let seen = interrupted(tap);
    let lost = assert_balanced(&seen);
    let probes = |way: u32, port: &str| {
        let filter = format!("frame.packet_flags_direction == {way} and udp.{port}port == 7");
        let output = Command::new("tshark")
            .arg("-r")
            .arg(&file)
            .args(["-Y", &filter])
            .output();
        String::from_utf8(output.expect("tshark").stdout)
            .expect("text")
            .lines()
            .count()
    };
    // They came for port 7, and went from there.
    let (came, went) = (probes(1, "dst"), probes(2, "src"));
    assert!(came > 0 && went > 0, "{seen}");
    assert!((500 - came + 500 - went) as u64 <= lost, "{came} {went} {seen}");
    assert_eq!((probes(1, "src"), probes(2, "dst")), (0, 0));
    interrupted(reflector);
}

#[test]
fn whoever_looks_may_be_killed_and_the_run_gives_its_memory_back() {
    let Some(lab) = require(&[]) else { return };
    let mut host = host(&lab, &["--rate", "1kpps", "--duration", "60s"]);
    let before = open_files(host.id());
    for _ in 0..3 {
        let tap = attach(&lab, &host, &[]);
        assert_eq!(rings(host.id()), 2, "a ring each way");
        tap.kill();
        assert!(until(LIMIT, || rings(host.id()) == 0), "{host:?}");
        assert!(until(LIMIT, || open_files(host.id()) == before), "{host:?}");
    }
    assert!(host.is_alive());
    assert_all_back(&interrupted(host));
}

#[test]
fn connections_that_say_nothing_shut_nobody_out() {
    let Some(lab) = require(&[]) else { return };
    let host = host(&lab, &["--rate", "1kpps", "--duration", "60s"]);
    let socket = tap_socket(&Place::own().file(host.id()));
    let silent: Vec<_> = (0..20)
        .map(|_| UnixStream::connect(&socket).expect("a connection"))
        .collect();
    let seen = attach(&lab, &host, &["--count", "50", "--to", "seen.pcapng"]).wait(LIMIT);
    assert_eq!(seen.number("captured"), 50, "{seen}");
    assert_balanced(&seen);
    drop(silent);
    assert_all_back(&interrupted(host));
}

#[test]
fn a_run_that_is_killed_leaves_what_its_tap_had() {
    let Some(lab) = require(&TSHARK) else { return };
    let host = host(&lab, &["--rate", "1kpps", "--duration", "60s"]);
    let tap = attach(&lab, &host, &["--to", "killed.pcapng"]);
    std::thread::sleep(Duration::from_millis(500));
    host.kill();
    let seen = tap.wait(LIMIT);
    // Where it was killed between a frame's count and its copy, that one is missing, and the books say so, too.
    let reasons = seen.json()["reasons"].as_array().expect("reasons").clone();
    assert!(
        reasons.iter().any(|reason| reason["code"] == "tap_not_ended"),
        "{seen}"
    );
    assert_eq!(seen.code, Some(2), "{seen}");
    let file = lab.path("killed.pcapng");
    let packets = sequences(&file, 1).len() + sequences(&file, 2).len();
    assert_eq!(packets as u64, seen.number("captured"), "{seen}");
    assert!(packets > 0);
}

/// Where the run has every core, whoever looks gives way to it; but not before it looks, or it would never get there.
#[test]
fn a_run_that_uses_every_core_is_looked_into_from_behind() {
    let Some(lab) = require(&[Need::Tool("taskset")]) else {
        return;
    };
    let host = host(&lab, &["--rate", "1kpps", "--duration", "60s"]);
    let script = format!(
        "exec taskset -c 0 $DROPLESS capture --json --no-doctor --attach {}",
        host.id()
    );
    let mut seen = lab.shell(&script);
    seen.wait_for("attaching to `dropless send` of process", LIMIT);
    seen.wait_for("looking into", LIMIT);
    let process = seen.id();
    let nice = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The 19th field, behind a name that may hold spaces.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).to_owned();
        rest.split(' ').nth(16).and_then(|nice| nice.parse::<i32>().ok())
    };
    assert!(until(LIMIT, || {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
        threads
            .flatten()
            .filter_map(nice)
            .filter(|nice| *nice == 19)
            .count()
            > 1
    }));
    let seen = interrupted(seen);
    assert!(has_note(&seen.json(), "host_uses_all"), "{seen}");
    assert!(seen.number("captured") > 0, "{seen}");
    assert_balanced(&seen);
    interrupted(host);
}

/// Nor is the core of another run taken, which nobody looks into.
#[test]
fn what_another_run_polls_is_not_free() {
    let needs = [Need::Tool("taskset"), Need::Processors(2)];
    let Some(lab) = require(&needs) else { return };
    let host = host(&lab, &["--rate", "1kpps", "--duration", "60s"]);
    let mut other = lab
        .dropless(&["send", "--json", "--rate=1kpps", "--duration=60s", "--cores=1"])
        .spawn();
    other.until_sending(LIMIT);
    let script = format!(
        "exec taskset -c 0,1 $DROPLESS capture --json --attach {}",
        host.id()
    );
    let mut seen = lab.shell(&script);
    seen.wait_for("looking into", LIMIT);
    let seen = interrupted(seen);
    assert!(has_note(&seen.json(), "host_uses_all"), "{seen}");
    interrupted(other);
    interrupted(host);
}

/// A run that stands still is waited for a while, and one that ends meanwhile has ended; both are told in words.
#[test]
fn a_run_that_does_not_answer_is_told_of() {
    let Some(lab) = require(&[]) else { return };
    let host = host(&lab, &["--rate", "1kpps", "--duration", "60s"]);
    let named = host.id().to_string();
    let begin = || {
        let arguments = ["capture", "--no-doctor", "--attach", &named];
        let mut running = lab.dropless(&arguments).spawn();
        running.wait_for("attaching to", LIMIT);
        running
    };
    host.signal(Signal::SIGSTOP);
    let waits = begin().wait(LIMIT);
    assert_eq!(waits.code, Some(2), "{waits}");
    assert!(
        waits.stderr.contains("does not answer: is it stopped?"),
        "{waits}"
    );
    let ends = begin();
    host.kill();
    let ends = ends.wait(LIMIT);
    assert_eq!(ends.code, Some(2), "{ends}");
    assert!(
        ends.stderr
            .contains(&format!("the run of process {named} has ended")),
        "{ends}"
    );
}

#[test]
fn what_cannot_be_looked_into_is_refused_in_a_line() {
    let Some(lab) = require(&[]) else { return };
    let refused = |named: &str, words: &[&str]| {
        let mut run = lab
            .dropless(&["capture", "--attach", named, "--to", "no.pcapng"])
            .run();
        // What is begun is told first.
        let begins = format!("attaching to `dropless send` of process {named}\n");
        run.stderr = run.stderr.strip_prefix(&begins).unwrap_or(&run.stderr).to_owned();
        assert_refused(&run, words);
    };
    refused("2", &["process 2 is not a dropless run", "dropless top"]);
    refused(
        "runs/nothing",
        &["no run directory", "runs/nothing", "dropless top"],
    );
    std::fs::create_dir_all(lab.path("runs/something")).expect("a directory");
    refused("runs/something", &["no run is active in", "summary.json"]);
    let host = host(&lab, &["--rate", "1kpps", "--duration", "60s"]);
    let named = host.id().to_string();
    let first = attach(&lab, &host, &[]);
    let holder = first.id().to_string();
    refused(&named, &[&holder, "looks into this run already", "end that one"]);
    refused(&holder, &["captures itself", "--ring"]);
    // Who cannot see it, for it is another user's.
    let nobody = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args([env!("CARGO_BIN_EXE_dropless"), "capture", "--attach", &named])
        .output()
        .expect("setpriv");
    let said = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert_eq!(nobody.status.code(), Some(2), "{said}");
    assert!(
        said.contains("is not a dropless run that this user may see"),
        "{said}"
    );
    interrupted(first);
    let directory = interrupted(host).json()["run"]
        .as_str()
        .expect("a directory")
        .to_owned();
    refused(&named, &["has ended", &directory]);
    let search = lab.dropless(&["search", "--json"]).spawn();
    let parent = search.id().to_string();
    let mut said = String::new();
    assert!(
        until(LIMIT, || {
            said = lab.dropless(&["capture", "--attach", &parent]).run().stderr;
            said.contains("the one that goes now is: --attach ")
        }),
        "{said}"
    );
    assert!(
        said.contains("is a search, whose trials are runs of their own"),
        "{said}"
    );
    interrupted(search);
}
