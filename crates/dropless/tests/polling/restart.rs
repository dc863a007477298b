//! Ends and returns: kill -9 and start again, peers that vanish and come back, signals, sockets in use, old probes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::proc::{hugepages_free_bytes, is_served};
use crate::support::wire::{Wire, assert_all_back, assert_conserved, has_note};
use crate::support::{Finished, Lab, Need, Running, require, until};
use nix::sys::signal::Signal;

const LIMIT: Duration = Duration::from_secs(30);

/// `reflect` on `port`, which has made its socket when this returns, if it is to serve one.
fn reflect(lab: &Lab, port: &str, further: &[&str]) -> Running {
    let arguments = ["reflect", "--json", "--quiet", "--no-huge", "--port", port];
    let running = lab.dropless(&[&arguments[..], further].concat()).spawn();
    if port.contains("server") || port == "vhost:s.sock" {
        assert!(until(LIMIT, || is_served("s.sock")), "{running:?}");
    }
    running
}

/// The arguments of a `send` on `port`: slow, with room to catch up on a shared core.
fn send<'a>(port: &'a str, further: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "send",
        "--json",
        "--quiet",
        "--no-huge",
        "--rate",
        "20kpps",
        "--backlog",
        "100000",
        "--drain",
        "500ms",
    ];
    [&fixed[..], &["--port", port], further].concat()
}

fn stop(reflect: Running) -> Finished {
    reflect.signal(Signal::SIGINT);
    reflect.wait(LIMIT)
}

/// The only run directory of this command, once it is there.
pub fn run_directory(lab: &Lab, command: &str) -> PathBuf {
    let mut found = None;
    let there = until(LIMIT, || {
        let runs = std::fs::read_dir(lab.path("runs"))
            .into_iter()
            .flatten()
            .flatten();
        found = runs
            .map(|entry| entry.path())
            .find(|path| path.to_string_lossy().ends_with(command));
        found.is_some()
    });
    assert!(there, "no run of {command}");
    found.expect("it was found")
}

/// The finished rows of a csv file, without its header.
pub fn rows(path: PathBuf) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(Into::into).collect())
        .collect()
}

/// Whether packets have come back, by finished rows, that a sender which was started then sends from now on.
fn back_from_now(counts: &Path, started: Instant) -> impl Fn() -> bool {
    // Rows count the time from the first packet, which is later.
    let now_ms = started.elapsed().as_secs_f64() * 1e3;
    move || {
        let rows = rows(counts.to_owned());
        let number = |text: &String| text.parse::<f64>().expect("a number");
        rows.iter()
            .any(|row| number(&row[0]) - number(&row[5]) >= now_ms && number(&row[2]) > 0.0)
    }
}

/// Kills a reflector that serves `far`, under load from `near`, and starts it again; nothing may be in its way.
fn killed_server_starts_again(far: &str, near: &str) {
    let Some(lab) = require(&[]) else { return };
    let free = hugepages_free_bytes();
    let first = lab
        .dropless(&["reflect", "--json", "--quiet", "--port", far])
        .spawn();
    assert!(until(LIMIT, || is_served("s.sock")), "{first:?}");
    let sender = lab.dropless(&send(near, &["--duration", "20s"])).spawn();
    let counts = run_directory(&lab, "send").join("intervals.csv");
    assert!(until(LIMIT, || !rows(counts.clone()).is_empty()), "{sender:?}");
    first.kill();
    sender.kill();
    assert!(
        until(LIMIT, || hugepages_free_bytes() >= free),
        "hugepages are still taken: {} bytes are free",
        hugepages_free_bytes()
    );

    let second = reflect(&lab, far, &[]);
    let sent = lab.dropless(&send(near, &["--count", "2k"])).run();
    assert_eq!(sent.number("received"), 2000, "{sent}");
    let second = stop(second);
    assert_eq!(second.code, Some(0), "{second}");
    assert_eq!(second.number("pool.leaked") + sent.number("pool.leaked"), 0);
}

