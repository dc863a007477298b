//! A run of trials, each a process of its own, told as one: what the trial that goes on publishes, on top of what those before it did.

use std::mem::take;
use std::time::{Duration, Instant};

use anyhow::Result;
use report::published::{self, Bounds, Health, Phase, Place, State, own_id, read};

use super::{Expected, HealthCheck, StatusBoard, unhealthy};
use crate::status::StatusSettings;

/// A trial that sends and has told nothing new for this long hangs.
const SILENT: Duration = Duration::from_secs(5);
/// A trial that has told its end is gone this much later: it writes its report before.
const ENDING: Duration = Duration::from_secs(20);

/// What goes on without packets, by plan.
struct Rest {
    /// In words: `settling`.
    doing: String,
    begun: Instant,
    /// By plan it takes no longer.
    most: Duration,
}

impl Rest {
    fn new(doing: &str, most: Duration) -> Self {
        Self {
            doing: doing.to_owned(),
            begun: Instant::now(),
            most,
        }
    }

    /// What is wrong with it at `now`: one that lasts for ever is no plan.
    fn trouble(&self, now: Instant) -> Option<String> {
        let lasts = now.duration_since(self.begun);
        (lasts > self.most).then(|| {
            format!(
                "{} has taken {:.0} s, by plan {:.0} s at most",
                self.doing,
                lasts.as_secs_f64(),
                self.most.as_secs_f64()
            )
        })
    }
}

/// What the command that makes the trials tells. Belongs to its control thread, which calls [`Trials::look`] while it waits.
pub struct Trials {
    board: StatusBoard,
    place: Place,
    begun: Instant,
    /// The number of the one that was begun last.
    number: u64,
    /// How long all of it will still take, as was known then.
    left: Option<(Instant, f64)>,
    /// What is known by now.
    shown: Vec<Bounds>,
    /// The process of the one that goes on.
    process: Option<u32>,
    /// What it told last, or what the last one did where it has not begun to send.
    current: State,
    /// The last number that it told, and when that came.
    news: (u64, Instant),
    /// What is done without packets, where that is by plan.
    rest: Rest,
    /// What the trials before it did together: totals, places and buckets; and the latencies of the last of them.
    before: State,
    pulse: HealthCheck,
    /// How long anybody was sending, as far as was seen: the time of `pulse`, which stands still between trials.
    sending: Duration,
    looked: Instant,
}

impl Trials {
    /// Takes the address of `--metrics`, before anything starts.
    pub fn open(settings: &StatusSettings, command: &str) -> Result<Self> {
        let now = Instant::now();
        Ok(Self {
            board: StatusBoard::open(settings, command)?,
            place: Place::own(),
            begun: now,
            number: 0,
            left: None,
            shown: Vec::new(),
            process: None,
            current: State::default(),
            news: (0, now),
            rest: Rest::new("starting", Duration::ZERO),
            before: State::default(),
            pulse: HealthCheck::default(),
            sending: Duration::ZERO,
            looked: now,
        })
    }

    /// Where the command tells, for what is no trial's.
    pub fn board(&self) -> &StatusBoard {
        &self.board
    }

    /// A trial is about to be started, at so many packets per second; by plan it sends within `most`.
    pub fn begin(&mut self, rate_pps: Option<f64>, most: Duration) {
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
        self.prepare("starting a trial", most);
    }

    /// So many were made before, by a process that did not come to the end.
    pub fn resume(&mut self, number: u64) {
        self.number = number;
    }

    /// All of it will take so many seconds more, as far as is known.
    pub fn left(&mut self, seconds: Option<f64>) {
        self.left = seconds.map(|seconds| (Instant::now(), seconds));
    }

    /// What the trials so far have shown of one limit.
    pub fn know(&mut self, bounds: Bounds) {
        match self.shown.iter_mut().find(|known| known.of == bounds.of) {
            Some(known) => *known = bounds,
            None => self.shown.push(bounds),
        }
    }

    /// No packets for a while, by plan; `most` is how long that may last.
    pub fn prepare(&mut self, doing: &str, most: Duration) {
        self.rest = Rest::new(doing, most);
        self.tell();
    }

