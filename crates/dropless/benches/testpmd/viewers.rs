//! Who looks at a run: `dropless top` on a terminal, ten times a second, and a scraper, once a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::ours::{full_rate, sent, watched};
use crate::rounds::{Bench, Measured};
use crate::support::served::{address, get};
use crate::support::terminal::{LIVE_VARIABLE, Terminal};
use crate::support::{Lab, Running};

/// Between two scrapes; Prometheus asks once a minute where nobody says otherwise.
const SCRAPE_EVERY: Duration = Duration::from_secs(1);

/// `dropless send` into a port that swallows everything, and everybody looks.
pub fn send_into_null(bench: &Bench, lab: &Lab) -> Measured {
    send(
        bench,
        lab,
        &["--port", "null", "--tx-only", "--cores", &bench.worker()],
    )
}

/// `dropless send`, with what comes back verified on the same core, and everybody looks.
pub fn send_over_ring(bench: &Bench, lab: &Lab) -> Measured {
    send(bench, lab, &["--port", "ring,direct", "--cores", &bench.worker()])
}

fn send(bench: &Bench, lab: &Lab, arguments: &[&str]) -> Measured {
    let sender = lab.dropless(&["send", "--json", "--quiet", "--metrics", ":0"]);
    let live = lab.path("live").display().to_string();
    let mut sender = full_rate(bench, sender.env(LIVE_VARIABLE, &live), arguments).spawn();
    let viewers = Viewers::of(lab, &mut sender);
    let (run, share) = watched(bench, sender, &[]);
    drop(viewers);
    sent(&run, share)
}

/// They look until this is dropped.
struct Viewers {
    _terminal: Terminal,
    over: Arc<AtomicBool>,
}

impl Viewers {
    fn of(lab: &Lab, running: &mut Running) -> Self {
        let address = address(running);
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let scrape = move || {
            let mut next = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                if Instant::now() >= next {
                    let _ = (get(address, "/metrics"), get(address, "/healthz"));
                    next += SCRAPE_EVERY;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        std::thread::spawn(scrape);
        Self {
            _terminal: Terminal::top(lab, &running.id().to_string(), 50, 140),
            over,
        }
    }
}

impl Drop for Viewers {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
