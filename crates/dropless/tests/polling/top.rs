//! `dropless top` in a real terminal: a pseudo terminal, whose screen is read as a person would read it.

use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::support::pcap_file::{PLAIN, frames};
use crate::support::proc::children;
use crate::support::served::serve;
use crate::support::terminal::{LIVE_VARIABLE as VARIABLE, Terminal};
use crate::support::wire::{assert_conserved, assert_valid_but_for_time};
use crate::support::{Lab, Need, Running, require, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const LIMIT: Duration = Duration::from_secs(30);

fn run(lab: &Lab, arguments: &[&str]) -> Running {
    let live = lab.path("live");
    let mut running = lab
        .dropless(arguments)
        .env(VARIABLE, live.to_str().expect("a path"))
        .spawn();
    let published = || std::fs::read_dir(&live).is_ok_and(|mut entries| entries.next().is_some());
    assert!(until(LIMIT, || published() || !running.is_alive()), "{running:?}");
    running
}

const SEND: [&str; 10] = [
    "send",
    "--json",
    "--rate",
    "20kpps",
    "--no-huge",
    "--quiet",
    "--no-doctor",
    "--port",
    "ring",
    "--duration",
];

fn send<'a>(lab: &Lab, duration: &'a str) -> Running {
    let mut arguments: Vec<&'a str> = SEND.to_vec();
    arguments.push(duration);
    run(lab, &arguments)
}

/// Its number there is somebody else's here: what it publishes goes by the one that its `/proc` has for it.
#[test]
fn a_run_in_a_pid_namespace_is_found_and_ends() {
    let Some(lab) = require(&[Need::Root, Need::Tool("unshare")]) else {
        return;
    };
    let live = lab.path("live").display().to_string();
    let send = format!("{} 30s", SEND.join(" "));
    let script = format!("export {VARIABLE}={live}; exec unshare --pid --fork \"$DROPLESS\" {send}");
    let running = lab.shell(&script);
    let published = |process: &Pid| std::path::Path::new(&live).join(process.to_string()).exists();
    let by_number = || children(running.id()).iter().any(published);
    assert!(until(LIMIT, by_number), "{running:?}");
    let top = lab.dropless(&["top", "--json"]).env(VARIABLE, &live).run();
    let child = children(running.id())[0];
    assert_eq!(top.json()["process"]["id"], child.as_raw(), "{top}");
    assert_eq!(top.json()["process"]["parent"], running.id(), "{top}");
    kill(child, Signal::SIGINT).expect("signalling");
    running.wait(LIMIT);
    let top = lab.dropless(&["top", "--json"]).env(VARIABLE, &live).run();
    assert!(top.stderr.contains("no run is active"), "{top}");
}

#[test]
fn a_run_is_watched_in_a_terminal() {
    let Some(lab) = require(&[]) else { return };
    let sender = send(&lab, "120s");
    let mut terminal = Terminal::top(&lab, "", 24, 80);
    terminal.wait_for("sending");
    terminal.rises("tx");
    terminal.rises("rx");
    assert!(terminal.text().contains("q quit"), "{}", terminal.text());

    terminal.resize(40, 130);
    let beside = || {
        let text = terminal.text();
        text.lines()
            .any(|line| line.find("Queues").is_some_and(|column| column > 50))
    };
    assert!(until(LIMIT, beside), "{}", terminal.text());
    terminal.wait_for("Workers");
    terminal.resize(10, 38);
    terminal.wait_for("dropless send");
    terminal.rises("tx");
    terminal.resize(24, 80);

    terminal.press("p");
    terminal.wait_for("paused");
    let held = terminal.count("tx");
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(terminal.count("tx"), held);
    terminal.press("p");
    terminal.rises("tx");
    terminal.press("?");
    terminal.wait_for("quit; the run goes on");
    terminal.press("?");
    terminal.rises("rx");

    terminal.press("q");
    terminal.has_left(0);
    sender.signal(Signal::SIGINT);
    let sent = sender.wait(LIMIT);
    // The run was not disturbed.
    assert_valid_but_for_time(&sent);
    assert_conserved(&sent);
}

