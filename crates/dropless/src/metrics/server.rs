//! A small HTTP server: GET only, an answer a connection, a bound on how long each may take.
//!
//! `httparse` reads the request. Control shows a state by exchanging a pointer, so that no client makes it wait.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use report::published::{Health, State};
use serde_json::json;

use super::clients::Clients;
use super::exposition;
use crate::run::{placement, privileges};
use crate::status::unhealthy;

/// A connection is over after this long, whatever it has got by then.
const CONNECTION_MAX: Duration = Duration::from_secs(5);
/// A whole request has come by then: whoever only connects takes no place for long.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(1);
/// No request that we answer is as long, bytes.
const REQUEST_MAX: usize = 8192;
const HEADERS_MAX: usize = 64;

/// What control showed last, and when.
#[derive(Default)]
struct Shown {
    state: Mutex<Option<(Arc<State>, Instant)>>,
    clients: Clients,
}

/// The server of one run. It lives as long as the process.
pub struct Service {
    shown: Arc<Shown>,
}

impl Service {
    /// Takes the address and serves it from a thread of its own; says which it is.
    pub fn start(text: &str) -> Result<Self> {
        let address = parse(text)?;
        let listener = TcpListener::bind(address).map_err(|error| refused(text, &error))?;
        let address = listener.local_addr()?;
        let shown = Arc::new(Shown::default());
        let serving = Arc::clone(&shown);
        std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || {
                // It has its address, and answers strangers.
                privileges::drop_all();
                accept(&listener, &serving);
            })?;
        let _ = report::out::print_stderr(&format!("metrics on http://{address}/metrics\n"));
        Ok(Self { shown })
    }

    /// From now on this is the state.
    pub fn show(&self, state: &State) {
        let state = Arc::new(state.clone());
        let mut shown = self.shown.state.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = Some((state, Instant::now()));
    }
}

/// The address in `IP:PORT` or `:PORT`: without an IP nobody but this machine gets an answer.
fn parse(text: &str) -> Result<SocketAddr> {
    let loopback = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(loopback(port));
    }
    text.parse().map_err(|_| {
        anyhow!(
            "--metrics {text} is not an address; write it as :9464 (this machine only), 0.0.0.0:9464 (everybody) or [::1]:9464"
        )
    })
}

fn refused(text: &str, error: &std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "--metrics {text}: the address is in use (see who has it: ss -tlnp); name another port, or :0 for any"
        ),
        ErrorKind::AddrNotAvailable => {
            anyhow!(
                "--metrics {text}: this machine does not have that address; `ip address` lists those it has"
            )
        }
        ErrorKind::PermissionDenied => {
            anyhow!("--metrics {text}: ports below 1024 are root's; name a higher one, such as :9464")
        }
        _ => anyhow!("--metrics {text}: cannot listen there: {error}"),
    }
}

fn accept(listener: &TcpListener, shown: &Arc<Shown>) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of file descriptors, for instance: it may pass.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        let Some(client) = shown.clients.come(stream) else {
            continue;
        };
        let (number, serving) = (client.number, Arc::clone(shown));
        let serve = move || {
            // A client that goes away is no business of the run's.
            let _ = answer(&client.stream, &serving);
            serving.clients.go(client.number);
        };
        let started = std::thread::Builder::new()
            .name("metrics-client".into())
            .spawn(serve);
        if started.is_err() {
            shown.clients.go(number);
        }
    }
}

/// An answer: status, type, body.
struct Answer(&'static str, &'static str, String);

const TEXT: &str = "text/plain; charset=utf-8";

fn answer(stream: &TcpStream, shown: &Shown) -> Result<()> {
    let begun = Instant::now();
    let request = read(stream, begun)?;
    let latest = shown.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((state, _)) = &latest {
        let cores: Vec<usize> = state
            .workers
            .iter()
            .map(|worker| worker.summary.core as usize)
            .collect();
        if !cores.is_empty() {
            placement::leave_to_workers(&cores);
        }
    }
    let Answer(status, kind, body) = match &request {
        Some((method, path)) => respond(method, path, latest.as_ref()),
        None => Answer("400 Bad Request", TEXT, "this is not an HTTP request\n".into()),
    };
    let shown = if request.as_ref().is_some_and(|(method, _)| method == "HEAD") {
        ""
    } else {
        &body
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    write(stream, begun, (head + shown).as_bytes())
}

/// Method and path of the request; none for what is no request.
fn read(mut stream: &TcpStream, begun: Instant) -> Result<Option<(String, String)>> {
    let mut bytes = Vec::new();
    let mut room = [0; 1024];
    loop {
        // What is there already is read in any case: it may be us who came late.
        let left = REQUEST_TIME_MAX.saturating_sub(begun.elapsed());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let count = uninterrupted(|| stream.read(&mut room))?;
        bytes.extend_from_slice(&room[..count]);
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(_)) => {
                let (method, path) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
                return Ok(Some((method.into(), path.into())));
            }
            Ok(httparse::Status::Partial) if left.is_zero() => bail!("the client is too slow"),
            Ok(httparse::Status::Partial) if count > 0 && bytes.len() < REQUEST_MAX => {}
            Ok(httparse::Status::Partial) if count == 0 => bail!("the client has gone"),
            _ => return Ok(None),
        }
    }
}

