//! A virtual wire between two namespaces: dropless at the near end, a kernel or another dropless at the far end.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{Dropless, Finished, Lab, Namespace, Running};

/// The far end's addresses: those that `send` aims at unless told otherwise.
pub const FAR_V4: &str = "198.18.0.2";
pub const FAR_V6: &str = "2001:2::2";
/// Where programs listen for their readiness.
const STARTING: Duration = Duration::from_secs(30);

/// Two namespaces and the wire between them: `near0` has no address, `far0` is the kernel's.
pub struct Wire {
    pub near: Namespace,
    pub far: Namespace,
}

impl Wire {
    /// A wire of one queue whose far end is a kernel with addresses, and with checksums that the kernel writes itself.
    pub fn to_kernel(lab: &Lab) -> Self {
        Self::to_kernel_over(lab, 1)
    }

    /// The same with several queues.
    pub fn to_kernel_over(lab: &Lab, queues: u32) -> Self {
        let wire = Self::bare(lab, queues);
        wire.far.without_offload("far0");
        wire.far.up("far0", &["198.18.0.2/24", "2001:2::2/64"]);
        wire.near.up("near0", &[]);
        wire.far.wait_for_link("far0");
        wire
    }

    /// A wire of several queues whose ends both belong to dropless: neither kernel has anything to say on it.
    pub fn between(lab: &Lab, queues: u32) -> Self {
        let wire = Self::bare(lab, queues);
        wire.far.without_ipv6("far0");
        wire.near.up("near0", &[]);
        wire.far.up("far0", &[]);
        wire.near.wait_for_link("near0");
        wire
    }

    fn bare(lab: &Lab, queues: u32) -> Self {
        let (near, far) = (lab.namespace("near"), lab.namespace("far"));
        near.veth_with_queues("near0", &far, "far0", queues);
        // The near kernel is a bystander; without IPv6 it also says nothing of its own.
        near.without_ipv6("near0");
        Self { near, far }
    }

    /// `dropless send` at the near end, on a port of this kind.
    pub fn send(&self, lab: &Lab, kind: &str, arguments: &[&str]) -> Dropless {
        let port = format!("{kind}:near0");
        lab.dropless(&[&["send", "--json", "--port", &port][..], arguments].concat())
            .within(&self.near)
    }

    /// A running `dropless reflect` at the near end, for kernels to talk to.
    pub fn reflect_near(&self, lab: &Lab, kind: &str, arguments: &[&str]) -> Running {
        reflect(lab, &self.near, &format!("{kind}:near0"), arguments)
    }

    /// A running `dropless reflect` at the far end, for `send`.
    pub fn reflect_far(&self, lab: &Lab, kind: &str, arguments: &[&str]) -> Running {
        reflect(lab, &self.far, &format!("{kind}:far0"), arguments)
    }

    /// A kernel UDP echo server at the far end, on port 7, for probes of the smallest size.
    pub fn echo_server(&self, v6: bool) -> Running {
        echo_server(&self.far, v6)
    }
}

/// socat as a UDP echo server for one flow. A pipe joins datagrams that come together; reads of a probe's size part them.
pub fn echo_server(namespace: &Namespace, v6: bool) -> Running {
    let listen = if v6 {
        "UDP6-LISTEN:7,ipv6only=1"
    } else {
        "UDP4-LISTEN:7"
    };
    let mut server = namespace.spawn("socat", &["-d", "-d", "-b", "18", listen, "PIPE"]);
    server.wait_for("listening on", STARTING);
    server
}

fn reflect(lab: &Lab, namespace: &Namespace, port: &str, arguments: &[&str]) -> Running {
    let mut running = lab
        .dropless(&[&["reflect", "--json", "--port", port][..], arguments].concat())
        .within(namespace)
        .spawn();
    running.wait_for("reflecting on", STARTING);
    running
}

/// Ends it in order and returns what it reported.
pub fn interrupted(running: Running) -> Finished {
    running.signal(Signal::SIGINT);
    running.wait(STARTING)
}

/// The sentence of the note with this code, if the result has one: notes it must have, or the list of none.
pub fn note(result: &Value, code: &str) -> Option<String> {
    let notes = result["notes"].as_array();
    let notes = notes.unwrap_or_else(|| panic!("no list of notes in {result}"));
    let told = notes.iter().find(|note| note["code"] == code)?;
    Some(told["text"].as_str().expect("a sentence").to_owned())
}

/// Whether the result has a note with this code.
pub fn has_note(result: &Value, code: &str) -> bool {
    note(result, code).is_some()
}

/// The numbers of a JSON object by name, such as `lost_at`; summed.
pub fn sum(object: &Value) -> u64 {
    object
        .as_object()
        .expect("an object")
        .values()
        .filter_map(Value::as_u64)
        .sum()
}

/// What the place of this name was charged: a ledger lists those that counted any.
pub fn charged(ledger: &Value, place: &str) -> u64 {
    let places = ledger["places"].as_array().expect("places");
    let found = places.iter().find(|charge| charge["place"] == place);
    found.map_or(0, |charge| charge["charged"].as_u64().expect("a count"))
}

/// What entered has left, or is charged to a place; returns what all of them were charged.
pub fn assert_balance(ledger: &Value, run: &Finished) -> u64 {
    let count = |value: &Value| value.as_u64().expect("a count");
    let places = ledger["places"].as_array().expect("places");
    let charged: u64 = places.iter().map(|charge| count(&charge["charged"])).sum();
    assert_eq!(
        count(&ledger["entered"]),
        count(&ledger["left"]) + charged,
        "{run}"
    );
    assert_eq!(count(&ledger["unexplained"]), 0, "{run}");
    charged
}