/// Rules that were refused are told for as long as those before them go on.
#[test]
fn refused_rules_are_told() {
    let Some(lab) = require(&[]) else { return };
    let put = |rules: &str| std::fs::write(lab.path("edge.rules"), rules).expect("a rule file");
    put("deny udp\n");
    let flags = ["--no-huge", "--no-doctor", "--quiet", "--rules", "edge.rules"];
    let forwarder = run(
        &lab,
        &[&["forward", "--port", "null:a", "--port", "null:b"], &flags[..]].concat(),
    );
    let terminal = Terminal::top(&lab, "", 24, 100);
    terminal.rises("rx");
    put("deny udp dport x\n");
    forwarder.signal(Signal::SIGHUP);
    terminal.wait_for("the rules read last are NOT in force: edge.rules:1:16:");
    put("deny tcp\n");
    forwarder.signal(Signal::SIGHUP);
    let is_well = || !terminal.text().contains("NOT in force");
    assert!(until(LIMIT, is_well), "{}", terminal.text());
    forwarder.signal(Signal::SIGINT);
    forwarder.wait(LIMIT);
}

#[test]
fn ctrl_c_leaves_the_terminal_as_it_was_and_the_run_goes_on() {
    let Some(lab) = require(&[]) else { return };
    let mut sender = send(&lab, "120s");
    let mut terminal = Terminal::top(&lab, &sender.id().to_string(), 24, 80);
    terminal.rises("tx");
    terminal.press("\x03");
    terminal.has_left(0);
    assert!(sender.is_alive());
}

/// What systemd or timeout(1) send, and what comes when the terminal is closed.
#[test]
fn signals_leave_the_terminal_as_it_was() {
    let Some(lab) = require(&[]) else { return };
    let sender = send(&lab, "120s");
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let terminal = Terminal::top(&lab, "", 30, 100);
        terminal.wait_for("Traffic");
        let top = terminal.program();
        kill(Pid::from_raw(top), signal).expect("signalling");
        terminal.has_left(0);
    }
    sender.kill();
}

#[test]
fn the_last_values_of_a_run_that_ends_stay() {
    let Some(lab) = require(&[]) else { return };
    let sender = send(&lab, "3s");
    let terminal = Terminal::top(&lab, "", 24, 80);
    terminal.rises("tx");
    let sent = sender.wait(LIMIT);
    assert_valid_but_for_time(&sent);
    assert_conserved(&sent);
    terminal.wait_for("the run has ended");
    let summary = std::fs::read_dir(lab.path("runs"))
        .expect("a run directory")
        .flatten()
        .find_map(|run| std::fs::read_to_string(run.path().join("summary.json")).ok())
        .expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(terminal.count("tx"), summary["sent"].as_u64());
    assert_eq!(terminal.count("rx"), summary["received"].as_u64());
    // And its rates are no longer those of the last second.
    terminal.wait_for("Traffic of the whole run");
    terminal.wait_for("mean rate");
    let run = summary["run"].as_str().expect("a run directory");
    let told = lab
        .dropless(&["top", "--json", run])
        .env(VARIABLE, lab.path("live").to_str().expect("a path"))
        .run()
        .json();
    for rate in ["tx", "rx"] {
        let mean = summary[format!("rate_{rate}_pps")].as_f64().expect("a rate");
        let told = told["rate"][format!("{rate}_pps")].as_f64().expect("a rate");
        assert!((told - mean).abs() <= mean * 1e-9, "{rate}: {told}, {mean}");
    }
}

