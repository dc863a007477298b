//! Back-to-back frames (RFC 2544, section 26.4): the longest burst at the highest rate of which nothing is lost, looked for
//! many times, and the buffer that it implies (RFC 9004).

use serde::{Deserialize, Serialize};

use super::super::result::Limit;
use super::super::{Ask, Extent, Purpose, Trial};
use super::Test;
use crate::units::format_count;

/// A burst is known to this part of the longest one, or to one packet.
const RESOLUTION: f64 = 0.001;

/// The longest burst without loss, over all repetitions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BackToBackResult {
    /// The rate of the bursts, in packets per second.
    pub rate_pps: f64,
    /// Repetitions.
    pub repeats: u64,
    /// Mean longest burst, in packets.
    pub packets_mean: f64,
    /// Smallest of the longest bursts.
    pub packets_min: u64,
    /// Largest of them.
    pub packets_max: u64,
    /// Standard deviation between repetitions.
    pub packets_deviation: f64,
    /// The longest burst tried was carried: the path may take more.
    pub is_open: bool,
    /// Who lost packets in the bursts that were too long, the path only where it was nobody else in any; `null` where there were none.
    pub limit: Option<Limit>,
    /// Mean longest burst over its rate: the time that the buffer seems to hold (RFC 9004, section 4), in seconds.
    pub implied_buffer_s: f64,
    /// The same, less what was worked off meanwhile: times (1 - throughput / rate); `null` without a throughput.
    pub corrected_buffer_s: Option<f64>,
}

/// The bursts.
#[derive(Debug, Clone)]
pub(super) struct BackToBack {
    rate_pps: f64,
    longest: u64,
    repeats: u32,
    found: Vec<u64>,
    carried: u64,
    lost: Option<u64>,
    limit: Option<Limit>,
}

impl BackToBack {
    pub fn new(rate_pps: f64, repeats: u32, burst_ns: u64) -> Self {
        Self {
            rate_pps,
            longest: ((rate_pps * burst_ns as f64 / 1e9) as u64).max(1),
            repeats,
            found: Vec::new(),
            carried: 0,
            lost: None,
            limit: None,
        }
    }

    fn resolution(&self) -> u64 {
        ((self.longest as f64 * RESOLUTION) as u64).max(1)
    }

    pub fn next(&self) -> Option<(Ask, Purpose)> {
        if self.found.len() >= self.repeats as usize {
            return None;
        }
        let packets = match self.lost {
            None => self.longest,
            Some(lost) => self.carried + (lost - self.carried) / 2,
        };
        let ask = Ask {
            rate_pps: self.rate_pps,
            extent: Extent::Packets(packets),
        };
        let (burst, number, repeats) = (format_count(packets), self.found.len() + 1, self.repeats);
        let words = format!("a burst of {burst}, repetition {number} of {repeats}");
        let brief = format!("a burst of {burst}, {number} of {repeats}");
        Some((
            ask,
            Purpose::new(Test::BackToBack.to_string(), words).in_brief(brief),
        ))
    }

    pub fn record(&mut self, trial: &Trial) {
        let Extent::Packets(packets) = trial.ask.extent else {
            return;
        };
        // A burst that our sender could not send as one proves nothing but its limit.
        if trial.is_good(0.0) {
            self.carried = packets;
        } else {
            self.lost = Some(packets);
            // The path was the limit only where it was that of every such burst.
            let ours = self.limit.filter(|limit| !limit.is_path());
            self.limit = ours.or(trial.limit(0.0));
        }
        let is_found = match self.lost {
            None => true,
            Some(lost) => lost - self.carried <= self.resolution(),
        };
        if is_found {
            self.found.push(self.carried);
            (self.carried, self.lost) = (0, None);
        }
    }

    pub fn result(&self, throughput_pps: Option<f64>) -> Option<BackToBackResult> {
        let count = self.found.len() as f64;
        let (min, max) = (self.found.iter().min()?, self.found.iter().max()?);
        let mean = self.found.iter().sum::<u64>() as f64 / count;
        let squares = self.found.iter().map(|packets| (*packets as f64 - mean).powi(2));
        let implied = mean / self.rate_pps;
        Some(BackToBackResult {
            rate_pps: self.rate_pps,
            repeats: self.found.len() as u64,
            packets_mean: mean,
            packets_min: *min,
            packets_max: *max,
            packets_deviation: (squares.sum::<f64>() / count).sqrt(),
            is_open: *max >= self.longest,
            limit: self.limit,
            implied_buffer_s: implied,
            corrected_buffer_s: throughput_pps.map(|pps| implied * (1.0 - pps / self.rate_pps).max(0.0)),
        })
    }
}