#[test]
fn a_killed_memif_server_starts_again() {
    killed_server_starts_again("memif:s.sock,server", "memif:s.sock");
}

#[test]
fn a_killed_vhost_server_starts_again() {
    killed_server_starts_again("vhost:s.sock", "virtio-user:s.sock");
}

#[test]
fn a_killed_virtio_user_server_starts_again() {
    killed_server_starts_again("virtio-user:s.sock,server", "vhost:s.sock,client");
}

/// A reflector serves senders that end, and are killed, one after the other, and counts every one's packets.
fn serves_whoever_comes(far: &str, near: &str) {
    let Some(lab) = require(&[]) else { return };
    let far = reflect(&lab, far, &[]);
    let one = lab.dropless(&send(near, &["--count", "2k"])).run();
    assert_eq!(one.number("received"), 2000, "{one}");
    let killed = lab
        .dropless(&send(near, &["--duration", "20s", "--interval", "100ms"]))
        .spawn();
    let counts = || {
        let runs = std::fs::read_dir(lab.path("runs"))
            .into_iter()
            .flatten()
            .flatten();
        runs.filter(|run| run.path().to_string_lossy().contains("send"))
            .filter(|run| !run.path().join("summary.json").exists())
            .map(|run| rows(run.path().join("intervals.csv")).len())
            .sum::<usize>()
    };
    assert!(until(LIMIT, || counts() > 0), "{killed:?}");
    killed.kill();
    let two = lab.dropless(&send(near, &["--count", "2k"])).run();
    assert_eq!(two.number("received"), 2000, "{two}");
    let far = stop(far);
    assert_eq!((far.code, far.signal), (Some(0), None), "{far}");
    assert!(far.number("received") > 4000, "{far}");
    assert_eq!(far.number("pool.leaked"), 0, "{far}");
    assert!(has_note(&far.json(), "link_lost"), "{far}");
}

#[test]
fn a_memif_reflector_that_serves_takes_whoever_comes() {
    serves_whoever_comes("memif:s.sock,server", "memif:s.sock");
}

#[test]
fn a_memif_reflector_that_calls_finds_whoever_serves() {
    serves_whoever_comes("memif:s.sock", "memif:s.sock,server");
}

#[test]
fn a_vhost_reflector_that_serves_takes_whoever_comes() {
    serves_whoever_comes("vhost:s.sock", "virtio-user:s.sock");
}

#[test]
fn a_virtio_user_reflector_that_serves_takes_whoever_comes() {
    serves_whoever_comes("virtio-user:s.sock,server", "vhost:s.sock,client");
}

/// The reflector dies under a sender and comes back: the sender says that its link was lost, and goes on if it can.
fn reflector_vanishes(far: &str, near: &str, comes_back: bool) {
    let Some(lab) = require(&[]) else { return };
    let first = reflect(&lab, far, &[]);
    let started = Instant::now();
    let sender = lab
        .dropless(&send(near, &["--duration", "60s", "--interval", "100ms"]))
        .spawn();
    let counts = run_directory(&lab, "send").join("intervals.csv");
    assert!(until(LIMIT, back_from_now(&counts, started)), "{sender:?}");
    first.kill();
    let goes_on = back_from_now(&counts, started);
    let second = reflect(&lab, far, &[]);
    assert!(!comes_back || until(LIMIT, goes_on), "{sender:?}\n{second:?}");
    let (sent, second) = (stop(sender), stop(second));
    assert_eq!((sent.code, sent.signal), (Some(2), None), "{sent}");
    let json = sent.json();
    assert_eq!(json["verdict"], "invalid", "{sent}");
    assert!(json["reasons"].to_string().contains("link"), "{sent}");
    assert_eq!(sent.number("pool.leaked"), 0, "{sent}");
    assert_eq!(
        sent.number("ledger.intended"),
        sent.number("sent") + sent.number("ledger.unsent"),
        "{sent}"
    );
    assert_eq!(second.signal, None, "{second}");
    if comes_back {
        assert!(second.number("received") > 0, "{second}\n{sent}");
        assert_eq!(second.code, Some(0), "{second}");
        assert_first_packet(&second);
    }
}