    /// What [`Trials::prepare`] named goes on.
    pub fn wait(&mut self) {
        if self.board.is_due() {
            self.tell();
        }
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
        let (before, last) = (&mut self.before, &mut self.current);
        before.total = before.total + take(&mut last.total);
        before.add_places(take(&mut last.places));
        before.latency_buckets = take(&mut before.latency_buckets) + take(&mut last.latency_buckets);
        if last.latency_ns.max.is_some() {
            before.latency_ns = last.latency_ns;
        }
        self.current.phase = Phase::Idle;
        self.prepare("looking at the trial", SILENT);
    }

    /// Makes the state that was told last that of the end, where all `is_whole` or was broken off.
    pub fn settle(&self, is_whole: bool, state: &mut State) {
        state.elapsed_s = self.begun.elapsed().as_secs_f64();
        if is_whole {
            state.done = Some(1.0);
        }
        if let Some(trials) = &mut state.trials {
            trials.left_s = None;
            trials.shown.clone_from(&self.shown);
        }
    }

    fn read(&mut self) {
        let Some(process) = self.process else { return };
        let Ok(state) = read(&self.place.file(process)) else {
            return;
        };
        // An earlier process with this id may have left a file, until the trial writes its own.
        let is_ours = state.process.id == process && state.process.parent == own_id();
        if !is_ours || state.sequence == self.news.0 {
            return;
        }
        self.news = (state.sequence, Instant::now());
        if state.phase == Phase::Ended && self.current.phase != Phase::Ended {
            self.rest = Rest::new("ending a trial", ENDING);
        }
        if state.phase != Phase::Starting {
            self.current = state;
        }
    }

    fn tell(&mut self) {
        let now = Instant::now();
        let before = &self.before;
        let total = before.total + self.current.total;
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
            // How many trials there will be, nobody knows: only an estimate is told.
            planned_s: None,
            done: None,
            trials: Some(self.trials(now)),
            total,
            latency_ns: before.latency_ns,
            latency_buckets: before.latency_buckets.clone() + self.current.latency_buckets.clone(),
            ended: None,
            ..self.current.clone()
        };
        state.add_places(before.places.clone());
        state.done = state.trials.as_ref().and_then(|trials| {
            let all_s = state.elapsed_s + trials.left_s?;
            Some(state.elapsed_s / all_s)
        });
        state.health = self.judge(now, &state);
        self.board.tell(state);
    }

    fn trials(&self, now: Instant) -> published::Trials {
        let left_s = self.left.map(|(at, left_s)| {
            let since = now.duration_since(at).as_secs_f64();
            (left_s - since).max(0.0)
        });
        published::Trials {
            number: self.number,
            left_s,
            shown: self.shown.clone(),
        }
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
        let at = self.begun + self.sending;
        let mut health = self.pulse.judge(at, &as_sending);
        let silent = now.duration_since(self.news.1);
        let moves = matches!(state.phase, Phase::Sending | Phase::Draining);
        if health.healthy && moves && silent > SILENT {
            health = unhealthy(format!("no status from it for {:.0} s", silent.as_secs_f64()));
        } else if health.healthy && state.phase != Phase::Sending {
            health = self.pulse.judge(at, state);
        }
        if health.healthy && !moves {
            health = self.rest.trouble(now).map_or(health, unhealthy);
        }
        health.reason = match state.phase {
            Phase::Idle if health.healthy => {
                format!("{}, between two trials: {}", health.reason, self.rest.doing)
            }
            _ => format!("trial {}: {}", self.number.max(1), health.reason),
        };
        health
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_by_plan_has_an_end() {
        let rest = Rest::new("preparing memif", Duration::from_secs(30));
        let after = |seconds| rest.trouble(rest.begun + Duration::from_secs(seconds));
        assert_eq!(after(30), None);
        assert_eq!(
            after(31).as_deref(),
            Some("preparing memif has taken 31 s, by plan 30 s at most")
        );
    }
}
