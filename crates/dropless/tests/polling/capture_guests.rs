//! Consumers of `dropless capture` in other processes that are wrong, stand still, or are another user's; and a capture that dies.

use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use capture::ring::layout::VERSION;
use capture::ring::layout::consumer::{FIRST, LOST, RELEASED, TAKEN};
use capture::ring::share::JOIN;
use capture::ring::socket;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::attach::rings;
use crate::capture::{assert_balanced, path};
use crate::support::wire::{has_note, interrupted, note};
use crate::support::{Finished, Lab, Need, Running, require, until};

const LIMIT: Duration = Duration::from_secs(60);

/// A capture of the embedded generator whose ring is at `door`.
fn capture(lab: &Lab, door: &str) -> Running {
    let small = [
        "capture",
        "--json",
        "--no-huge",
        "--no-doctor",
        "--ring-size",
        "2MiB",
    ];
    let mut running = lab.dropless(&[&small[..], &["--ring", door]].concat()).spawn();
    running.wait_for("capturing from", LIMIT);
    running
}

/// What the capture says of the consumer of this name.
fn consumer(run: &Finished, name: &str) -> Value {
    let json = run.json();
    let consumers = json["consumers"].as_array().expect("consumers");
    let mut named = consumers
        .iter()
        .filter(|it| it["name"].to_string().contains(name));
    named.next().unwrap_or_else(|| panic!("no {name}: {run}")).clone()
}

/// Joins the ring by hand, and hands over its own page: whoever has that may write anything into it.
fn join(door: &str, name: &str) -> (UnixStream, File) {
    let mut stream = UnixStream::connect(door).expect("the door");
    let mut message = socket::message(JOIN, &[VERSION, 1]);
    message.extend(name.as_bytes());
    message.resize(16 + 64, 0);
    stream.write_all(&message).expect("asking for a seat");
    let files = socket::receive(&stream, &mut [0; 16], || true).expect("a seat");
    let page = files.into_iter().nth(1).expect("a page");
    (stream, File::from(page))
}

/// Of a thousand that came and went a capture of a year tells as of those of an hour.
#[test]
fn those_that_left_long_ago_are_told_as_a_sum() {
    let Some(lab) = require(&[]) else { return };
    let door = path(&lab, "often.ring");
    let running = capture(&lab, &door);
    // Several at once, since each waits for control's next look.
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| (0..50).for_each(|_| drop(join(&door, "brief"))));
        }
    });
    let run = interrupted(running);
    assert_balanced(&run);
    let json = run.json();
    assert_eq!(json["verdict"], "valid", "{run}");
    let rows = json["consumers"].as_array().expect("consumers").len();
    // The sum, and beside the newest those of whom the producer does not know yet that they left.
    assert!((257..290).contains(&rows), "{rows} rows: {run}");
    let sum = consumer(&run, "that left earlier");
    let of = |what: &str| sum[what].as_u64().expect("a number");
    assert!(of("offered") > 0 && of("taken") == 0, "{sum}");
    assert_eq!(of("offered"), of("left"), "{sum}");
}

/// Nonsense of one consumer is told as that, and makes nothing else doubtful.
#[test]
fn a_consumer_that_writes_nonsense_is_not_believed_and_the_capture_is() {
    let Some(lab) = require(&[]) else { return };
    let door = path(&lab, "wrong.ring");
    let running = capture(&lab, &door);
    let (stream, page) = join(&door, "wrong");
    for at in [TAKEN, LOST, FIRST, RELEASED] {
        page.write_all_at(&1_000_000_000_u64.to_ne_bytes(), at as u64)
            .expect("its own page");
    }
    // The ring goes round while it is there.
    let reader = lab.dropless(&["read", &door, "--count", "30000", "--connections"]);
    let reader = reader.run();
    assert!(reader.code.is_some_and(|code| code < 2), "{reader}");
    let run = interrupted(running);
    drop(stream);
    assert_balanced(&run);
    let json = run.json();
    assert_eq!(json["verdict"], "valid", "{run}");
    let wrong = consumer(&run, "wrong");
    assert_eq!(wrong["implausible"], true, "{run}");
    assert!(run.stderr.contains(", not believed)"), "{run}");
    assert_eq!((&wrong["taken"], &wrong["lost"]), (&0.into(), &0.into()), "{run}");
    assert_eq!(consumer(&run, "dropless read").get("implausible"), None, "{run}");
    let text = note(&json, "consumer_implausible").expect("a note");
    assert!(
        text.contains(&format!("wrong ({})", std::process::id())),
        "{text}"
    );
}

