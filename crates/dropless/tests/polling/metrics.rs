//! `--metrics`: scraped by Debian's Prometheus, checked by promtool, and equal to the ledger.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crate::support::pcap_file::{PLAIN, frames};
use crate::support::prometheus::{prometheus, query};
use crate::support::served::{begun_lossy, ended, get, lossy, result, samples, scraped, serve};
use crate::support::{Lab, Need, require, until};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(30);

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What promtool says of a page; nothing, where it is as it should be.
fn promtool(lab: &Lab, text: &str) -> String {
    std::fs::write(lab.path("metrics.txt"), text).expect("writing");
    let check = lab.shell("promtool check metrics < metrics.txt").wait(LIMIT);
    let said = check.stdout + &check.stderr;
    assert_eq!(check.code == Some(0), said.is_empty(), "{said}");
    said
}

const MACHINE: [&str; 2] = ["--no-huge", "--no-doctor"];

/// Of every command, while it goes.
#[test]
fn promtool_finds_nothing_to_say() {
    let Some(lab) = require(&[Need::Tool("promtool")]) else {
        return;
    };
    let reflect = ["reflect", "--port", "null"];
    let search = [
        "search",
        "--max-rate",
        "5kpps",
        "--min-rate",
        "1kpps",
        "--backlog=1000000",
        "--no-huge",
    ];
    let send = ["send", "--port", "ring", "--rate", "5kpps", "--duration", "60s"];
    for (command, moves) in [
        (&[&reflect[..], &MACHINE].concat()[..], true),
        (&search[..], true),
        (&[&send[..], &MACHINE].concat()[..], true),
        (
            &[
                "compare",
                "--methods",
                "memif",
                "--rates",
                "2kpps",
                "--duration",
                "1s",
            ],
            true,
        ),
        (&["noise", "--no-trace", "--duration", "60s"], false),
    ] {
        let (running, address) = serve(&lab, command);
        let told = until(LIMIT, || {
            let text = page(address);
            assert_eq!(promtool(&lab, &text), "", "{command:?}: {text}");
            let moved = samples(&text).get("dropless_sent_packets_total") > Some(&0.0);
            if moves {
                moved && text.contains("dropless_worker_polls_total")
            } else {
                text.contains("phase=\"watching\"")
            }
        });
        assert!(told, "{running:?}");
    }
    let (running, address) = lossy(&lab);
    let text = page(address);
    assert_eq!(promtool(&lab, &text), "", "{text}");
    // And it would have something to say.
    let wrong = text.replace("dropless_sent_packets_total", "dropless_sentPackets");
    assert_ne!(promtool(&lab, &wrong), "");
    drop(running);
}

fn page(address: SocketAddr) -> String {
    get(address, "/metrics").expect("an answer").1
}

/// Also of what has no intervals of its own: its last values are those of the ledger.
#[test]
fn a_replay_that_lingers_tells_what_its_ledger_says() {
    let Some(lab) = require(&[]) else { return };
    let mut packets = frames(60, 10_000);
    for packet in &mut packets[3..6] {
        packet.bytes.resize(1600, 7);
        packet.original_len = 1600;
    }
    let file = PLAIN.write(&lab, "long.pcap", &packets);
    let replay = ["replay", &file, "--port", "null", "--metrics-linger", "10min"];
    let (running, address) = serve(&lab, &[&replay[..], &MACHINE].concat());
    let ended = || scraped(address).contains_key("dropless_run_phase{phase=\"ended\"}");
    assert!(until(LIMIT, ended), "{running:?}");
    let told = scraped(address);
    // A signal could come between the end and the lingering, which would go on then.
    drop(running);
    let mut runs = std::fs::read_dir(lab.path("runs")).expect("runs").flatten();
    let file = runs.next().expect("a run").path().join("summary.json");
    let summary = std::fs::read_to_string(file).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let places = summary["ledger"]["places"].as_array().expect("places");
    let charged: Vec<(String, f64)> = places
        .iter()
        .map(|charge| {
            let place = charge["place"].as_str().expect("a place");
            let name = format!("dropless_place_packets_total{{place=\"{place}\"}}");
            (name, number(&charge["charged"]))
        })
        .collect();
    assert_eq!(charged.len(), 1, "{summary}");
    for (name, count) in &charged {
        assert_eq!(told.get(name), Some(count), "{name}: {summary}");
    }
    assert_eq!(told.get("dropless_lost_packets_total"), Some(&3.0), "{summary}");
    assert_eq!(told.get("dropless_sent_packets_total"), Some(&57.0), "{summary}");
}

/// What the families of a sender say at its end, and where its result says the same.
const SAID: [(&str, &str); 21] = [
    ("intended_packets_total", "/ledger/intended"),
    ("sent_packets_total", "/ledger/accepted"),
    ("received_packets_total", "/ledger/received"),
    ("lost_packets_total", "/lost"),
    ("unsent_packets_total", "/ledger/unsent"),
    ("duplicate_packets_total", "/duplicate"),
    ("reordered_packets_total", "/reordered"),
    ("corrupt_packets_total", "/corrupt"),
    ("late_packets_total", "/late"),
    (
        "place_packets_total{place=\"fault_drop\"}",
        "/ledger/lost_at/fault_drop",
    ),
    ("queue_packets_total{direction=\"tx\"}", "/ledger/accepted"),
    ("queue_packets_total{direction=\"rx\"}", "/ledger/arrived/frames"),
    ("port_sent_packets_total", "/ports/0/tx_packets"),
    ("port_received_packets_total", "/ports/0/rx_packets"),
    ("port_missed_packets_total", "/ports/0/rx_missed"),
    ("port_no_buffer_packets_total", "/ports/0/rx_nombuf"),
    ("port_receive_errors_total", "/ports/0/rx_errors"),
    ("port_transmit_errors_total", "/ports/0/tx_errors"),
    ("pool_buffers", "/pool/size"),
    ("worker_polls_total", "/workers/0/polls"),
    ("run_elapsed_seconds", "/duration_s"),
];
/// A probe of the smallest size, without FCS.
const PROBE: f64 = 60.0;

