//! Two dropless processes over memif: either side serves, and what the far side did is found to the packet.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::replay::assert_balanced;
use crate::support::pcap_file::{PLAIN, frames};
use crate::support::wire::{assert_invalid, charged, has_note, interrupted};
use crate::support::{Finished, Lab, Need, require, until};
use nix::sys::signal::Signal;

const LIMIT: Duration = Duration::from_secs(30);
/// A slow schedule, and room to catch up: both processes and the machine's other work share its cores.
const LOAD: [&str; 8] = [
    "--count",
    "20k",
    "--rate",
    "50kpps",
    "--backlog",
    "100000",
    "--drain",
    "1s",
];

/// What both sides said at their ends.
struct Pair {
    send: Finished,
    reflect: Finished,
}

/// Runs `send` against `reflect`, each with its port and further arguments.
fn pair(lab: &Lab, reflect: &[&str], send: &[&str]) -> Pair {
    let quiet = ["--json", "--quiet", "--port"];
    let far = lab
        .dropless(&[&["reflect"], &quiet[..], reflect].concat())
        .spawn();
    let near = lab.dropless(&[&["send"], &quiet[..], send, &LOAD].concat()).run();
    far.signal(Signal::SIGINT);
    Pair {
        send: near,
        reflect: far.wait(LIMIT),
    }
}

/// The run directories so far.
fn runs(lab: &Lab) -> impl Iterator<Item = PathBuf> {
    let runs = std::fs::read_dir(lab.path("runs"))
        .into_iter()
        .flatten()
        .flatten();
    runs.map(|entry| entry.path())
}

impl Pair {
    /// Both sides, their drivers and the pools agree on every packet, and none was lost.
    fn agree(&self) {
        let (send, reflect) = (&self.send, &self.reflect);
        assert_eq!(reflect.code, Some(0), "{reflect}");
        for (name, wanted) in [
            ("sent", 20_000),
            ("received", 20_000),
            ("lost", 0),
            ("duplicate", 0),
            ("unexplained", 0),
        ] {
            assert_eq!(send.number(name), wanted, "{name} {send}");
        }
        let answered = reflect.number("answered") + reflect.number("told");
        assert_eq!(reflect.number("received"), 20_000 + answered, "{reflect}");
        assert_eq!(reflect.number("returned"), 20_000 + answered, "{reflect}");
        for side in [send, reflect] {
            let port = &side.json()["ports"][0];
            assert_eq!(port["rx_packets"], 20_000 + answered, "{side}");
            assert_eq!(port["tx_packets"], 20_000 + answered, "{side}");
            assert_eq!(side.number("pool.leaked"), 0, "{side}");
        }
    }
}

#[test]
fn the_reflector_serves() {
    let Some(lab) = require(&[]) else { return };
    let both = pair(&lab, &["memif:m.sock,server"], &["memif:m.sock"]);
    both.agree();
    // The sender asked for the reflector's default address.
    assert_eq!(both.reflect.number("answered"), 1, "{}", both.reflect);
}

/// A reflector that finds the sender's ring full waits, and takes nothing more.
#[test]
fn a_run_that_only_sends_says_who_takes_nothing() {
    let Some(lab) = require(&[]) else { return };
    let far = lab
        .dropless(&["reflect", "--quiet", "--port", "memif:m.sock,server"])
        .spawn();
    let send = ["send", "--json", "--quiet", "--port", "memif:m.sock", "--tx-only"];
    let near = lab
        .dropless(&[&send[..], &["--rate", "100kpps", "--duration", "300ms"]].concat())
        .run();
    drop(far);
    assert_invalid(&near, "the link or the far side was the limit");
    assert!(has_note(&near.json(), "nobody_receives"), "{near}");
}

#[test]
fn the_sender_serves() {
    let Some(lab) = require(&[]) else { return };
    pair(&lab, &["memif:m.sock"], &["memif:m.sock,server"]).agree();
}

#[test]
fn ipv6_finds_its_neighbour() {
    let Some(lab) = require(&[]) else { return };
    let both = pair(
        &lab,
        &["memif:m.sock,server"],
        &["memif:m.sock", "--to", "2001:2::2"],
    );
    both.agree();
    assert_eq!(both.reflect.number("answered"), 1, "{}", both.reflect);
}

#[test]
fn an_abstract_socket_serves_too() {
    let Some(lab) = require(&[]) else { return };
    let name = format!(
        "memif:@{}",
        lab.directory().file_name().expect("a name").to_string_lossy()
    );
    pair(&lab, &[&format!("{name},server")], &[&name]).agree();
}