fn write(mut stream: &TcpStream, begun: Instant, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(begun, CONNECTION_MAX)?))?;
        let count = uninterrupted(|| stream.write(bytes))?;
        if count == 0 {
            bail!("the client has gone");
        }
        bytes = &bytes[count..];
    }
    Ok(())
}

/// The same once more when a signal has come in between: the kernel takes up no call again that has a time limit (signal(7)).
fn uninterrupted(mut call: impl FnMut() -> std::io::Result<usize>) -> std::io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// What is left of `most` since a connection began.
fn left(begun: Instant, most: Duration) -> Result<Duration> {
    let left = most.saturating_sub(begun.elapsed());
    if left.is_zero() {
        bail!("the client is too slow");
    }
    Ok(left)
}

fn respond(method: &str, path: &str, latest: Option<&(Arc<State>, Instant)>) -> Answer {
    if !matches!(method, "GET" | "HEAD") {
        return Answer("405 Method Not Allowed", TEXT, "only GET\n".into());
    }
    // A proxy names the whole address.
    let path = path
        .strip_prefix("http://")
        .map_or(path, |rest| rest.find('/').map_or("/", |at| &rest[at..]));
    let health = health(latest);
    match path.split('?').next().unwrap_or_default() {
        "/metrics" => {
            let text = latest.map(|(state, _)| exposition(state, health.healthy));
            let text = text.unwrap_or_default();
            Answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", text)
        }
        "/healthz" => {
            let phase = latest.map_or("starting", |(state, _)| state.phase.name());
            let Health { healthy, reason } = health;
            let status = if healthy {
                "200 OK"
            } else {
                "503 Service Unavailable"
            };
            let body = json!({ "healthy": healthy, "phase": phase, "reason": reason });
            Answer(status, "application/json", format!("{body}\n"))
        }
        "/" => Answer("200 OK", TEXT, "dropless: /metrics, /healthz\n".into()),
        _ => Answer("404 Not Found", TEXT, "there are /metrics and /healthz\n".into()),
    }
}

/// What was told last, unless that is too old to be believed.
fn health(latest: Option<&(Arc<State>, Instant)>) -> Health {
    let Some((state, told)) = latest else {
        return unhealthy("starting");
    };
    state.health_by_now(Some(told.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_this_machine_only() {
        for text in [":9464", "9464"] {
            assert_eq!(parse(text).expect(text).to_string(), "127.0.0.1:9464");
        }
        assert_eq!(parse("0.0.0.0:1").expect("everybody").to_string(), "0.0.0.0:1");
        assert_eq!(parse("[::1]:0").expect("version 6").to_string(), "[::1]:0");
        for text in ["", ":", "localhost:1", ":65536", "1.2.3.4", "::1:9", "-1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn old_news_are_healthy_nowhere() {
        let mut state = State::default();
        state.health.healthy = true;
        let state = Arc::new(state);
        for (age, status, metric) in [
            (Duration::ZERO, "200 OK", "\ndropless_healthy 1\n"),
            (
                Duration::from_secs(4),
                "503 Service Unavailable",
                "\ndropless_healthy 0\n",
            ),
        ] {
            let told = Instant::now().checked_sub(age).expect("a clock that old");
            let latest = (Arc::clone(&state), told);
            let answer = |path| respond("GET", path, Some(&latest));
            assert_eq!(answer("/healthz").0, status);
            let text = answer("/metrics").2;
            assert!(text.contains(metric), "{text}");
        }
    }

    /// The dashboard's bit rate would show 24 bytes a packet.
    #[test]
    fn bytes_that_nobody_counts_are_not_told() {
        let mut state = State::default();
        (state.total.sent, state.total.received_bytes) = (7, 420);
        for (sent_bytes, is_told) in [(None, false), (Some(0), true), (Some(420), true)] {
            state.total.sent_bytes = sent_bytes;
            let text = exposition(&state, true);
            assert_eq!(text.contains("\ndropless_sent_bytes_total "), is_told, "{text}");
            assert!(text.contains("\ndropless_received_bytes_total 420\n"), "{text}");
        }
        state.total = state.total + report::published::Totals::default();
        assert_eq!(state.total.sent_bytes, Some(420));
    }
}
