//! Throughput (RFC 2544, section 26.1): the highest rate at which nothing is lost, halved for with long trials.

use super::super::result::{Bound, GoalResult, Limit};
use super::super::{Ask, Ceiling, Purpose, Range, Trial};
use super::Test;
use crate::units::format_rate;

/// The search for the throughput.
#[derive(Debug, Clone)]
pub(super) struct Throughput {
    range: Range,
    trial_ns: u64,
    width: f64,
    lower: Option<Trial>,
    upper: Option<Trial>,
}

impl Throughput {
    pub fn new(range: Range, trial_ns: u64, width: f64) -> Self {
        Self {
            range,
            trial_ns,
            width,
            lower: None,
            upper: None,
        }
    }

    /// The rate found, so far.
    pub fn rate_pps(&self) -> Option<f64> {
        self.lower.as_ref().map(|trial| trial.ask.rate_pps)
    }

    pub fn next(&self) -> Option<(Ask, Purpose)> {
        let (min, max) = (self.range.min_pps, self.range.max_pps);
        let of = |words: &str| Purpose::new(Test::Throughput.to_string(), words);
        let (rate, purpose) = match (self.rate_pps(), &self.upper) {
            (None, None) => (max, of("the highest rate first")),
            (Some(_), None) => return None,
            (lower, Some(upper)) => {
                let upper = upper.ask.rate_pps;
                let from = lower.unwrap_or(min);
                if upper <= min || (upper - from) <= upper * self.width && lower.is_some() {
                    return None;
                }
                if (upper - from) <= upper * self.width {
                    let lowest = of("nothing was carried: the lowest rate");
                    (min, lowest.in_brief("throughput: the lowest rate"))
                } else {
                    let shown = (format_rate(from), format_rate(upper));
                    let between = of(&format!("between {} and {}", shown.0, shown.1));
                    (middle(from, upper), between.in_brief("throughput: halving"))
                }
            }
        };
        Some((Ask::lasting(rate, self.trial_ns), purpose))
    }

    pub fn record(&mut self, trial: &Trial) {
        if trial.is_good(0.0) {
            self.lower = Some(trial.clone());
        } else {
            self.upper = Some(trial.clone());
        }
    }

    pub fn result(&self) -> GoalResult {
        let limit = match (&self.lower, &self.upper) {
            (None, None) => Limit::Unknown,
            (lower, Some(upper)) => match upper.limit(0.0).unwrap_or(Limit::Unknown) {
                Limit::Path if lower.is_none() && upper.ask.rate_pps <= self.range.min_pps => Limit::MinRate,
                limit => limit,
            },
            (Some(_), None) => match self.range.ceiling {
                Ceiling::Asked => Limit::MaxRate,
                Ceiling::Sender => Limit::Sender,
                Ceiling::Line => Limit::Line,
            },
        };
        let bound = |trial: &Trial| Bound::of(trial.ask.rate_pps, std::slice::from_ref(trial), 0.0);
        GoalResult {
            name: "throughput".to_owned(),
            loss_ratio: 0.0,
            complete: self.next().is_none(),
            limit,
            throughput_pps: self.rate_pps(),
            conditional_throughput_pps: self.rate_pps(),
            lower: self.lower.as_ref().map(bound),
            upper: self.upper.as_ref().map(bound),
        }
    }
}

/// Whole packets per second where that is no coarser than the search.
fn middle(lower: f64, upper: f64) -> f64 {
    let middle = f64::midpoint(lower, upper);
    if upper - lower > 1000.0 {
        middle.round()
    } else {
        middle
    }
}
