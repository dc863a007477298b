//! `--metrics`: scraped by Debian's Prometheus, checked by promtool, and healthy only while packets move.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of tests fails the test by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use support::{Lab, Need, Running, require, until};

const LIMIT: Duration = Duration::from_secs(30);

/// The run, and the address that it says.
fn run(lab: &Lab, arguments: &[&str]) -> (Running, SocketAddr) {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--json", "--quiet", "--metrics", ":0"]);
    let live = lab.path("live");
    let mut running = lab
        .dropless(&arguments)
        .env("DROPLESS_LIVE_DIR", live.to_str().expect("a path"))
        .spawn();
    running.wait_for("/metrics\n", LIMIT);
    let said = running.stderr();
    let address = said
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split("/metrics").next())
        .and_then(|address| address.parse().ok());
    (running, address.unwrap_or_else(|| panic!("no address in {said}")))
}

/// Status and body of a GET; nothing where nobody answers.
fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// The samples of an exposition: name with labels, and value.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a sample");
            (name.to_owned(), value.parse().expect("a value"))
        })
        .collect()
}

fn scraped(address: SocketAddr) -> BTreeMap<String, f64> {
    let (status, body) = get(address, "/metrics").expect("an answer");
    assert_eq!(status, 200);
    samples(&body)
}

/// A run that has ended, loses some by plan, and still serves its last values.
fn lossy(lab: &Lab) -> (Running, SocketAddr) {
    let (running, address) = run(
        lab,
        &[
            "send",
            "--port",
            "ring",
            "--no-huge",
            "--no-doctor",
            "--rate",
            "5kpps",
            "--count",
            "10k",
            "--drain",
            "500ms",
            "--fault",
            "drop=1%",
            "--metrics-linger",
            "10min",
        ],
    );
    let ended = || scraped(address).contains_key("dropless_run_phase{phase=\"ended\"}");
    assert!(until(LIMIT, ended), "{running:?}");
    (running, address)
}

/// Ends the lingering, and gives the run's own result.
fn result(running: Running) -> Value {
    running.signal(Signal::SIGINT);
    running.wait(LIMIT).json()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn promtool_finds_nothing_to_say() {
    let Some(lab) = require(&[Need::Tool("promtool")]) else {
        return;
    };
    let (running, address) = lossy(&lab);
    let (_, text) = get(address, "/metrics").expect("an answer");
    std::fs::write(lab.path("metrics.txt"), &text).expect("writing");
    let check = lab.shell("promtool check metrics < metrics.txt").wait(LIMIT);
    assert_eq!(
        (check.code, check.stdout + &check.stderr),
        (Some(0), String::new()),
        "{text}"
    );
    drop(running);
}

/// A Prometheus that scrapes `address`, and where it is asked.
fn prometheus(lab: &Lab, address: SocketAddr) -> (Running, SocketAddr) {
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: dropless\n    static_configs: [{{targets: ['{address}']}}]\n"
    );
    std::fs::write(lab.path("prometheus.yml"), config).expect("writing");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let own = free.expect("a free port");
    let script = format!(
        "exec prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address={own} --log.level=warn"
    );
    (lab.shell(&script), own)
}

/// The value of an instant query; none while there is no such sample.
fn query(prometheus: SocketAddr, name: &str) -> Option<f64> {
    let name = name.replace('{', "%7B").replace('}', "%7D").replace('"', "%22");
    let (_, body) = get(prometheus, &format!("/api/v1/query?query={name}"))?;
    let answer: Value = serde_json::from_str(&body).ok()?;
    answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

#[test]
fn prometheus_scrapes_what_the_ledger_says() {
    let Some(lab) = require(&[Need::Tool("prometheus")]) else {
        return;
    };
    let (running, address) = lossy(&lab);
    let (server, own) = prometheus(&lab, address);
    let up = || query(own, "up") == Some(1.0) && query(own, "dropless_sent_packets_total").is_some();
    assert!(until(LIMIT, up), "{server:?}");
    let value = |name: &str| query(own, name).unwrap_or_else(|| panic!("no {name}"));
    let sent = value("dropless_sent_packets_total");
    let received = value("dropless_received_packets_total");
    let lost = value("dropless_lost_packets_total");
    let dropped = value("dropless_place_packets_total{place=\"fault_drop\"}");
    let measured = value("dropless_latency_seconds_count");
    let through = value("dropless_queue_packets_total{direction=\"tx\"}");
    server.kill();
    let summary = result(running);
    assert!(dropped > 0.0, "{summary}");
    assert!(
        (sent - number(&summary["ledger"]["accepted"])).abs() < 0.5,
        "{sent} {summary}"
    );
    assert!(
        (received - number(&summary["ledger"]["received"])).abs() < 0.5,
        "{received} {summary}"
    );
    assert!(
        (dropped - number(&summary["ledger"]["lost_at"]["fault_drop"])).abs() < 0.5,
        "{dropped} {summary}"
    );
    assert!((lost - number(&summary["lost"])).abs() < 0.5, "{lost} {summary}");
    assert!(
        (measured - received).abs() < 0.5,
        "{measured} latencies of {received} packets"
    );
    assert!((through - sent).abs() < 0.5, "{through} of {sent}");
    assert!(
        (sent - received - lost).abs() < 0.5,
        "{sent} = {received} + {lost}"
    );
}

#[test]
fn the_dashboard_asks_only_for_what_is_exported() {
    let Some(lab) = require(&[]) else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/dropless.json");
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the file")).expect("JSON");
    let mut wanted = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let text = target["expr"].as_str().expect("an expression");
            let names = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            wanted.extend(
                names
                    .filter(|name| name.starts_with("dropless_"))
                    .map(String::from),
            );
        }
    }
    assert!(wanted.len() > 10, "{wanted:?}");
    let (running, address) = lossy(&lab);
    let exported = scraped(address);
    for name in wanted {
        let known = |sample: &String| sample.split('{').next() == Some(&name);
        assert!(exported.keys().any(known), "{name} is not exported");
    }
    drop(running);
}

