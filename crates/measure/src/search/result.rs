//! What a search found, as `search.json` and `--json` carry it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::result::Percentiles;

use super::rfc2544::{BackToBackResult, FrameLossRow, LatencyResult};

/// Who was the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The path: packets were lost on the way, and nobody of ours lost them.
    Path,
    /// The far reflector's own port.
    Reflector,
    /// Our sender could not offer more: the path may carry more.
    Sender,
    /// Our port took no more: the link or the far side pushed back.
    Port,
    /// Our receiver lost packets: the path may carry more.
    Receiver,
    /// The highest rate asked for was carried.
    MaxRate,
    /// The line rate was carried.
    Line,
    /// Not even the lowest rate was carried; no lower bound.
    MinRate,
    /// The search did not get that far.
    #[default]
    Unknown,
}

impl Limit {
    /// Whether the upper bound is one of the path: only then is the answer about the path on both sides.
    pub fn is_path(self) -> bool {
        matches!(self, Limit::Path | Limit::Line)
    }

    /// Whether it is one of us or of what is next to us, so that the path may carry more.
    pub fn is_ours(self) -> bool {
        matches!(
            self,
            Limit::Reflector | Limit::Sender | Limit::Port | Limit::Receiver
        )
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Path => "the path",
            Limit::Reflector => "the reflector",
            Limit::Sender => "our sender",
            Limit::Port => "the port",
            Limit::Receiver => "our receiver",
            Limit::MaxRate => "--max-rate",
            Limit::Line => "the line",
            Limit::MinRate => "below --min-rate",
            Limit::Unknown => "not known yet",
        })
    }
}

/// One end of the interval in which the answer lies.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Bound {
    /// Packets per second.
    pub rate_pps: f64,
    /// The same on layer 1 (frame, preamble and gap), in bit/s.
    pub rate_bps_l1: f64,
    /// The same on layer 2 (frame with FCS), in bit/s.
    pub rate_bps_l2: f64,
    /// Trials at this rate.
    pub trials: u64,
    /// Of those, the ones that did not meet the goal.
    pub bad_trials: u64,
    /// Seconds sent at this rate.
    pub seconds: f64,
    /// The smallest loss ratio of those trials.
    pub loss_min: f64,
    /// The largest.
    pub loss_max: f64,
    /// Latency from the real departure in those trials: of each percentile the highest of any of them, in ns.
    pub latency_ns: Percentiles,
}

/// The answer to one goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalResult {
    /// The goal's name.
    pub name: String,
    /// The loss ratio it allows.
    pub loss_ratio: f64,
    /// Whether the search for it came to its end.
    pub complete: bool,
    /// Who was the limit.
    pub limit: Limit,
    /// The highest rate known to be carried, in packets per second: the lower bound; `null` when there is none.
    pub throughput_pps: Option<f64>,
    /// What came back of it at least, in packets per second (conditional throughput).
    pub conditional_throughput_pps: Option<f64>,
    /// The highest rate known to be carried.
    pub lower: Option<Bound>,
    /// The lowest rate known not to be carried by the path together with our sender and receiver; see `limit`.
    pub upper: Option<Bound>,
}

/// What the further tests of RFC 2544 found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rfc2544Result {
    /// Latency at the throughput (section 26.2).
    pub latency: Option<LatencyResult>,
    /// Loss at falling rates (section 26.3).
    pub frame_loss: Vec<FrameLossRow>,
    /// The longest burst without loss (section 26.4, RFC 9004).
    pub back_to_back: Option<BackToBackResult>,
}

/// What a search for one frame size found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchResult {
    /// One for each goal.
    pub goals: Vec<GoalResult>,
    /// Further tests; absent in a search by `MLRsearch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rfc2544: Option<Rfc2544Result>,
    /// Trials that counted.
    pub trials: u64,
    /// Trials that were repeated: they could not be believed, or our own side spoiled them.
    pub invalid_trials: u64,
    /// Trials whose losses packets may have caused that our sender sent too close together, catching up.
    pub bunched_trials: u64,
    /// Seconds of sending in all of them.
    pub seconds: f64,
    /// Whether it came to its end.
    pub complete: bool,
}

impl SearchResult {
    /// Fills in bit rates, which need the mean frame size with FCS.
    pub fn with_bit_rates(&mut self, mean_frame_bytes: f64) {
        for goal in &mut self.goals {
            for bound in [&mut goal.lower, &mut goal.upper].into_iter().flatten() {
                bound.rate_bps_l2 = bound.rate_pps * mean_frame_bytes * 8.0;
                bound.rate_bps_l1 =
                    bound.rate_pps * (mean_frame_bytes + crate::units::LAYER1_OVERHEAD_BYTES) * 8.0;
            }
        }
    }
}

impl Bound {
    /// A bound of these trials, all at one rate.
    pub(super) fn of(rate_pps: f64, trials: &[super::Trial], loss_ratio: f64) -> Bound {
        let losses = || trials.iter().map(super::Trial::loss_ratio);
        Bound {
            rate_pps,
            trials: trials.len() as u64,
            bad_trials: trials.iter().filter(|trial| !trial.is_good(loss_ratio)).count() as u64,
            seconds: trials.iter().map(|trial| trial.ask.seconds()).sum(),
            loss_min: losses().fold(1.0, f64::min),
            loss_max: losses().fold(0.0, f64::max),
            latency_ns: trials.iter().fold(Percentiles::default(), |worst, trial| {
                worst.or_worse(trial.latency_ns)
            }),
            ..Bound::default()
        }
    }
}