/// Packets of one direction's queues, in order.
pub fn packets_by_queue(run: &Value, direction: &str) -> Vec<u64> {
    let queues = run["queues"].as_array().expect("a table of queues");
    queues
        .iter()
        .filter(|queue| queue["direction"] == direction)
        .filter_map(|queue| queue["packets"].as_u64())
        .collect()
}

/// The sender's identities, from the report alone: what was due, what was accepted, what arrived.
pub fn assert_conserved(run: &Finished) {
    let json = run.json();
    let ledger = &json["ledger"];
    let count = |value: &Value| value.as_u64().expect("a count");
    let arrived = &ledger["arrived"];
    assert_eq!(
        count(&ledger["intended"]),
        count(&ledger["accepted"]) + count(&ledger["unsent"]),
        "{run}"
    );
    assert_eq!(
        count(&ledger["accepted"]),
        count(&ledger["received"]) + sum(&ledger["lost_at"]) + count(&ledger["unexplained"]),
        "{run}"
    );
    let parts = ["received", "duplicate", "corrupt", "late", "too_old"].map(|part| count(&arrived[part]));
    assert_eq!(
        count(&arrived["frames"]),
        parts.iter().sum::<u64>() + sum(&arrived["foreign"]),
        "{run}"
    );
    assert_eq!(count(&json["pool"]["leaked"]), 0, "{run}");
}

/// Frames in which the far side told the sender what it had counted, since the run began.
pub fn told(run: &Finished) -> u64 {
    run.json()["ledger"]["arrived"]["foreign"]["account"]
        .as_u64()
        .unwrap_or(0)
}

/// The one line of a refusal: exit code 2, and these words on stderr; on stdout the same for who asked for JSON, or nothing.
pub fn assert_refused(run: &Finished, words: &[&str]) {
    assert_eq!(run.code, Some(2), "{run}");
    if !run.stdout.is_empty() {
        let error = run.json()["error"].as_str().expect("what went wrong").to_owned();
        assert_eq!(run.stderr, format!("dropless: {error}\n"), "{run}");
    }
    assert_eq!(run.stderr.lines().count(), 1, "{run}");
    for word in words {
        assert!(run.stderr.contains(word), "{word:?} is not said: {run}");
    }
}

/// Reasons that say only that somebody had the cores. Some rounds of a soak excuse the first ones only.
pub const NO_TIME: [&str; 7] = [
    "underoffered",
    "sender_stalled",
    "port_full",
    "late_by_stall",
    "receiver_stalled",
    "given_up_by_stall",
    "workers_away",
];

/// The verdict is valid, unless somebody had the cores: that makes a pace none, and no book wrong.
pub fn assert_valid_but_for_time(run: &Finished) {
    let json = run.json();
    let reasons = json["reasons"].as_array().expect("the reasons");
    assert!(
        reasons
            .iter()
            .all(|reason| NO_TIME.contains(&reason["code"].as_str().unwrap_or_default())),
        "{run}"
    );
    assert_eq!(json["verdict"] == "valid", reasons.is_empty(), "{run}");
}

/// `send` runs with further arguments for a time. With a backlog without end each packet that was due is sent at last, and by
/// the schedule any sender kept up with many times what it can. Over an interface with a schedule that may be half as much again as
/// without: the kernel works in between.
pub fn assert_no_rate_of_its_backlog(send: impl Fn(&[&str]) -> Finished) {
    let rate = |run: &Finished, name: &str| run.json()[name].as_f64().expect("a rate");
    let able = |_| rate(&send(&["--rate", "max"]), "rate_tx_pps");
    let most = (0..3).map(able).fold(0.0, f64::max);
    let asked = format!("{}pps", (4.0 * most) as u64);
    let run = send(&["--rate", &asked, "--backlog", "4G"]);
    assert_valid_but_for_time(&run);
    assert_eq!(run.code, Some(2), "{run}");
    assert!(
        rate(&run, "rate_tx_pps") < 0.9 * rate(&run, "rate_asked_pps"),
        "{run}"
    );
}

/// Every packet that was sent is back, and the run is sound.
pub fn assert_all_back(run: &Finished) {
    assert_valid_but_for_time(run);
    assert_eq!(run.number("received"), run.number("sent"), "{run}");
    assert_eq!(run.code == Some(0), run.json()["verdict"] == "valid", "{run}");
}

/// The verdict is invalid, for a reason that has this word in it.
pub fn assert_invalid(run: &Finished, reason: &str) {
    assert_eq!(run.code, Some(2), "{run}");
    let json = run.json();
    assert_eq!(json["verdict"], "invalid", "{run}");
    let reasons = json["reasons"].as_array().expect("a list of reasons");
    let said = reasons
        .iter()
        .filter_map(|found| found["text"].as_str())
        .any(|text| text.contains(reason));
    assert!(said, "no reason with {reason:?}: {run}");
}

/// One column of the run's `intervals.csv`.
pub fn column(lab: &Lab, run: &Finished, name: &str) -> Vec<String> {
    let directory = run.json()["run"]
        .as_str()
        .map(PathBuf::from)
        .expect("the run directory");
    let file = lab.directory().join(directory).join("intervals.csv");
    let text = std::fs::read_to_string(file).expect("intervals.csv");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let at = header
        .iter()
        .position(|column| *column == name)
        .expect("a column of this name");
    lines
        .map(|line| line.split(',').nth(at).expect("a cell").to_owned())
        .collect()
}

/// The sum of one of counts.
pub fn column_sum(lab: &Lab, run: &Finished, name: &str) -> u64 {
    let counts = column(lab, run, name).into_iter();
    counts.map(|count| count.parse::<u64>().expect("a count")).sum()
}