fn health(address: SocketAddr) -> (u16, Value) {
    let (status, body) = get(address, "/healthz").expect("an answer");
    let body: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    assert_eq!(body["healthy"].as_bool(), Some(status == 200), "{body}");
    (status, body)
}

fn becomes(address: SocketAddr, status: u16) -> Value {
    assert!(
        until(LIMIT, || health(address).0 == status),
        "never {status}: {}",
        health(address).1
    );
    health(address).1
}

const REFLECT: [&str; 5] = [
    "reflect",
    "--port",
    "memif:s.sock,server",
    "--no-huge",
    "--no-doctor",
];
const SEND: [&str; 9] = [
    "send",
    "--port",
    "memif:s.sock",
    "--no-huge",
    "--no-doctor",
    "--rate",
    "2kpps",
    "--duration",
    "120s",
];

#[test]
fn health_goes_with_the_packets_and_comes_back_with_them() {
    let Some(lab) = require(&[]) else { return };
    let (reflector, far) = run(&lab, &REFLECT);
    let (status, body) = health(far);
    assert_eq!(status, 503, "up, and nobody sends: {body}");
    let (sender, near) = run(&lab, &SEND);
    becomes(far, 200);
    assert_eq!(becomes(near, 200)["reason"], "packets move");

    sender.kill();
    let body = becomes(far, 503);
    let reason = body["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("no link") || reason.contains("no packet"),
        "{body}"
    );
    let (sender, near) = run(&lab, &SEND);
    becomes(far, 200);
    becomes(near, 200);

    reflector.kill();
    becomes(near, 503);
    let (reflector, far) = run(&lab, &REFLECT);
    becomes(near, 200);
    becomes(far, 200);
    drop((sender, reflector));
}

