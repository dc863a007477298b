//! A run of trials, each a process of its own, told as one: what the trial that goes on publishes, on top of what those before it did.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use report::published::{Ended, Health, Phase, Place, State, Totals, read};

use super::{Board, Expected, Pulse};
use crate::args::live::LiveArgs;
use crate::signals::Interrupt;

/// A trial that has told nothing new for this long hangs.
const SILENT: Duration = Duration::from_secs(5);

/// What the command that makes the trials tells. Belongs to its control thread, which calls [`Trials::look`] while it waits.
pub struct Trials {
    board: Board,
    place: Place,
    begun: Instant,
    /// How many were begun.
    number: u64,
    /// The process of the one that goes on.
    process: Option<u32>,
    /// What it told last, or what the last one did where it has not begun to send.
    current: State,
    /// The last number that it told, and when that came.
    news: (u64, Instant),
    /// What the trials before it did.
    total: Totals,
    places: BTreeMap<String, u64>,
    pulse: Pulse,
    /// How long anybody was sending, as far as was seen: the time of `pulse`, which stands still between trials.
    sending: Duration,
    looked: Instant,
}

impl Trials {
    /// Takes the address of `--metrics`, before anything starts.
    pub fn open(args: &LiveArgs, command: &str) -> Result<Self> {
        let now = Instant::now();
        Ok(Self {
            board: Board::open(args, command)?,
            place: Place::own(),
            begun: now,
            number: 0,
            process: None,
            current: State::default(),
            news: (0, now),
            total: Totals::default(),
            places: BTreeMap::new(),
            pulse: Pulse::default(),
            sending: Duration::ZERO,
            looked: now,
        })
    }

    /// Where the command tells, for what is no trial's.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// A trial is about to be started, at so many packets per second.
    pub fn begin(&mut self, rate_pps: Option<f64>) {
        if self.process.is_some() {
            // The one before broke off, and what it sent is sent.
            self.finish();
        }
        self.number += 1;
        self.news = (0, Instant::now());
        self.pulse.expect(Expected {
            one_way: false,
            gap: rate_pps.and_then(|pps| Duration::try_from_secs_f64(1.0 / pps).ok()),
        });
    }

    /// A rest by plan, however long it lasts.
    pub fn rest(&mut self) {
        self.news.1 = Instant::now();
        self.tell_if_due();
    }

    /// The trial goes on in `process`, a child of this one.
    pub fn look(&mut self, process: u32) {
        self.process = Some(process);
        if self.board.is_due() {
            self.read();
            self.tell();
        }
    }

    /// The trial is over: its process is no more, and what it told last stays.
    pub fn finish(&mut self) {
        self.read();
        self.process = None;
        self.total = self.total + std::mem::take(&mut self.current.total);
        for (place, count) in std::mem::take(&mut self.current.places) {
            *self.places.entry(place).or_default() += count;
        }
        self.current.phase = Phase::Idle;
        self.news.1 = Instant::now();
        self.tell();
    }

    /// Tells how it all ended, and goes on serving that as long as the user wants.
    pub fn end(&self, ended: Ended, interrupt: &Interrupt) {
        self.board.end(ended, |state| {
            state.elapsed_s = self.begun.elapsed().as_secs_f64();
        });
        self.board.linger(interrupt);
    }

    fn read(&mut self) {
        let Some(process) = self.process else { return };
        let Ok(state) = read(&self.place.file(process)) else {
            return;
        };
        // An earlier process with this id may have left a file, until the trial writes its own.
        let is_ours = state.process.id == process && state.process.parent == std::process::id();
        if !is_ours || state.sequence == self.news.0 {
            return;
        }
        self.news = (state.sequence, Instant::now());
        if state.phase != Phase::Starting {
            self.current = state;
        }
    }

    fn tell_if_due(&mut self) {
        if self.board.is_due() {
            self.tell();
        }
    }

    fn tell(&mut self) {
        let now = Instant::now();
        let mut places = self.places.clone();
        for (place, count) in &self.current.places {
            *places.entry(place.clone()).or_default() += count;
        }
        let total = self.total + self.current.total;
        let phase = match self.current.phase {
            phase @ (Phase::Sending | Phase::Draining) => phase,
            _ if total.sent == 0 => Phase::Starting,
            _ => Phase::Idle,
        };
        if phase == Phase::Sending {
            self.sending += now.duration_since(self.looked);
        }
        self.looked = now;
        let mut state = State {
            phase,
            elapsed_s: self.begun.elapsed().as_secs_f64(),
            // How many trials there will be is not known.
            planned_s: None,
            done: None,
            total,
            places,
            ended: None,
            ..self.current.clone()
        };
        state.health = self.judge(now, &state);
        self.board.tell(state);
    }

    /// Packets move, trial by trial: the time between them counts for nothing, and heals nothing.
    fn judge(&mut self, now: Instant, state: &State) -> Health {
        let as_sending = State {
            phase: Phase::Sending,
            total: state.total,
            // Between trials nobody looks at a port.
            ports: if state.phase == Phase::Sending {
                state.ports.clone()
            } else {
                Vec::new()
            },
            ..State::default()
        };
        let mut health = self.pulse.judge(self.begun + self.sending, &as_sending);
        let silent = now.duration_since(self.news.1);
        if health.healthy && silent > SILENT {
            health = Health {
                healthy: false,
                reason: format!("it has told nothing for {:.0} s", silent.as_secs_f64()),
            };
        } else if health.healthy && state.phase != Phase::Sending {
            health = self.pulse.judge(self.begun + self.sending, state);
        }
        health.reason = match state.phase {
            Phase::Idle if health.healthy => format!("{}, between two trials", health.reason),
            _ => format!("trial {}: {}", self.number.max(1), health.reason),
        };
        health
    }
}
