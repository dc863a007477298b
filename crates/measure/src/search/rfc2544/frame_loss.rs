//! Frame loss rate (RFC 2544, section 26.3): from the highest rate down in tenths, until two trials in a row lose nothing.

use serde::{Deserialize, Serialize};

use super::super::result::Limit;
use super::super::{Ask, Purpose, Range, Trial};
use super::Test;

/// The largest step that the RFC allows, as a part of the highest rate.
const STEPS: u32 = 10;

/// One rate and what was lost at it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FrameLossRow {
    /// Percent of the highest rate.
    pub percent: u32,
    /// Packets per second asked for.
    pub asked_pps: f64,
    /// Packets per second that our sender offered.
    pub offered_pps: f64,
    /// Lost packets as a part (0 to 1) of those offered.
    pub loss_ratio: f64,
    /// Who lost them, or offered less than asked; `null` where all came back.
    pub limit: Option<Limit>,
}

/// The trials of frame loss.
#[derive(Debug, Clone)]
pub(super) struct FrameLoss {
    range: Range,
    trial_ns: u64,
    trials: Vec<Trial>,
}

impl FrameLoss {
    pub fn new(range: Range, trial_ns: u64) -> Self {
        Self {
            range,
            trial_ns,
            trials: Vec::new(),
        }
    }

    pub fn next(&self) -> Option<(Ask, Purpose)> {
        let done = self.trials.len() as u32;
        let last_two = self.trials.iter().rev().take(2);
        let clean = last_two.filter(|trial| trial.is_good(0.0)).count();
        if clean == 2 || done >= STEPS {
            return None;
        }
        let percent = (STEPS - done) * 100 / STEPS;
        let rate_pps = self.range.max_pps * f64::from(percent) / 100.0;
        let words = format!("{percent} % of the highest rate");
        let brief = format!("frame loss: at {percent} %");
        let purpose = Purpose::new(Test::FrameLoss.to_string(), words).in_brief(brief);
        Some((Ask::lasting(rate_pps, self.trial_ns), purpose))
    }

    pub fn record(&mut self, trial: &Trial) {
        self.trials.push(trial.clone());
    }

    pub fn rows(&self) -> Vec<FrameLossRow> {
        let row = |(done, trial): (u32, &Trial)| FrameLossRow {
            percent: (STEPS - done) * 100 / STEPS,
            asked_pps: trial.ask.rate_pps,
            offered_pps: trial.ask.rate_pps * trial.offered as f64 / trial.due.max(1) as f64,
            loss_ratio: trial.loss_ratio(),
            limit: trial.limit(0.0),
        };
        (0..).zip(&self.trials).map(row).collect()
    }
}
