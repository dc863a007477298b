//! `--expect`: conditions on the result, such as `loss<0.001%`, that decide the exit code.

use std::str::FromStr;

use thiserror::Error;

use crate::metric::{Kind, Measured, Metric, metric, metric_names};
use crate::result::ExpectationResult;
use crate::summary::Summary;
use crate::units::split_number;

/// A comparison of what was found with what is wanted.
type Operator = fn(&f64, &f64) -> bool;

/// Longer signs first, so that `<=` is not read as `<`. Counts are whole numbers, and == on a rate is what the user asked.
const OPERATORS: [(&str, Operator); 6] = [
    ("<=", f64::le),
    (">=", f64::ge),
    ("==", f64::eq),
    ("!=", f64::ne),
    ("<", f64::lt),
    (">", f64::gt),
];

/// What the metric is compared with.
#[derive(Debug, Clone)]
enum Bound<S: 'static> {
    /// A value in the metric's own unit.
    Value(f64),
    /// Another metric of the same kind.
    Metric(&'static Metric<S>),
}

/// Why an expectation cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpectError {
    /// There is no comparison in it.
    #[error(
        "expectation {0:?} has no comparison: write METRIC<VALUE with <, <=, >, >=, == or !=, such as 'loss<0.001%'"
    )]
    NoOperator(String),
    /// The metric does not exist.
    #[error("expectation {text:?}: there is no metric {name:?}; there are {known}")]
    UnknownMetric {
        /// The whole expectation.
        text: String,
        /// The name in it.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The bound does not fit the metric.
    #[error("expectation {text:?}: {bound:?} is no bound for {metric}: write a number in {allowed}")]
    BadBound {
        /// The whole expectation.
        text: String,
        /// The bound in it.
        bound: String,
        /// The metric.
        metric: &'static str,
        /// The units that fit.
        allowed: &'static str,
    },
}

/// One condition on the result `S`.
#[derive(Debug, Clone)]
pub struct Expectation<S: 'static = Summary> {
    text: String,
    metric: &'static Metric<S>,
    operator: Operator,
    bound: Bound<S>,
}

impl<S: Measured> FromStr for Expectation<S> {
    type Err = ExpectError;

    fn from_str(text: &str) -> Result<Self, ExpectError> {
        let place = text.find(['<', '>', '=', '!']).unwrap_or(text.len());
        let (name, rest) = (text[..place].trim(), &text[place..]);
        let (sign, operator) = OPERATORS
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(|| ExpectError::NoOperator(text.to_owned()))?;
        let metric = metric::<S>(name).ok_or_else(|| ExpectError::UnknownMetric {
            text: text.to_owned(),
            name: name.to_owned(),
            known: metric_names::<S>().collect::<Vec<_>>().join(", "),
        })?;
        let bound_text = rest[sign.len()..].trim();
        let bound = bound(metric, bound_text).ok_or_else(|| ExpectError::BadBound {
            text: text.to_owned(),
            bound: bound_text.to_owned(),
            metric: metric.name,
            allowed: metric.kind.allowed(),
        })?;
        Ok(Expectation {
            text: text.to_owned(),
            metric,
            operator,
            bound,
        })
    }
}

/// Reads the right-hand side: a number with a unit of the metric's kind, or another metric of that kind.
fn bound<S: Measured>(left: &'static Metric<S>, text: &str) -> Option<Bound<S>> {
    if let Some(right) = metric::<S>(text) {
        return (right.kind == left.kind).then_some(Bound::Metric(right));
    }
    let (number, unit) = split_number(text)?;
    // 0.1 of what? Ten percent is as likely meant as a tenth of one.
    if left.kind == Kind::Ratio && unit.is_empty() && number != 0.0 {
        return None;
    }
    Some(Bound::Value(left.kind.value(number, unit)?))
}

/// Refuses what of `texts` is no expectation of the result `S`.
pub fn check<S: Measured>(texts: &[String]) -> Result<(), ExpectError> {
    let read = |text: &String| text.parse::<Expectation<S>>().map(drop);
    texts.iter().try_for_each(read)
}

/// What became of the expectations `texts`, which [`check`] has not refused.
pub fn evaluate<S: Measured>(texts: &[String], summary: &S) -> Vec<ExpectationResult> {
    let read = texts
        .iter()
        .filter_map(|text| text.parse::<Expectation<S>>().ok());
    read.map(|expectation| expectation.evaluate(summary)).collect()
}

impl<S: Measured> Expectation<S> {
    /// The expectation as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Compares with the result; what could not be measured does not meet any expectation.
    pub fn evaluate(&self, summary: &S) -> ExpectationResult {
        let measured = |metric: &Metric<S>| (metric.value)(summary).filter(|value| !value.is_nan());
        let actual = measured(self.metric);
        let bound = match &self.bound {
            Bound::Value(value) => Some(*value),
            Bound::Metric(metric) => measured(metric),
        };
        let met = actual
            .zip(bound)
            .is_some_and(|(actual, bound)| (self.operator)(&actual, &bound));
        ExpectationResult {
            text: self.text.clone(),
            actual,
            unit: self.metric.kind.unit().to_owned(),
            met,
        }
    }
}
