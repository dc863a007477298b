//! Clients of `--metrics` that are slow, idle, wrong or many: none of them holds up a run or a scraper.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::served::{get, lossy, serve};
use crate::support::{require, until};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn slow_and_wrong_clients_hold_nobody_up() {
    let Some(lab) = require(&[]) else { return };
    let (sender, address) = serve(
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
            "5k",
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
        5_000,
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

/// Clients that only hold a connection, and take a new one for each that is ended.
struct Crowd {
    over: Arc<AtomicBool>,
    came: Arc<AtomicUsize>,
}

impl Crowd {
    fn of(size: usize, address: SocketAddr) -> Self {
        let (over, came) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (is_over, count) = (Arc::clone(&over), Arc::clone(&came));
        let hold = move || {
            let mut crowd: Vec<TcpStream> = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                crowd.retain(|stream| stream.set_nonblocking(true).is_ok() && is_open(stream));
                // All of them at first, then one after the other: a crowd, and no flood.
                let first = count.load(Ordering::Relaxed) == 0;
                let more = if first { size } else { 1.min(size - crowd.len()) };
                crowd.extend((0..more).filter_map(|_| TcpStream::connect(address).ok()));
                count.fetch_add(more, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        std::thread::spawn(hold);
        Self { over, came }
    }

    /// How many connections it has made.
    fn came(&self) -> usize {
        self.came.load(Ordering::Relaxed)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn is_open(mut stream: &TcpStream) -> bool {
    matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn a_crowd_of_idle_connections_keeps_no_scraper_out() {
    let Some(lab) = require(&[]) else { return };
    let (running, address) = lossy(&lab);
    let crowd = Crowd::of(200, address);
    assert!(until(LIMIT, || crowd.came() >= 200), "no crowd came");
    // Until each of them has had to take another connection.
    let answered = until(LIMIT, || {
        for page in ["/metrics", "/healthz"] {
            // One try: a scrape that is refused is a gap in somebody's record.
            let answer = get(address, page);
            assert!(answer.is_some(), "{page} was not answered: {running:?}");
        }
        crowd.came() >= 400
    });
    assert!(answered, "the places were never all taken");
    drop((crowd, running));
}