/// What was overwritten before a reader that stands still is lost to it, though it does not know yet; and once it goes on it
/// says the same.
#[test]
fn a_reader_that_stands_still_has_lost_what_was_overwritten() {
    let Some(lab) = require(&[]) else { return };
    let door = path(&lab, "still.ring");
    let running = capture(&lab, &door);
    let still = lab.dropless(&["read", &door, "--connections", "--json"]).spawn();
    let process = format!("({})", still.id());
    assert!(until(LIMIT, || rings(still.id()) > 0));
    still.signal(Signal::SIGSTOP);
    let beside = ["read", &door, "--lossless", "--connections", "--count", "30000"];
    let beside = lab.dropless(&beside).run();
    assert_eq!(beside.code, Some(0), "{beside}");
    let run = interrupted(running);
    still.signal(Signal::SIGCONT);
    let still = still.wait(LIMIT);
    assert_balanced(&run);
    assert_eq!(run.code, Some(1), "{run}");
    let told = consumer(&run, &process);
    let lost = told["lost"].as_u64().expect("a count");
    assert!(lost > 0, "{run}");
    assert!(has_note(&run.json(), "consumer_overtaken"), "{run}");
    assert_eq!(still.code, Some(1), "{still}");
    assert!(
        still
            .stderr
            .replace(',', "")
            .contains(&format!(" {lost} overwritten before")),
        "{lost}: {still}"
    );
}

/// A capture that was killed has said nothing of its end: its readers do.
#[test]
fn a_capture_that_is_killed_is_told_of_by_its_readers() {
    let Some(lab) = require(&[]) else { return };
    let door = path(&lab, "killed.ring");
    let running = capture(&lab, &door);
    let text = lab.dropless(&["read", &door, "--connections"]).spawn();
    let json = lab.dropless(&["read", &door, "--connections", "--json"]).spawn();
    assert!(until(LIMIT, || rings(text.id()) > 0 && rings(json.id()) > 0));
    running.kill();
    let (text, json) = (text.wait(LIMIT), json.wait(LIMIT));
    assert!(text.stderr.contains("died without an end"), "{text}");
    assert!(!text.stdout.contains("capture_died"), "{text}");
    let events: Vec<Value> = json
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .filter(|line: &Value| line["kind"] == "capture_died")
        .collect();
    assert_eq!(events.len(), 1, "{json}");
    assert!(events[0]["ring"].to_string().contains("killed.ring"), "{json}");
    // One that ends in order is none.
    let door = path(&lab, "ended.ring");
    let running = capture(&lab, &door);
    let json = lab.dropless(&["read", &door, "--connections", "--json"]).spawn();
    assert!(until(LIMIT, || rings(json.id()) > 0));
    interrupted(running);
    let json = json.wait(LIMIT);
    assert!(
        !json.stdout.contains("capture_died") && !json.stderr.contains("died"),
        "{json}"
    );
}

/// What another user may not do is said with what to do about it.
#[test]
fn another_users_ring_and_place_are_told_of() {
    let Some(lab) = require(&[Need::Root]) else {
        return;
    };
    let open = Permissions::from_mode(0o755);
    std::fs::set_permissions(lab.path("."), open).expect("a directory for all");
    let door = path(&lab, "roots.ring");
    let running = capture(&lab, &door);
    let as_nobody = |arguments: &[&str]| {
        let output = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(env!("CARGO_BIN_EXE_dropless"))
            .args(arguments)
            .output()
            .expect("setpriv");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, said) = as_nobody(&["read", &door]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("is another user's") && said.contains("--ring-group"),
        "{said}"
    );
    let (code, said) = as_nobody(&["capture", "--ring", "ours"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--ring ./ours.ring"), "{said}");
    interrupted(running);
}