/// It says how soon after the start of its process it moved its first packet: not before that, and not after its end.
fn assert_first_packet(run: &Finished) {
    let first = run.json()["workers"][0]["first_packet_ms"].as_f64();
    let took_ms = run.took.as_secs_f64() * 1e3;
    assert!(first.is_some_and(|first| first > 0.0 && first < took_ms), "{run}");
}

/// Reflectors on an interface are killed under a sender, one after the other: nothing of theirs is in the way of the next.
fn killed_on_an_interface(kind: &str) {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let mut reflector = wire.reflect_far(&lab, kind, &[]);
    let arguments = [
        "--rate",
        "2kpps",
        "--duration",
        "120s",
        "--interval",
        "100ms",
        "--drain",
        "500ms",
    ];
    let started = Instant::now();
    let sender = wire.send(&lab, "packet", &arguments).spawn();
    let counts = run_directory(&lab, "send").join("intervals.csv");
    let back_from_now = || back_from_now(&counts, started);
    assert!(until(LIMIT, back_from_now()), "{sender:?}");
    for _ in 0..2 {
        reflector.kill();
        let goes_on = back_from_now();
        reflector = wire.reflect_far(&lab, kind, &[]);
        assert!(until(LIMIT, goes_on), "{sender:?}\n{reflector:?}");
    }
    let (sent, last) = (stop(sender), stop(reflector));
    assert_conserved(&sent);
    assert_first_packet(&sent);
    assert_eq!(last.code, Some(0), "{last}");
    assert_eq!(last.number("received"), last.number("returned"), "{last}");
    assert_first_packet(&last);
}

#[test]
fn a_reflector_that_was_killed_on_a_packet_socket_is_followed_by_the_next() {
    killed_on_an_interface("packet");
}

#[test]
fn a_reflector_that_was_killed_on_af_xdp_is_followed_by_the_next() {
    killed_on_an_interface("xdp");
}

#[test]
fn a_sender_whose_memif_server_vanishes_says_so_and_goes_on() {
    reflector_vanishes("memif:s.sock,server", "memif:s.sock", true);
}

#[test]
fn a_sender_whose_memif_client_vanishes_says_so_and_goes_on() {
    reflector_vanishes("memif:s.sock", "memif:s.sock,server", true);
}

#[test]
fn a_sender_whose_vhost_server_vanishes_says_so() {
    // A virtio-user client connects once: what comes back is a new reflector for the next run.
    reflector_vanishes("vhost:s.sock", "virtio-user:s.sock", false);
}

#[test]
fn a_sender_whose_virtio_user_server_vanishes_says_so_and_goes_on() {
    reflector_vanishes("virtio-user:s.sock,server", "vhost:s.sock,client", true);
}

#[test]
fn a_run_by_count_gives_a_lost_peer_up() {
    let Some(lab) = require(&[]) else { return };
    let peer = reflect(&lab, "memif:s.sock,server", &[]);
    let flags = ["--count", "10M", "--wait", "1s", "--interval", "100ms"];
    let sender = lab.dropless(&send("memif:s.sock", &flags)).spawn();
    let counts = run_directory(&lab, "send").join("intervals.csv");
    assert!(until(LIMIT, || !rows(counts.clone()).is_empty()), "{sender:?}");
    peer.kill();
    let sent = sender.wait(LIMIT);
    assert_eq!((sent.code, sent.signal), (Some(2), None), "{sent}");
    assert!(sent.json()["reasons"].to_string().contains("link"), "{sent}");
    assert!(sent.number("sent") < 10_000_000, "{sent}");
}