/// Of a run of one packet the time from the first to the last says nothing.
#[test]
fn the_rates_of_short_runs_are_those_of_their_results() {
    let Some(lab) = require(&[]) else { return };
    let file = PLAIN.write(&lab, "three.pcap", &frames(3, 10_000_000));
    for arguments in [
        &["send", "--count", "1", "--rate", "100pps"][..],
        &["send", "--count", "3", "--rate", "max"],
        &["replay", &file, "--port", "null"],
    ] {
        let options = ["--no-huge", "--no-doctor", "--metrics-linger", "10min"];
        let (running, _) = serve(&lab, &[arguments, &options].concat());
        let told = || {
            let top = lab.dropless(&["top", "--json", &running.id().to_string()]);
            let live = lab.path("live");
            let told = top.env(VARIABLE, live.to_str().expect("a path")).run();
            told.json()
        };
        assert!(until(LIMIT, || !told()["ended"].is_null()), "{running:?}");
        let told = told()["rate"]["tx_pps"].as_f64().expect("a rate");
        // What has ended and is still there is not forgotten for its age.
        let file = lab.path("live").join(running.id().to_string());
        let old = SystemTime::now() - Duration::from_secs(120);
        let aged = File::options()
            .write(true)
            .open(&file)
            .and_then(|it| it.set_modified(old));
        let modified = || std::fs::metadata(&file).and_then(|it| it.modified());
        assert!(
            aged.is_ok() && until(LIMIT, || modified().is_ok_and(|at| at > old)),
            "{running:?}"
        );
        let run = running.kill();
        let mean = run.json()["rate_tx_pps"].as_f64().expect("a rate");
        assert!((told - mean).abs() <= mean * 1e-9, "{told}: {run}");
    }
}

#[test]
fn a_run_that_dies_is_told_dead() {
    let Some(lab) = require(&[]) else { return };
    let sender = send(&lab, "120s");
    let terminal = Terminal::top(&lab, "", 24, 80);
    terminal.rises("tx");
    sender.kill();
    terminal.wait_for("has died; these are its last values");
    assert!(terminal.count("tx") > Some(0), "{}", terminal.text());
}

#[test]
fn of_several_runs_one_is_chosen() {
    let Some(lab) = require(&[]) else { return };
    let arguments = |socket| ["reflect", "--quiet", "--no-huge", "--no-doctor", "--port", socket];
    let first = run(&lab, &arguments("memif:a.sock,server"));
    let second = run(&lab, &arguments("memif:b.sock,server"));
    let both = || std::fs::read_dir(lab.path("live")).is_ok_and(|entries| entries.flatten().count() == 2);
    assert!(until(LIMIT, both), "{first:?}{second:?}");
    let once = lab
        .dropless(&["top", "--once"])
        .env(VARIABLE, lab.path("live").to_str().expect("a path"))
        .run();
    assert_eq!(once.code, Some(2), "{once}");
    assert!(once.stderr.contains("2 runs are active here"), "{once}");
    let named = format!("{} reflect in ", first.id());
    assert!(once.stderr.contains(&named), "{once}");

    let mut terminal = Terminal::top(&lab, "", 24, 80);
    terminal.wait_for("Runs");
    terminal.wait_for(&first.id().to_string());
    terminal.wait_for(&second.id().to_string());
    terminal.press("\x1b[B\r");
    terminal.wait_for(&format!("process {}", second.id()));
    terminal.press("\x1b[D");
    terminal.wait_for("Runs");
    terminal.press("\x1b[A\r");
    terminal.wait_for(&format!("process {}", first.id()));
    terminal.press("q");
    terminal.has_left(0);
}

