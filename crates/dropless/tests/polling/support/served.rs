//! Runs that serve `--metrics`, and what is asked of them.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{Lab, Running, until};

const LIMIT: Duration = Duration::from_secs(30);

/// The run, and the address that it says.
pub fn serve(lab: &Lab, arguments: &[&str]) -> (Running, SocketAddr) {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--json", "--quiet", "--metrics", ":0"]);
    let live = lab.path("live");
    let mut running = lab
        .dropless(&arguments)
        .env("DROPLESS_LIVE_DIR", live.to_str().expect("a path"))
        .spawn();
    let address = address(&mut running);
    (running, address)
}

/// Where a run that has just been started says that it serves.
pub fn address(running: &mut Running) -> SocketAddr {
    running.wait_for("/metrics\n", LIMIT);
    let said = running.stderr();
    let address = said
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split("/metrics").next())
        .and_then(|address| address.parse().ok());
    address.unwrap_or_else(|| panic!("no address in {said}"))
}

/// Status and body of a GET; nothing where nobody answers.
pub fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
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
pub fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a sample");
            (name.to_owned(), value.parse().expect("a value"))
        })
        .collect()
}

/// The samples that a run serves now.
pub fn scraped(address: SocketAddr) -> BTreeMap<String, f64> {
    let (status, body) = get(address, "/metrics").expect("an answer");
    assert_eq!(status, 200);
    samples(&body)
}

/// A run that has ended, loses some by plan, and still serves its last values.
pub fn lossy(lab: &Lab) -> (Running, SocketAddr) {
    let (running, address) = serve(
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
            "2k",
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
pub fn result(running: Running) -> Value {
    running.signal(Signal::SIGINT);
    running.wait(LIMIT).json()
}

/// Status and body of `/healthz`, which agree.
pub fn health(address: SocketAddr) -> (u16, Value) {
    let (status, body) = get(address, "/healthz").expect("an answer");
    let body: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    assert_eq!(body["healthy"].as_bool(), Some(status == 200), "{body}");
    (status, body)
}

/// Waits for a status of `/healthz`; the body that came with it.
pub fn becomes(address: SocketAddr, status: u16) -> Value {
    assert!(
        until(LIMIT, || health(address).0 == status),
        "never {status}: {}",
        health(address).1
    );
    health(address).1
}