/// A zero-copy sender shares its own pool with the server: what that still had is told, and no leak.
#[test]
fn a_zero_copy_sender_whose_server_vanishes_says_so() {
    let Some(lab) = require(&[Need::Hugepages]) else {
        return;
    };
    let first = reflect(&lab, "memif:s.sock,server", &[]);
    let rows_of_far = run_directory(&lab, "reflect").join("intervals.csv");
    assert!(until(LIMIT, || rows_of_far.exists()), "{first:?}");
    let sender = send(
        "memif:s.sock,zero-copy",
        &["--duration", "60s", "--interval", "100ms"],
    );
    let sender: Vec<&str> = sender
        .into_iter()
        .filter(|argument| *argument != "--no-huge")
        .collect();
    let sender = lab.dropless(&sender).spawn();
    let counts = run_directory(&lab, "send").join("intervals.csv");
    assert!(until(LIMIT, || !rows(counts.clone()).is_empty()), "{sender:?}");
    first.kill();
    // It goes on for some rows more.
    let before = rows(counts.clone()).len();
    assert!(
        until(LIMIT, || rows(counts.clone()).len() >= before + 5),
        "{sender:?}"
    );
    let sent = stop(sender);
    assert_eq!((sent.code, sent.signal), (Some(2), None), "{sent}");
    assert!(sent.json()["reasons"].to_string().contains("link"), "{sent}");
    assert_eq!(sent.number("pool.leaked"), 0, "{sent}");
    assert!(has_note(&sent.json(), "buffers_in_memif"), "{sent}");
}

/// Interrupts a send in its second second; returns what it said.
fn interrupted(signals: &[Signal], further: &[&str]) -> Option<(Lab, Finished)> {
    let lab = require(&[])?;
    let sender = lab
        .dropless(&send("ring", &[&["--interval", "100ms"], further].concat()))
        .spawn();
    let counts = run_directory(&lab, "send").join("intervals.csv");
    assert!(
        until(LIMIT, || rows(counts.clone()).len() >= 11
            || further.contains(&"--fault")),
        "{sender:?}"
    );
    if further.contains(&"--fault") {
        assert!(until(LIMIT, || !rows(counts.clone()).is_empty()), "{sender:?}");
    }
    for signal in signals {
        sender.signal(*signal);
    }
    let finished = sender.wait(LIMIT);
    Some((lab, finished))
}

/// What an interrupted run leaves: its result, and every interval of it.
fn result_so_far(signals: &[Signal]) {
    let Some((lab, sent)) = interrupted(signals, &["--duration", "60s"]) else {
        return;
    };
    assert_eq!(sent.signal, None, "{sent}");
    assert_all_back(&sent);
    assert_eq!(sent.number("lost"), 0, "{sent}");
    assert!(has_note(&sent.json(), "interrupted"), "{sent}");
    let rows = rows(run_directory(&lab, "send").join("intervals.csv"));
    let total: u64 = rows
        .iter()
        .map(|row| row[1].parse::<u64>().expect("a count"))
        .sum();
    assert_eq!(total, sent.number("sent"), "{rows:?}\n{sent}");
    assert!(rows.len() >= 11, "{rows:?}");
    assert!(run_directory(&lab, "send").join("summary.json").exists());
}

#[test]
fn an_interrupt_ends_the_run_in_order() {
    result_so_far(&[Signal::SIGINT]);
}

#[test]
fn a_termination_ends_the_run_in_order() {
    result_so_far(&[Signal::SIGTERM]);
}

#[test]
fn one_wish_to_end_may_come_as_two_signals() {
    // As timeout(1) sends them, to its child and then to its group.
    result_so_far(&[Signal::SIGTERM, Signal::SIGTERM]);
}