#[test]
fn a_search_is_one_run_whatever_its_trials_tell() {
    let Some(lab) = require(&[]) else { return };
    let searching = run(
        &lab,
        &[
            "search",
            "--quiet",
            "--no-huge",
            "--max-rate",
            "5kpps",
            "--min-rate",
            "1kpps",
            "--duration-sum",
            "60s",
            "--backlog=1000000",
        ],
    );
    let live = lab.path("live");
    let look = |arguments: &[&str]| {
        let top = lab.dropless(&[&["top", "--json"], arguments].concat());
        top.env(VARIABLE, live.to_str().expect("a path")).run()
    };
    let mut trial = None;
    let moves = || {
        let one = look(&[]);
        assert_eq!(one.code, Some(0), "{one}");
        assert_eq!(one.number("process.id"), u64::from(searching.id()), "{one}");
        let files = std::fs::read_dir(&live).expect("the directory").flatten();
        let names = files.filter_map(|file| file.file_name().to_str()?.parse::<u32>().ok());
        trial = names.filter(|process| *process != searching.id()).max();
        trial.is_some() && one.number("total.received") > 0
    };
    assert!(until(LIMIT, moves), "{searching:?}");
    assert_eq!(look(&[]).json()["process"]["command"], "search");
    // Whoever names a trial sees it.
    let named = look(&[&trial.map(|process| process.to_string()).unwrap_or_default()]);
    assert_eq!(named.json()["process"]["command"], "send", "{named}");
    assert_eq!(
        named.number("process.parent"),
        u64::from(searching.id()),
        "{named}"
    );
    // Trials and their latencies, as far as they are known.
    let tried = until(LIMIT, || {
        let one = look(&[]).json();
        let trials = &one["trials"];
        let of = trials["shown"][0]["of"].as_str();
        let known = of.is_some_and(|of| of.starts_with("64 "))
            && trials["number"].as_u64() > Some(1)
            && one["latency_ns"]["max"].as_u64() > Some(0);
        assert!(one["planned_s"].is_null(), "{one}");
        assert_eq!(one["done"].is_null(), trials["left_s"].is_null(), "{one}");
        known
    });
    assert!(tried, "{searching:?}");
    let text = look_once(&lab);
    assert!(
        ["last trial", ", trial ", "Found so far", "not carried"]
            .iter()
            .all(|words| text.contains(words)),
        "{text}"
    );
    drop(searching);
}

fn look_once(lab: &Lab) -> String {
    let top = lab.dropless(&["top", "--once"]);
    top.env(VARIABLE, lab.path("live").to_str().expect("a path"))
        .run()
        .stdout
}

/// What a wrapper started is meant by the wrapper's id; where it started several, they are named.
#[test]
fn the_process_of_a_wrapper_will_do() {
    let Some(lab) = require(&[]) else { return };
    let live = lab.path("live");
    let live = live.to_str().expect("a path");
    let one = "\"$DROPLESS\" reflect --quiet --no-huge --no-doctor --port memif:SOCKET,server";
    let wrap = |sockets: &[&str]| {
        let runs: Vec<String> = sockets
            .iter()
            .map(|socket| format!("timeout 120 {} & ", one.replace("SOCKET", socket)))
            .collect();
        lab.shell(&format!("export {VARIABLE}={live}; {}wait", runs.concat()))
    };
    let top = |process: u32| {
        let top = lab.dropless(&["top", "--json", &process.to_string()]);
        top.env(VARIABLE, live).run()
    };
    // What a shell has started outlives it, and would poll beside the tests that come after.
    let end = |wrapper: Running| {
        for wrapped in children(wrapper.id()) {
            kill(wrapped, Signal::SIGTERM).expect("signalling");
        }
        wrapper.wait(LIMIT);
    };
    let wrapper = wrap(&["a.sock"]);
    let mut look = top(wrapper.id());
    assert!(
        until(LIMIT, || {
            look = top(wrapper.id());
            look.code == Some(0)
        }),
        "{look}"
    );
    assert_eq!(look.json()["process"]["command"], "reflect", "{look}");
    assert_ne!(look.number("process.id"), u64::from(wrapper.id()), "{look}");

    end(wrapper);
    let wrapper = wrap(&["b.sock", "c.sock"]);
    assert!(
        until(LIMIT, || {
            look = top(wrapper.id());
            look.stderr.contains("2 runs are active below process")
        }),
        "{look}"
    );
    assert_eq!((look.code, look.stderr.lines().count()), (Some(2), 1), "{look}");
    end(wrapper);

    let nothing = lab.shell("sleep 60");
    let look = top(nothing.id());
    assert_eq!((look.code, look.stderr.lines().count()), (Some(2), 1), "{look}");
    assert!(look.stderr.contains("has not started one"), "{look}");
}

