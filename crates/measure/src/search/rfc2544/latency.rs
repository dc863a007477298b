//! Latency (RFC 2544, section 26.2): many long trials at the throughput, and the mean of what they measured.
//!
//! The RFC tags one frame of a trial, for want of a tester that could time them all. Here every packet counts.

use serde::{Deserialize, Serialize};

use super::super::{Ask, Purpose, Trial};
use super::Test;

/// Latency at the throughput, in ns: means over the trials, and the extremes of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyResult {
    /// The rate, in packets per second.
    pub rate_pps: f64,
    /// Trials, without those in which our sender fell short of the rate: they are in none of these numbers.
    pub trials: u64,
    /// Smallest of all.
    pub min_ns: Option<u64>,
    /// Mean of the trials' means.
    pub mean_ns: Option<f64>,
    /// Mean of the trials' medians.
    pub p50_ns: Option<f64>,
    /// Mean of the trials' 99th percentiles.
    pub p99_ns: Option<f64>,
    /// Largest of all.
    pub max_ns: Option<u64>,
    /// Packets that never came, and have no latency; `None` in files from before this was kept.
    pub lost: Option<u64>,
}

/// The trials of latency.
#[derive(Debug, Clone)]
pub(super) struct Latency {
    wanted: u32,
    trial_ns: u64,
    trials: Vec<Trial>,
}

impl Latency {
    pub fn new(wanted: u32, trial_ns: u64) -> Self {
        Self {
            wanted,
            trial_ns,
            trials: Vec::new(),
        }
    }

    /// Nothing to do where there is no throughput.
    pub fn next(&self, rate_pps: Option<f64>) -> Option<(Ask, Purpose)> {
        let done = self.trials.len();
        let rate_pps = rate_pps.filter(|_| done < self.wanted as usize)?;
        let words = format!("trial {} of {} at the throughput", done + 1, self.wanted);
        let brief = format!("latency: trial {} of {}", done + 1, self.wanted);
        let purpose = Purpose::new(Test::Latency.to_string(), words).in_brief(brief);
        Some((Ask::lasting(rate_pps, self.trial_ns), purpose))
    }

    pub fn record(&mut self, trial: &Trial) {
        self.trials.push(trial.clone());
    }

    pub fn result(&self, rate_pps: Option<f64>) -> Option<LatencyResult> {
        let offered = || self.trials.iter().filter(|trial| trial.is_offered());
        let latencies = || offered().map(|trial| trial.latency_ns);
        Some(LatencyResult {
            rate_pps: rate_pps.filter(|_| !self.trials.is_empty())?,
            trials: offered().count() as u64,
            min_ns: latencies().filter_map(|latency| latency.min).min(),
            mean_ns: mean(latencies().filter_map(|latency| latency.mean)),
            p50_ns: mean(latencies().filter_map(|latency| latency.p50).map(|ns| ns as f64)),
            p99_ns: mean(latencies().filter_map(|latency| latency.p99).map(|ns| ns as f64)),
            max_ns: latencies().filter_map(|latency| latency.max).max(),
            // In all of them: what our sender offered too little of was lost all the same.
            lost: Some(
                self.trials
                    .iter()
                    .map(|trial| trial.lost.total())
                    .fold(0, u64::saturating_add),
            ),
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