#[test]
fn with_everything_lost_the_rows_say_a_hundred_percent() {
    let further = ["--fault", "drop=100%", "--duration", "60s"];
    let Some((lab, sent)) = interrupted(&[Signal::SIGINT], &further) else {
        return;
    };
    assert_eq!(sent.code, Some(2), "{sent}");
    assert!(sent.json()["reasons"].to_string().contains("received"), "{sent}");
    assert_eq!(sent.number("lost"), sent.number("sent"), "{sent}");
    let rows = rows(run_directory(&lab, "send").join("intervals.csv"));
    let sending: Vec<_> = rows.iter().filter(|row| row[1] != "0").collect();
    assert!(!sending.is_empty(), "{rows:?}");
    for row in sending {
        assert_eq!(row[3].trim_end_matches(".0"), "100", "{row:?}");
        assert_eq!(row[4], "", "a latency of nothing: {row:?}");
    }
}

#[test]
fn a_reflector_that_is_told_to_end_gives_its_result() {
    let Some(lab) = require(&[]) else { return };
    let far = reflect(&lab, "memif:s.sock,server", &[]);
    let sent = lab.dropless(&send("memif:s.sock", &["--count", "1k"])).run();
    assert_eq!(sent.number("received"), 1000, "{sent}");
    far.signal(Signal::SIGTERM);
    let far = far.wait(LIMIT);
    assert_eq!((far.code, far.signal), (Some(0), None), "{far}");
    assert_eq!(
        far.number("received"),
        1000 + far.number("answered") + far.number("told"),
        "{far}"
    );
    assert!(!lab.path("s.sock").exists(), "its socket was left behind");
}

#[test]
fn a_socket_in_use_is_refused() {
    for port in ["memif:s.sock,server", "vhost:s.sock"] {
        let Some(lab) = require(&[]) else { return };
        let mut first = reflect(&lab, port, &[]);
        let second = lab.dropless(&["reflect", "--no-huge", "--port", port]).run();
        assert_eq!(second.code, Some(2), "{second}");
        assert!(
            second.stderr.contains("another process already serves s.sock"),
            "{second}"
        );
        assert_eq!(second.stderr.trim().lines().count(), 1, "{second}");
        assert!(first.is_alive(), "{first:?}");
        // The first is not disturbed: it still serves.
        let near = if port == "vhost:s.sock" {
            "virtio-user:s.sock"
        } else {
            "memif:s.sock"
        };
        let sent = lab.dropless(&send(near, &["--count", "1k"])).run();
        assert_eq!(sent.number("received"), 1000, "{sent}");
        assert_eq!(stop(first).code, Some(0));
    }
}

#[test]
fn probes_of_an_earlier_run_are_never_counted() {
    let Some(lab) = require(&[]) else { return };
    // The reflector holds what the first sender sent until the second is there.
    let far = reflect(&lab, "memif:s.sock,server", &["--fault", "delay=100%:3s"]);
    let send = [
        "send",
        "--json",
        "--quiet",
        "--no-huge",
        "--port",
        "memif:s.sock",
        "--backlog",
        "1000",
    ];
    let send = |further: &[&str]| lab.dropless(&[&send[..], further].concat()).run();
    let one = send(&["--count", "1k", "--rate", "10kpps", "--drain", "1ms"]);
    assert_eq!((one.number("sent"), one.number("received")), (1000, 0), "{one}");
    let two = send(&["--count", "250", "--rate", "250pps", "--drain", "5s"]);
    assert_eq!(
        (
            two.number("sent"),
            two.number("received"),
            two.number("duplicate")
        ),
        (250, 250, 0),
        "{two}"
    );
    let far = stop(far);
    // Every one of the first thousand came to the second sender: flushed before it began, or known as another run's.
    let json = two.json();
    let strange: u64 = json["ledger"]["arrived"]["foreign"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, n)| n.as_u64())
        .sum();
    assert!(
        strange > 0,
        "no probe of the first run came to the second: {two}\n{far}"
    );
    assert_eq!(far.number("pool.leaked"), 0, "{far}");
}
