//! `--fail-if`: rules such as `loss worse 10%` that compare the last run with the first.

use std::str::FromStr;

use measure::units::{RateSpec, parse_count, parse_duration};

use super::metrics::{self, Metric, Unit, Worse};
use crate::load::Loaded;

/// Why a rule, which comes first, cannot be read. One line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Not the form.
    #[error("rule {0:?} is not `METRIC worse AMOUNT`, such as 'loss worse 10%' or 'latency_p99 worse 5us'")]
    Form(String),
    /// No such figure.
    #[error("rule {0:?}: there is no metric {1:?}; there are {known}", known = known())]
    Metric(String, String),
    /// An amount of another kind than those of the figure, and what else it could be.
    #[error("rule {0:?}: {1:?} is no amount of {2}: write percent, such as 10%, or {3}")]
    Amount(String, String, &'static str, &'static str),
}

fn known() -> String {
    metrics::all()
        .map(|metric| metric.label)
        .collect::<Vec<_>>()
        .join(", ")
}

/// How much worse a figure may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Room {
    /// A part of the baseline.
    Part(f64),
    /// In the figure's own unit.
    Amount(f64),
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    metric: Metric,
    room: Room,
}

/// What a rule says of two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Not worse than allowed.
    Holds(String),
    /// Worse; the line that says so.
    Failed(String),
    /// One of the runs does not know the figure, or has none that is a number.
    Unknown(String),
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let form = || RuleError::Form(text.to_owned());
        let words: Vec<&str> = text.split_whitespace().collect();
        let place = words.iter().position(|word| *word == "worse").ok_or_else(form)?;
        let (name, amount) = (words[..place].join("_"), words[place + 1..].concat());
        if name.is_empty() || amount.is_empty() {
            return Err(form());
        }
        // `latency p99.9` is how people write `latency_p999`.
        let plain = name.replace('.', "");
        let text = text.to_owned();
        let Some(&metric) = metrics::find(&plain) else {
            return Err(RuleError::Metric(text, name));
        };
        match room(metric.unit, &amount) {
            Some(room) => Ok(Self { text, metric, room }),
            None => Err(RuleError::Amount(text, amount, metric.name, allowed(metric.unit))),
        }
    }
}

fn allowed(unit: Unit) -> &'static str {
    match unit {
        Unit::Ratio => "percentage points, such as 0.1points",
        Unit::Packets | Unit::Stalls => "a count, such as 100 or 10k",
        Unit::Nanoseconds => "a time, such as 5us",
        Unit::Rate => "a rate, such as 10kpps",
    }
}

fn room(unit: Unit, amount: &str) -> Option<Room> {
    let number = |digits: &str| {
        digits
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|n| n.is_finite() && *n >= 0.0)
    };
    if let Some(percent) = amount.strip_suffix('%') {
        return number(percent).map(|percent| Room::Part(percent / 100.0));
    }
    let own = match unit {
        Unit::Ratio => {
            let points = amount.strip_suffix("points").or(amount.strip_suffix("point"))?;
            number(points).map(|points| points / 100.0)
        }
        Unit::Packets | Unit::Stalls => parse_count(amount).ok().map(|packets| packets as f64),
        Unit::Nanoseconds => parse_duration(amount).ok().map(|time| time.as_nanos() as f64),
        Unit::Rate => match amount.parse::<RateSpec>() {
            Ok(RateSpec::Pps(rate)) => Some(rate),
            _ => None,
        },
    };
    own.map(Room::Amount)
}

impl Rule {
    /// Compares `now` with `baseline`. Where the baseline is 0, anything worse is more than any percentage. Of a figure
    /// that they have several of, the first that is worse tells.
    pub fn judge(&self, baseline: &Loaded, now: &Loaded) -> Judgement {
        let name = self.metric.name;
        let unknown = |run: &Loaded, what: &str| {
            Judgement::Unknown(format!("{}: {} has no {what}", self.text, run.in_words()))
        };
        let (before, after) = (baseline.figures(name), now.figures(name));
        if before.is_empty() {
            return unknown(baseline, name);
        }
        let mut held = Vec::new();
        for (of, before) in before {
            let Some((_, after)) = after.iter().find(|(other, _)| *other == of) else {
                return unknown(now, format!("{name} {of}").trim_end());
            };
            if let Some((run, _)) = [(baseline, before), (now, *after)]
                .into_iter()
                .find(|(_, value)| !value.is_finite())
            {
                return Judgement::Unknown(format!(
                    "{}: {} has a {name} that is no number",
                    self.text,
                    run.in_words()
                ));
            }
            match self.compare(&of, (baseline, before), (now, *after)) {
                Judgement::Holds(line) => held.push(line),
                worse => return worse,
            }
        }
        Judgement::Holds(held.join("; "))
    }

    /// Compares two values of one figure.
    fn compare(
        &self,
        of: &str,
        (baseline, before): (&Loaded, f64),
        (now, after): (&Loaded, f64),
    ) -> Judgement {
        let Metric { unit, worse, .. } = self.metric;
        let by = match worse {
            Worse::Higher => after - before,
            Worse::Lower => before - after,
        };
        let room = match self.room {
            Room::Part(part) => part * before.abs(),
            Room::Amount(amount) => amount,
        };
        let percent = match before {
            0.0 if after > 0.0 => String::new(),
            0.0 => " (no change)".to_owned(),
            before => format!(" ({})", super::grown((after - before) / before)),
        };
        let colon = if of.is_empty() { "" } else { ": " };
        let line = format!(
            "{}: {of}{colon}{} in {}, {} in {}{percent}",
            self.text,
            unit.show(after),
            now.in_words(),
            unit.show(before),
            baseline.in_words(),
        );
        // What is exactly as much worse as allowed must not fail by the last bit of a fraction.
        if by > room * (1.0 + 1e-9) {
            Judgement::Failed(line)
        } else {
            Judgement::Holds(line)
        }
    }
}