#[test]
fn ordinary_pages_will_do() {
    let Some(lab) = require(&[]) else { return };
    pair(
        &lab,
        &["memif:m.sock,server", "--no-huge"],
        &["memif:m.sock", "--no-huge"],
    )
    .agree();
}

/// A far side that stands still fills the ring, and our sender has nothing to do meanwhile: it is not the one to blame.
#[test]
fn a_port_that_takes_no_more_is_not_our_sender() {
    let Some(lab) = require(&[]) else { return };
    let near = held_up(&lab, "--duration 60s", Duration::from_millis(700));
    assert_eq!(near.code, Some(2), "{near}");
    assert_eq!(near.json()["reasons"][0]["code"], "port_full", "{near}");
}

/// That all of a count left in the end does not make up for it.
#[test]
fn a_count_that_left_late_because_the_port_took_no_more_was_not_sent_in_time() {
    let Some(lab) = require(&[]) else { return };
    let load = "--count 10000 --backlog 100000";
    let near = held_up(&lab, load, Duration::from_millis(400));
    assert_eq!(near.code, Some(2), "{near}");
    assert_eq!(near.json()["reasons"][0]["code"], "port_full", "{near}");
    assert_eq!(near.json()["sent"], 10_000, "{near}");
}

/// A sender at 20 kpps whose far side stands still for so long; a run by time is ended after that.
fn held_up(lab: &Lab, load: &str, lasts: Duration) -> Finished {
    let quiet = ["--json", "--quiet", "--port"];
    let far = lab
        .dropless(&[&["reflect"], &quiet[..], &["memif:m.sock,server"]].concat())
        .spawn();
    let by_time = load.contains("--duration");
    let load = format!("memif:m.sock --rate 20kpps --interval 50ms --drain 200ms {load}");
    let load: Vec<&str> = load.split(' ').collect();
    let near = lab.dropless(&[&["send"], &quiet[..], &load[..]].concat()).spawn();
    let has_sent = |run: PathBuf| {
        std::fs::read_to_string(run.join("intervals.csv")).is_ok_and(|rows| rows.lines().count() > 3)
    };
    assert!(until(LIMIT, || runs(lab).any(has_sent)), "nothing was sent");
    far.signal(Signal::SIGSTOP);
    std::thread::sleep(lasts);
    far.signal(Signal::SIGCONT);
    if by_time {
        near.signal(Signal::SIGINT);
    }
    let near = near.wait(LIMIT);
    far.signal(Signal::SIGINT);
    far.wait(LIMIT);
    near
}

/// What fell due while the far side stood still was not cut off by the end: the port did not take it.
#[test]
fn a_port_that_takes_no_more_holds_what_a_replay_owes() {
    let Some(lab) = require(&[]) else { return };
    let file = PLAIN.write(&lab, "loop.pcap", &frames(1000, 100_000));
    let quiet = ["--json", "--quiet", "--port"];
    let far = lab
        .dropless(&[&["capture"], &quiet[..], &["memif:m.sock,server"]].concat())
        .spawn();
    let near = [
        "replay",
        &file,
        "--rate=50kpps",
        "--loop=forever",
        "--json",
        "--port=memif:m.sock",
    ];
    let near = lab.dropless(&near).spawn();
    let has_begun = || near.stderr().contains("replaying:");
    assert!(until(LIMIT, has_begun), "{}", near.stderr());
    far.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(700));
    near.signal(Signal::SIGINT);
    let near = near.wait(LIMIT);
    far.signal(Signal::SIGCONT);
    far.signal(Signal::SIGINT);
    far.wait(LIMIT);
    assert_balanced(&near);
    assert_eq!(near.code, Some(2), "{near}");
    assert_eq!(near.json()["reasons"][0]["code"], "port_full", "{near}");
    // Far more than a burst, and than the ring: half of what fell due in that time.
    assert!(charged(&near.json()["ledger"], "held") > 17_500, "{near}");
}

/// It is waited for without end, and not in silence.
#[test]
fn a_port_that_takes_no_more_is_told_while_it_does() {
    let Some(lab) = require(&[]) else { return };
    let file = PLAIN.write(&lab, "loop.pcap", &frames(1000, 100_000));
    // Another port goes on.
    let send = [
        "send", "--port", "ring", "--count", "10000000", "--drain", "100ms",
    ];
    let replay = ["replay", &file, "--loop", "forever"];
    for (near, begun) in [(&send[..], "sending: tx"), (&replay, "replaying:")] {
        let far = ["reflect", "--json", "--quiet", "--port", "memif:m.sock,server"];
        let far = lab.dropless(&far).spawn();
        let more = [
            "--json",
            "--no-doctor",
            "--rate",
            "50kpps",
            "--port",
            "memif:m.sock",
        ];
        let mut near = lab.dropless(&[near, &more].concat()).spawn();
        near.wait_for(begun, LIMIT);
        far.signal(Signal::SIGSTOP);
        near.wait_for("port takes nothing for ", LIMIT);
        // Once the far side takes again, three seconds' packets are gone in a tenth of one.
        let run = interrupted(near);
        far.signal(Signal::SIGCONT);
        assert_eq!(run.code, Some(2), "{run}");
        interrupted(far);
    }
}

