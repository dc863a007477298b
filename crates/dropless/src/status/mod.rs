//! The status board of a run: what control tells of it, for `dropless top` and for whoever asks `--metrics`.

mod drivers;
pub mod find;
mod health;
mod manager;
mod meter;
mod stalls;
mod trials;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use measure::{Note, WorkerSummary};
use report::published::{Ended, Phase, Place, Process, Publisher, State, Totals, Worker, unix_ms};

use crate::metrics::Service;
use crate::run::signals::Interrupt;
pub use drivers::Drivers;
pub use health::{Expected, HealthCheck, unhealthy};
use manager::Manager;
pub use meter::Meter;
pub use stalls::StallWatch;
pub use trials::Trials;

/// How often the state is told.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// How a run is watched from outside.
#[derive(Clone, Debug, Default)]
pub struct StatusSettings {
    /// Where metrics and health are served: `IP:PORT`, or `:PORT` on this machine only.
    pub metrics: Option<String>,
    /// How long the last values are served after the end.
    pub linger: Duration,
}

/// Where a run tells its state. Belongs to the control thread, and makes it wait for nobody.
pub struct StatusBoard {
    process: RefCell<Process>,
    publisher: Option<Publisher>,
    service: Option<Service>,
    linger: Duration,
    told: Cell<Option<Instant>>,
    last: RefCell<State>,
    meter: RefCell<Meter>,
    /// The service manager that started this process, if one did.
    manager: Option<RefCell<Manager>>,
    /// Why `dropless top` does not see this run.
    trouble: Option<String>,
}

impl StatusBoard {
    /// Takes the address of `--metrics`, if there is one, before anything else starts; the rest is told from now on.
    pub fn open(settings: &StatusSettings, command: &str) -> Result<Self> {
        let service = settings.metrics.as_deref().map(Service::start).transpose()?;
        let (publisher, trouble) = match Place::own().publisher() {
            Ok(publisher) => (Some(publisher), None),
            Err(error) => (None, Some(format!("`dropless top` cannot see this run: {error}"))),
        };
        let board = Self {
            process: RefCell::new(Process::this(command, env!("CARGO_PKG_VERSION"))),
            publisher,
            service,
            linger: settings.linger,
            told: Cell::new(None),
            last: RefCell::default(),
            meter: RefCell::default(),
            manager: Manager::of_this_process().map(RefCell::new),
            trouble,
        };
        board.tell(State {
            health: unhealthy("starting: no packet has been sent or received yet"),
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
        let awaited = self.manager.as_ref().and_then(|manager| manager.borrow().every());
        let every = awaited.map_or(TELL_EVERY, |every| every.min(TELL_EVERY));
        self.told.get().is_none_or(|at| at.elapsed() >= every)
    }

    /// The run begins at `at`: what is in its `total` by then is in no rate.
    pub fn begin(&self, at: Instant, total: &Totals) {
        self.meter.borrow_mut().begin(at, total);
    }

    /// Tells `state`; who tells, when, and how fast it goes is added here.
    pub fn tell(&self, mut state: State) {
        let now = Instant::now();
        self.told.set(Some(now));
        state.process = self.process.borrow().clone();
        state.told_unix_ms = unix_ms();
        state.sequence = self.last.borrow().sequence + 1;
        if state.ended.is_none() {
            let elapsed = Duration::try_from_secs_f64(state.elapsed_s).unwrap_or_default();
            state.rate = self.meter.borrow_mut().rates(now, elapsed, &state.total);
        }
        if let Some(publisher) = &self.publisher {
            // Where shared memory is full the run goes on; the next look may find room.
            let _ = publisher.publish(&state);
        }
        if let Some(service) = &self.service {
            service.show(&state);
        }
        if let Some(manager) = &self.manager {
            manager.borrow_mut().tell(now, &state);
        }
        self.last.replace(state);
    }

    /// What moves packets is about to stop: whoever waits for signs of life need not wait any more.
    pub fn stopping(&self) {
        if let Some(manager) = &self.manager {
            manager.borrow_mut().stopping();
        }
    }

    /// What was told last, with its rates.
    pub fn told(&self) -> std::cell::Ref<'_, State> {
        self.last.borrow()
    }

    /// Tells the end: `last` changes the final state to what the books say. Its rates are those of the whole run, over its
    /// time unless `last` says over which.
    pub fn end(&self, ended: Ended, last: impl FnOnce(&mut State)) {
        self.stopping();
        let mut state = self.last.take();
        // That of the last second.
        state.rate.over_s = 0.0;
        last(&mut state);
        let over_s = if state.rate.over_s > 0.0 {
            state.rate.over_s
        } else {
            state.elapsed_s
        };
        state.rate = meter::mean(&state.total, over_s);
        let reason = if ended.verdict.is_empty() {
            "the run was aborted"
        } else {
            "the run has ended"
        };
        state.phase = Phase::Ended;
        state.health = unhealthy(reason);
        state.ended = Some(ended);
        self.tell(state);
    }

    pub fn note(&self) -> Option<Note> {
        let trouble = self.trouble.clone();
        trouble.map(|text| Note::new("not_watchable", text))
    }

    /// Goes on serving the last values, as long as `--metrics-linger` says or until somebody interrupts. Who interrupted the
    /// run wanted its end, not that its last values are lost: a run without a duration ends in no other way.
    pub fn linger(&self, interrupt: &Interrupt) {
        if self.service.is_none() || self.linger.is_zero() {
            return;
        }
        if interrupt.is_set() {
            let left_s = self.linger.as_secs_f64();
            let said = format!("the last values are served for {left_s} s more; Ctrl-C ends that\n");
            let _ = report::out::print_stderr(&said);
            interrupt.done();
        }
        let begun = Instant::now();
        while begun.elapsed() < self.linger && !interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(20));
            // What has ended is shown until its file is old; this is still there.
            if let Some(publisher) = self.publisher.as_ref().filter(|_| self.is_due()) {
                self.told.set(Some(Instant::now()));
                let _ = publisher.publish(&self.last.borrow());
            }
        }
    }
}

impl Drop for StatusBoard {
    fn drop(&mut self) {
        if self.last.borrow().ended.is_none() {
            let broken_off = Ended {
                exit: measure::summary::EXIT_INVALID,
                ..Ended::default()
            };
            self.end(broken_off, |_| {});
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
