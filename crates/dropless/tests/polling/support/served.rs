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

/// Status and body of a GET; nothing where nobody answers, or not to the end.
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
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    if length.is_some_and(|length| length.parse() != Ok(body.len())) {
        return None;
    }
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

/// A run that has ended, with every fault by plan, and still serves its last values.
pub fn lossy(lab: &Lab) -> (Running, SocketAddr) {
    let (running, address) = begun_lossy(lab);
    assert!(until(LIMIT, || has_ended(address)), "{running:?}");
    (running, address)
}

/// The same on its way.
pub fn begun_lossy(lab: &Lab) -> (Running, SocketAddr) {
    // What is delayed comes later than the drain time: late, where its sender is not gone by then.
    let faults = "drop=1%,duplicate=2%,reorder=4%,corrupt=0.5%,delay=3%:700ms";
    let load = ["--rate", "5kpps", "--count", "4k", "--drain", "500ms"];
    begun(lab, &[&load[..], &["--fault", faults, "--seed", "7"]].concat())
}

/// A sender into a ring that has ended, and still serves its last values. One core has all of it.
pub fn ended(lab: &Lab, load: &[&str]) -> (Running, SocketAddr) {
    let (running, address) = begun(lab, load);
    assert!(until(LIMIT, || has_ended(address)), "{running:?}");
    (running, address)
}

fn begun(lab: &Lab, load: &[&str]) -> (Running, SocketAddr) {
    let send = [
        "send",
        "--port",
        "ring",
        "--cores",
        "0",
        "--metrics-linger",
        "10min",
    ];
    let machine = ["--no-huge", "--no-doctor"];
    serve(lab, &[&send[..], &machine, load].concat())
}

fn has_ended(address: SocketAddr) -> bool {
    scraped(address).contains_key("dropless_run_phase{phase=\"ended\"}")
}

/// Ends the lingering, and gives the run's own result.
pub fn result(mut running: Running) -> Value {
    running.wait_for("\n}\n", LIMIT);
    // A wish that comes before it lingers is one for the end of the run, and that is over: then another one is wanted.
    let ends = || {
        running.signal(Signal::SIGINT);
        until(Duration::from_secs(1), || !running.is_alive())
    };
    assert!(until(LIMIT, ends), "{running:?}");
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