#[test]
fn idle_by_plan_is_healthy_and_ended_is_not() {
    let Some(lab) = require(&[]) else { return };
    let (noise, address) = run(&lab, &["noise", "--no-trace", "--duration", "60s"]);
    let body = becomes(address, 200);
    assert!(
        body["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("by plan")),
        "{body}"
    );
    drop(noise);

    // Half of what is sent is dropped, so that the drain takes its whole time.
    let (sender, address) = run(
        &lab,
        &[
            "send",
            "--port",
            "ring",
            "--no-huge",
            "--no-doctor",
            "--rate",
            "1kpps",
            "--count",
            "100",
            "--fault",
            "drop=50%",
            "--drain",
            "8s",
        ],
    );
    let drains = || health(address).1["phase"] == "draining";
    assert!(until(LIMIT, drains), "{sender:?}");
    assert_eq!(health(address).0, 200);
    drop(sender);

    let (sender, address) = lossy(&lab);
    let (status, body) = health(address);
    assert_eq!((status, body["phase"].as_str()), (503, Some("ended")), "{body}");
    drop(sender);
}

/// Short trials with rests between them; none of them needs more of a machine than a busy one has.
const SEARCH: [&str; 20] = [
    "search",
    "--no-huge",
    "--no-doctor",
    "--max-rate",
    "5kpps",
    "--min-rate",
    "1kpps",
    "--initial-duration",
    "500ms",
    "--final-duration",
    "500ms",
    "--duration-sum",
    "20s",
    "--drain",
    "200ms",
    "--settle",
    "500ms",
    "--cores",
    "0",
    "--backlog=1000000",
];

/// That trial after trial adds to the counters of one run, which is healthy while they send and between them.
fn serves_trials_as_one_run(trials: Running, address: SocketAddr) {
    let (status, body) = health(address);
    assert!(status == 503 || body["phase"] != "starting", "{body}");
    let rests = || {
        let (status, body) = health(address);
        let reason = body["reason"].as_str().unwrap_or_default();
        status == 200 && body["phase"] == "idle" && reason.contains("between two trials")
    };
    let mut before = 0.0;
    for _ in 0..3 {
        // What a trial sent stays counted, and the next one adds to it.
        let mut sent = before;
        assert!(
            until(LIMIT, || {
                let now = scraped(address);
                let last = std::mem::replace(&mut sent, now["dropless_sent_packets_total"]);
                assert!(sent >= last, "{sent} after {last}");
                assert!(now["dropless_received_packets_total"] <= sent, "{now:?}");
                sent > before
            }),
            "nothing more than {before}: {trials:?}"
        );
        before = sent;
        becomes(address, 200);
        assert!(until(LIMIT, rests), "{trials:?}");
        before = before.max(scraped(address)["dropless_sent_packets_total"]);
    }
    drop(trials);
}

#[test]
fn a_search_is_one_run_and_healthy_between_its_trials() {
    let Some(lab) = require(&[]) else { return };
    let (trials, address) = run(&lab, &SEARCH);
    serves_trials_as_one_run(trials, address);
}

#[test]
fn a_comparison_is_one_run_and_healthy_between_its_trials() {
    let Some(lab) = require(&[]) else { return };
    let plan = [
        "compare",
        "--methods",
        "memif",
        "--rates",
        "2kpps,3kpps,4kpps",
        "--duration",
        "1s",
    ];
    let (trials, address) = run(&lab, &plan);
    serves_trials_as_one_run(trials, address);
}

#[test]
fn a_search_that_gets_nothing_back_is_not_healthy() {
    let Some(lab) = require(&[]) else { return };
    let (searching, address) = run(&lab, &[&SEARCH[..], &["--fault", "drop=100%"]].concat());
    let more_than = |count: f64| scraped(address)["dropless_sent_packets_total"] > count;
    assert!(until(LIMIT, || more_than(0.0)), "{searching:?}");
    let first = scraped(address)["dropless_sent_packets_total"];
    assert!(
        until(LIMIT, || {
            // Neither while a trial sends nor between two: that the next one is planned heals nothing.
            let (status, body) = health(address);
            assert_eq!(status, 503, "{body}");
            more_than(first)
                && body["reason"]
                    .as_str()
                    .is_some_and(|reason| reason.contains("received"))
        }),
        "{searching:?}"
    );
    drop(searching);
}

#[test]
fn slow_and_wrong_clients_hold_nobody_up() {
    let Some(lab) = require(&[]) else { return };
    let (sender, address) = run(
        &lab,
        &[
            "send",
            "--port",
            "ring",
            "--no-huge",
            "--no-doctor",
            "--rate",
            "5kpps",
            "--count",
            "20k",
        ],
    );
    // More than are served at a time, and none of them ever says a whole request.
    let idle: Vec<TcpStream> = (0..100)
        .filter_map(|_| {
            let mut stream = TcpStream::connect(address).ok()?;
            stream.write_all(b"GET /met").ok()?;
            Some(stream)
        })
        .collect();
    let sent = sender.wait(LIMIT);
    assert_eq!(
        sent.number("sent") + sent.number("ledger.unsent"),
        20_000,
        "{sent}"
    );
    drop(idle);

    let (running, address) = lossy(&lab);
    let idle: Vec<TcpStream> = (0..100)
        .filter_map(|_| TcpStream::connect(address).ok())
        .collect();
    assert!(
        until(LIMIT, || get(address, "/metrics").is_some()),
        "they are not sent away"
    );
    drop(idle);
    for (request, status) in [
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("GET /nothing HTTP/1.1\r\n\r\n", "404"),
        ("\x01\x02\x03\r\n\r\n", "400"),
        ("HEAD /healthz HTTP/1.0\r\n\r\n", "503"),
        ("GET http://here:1/metrics HTTP/1.1\r\n\r\n", "200"),
    ] {
        let mut stream = TcpStream::connect(address).expect("connecting");
        stream.write_all(request.as_bytes()).expect("writing");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert_eq!(answer.split(' ').nth(1), Some(status), "{request:?}: {answer}");
    }
    drop(running);
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
        (&*taken.1, "is taken"),
        ("nowhere", "no address"),
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