fn no_pause_is_longer_than_the_longest(state: &serde_json::Value) {
    let workers = state["workers"].as_array().expect("workers");
    for stall in state["stalls"].as_array().expect("pauses") {
        let worker = workers
            .iter()
            .find(|worker| worker["summary"]["core"] == stall["core"])
            .expect("its worker");
        let longest = worker["summary"]["poll_gap_ns_max"].as_u64();
        assert!(stall["gap_ns"].as_u64() <= longest, "{stall} {worker}");
    }
}

#[test]
fn one_look_for_scripts() {
    let Some(lab) = require(&[]) else { return };
    let top = |arguments: &[&str]| {
        let live = lab.path("live");
        lab.dropless(arguments)
            .env(VARIABLE, live.to_str().expect("a path"))
            .run()
    };
    let none = top(&["top", "--once"]);
    assert_eq!((none.code, &*none.stdout), (Some(2), ""), "{none}");
    assert_eq!(none.stderr.lines().count(), 1, "{none}");

    let sender = send(&lab, "120s");
    let process = sender.id().to_string();
    let moves = || {
        let look = top(&["top", "--json", &process]);
        look.code == Some(0) && look.number("total.received") > 0
    };
    assert!(until(LIMIT, moves), "{sender:?}");
    let look = top(&["top", "--json"]);
    assert!(
        look.number("total.sent") >= look.number("total.received"),
        "{look}"
    );
    assert!(look.number("pool.size") >= look.number("pool.free"), "{look}");
    // The run goes on between the two readings: the queues are read after the totals.
    assert!(
        look.number("queues.0.packets") >= look.number("total.sent"),
        "{look}"
    );
    assert_eq!(look.json()["process"]["command"], "send");
    no_pause_is_longer_than_the_longest(&look.json());
    let text = top(&["top", "--once"]);
    for section in ["Traffic", "Queues", "Workers", "health"] {
        assert!(text.stdout.contains(section), "{section}: {text}");
    }
    let run = look.json()["process"]["run"]
        .as_str()
        .expect("a directory")
        .to_owned();
    assert_eq!(top(&["top", "--once", &run]).code, Some(0));
    let piped = top(&["top"]);
    assert_eq!(piped.code, Some(2), "{piped}");
    assert!(piped.stderr.contains("--once"), "{piped}");
    let dumb = Terminal::within(&lab, "TERM=dumb", "top", (24, 80));
    dumb.wait_for("use --once");
    dumb.wait_for("code 2");

    // What a process that was stopped told a while ago is not called well, and neither is what it told by another clock.
    let file = lab.path("live").join(&process);
    sender.signal(Signal::SIGSTOP);
    assert!(
        until(LIMIT, || report::published::is_stopped(sender.id())),
        "{sender:?}"
    );
    let mut told = report::published::read(&file).expect("what it told last");
    for (told_unix_ms, words) in [
        (told.told_unix_ms - 60_000, "no status for "),
        (
            told.told_unix_ms + 3_600_000,
            "no status since the clock was set back",
        ),
    ] {
        told.told_unix_ms = told_unix_ms;
        let bytes = report::published::encode(&told).expect("JSON");
        std::fs::write(&file, bytes).expect("writing");
        let health = &top(&["top", "--json"]).json()["health"];
        assert_eq!(health["healthy"], false, "{health}");
        assert!(
            health["reason"].as_str().is_some_and(|why| why.contains(words)),
            "{health}"
        );
        let text = top(&["top", "--once"]);
        assert!(text.stdout.contains(words), "{text}");
    }

    // A file of a version that is not known here yet.
    sender.kill();
    std::fs::write(&file, "dropless-live 99 2\n{}").expect("writing");
    let newer = top(&["top", "--once", &process]);
    assert_eq!(newer.code, Some(2), "{newer}");
    assert!(newer.stderr.contains("version 99"), "{newer}");
    assert_eq!(newer.stderr.lines().count(), 1, "{newer}");
}
