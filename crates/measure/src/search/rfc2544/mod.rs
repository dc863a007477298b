//! The tests of RFC 2544, one after the other: throughput, latency at it, loss at falling rates, and bursts (RFC 9004).

mod back_to_back;
mod frame_loss;
mod latency;
mod throughput;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use back_to_back::BackToBackResult;
pub use frame_loss::FrameLossRow;
pub use latency::LatencyResult;

use super::result::{Limit, Rfc2544Result, SearchResult};
use super::{Again, Ask, Doubt, Purpose, Range, SPOILED_IN_A_ROW_MAX, Step, Trial};
use back_to_back::BackToBack;
use frame_loss::FrameLoss;
use latency::Latency;
use throughput::Throughput;

/// A test of RFC 2544.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// The highest rate without loss (section 26.1).
    Throughput,
    /// Latency at that rate (section 26.2).
    Latency,
    /// Loss at falling rates (section 26.3).
    FrameLoss,
    /// The longest burst without loss (section 26.4).
    BackToBack,
}

impl Test {
    /// Their words on the command line.
    pub const NAMES: [&str; 4] = ["throughput", "latency", "frame-loss", "back-to-back"];

    /// Of these its own.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl FromStr for Test {
    type Err = String;

    fn from_str(text: &str) -> Result<Test, String> {
        let all = [Test::Throughput, Test::Latency, Test::FrameLoss, Test::BackToBack];
        let named = all.into_iter().find(|test| test.name() == text);
        named.ok_or_else(|| format!("there is no test `{text}`; tests are {}", Test::NAMES.join(", ")))
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Test::Throughput => "throughput",
            Test::Latency => "latency",
            Test::FrameLoss => "frame loss rate",
            Test::BackToBack => "back-to-back",
        })
    }
}

/// What is asked of the tests; the defaults are the RFC's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rfc2544Settings {
    /// Which tests, in order; throughput is always the first, since the others need it.
    pub tests: Vec<Test>,
    /// How long a trial of throughput and of frame loss lasts.
    pub trial_ns: u64,
    /// The throughput's bounds are close enough when they differ by this part of the upper one.
    pub relative_width: f64,
    /// Trials of latency.
    pub latency_trials: u32,
    /// How long each lasts.
    pub latency_ns: u64,
    /// How often the longest burst is looked for.
    pub burst_repeats: u32,
    /// The longest burst tried.
    pub burst_ns: u64,
}

impl Default for Rfc2544Settings {
    fn default() -> Self {
        Self {
            tests: vec![Test::Throughput],
            trial_ns: 60_000_000_000,
            relative_width: 0.005,
            latency_trials: 20,
            latency_ns: 120_000_000_000,
            burst_repeats: 50,
            burst_ns: 2_000_000_000,
        }
    }
}

/// The machine: each test is one of its own.
#[derive(Debug, Clone)]
pub struct Rfc2544 {
    throughput: Throughput,
    latency: Option<Latency>,
    frame_loss: Option<FrameLoss>,
    back_to_back: Option<BackToBack>,
    doubt: Doubt,
    /// Who of us spoiled the last trials, and how many in a row.
    spoiled: Option<(Limit, u32)>,
    trials: u64,
    invalid_trials: u64,
    bunched_trials: u64,
    seconds: f64,
}

impl Rfc2544 {
    /// The tests of `settings` in `range`.
    pub fn new(settings: &Rfc2544Settings, range: Range) -> Rfc2544 {
        let wants = |test| settings.tests.contains(&test);
        Rfc2544 {
            throughput: Throughput::new(range, settings.trial_ns, settings.relative_width),
            latency: wants(Test::Latency).then(|| Latency::new(settings.latency_trials, settings.latency_ns)),
            frame_loss: wants(Test::FrameLoss).then(|| FrameLoss::new(range, settings.trial_ns)),
            back_to_back: wants(Test::BackToBack)
                .then(|| BackToBack::new(range.max_pps, settings.burst_repeats, settings.burst_ns)),
            doubt: Doubt::default(),
            spoiled: None,
            trials: 0,
            invalid_trials: 0,
            bunched_trials: 0,
            seconds: 0.0,
        }
    }

    /// The trial that is wanted now.
    pub fn next(&self) -> Step {
        self.doubt
            .step(self.wanted().map(|(_, ask, purpose)| match self.spoiled {
                Some((limit, _)) => (ask, purpose.again(Again::Spoiled(limit))),
                None => (ask, purpose),
            }))
    }

    fn wanted(&self) -> Option<(Test, Ask, Purpose)> {
        let of = |test: Test, (ask, purpose)| (test, ask, purpose);
        if let Some(wanted) = self.throughput.next() {
            return Some(of(Test::Throughput, wanted));
        }
        let rate = self.throughput.rate_pps();
        let latency = self.latency.as_ref().and_then(|latency| latency.next(rate));
        latency
            .map(|wanted| of(Test::Latency, wanted))
            .or_else(|| {
                let wanted = self.frame_loss.as_ref()?.next()?;
                Some(of(Test::FrameLoss, wanted))
            })
            .or_else(|| {
                let wanted = self.back_to_back.as_ref()?.next()?;
                Some(of(Test::BackToBack, wanted))
            })
    }

    /// Takes its outcome, and says whether it counts: one that does not is asked for again.
    pub fn record(&mut self, trial: &Trial) -> bool {
        let Some((test, ask, _)) = self.wanted() else {
            return false;
        };
        if !self.doubt.accepts(trial) {
            self.invalid_trials += 1;
            return false;
        }
        let charged = self.doubt.charged(trial);
        self.bunched_trials += u64::from(charged.limit(0.0) != trial.limit(0.0));
        if self.is_spoiled(&charged) {
            self.invalid_trials += 1;
            return false;
        }
        self.trials += 1;
        self.seconds += ask.seconds();
        let trial = Trial { ask, ..charged };
        match test {
            Test::Throughput => self.throughput.record(&trial),
            Test::Latency => self.latency.iter_mut().for_each(|test| test.record(&trial)),
            Test::FrameLoss => self.frame_loss.iter_mut().for_each(|test| test.record(&trial)),
            Test::BackToBack => self.back_to_back.iter_mut().for_each(|test| test.record(&trial)),
        }
        true
    }

    /// Whether only our own side kept the trial from being good, and another one may tell more of the path: a single trial
    /// decides here, and one pause of our receiver would halve the answer.
    fn is_spoiled(&mut self, trial: &Trial) -> bool {
        let before = self.spoiled.take().map_or(0, |(_, in_a_row)| in_a_row);
        let ours = trial.limit(0.0).filter(|limit| limit.is_ours());
        self.spoiled = ours
            .map(|limit| (limit, before + 1))
            .filter(|(_, in_a_row)| *in_a_row < SPOILED_IN_A_ROW_MAX);
        self.spoiled.is_some()
    }

    /// What is known so far.
    pub fn result(&self) -> SearchResult {
        let rate = self.throughput.rate_pps();
        SearchResult {
            goals: vec![self.throughput.result()],
            rfc2544: Some(Rfc2544Result {
                latency: self.latency.as_ref().and_then(|latency| latency.result(rate)),
                frame_loss: self.frame_loss.as_ref().map_or_else(Vec::new, FrameLoss::rows),
                back_to_back: self.back_to_back.as_ref().and_then(|test| test.result(rate)),
            }),
            trials: self.trials,
            invalid_trials: self.invalid_trials,
            bunched_trials: self.bunched_trials,
            seconds: self.seconds,
            complete: self.wanted().is_none(),
        }
    }
}