/// That every family is what the result of the run says. `value` has asked for them before its end.
fn assert_said(value: &impl Fn(&str) -> f64, ended: impl FnOnce() -> Value) -> Value {
    let told = SAID.map(|(family, _)| value(&format!("dropless_{family}")));
    let bytes = ["sent", "received"].map(|way| value(&format!("dropless_{way}_bytes_total")));
    let busy = value("dropless_worker_busy_polls_total");
    let gap_s = value("dropless_worker_poll_gap_max_seconds");
    let (up, free) = (value("dropless_port_up"), value("dropless_pool_free_buffers"));
    let summary = ended();
    let of = |path: &str| number(summary.pointer(path).unwrap_or(&Value::Null));
    for ((family, path), told) in SAID.iter().zip(told) {
        let found = of(path);
        assert!(
            (told - found).abs() < 1e-9 * found.max(1.0),
            "{family} is {told}: {summary}"
        );
    }
    let frames = ["/ledger/accepted", "/ledger/arrived/frames"].map(of);
    for (bytes, frames) in bytes.into_iter().zip(frames) {
        assert!((bytes - frames * PROBE).abs() < 0.5, "{bytes} bytes: {summary}");
    }
    let polls = of("/workers/0/busy_share") * of("/workers/0/polls");
    assert!(
        busy > 0.0 && (busy - polls).abs() < 0.5,
        "{busy} {polls}: {summary}"
    );
    let longest_ns = of("/workers/0/poll_gap_ns_max");
    assert!((gap_s * 1e9 - longest_ns).abs() < 1.0, "{gap_s}: {summary}");
    assert!(
        up > 0.5 && (0.0..=of("/pool/size")).contains(&free),
        "{up} {free}"
    );
    summary
}

#[test]
fn prometheus_scrapes_what_the_ledger_says() {
    let Some(lab) = require(&[Need::Tool("prometheus")]) else {
        return;
    };
    // It begins to scrape some seconds after its start: meanwhile the run ends.
    let (running, address) = begun_lossy(&lab);
    let (server, own) = prometheus(&lab, address);
    let ended = "dropless_run_phase{phase=\"ended\"}";
    let up = || query(own, "up") == Some(1.0) && query(own, ended) == Some(1.0);
    assert!(until(LIMIT, up), "{server:?}");
    let value = |name: &str| query(own, name).unwrap_or_else(|| panic!("no {name}"));
    let measured = value("dropless_latency_seconds_count");
    let summary = assert_said(&value, || result(running));
    server.kill();
    for fault in ["duplicate", "reordered", "corrupt", "late"] {
        assert!(number(&summary[fault]) > 0.0, "no {fault}: {summary}");
    }
    let ledger = &summary["ledger"];
    assert!(number(&ledger["lost_at"]["fault_drop"]) > 0.0, "{summary}");
    let [sent, received] = ["accepted", "received"].map(|name| number(&ledger[name]));
    let lost = number(&summary["lost"]);
    assert!(
        (measured - received).abs() < 0.5,
        "{measured} latencies of {received} packets"
    );
    assert!(
        (sent - received - lost).abs() < 0.5,
        "{sent} = {received} + {lost}"
    );
}

/// More is asked for than any sender sends.
#[test]
fn what_was_never_sent_is_in_the_metrics() {
    let Some(lab) = require(&[]) else { return };
    let load = ["--rate", "500Mpps", "--duration", "200ms", "--fault", "drop=1%"];
    let (running, address) = ended(&lab, &load);
    let told = scraped(address);
    // A family of one sample, or the one that was asked for; their labels are Prometheus's to choose from.
    let value = |name: &str| {
        let (family, label) = name.split_once('{').unwrap_or((name, ""));
        let mut samples = told.iter().filter(|(sample, _)| {
            sample.split('{').next() == Some(family) && sample.contains(label.trim_end_matches('}'))
        });
        *samples.next().unwrap_or_else(|| panic!("no {name}: {told:?}")).1
    };
    let summary = assert_said(&value, || result(running));
    assert!(number(&summary["ledger"]["unsent"]) > 0.0, "{summary}");
}

#[test]
fn an_address_that_cannot_be_is_one_line_before_anything_starts() {
    let Some(lab) = require(&[]) else { return };
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken
        .local_addr()
        .map(|address| (taken, address.to_string()))
        .expect("its address");
    for (address, word) in [
        (&*taken.1, "is in use"),
        ("nowhere", "not an address"),
        ("192.0.2.1:9464", "does not have"),
    ] {
        for command in [
            &["send"][..],
            &["reflect", "--port", "null"],
            &["noise"],
            &["search"],
        ] {
            let refused = lab.dropless(command).arg("--metrics").arg(address).run();
            assert_eq!((refused.code, &*refused.stdout), (Some(2), ""), "{refused}");
            assert_eq!(refused.stderr.lines().count(), 1, "{refused}");
            assert!(refused.stderr.contains(word), "{refused}");
            assert!(!lab.path("runs").exists(), "nothing has started");
        }
    }
}