/// Whoever stops the sender itself is no slow core of it, also where such a stall is too short to be told.
#[test]
fn a_sender_that_was_stopped_is_not_called_slow() {
    let Some(lab) = require(&[]) else { return };
    let load = "--json --rate 100kpps --duration 60s --interval 50ms --drain 200ms --pause 1h";
    let arguments: Vec<&str> = ["send"].into_iter().chain(load.split(' ')).collect();
    let near = lab.dropless(&arguments).spawn();
    let has_sent = |run: PathBuf| {
        std::fs::read_to_string(run.join("intervals.csv")).is_ok_and(|rows| rows.lines().count() > 3)
    };
    assert!(until(LIMIT, || runs(&lab).any(has_sent)), "nothing was sent");
    near.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(500));
    near.signal(Signal::SIGCONT);
    near.signal(Signal::SIGINT);
    let near = near.wait(LIMIT);
    assert_eq!(near.code, Some(2), "{near}");
    assert_eq!(near.json()["reasons"][0]["code"], "sender_stalled", "{near}");
    assert_eq!(near.number("workers.0.stalls"), 0, "{near}");
    let run = runs(&lab).next().expect("a run directory");
    let rows = std::fs::read_to_string(run.join("stalls.csv")).expect("rows");
    assert_eq!(rows.lines().count(), 1, "{rows}");
}

#[test]
fn zero_copy_counts_every_buffer() {
    let Some(lab) = require(&[Need::Hugepages]) else {
        return;
    };
    let quiet = ["--json", "--quiet", "--port"];
    let far = lab
        .dropless(&[&["reflect"], &quiet[..], &["memif:m.sock,server"]].concat())
        .spawn();
    // A zero-copy client calls once only: the reflector must run, which its first file of rows shows.
    assert!(
        until(LIMIT, || runs(&lab).any(|run| run.join("intervals.csv").exists())),
        "{far:?}"
    );
    let near = lab
        .dropless(&[&["send"], &quiet[..], &["memif:m.sock,zero-copy"], &LOAD].concat())
        .run();
    far.signal(Signal::SIGINT);
    let both = Pair {
        send: near,
        reflect: far.wait(LIMIT),
    };
    both.agree();
    // The driver leaves what it had posted for the server in its rings: that is told, and no leak.
    assert!(has_note(&both.send.json(), "buffers_in_memif"), "{}", both.send);
}

#[test]
fn zero_copy_needs_hugepages_and_says_so() {
    let Some(lab) = require(&[]) else { return };
    let run = lab
        .dropless(&["send", "--port", "memif:m.sock,zero-copy", "--no-huge"])
        .run();
    assert_eq!(run.code, Some(2), "{run}");
    assert!(
        run.stderr
            .contains("which needs hugepages; leave --no-huge out, or zero-copy"),
        "{run}"
    );
    assert_eq!(run.stderr.trim().lines().count(), 1, "{run}");
}

#[test]
fn a_reflector_to_whom_nobody_comes_says_so_and_waits_on() {
    for (port, other) in [
        ("memif:m.sock,server", "memif:m.sock"),
        ("memif:m.sock", "memif:m.sock,server"),
    ] {
        let Some(lab) = require(&[]) else { return };
        let arguments = ["reflect", "--no-huge", "--wait", "200ms", "--port", port];
        let mut far = lab.dropless(&arguments).spawn();
        far.wait_for(&format!("dropless send --port {other}\n"), LIMIT);
        assert!(far.is_alive(), "{far:?}");
        far.signal(Signal::SIGINT);
        let far = far.wait(LIMIT);
        assert_eq!((far.code, far.signal), (Some(2), None), "{far}");
    }
}

/// The far side injects; `send` must find exactly what the injector says it did.
fn found(fault: &str) -> Option<Pair> {
    let lab = require(&[])?;
    let reflect = ["memif:m.sock,server", "--fault", fault, "--seed", "7"];
    let both = pair(&lab, &reflect, &["memif:m.sock"]);
    assert_eq!(both.reflect.code, Some(0), "{}", both.reflect);
    assert_eq!(both.reflect.number("faults.seen"), 20_000, "{}", both.reflect);
    assert_eq!(both.send.number("sent"), 20_000, "{}", both.send);
    assert_eq!(
        both.send.number("pool.leaked") + both.reflect.number("pool.leaked"),
        0
    );
    Some(both)
}

