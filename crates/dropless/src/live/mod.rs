//! The board of a run: what control tells of it, for `dropless top` and for whoever asks `--metrics`.

mod drivers;
mod meter;
mod pulse;
mod stalls;
mod trials;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use measure::WorkerSummary;
use measure::units::parse_duration;
use report::published::{Ended, Health, Phase, Place, PoolLevel, Process, Publisher, State, Worker, unix_ms};

use crate::args::live::LiveArgs;
use crate::metrics::Service;
use crate::run::pools::Pools;
use crate::run::signals::Interrupt;
pub use drivers::Drivers;
pub use meter::Meter;
pub use pulse::{Expected, Pulse};
pub use stalls::StallWatch;
pub use trials::Trials;

/// How often the state is told.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// Nobody waits longer for the last scrape.
const LINGER_MAX: Duration = Duration::from_secs(3600);

/// Where a run tells its state. Belongs to the control thread, and makes it wait for nobody.
pub struct Board {
    process: RefCell<Process>,
    publisher: Option<Publisher>,
    service: Option<Service>,
    linger: Duration,
    told: Cell<Option<Instant>>,
    last: RefCell<State>,
    meter: RefCell<Meter>,
    /// Why `dropless top` does not see this run.
    trouble: Option<String>,
}

impl Board {
    /// Takes the address of `--metrics`, if there is one, before anything else starts; the rest is told from now on.
    pub fn open(args: &LiveArgs, command: &str) -> Result<Self> {
        let linger = parse_duration(&args.metrics_linger)?;
        ensure!(
            linger <= LINGER_MAX,
            "--metrics-linger {} is more than an hour; give less",
            args.metrics_linger
        );
        let service = args.metrics.as_deref().map(Service::start).transpose()?;
        let (publisher, trouble) = match Place::own().publisher() {
            Ok(publisher) => (Some(publisher), None),
            Err(error) => (None, Some(format!("`dropless top` cannot see this run: {error}"))),
        };
        let board = Self {
            process: RefCell::new(Process::this(command, env!("CARGO_PKG_VERSION"))),
            publisher,
            service,
            linger,
            told: Cell::new(None),
            last: RefCell::default(),
            meter: RefCell::default(),
            trouble,
        };
        board.tell(State {
            health: Health {
                healthy: false,
                reason: "starting: no packet has been sent or received yet".into(),
            },
            ..State::default()
        });
        Ok(board)
    }

    /// Where the run's files are.
    pub fn run_is_in(&self, dir: &Path) {
        self.process.borrow_mut().run = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
        let last = self.last.take();
        self.tell(last);
    }

    /// Whether it is time to tell again.
    pub fn is_due(&self) -> bool {
        self.told.get().is_none_or(|at| at.elapsed() >= TELL_EVERY)
    }

    /// Tells `state`; who tells, when, and how fast it goes is added here.
    pub fn tell(&self, mut state: State) {
        let now = Instant::now();
        self.told.set(Some(now));
        state.process = self.process.borrow().clone();
        state.told_unix_ms = unix_ms();
        state.sequence = self.last.borrow().sequence + 1;
        if state.ended.is_none() {
            state.rate = self.meter.borrow_mut().rates(now, &state.total);
        }
        if let Some(publisher) = &self.publisher {
            // Where shared memory is full the run goes on; the next look may find room.
            let _ = publisher.publish(&state);
        }
        if let Some(service) = &self.service {
            service.show(&state);
        }
        self.last.replace(state);
    }

    /// Tells the end: `last` changes the final state to what the books say. Its rates are those of the whole run.
    pub fn end(&self, ended: Ended, last: impl FnOnce(&mut State)) {
        let mut state = self.last.take();
        last(&mut state);
        state.rate = meter::mean(&state.total, state.elapsed_s);
        let reason = if ended.verdict.is_empty() {
            "the run broke off"
        } else {
            "the run has ended"
        };
        state.phase = Phase::Ended;
        state.health = Health {
            healthy: false,
            reason: reason.into(),
        };
        state.ended = Some(ended);
        self.tell(state);
    }

    /// What the user should know.
    pub fn note(&self) -> Option<String> {
        self.trouble.clone()
    }

    /// Goes on serving the last values, as long as `--metrics-linger` says or until somebody interrupts.
    pub fn linger(&self, interrupt: &Interrupt) {
        let begun = Instant::now();
        while self.service.is_some() && begun.elapsed() < self.linger && !interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if self.last.borrow().ended.is_none() {
            self.end(
                Ended {
                    exit: measure::summary::EXIT_INVALID,
                    ..Ended::default()
                },
                |_| {},
            );
        }
    }
}

/// Makes of the workers told last what the books say of them.
pub fn end_workers(told: &mut [Worker], books: &[WorkerSummary]) {
    for worker in told {
        let same = |summary: &&WorkerSummary| summary.core == worker.summary.core;
        if let Some(summary) = books.iter().find(same) {
            worker.summary = summary.clone();
        }
    }
}

/// How many buffers there are, and how many are free; none where no port is DPDK's.
pub fn pool_level(pools: Option<&Pools<'_>>) -> PoolLevel {
    let pools = pools.map_or(&[][..], Pools::all);
    PoolLevel {
        size: pools.iter().map(|pool| pool.size() as u64).sum(),
        free: pools.iter().map(|pool| pool.available() as u64).sum(),
    }
}
