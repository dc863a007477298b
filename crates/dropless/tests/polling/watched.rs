//! A run that is watched from all sides is the run that it is alone: its books balance, to the packet.

use std::time::Duration;

use crate::support::served::{get, samples, serve};
use crate::support::terminal::{LIVE_VARIABLE, Terminal};
use crate::support::{Lab, require};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);
const COUNT: u64 = 10_000;

/// A run whose losses are by plan, and the same ones each time.
const SEND: [&str; 15] = [
    "send",
    "--port",
    "ring",
    "--no-huge",
    "--no-doctor",
    "--rate",
    "5kpps",
    "--count",
    "10000",
    "--drain",
    "500ms",
    "--fault",
    "drop=1%",
    "--seed",
    "7",
];

/// The run's result, and how often it was looked at by `top`, by who asks for its metrics, and by who asks for its health:
/// each as often as it can.
fn watched(lab: &Lab) -> (Value, [u32; 3]) {
    let (mut running, address) = serve(lab, &SEND);
    let process = running.id().to_string();
    let terminal = Terminal::top(lab, &process, 40, 130);
    let mut looks = [0; 3];
    while running.is_alive() {
        let once = lab.dropless(&["top", "--json", &process]);
        let once = once
            .env(LIVE_VARIABLE, lab.path("live").to_str().expect("a path"))
            .run();
        if once.code == Some(0) {
            looks[0] += 1;
            let (sent, received) = (once.number("total.sent"), once.number("total.received"));
            assert!(sent >= received && sent <= COUNT, "{once}");
        }
        // It may end between two looks.
        if let Some((status, page)) = get(address, "/metrics") {
            looks[1] += 1;
            let samples = samples(&page);
            let count = |name: &str| samples.get(&format!("dropless_{name}_packets_total"));
            assert!(
                status == 200 && count("received") <= count("sent"),
                "{status} {samples:?}"
            );
        }
        if let Some((status, page)) = get(address, "/healthz") {
            looks[2] += 1;
            let health: Value = serde_json::from_str(&page).expect("JSON");
            assert_eq!(health["healthy"] == true, status == 200, "{status} {page}");
        }
    }
    drop(terminal);
    (running.wait(LIMIT).json(), looks)
}

fn count(summary: &Value, path: &str) -> u64 {
    let value = path.split('.').fold(summary, |value, name| &value[name]);
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no count {path}: {summary}"))
}

#[test]
fn watching_changes_no_count() {
    let Some(lab) = require(&[]) else { return };
    let alone = lab.dropless(&SEND).arg("--json").arg("--quiet").run().json();
    let (watched, looks) = watched(&lab);
    assert!(looks.iter().all(|looks| *looks > 0), "{looks:?}");
    for summary in [&alone, &watched] {
        let accepted = count(summary, "ledger.accepted");
        let lost: u64 = summary["ledger"]["lost_at"]
            .as_object()
            .expect("places")
            .values()
            .filter_map(Value::as_u64)
            .sum();
        assert_eq!(count(summary, "unexplained"), 0, "{summary}");
        assert_eq!(count(summary, "ledger.intended"), COUNT, "{summary}");
        assert_eq!(accepted + count(summary, "ledger.unsent"), COUNT, "{summary}");
        assert_eq!(accepted, count(summary, "ledger.received") + lost, "{summary}");
        assert_eq!(count(summary, "pool.leaked"), 0, "{summary}");
        assert!(count(summary, "ledger.lost_at.fault_drop") > 0, "{summary}");
    }
    // The fault injector draws by seed: of as many packets it drops as many, whoever looks.
    if count(&alone, "ledger.accepted") == COUNT && count(&watched, "ledger.accepted") == COUNT {
        assert_eq!(
            count(&alone, "ledger.lost_at.fault_drop"),
            count(&watched, "ledger.lost_at.fault_drop")
        );
    }
}