/// The count of a fault in the reflector's result, which must have happened.
fn injected(both: &Pair, name: &str) -> u64 {
    let count = both.reflect.number(&format!("faults.{name}"));
    assert!(count > 0, "no {name} was injected: {}", both.reflect);
    count
}

#[test]
fn every_dropped_packet_is_found_lost() {
    let Some(both) = found("drop=1%") else { return };
    let drop = injected(&both, "drop");
    assert_eq!(both.send.number("lost"), drop, "{}", both.send);
    assert_eq!(both.send.number("received"), 20_000 - drop, "{}", both.send);
    assert_eq!(both.send.code, Some(1), "{}", both.send);
}

#[test]
fn every_duplicate_is_found() {
    let Some(both) = found("duplicate=1%") else { return };
    assert_eq!(
        both.send.number("duplicate"),
        injected(&both, "duplicate"),
        "{}",
        both.send
    );
    assert_eq!(both.send.number("received"), 20_000, "{}", both.send);
}

#[test]
fn every_overtaken_packet_is_found() {
    let Some(both) = found("reorder=1%") else { return };
    assert_eq!(
        both.send.number("reordered"),
        injected(&both, "reorder"),
        "{}",
        both.send
    );
    assert_eq!(both.send.number("received"), 20_000, "{}", both.send);
}

#[test]
fn every_corrupted_packet_is_found() {
    let Some(both) = found("corrupt=1%") else { return };
    let corrupt = injected(&both, "corrupt");
    assert_eq!(both.send.number("corrupt"), corrupt, "{}", both.send);
    assert_eq!(both.send.number("received"), 20_000 - corrupt, "{}", both.send);
    assert_eq!(
        both.send.number("ledger.lost_at.corrupt"),
        corrupt,
        "{}",
        both.send
    );
}

#[test]
fn all_faults_together_are_told_apart() {
    let Some(both) = found("drop=0.5%,duplicate=0.5%,reorder=0.5%,corrupt=0.5%") else {
        return;
    };
    let (drop, corrupt) = (injected(&both, "drop"), injected(&both, "corrupt"));
    assert_eq!(both.send.number("lost"), drop + corrupt, "{}", both.send);
    assert_eq!(both.send.number("corrupt"), corrupt, "{}", both.send);
    assert_eq!(
        both.send.number("duplicate"),
        injected(&both, "duplicate"),
        "{}",
        both.send
    );
    assert_eq!(
        both.send.number("reordered"),
        injected(&both, "reorder"),
        "{}",
        both.send
    );
}

/// A reflector that finds no place in our ring waits, takes nothing more, and gives packets up in the end: all of that
/// because our receiver stood still.
#[test]
fn what_a_far_side_gave_up_while_our_receiver_stood_still_is_ours() {
    let needs = [
        Need::Root,
        Need::Processors(2),
        Need::Tool("chrt"),
        Need::Tool("taskset"),
    ];
    let Some(lab) = require(&needs) else { return };
    let quiet = [
        "reflect",
        "--quiet",
        "--cores",
        "0",
        "--port",
        "memif:m.sock,server",
    ];
    let far = lab.dropless(&quiet).spawn();
    let load = [
        "--rate",
        "20kpps",
        "--duration",
        "2s",
        "--drain",
        "1s",
        "--cores",
        "0,1",
    ];
    let mut near = lab
        .dropless(&[&["send", "--json", "--port", "memif:m.sock"], &load[..]].concat())
        .spawn();
    near.wait_for("sending", LIMIT);
    let mut thief = Command::new("timeout");
    thief.args(["0.6", "chrt", "-f", "1", "taskset", "-c", "1", "yes"]);
    thief.stdout(Stdio::null()).status().expect("timeout is there");
    let run = near.wait(LIMIT);
    far.signal(Signal::SIGINT);
    far.wait(LIMIT);
    assert_eq!(
        run.json()["workers"][1]["roles"],
        serde_json::json!(["receive"]),
        "{run}"
    );
    assert!(run.number("ledger.lost_at.reflector_tx_full") > 0, "{run}");
    let reasons = run.json()["reasons"].to_string();
    assert!(reasons.contains("given_up_by_stall"), "{run}");
    assert!(!reasons.contains("port_full"), "{run}");
    assert_eq!(run.code, Some(2), "{run}");
}
