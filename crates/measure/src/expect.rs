//! `--expect`: conditions on the result, such as `loss<0.001%`, that decide the exit code.

use std::str::FromStr;

use thiserror::Error;

use crate::result::ExpectationResult;
use crate::summary::Summary;
use crate::units::{decimal_prefix, split_number, time_unit_ns};

/// What a metric counts in, and so which units its bound may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A part of the whole.
    Ratio,
    /// A number of packets.
    Packets,
    /// A length of time.
    Nanoseconds,
    /// Packets per second.
    Rate,
}

impl Kind {
    /// The unit of the metric's value in results.
    fn unit(self) -> &'static str {
        match self {
            Kind::Ratio => "ratio",
            Kind::Packets => "packets",
            Kind::Nanoseconds => "ns",
            Kind::Rate => "pps",
        }
    }

    /// The units a bound may be written in.
    fn allowed(self) -> &'static str {
        match self {
            Kind::Ratio => "%, ppm or a plain ratio",
            Kind::Packets => "a whole number, k or M",
            Kind::Nanoseconds => "ns, us, ms or s",
            Kind::Rate => "pps, kpps, Mpps or Gpps",
        }
    }

    /// How many of the metric's own unit one of the written unit is.
    fn factor(self, unit: &str) -> Option<f64> {
        let lower = unit.to_ascii_lowercase();
        match self {
            Kind::Ratio => match lower.as_str() {
                "" => Some(1.0),
                "%" => Some(1e-2),
                "ppm" => Some(1e-6),
                _ => None,
            },
            Kind::Packets => decimal_prefix(&lower),
            Kind::Nanoseconds => {
                time_unit_ns(unit).filter(|_| matches!(unit, "ns" | "us" | "µs" | "μs" | "ms" | "s"))
            }
            Kind::Rate => lower.strip_suffix("pps").and_then(decimal_prefix),
        }
    }
}

/// Something of the result that can be compared.
#[derive(Debug, Clone, Copy)]
struct Metric {
    name: &'static str,
    kind: Kind,
    value: fn(&Summary) -> Option<f64>,
}

/// A time in ns as f64.
fn time(value: Option<u64>) -> Option<f64> {
    value.map(|ns| ns as f64)
}

/// A count as f64 (exact up to 2^53 packets: at 100 Mpps, three years).
#[allow(
    clippy::unnecessary_wraps,
    reason = "the table below wants an Option from every metric"
)]
fn count(value: u64) -> Option<f64> {
    Some(value as f64)
}

/// Every metric there is.
static METRICS: &[Metric] = &[
    Metric {
        name: "loss",
        kind: Kind::Ratio,
        value: Summary::loss,
    },
    Metric {
        name: "lost",
        kind: Kind::Packets,
        value: |s| count(s.lost),
    },
    Metric {
        name: "sent",
        kind: Kind::Packets,
        value: |s| count(s.sent),
    },
    Metric {
        name: "received",
        kind: Kind::Packets,
        value: |s| count(s.received),
    },
    Metric {
        name: "unsent",
        kind: Kind::Packets,
        value: |s| count(s.ledger.unsent),
    },
    Metric {
        name: "duplicate",
        kind: Kind::Packets,
        value: |s| count(s.duplicate),
    },
    Metric {
        name: "reordered",
        kind: Kind::Packets,
        value: |s| count(s.reordered),
    },
    Metric {
        name: "corrupt",
        kind: Kind::Packets,
        value: |s| count(s.corrupt),
    },
    Metric {
        name: "late",
        kind: Kind::Packets,
        value: |s| count(s.late),
    },
    Metric {
        name: "unexplained",
        kind: Kind::Packets,
        value: |s| count(s.unexplained),
    },
    Metric {
        name: "latency_min",
        kind: Kind::Nanoseconds,
        value: |s| time(s.latency_ns.min),
    },
    Metric {
        name: "latency_mean",
        kind: Kind::Nanoseconds,
        value: |s| s.latency_ns.mean,
    },
    Metric {
        name: "latency_p50",
        kind: Kind::Nanoseconds,
        value: |s| time(s.latency_ns.p50),
    },
    Metric {
        name: "latency_p90",
        kind: Kind::Nanoseconds,
        value: |s| time(s.latency_ns.p90),
    },
    Metric {
        name: "latency_p99",
        kind: Kind::Nanoseconds,
        value: |s| time(s.latency_ns.p99),
    },
    Metric {
        name: "latency_p999",
        kind: Kind::Nanoseconds,
        value: |s| time(s.latency_ns.p999),
    },
    Metric {
        name: "latency_max",
        kind: Kind::Nanoseconds,
        value: |s| time(s.latency_ns.max),
    },
    Metric {
        name: "jitter",
        kind: Kind::Nanoseconds,
        value: |s| s.jitter_ns,
    },
    Metric {
        name: "pdv",
        kind: Kind::Nanoseconds,
        value: |s| time(s.pdv_ns),
    },
    Metric {
        name: "rate_tx",
        kind: Kind::Rate,
        value: |s| Some(s.rate_tx_pps),
    },
    Metric {
        name: "rate_rx",
        kind: Kind::Rate,
        value: |s| Some(s.rate_rx_pps),
    },
];

/// The names of all metrics.
pub fn metric_names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|metric| metric.name)
}

/// The metric of that name.
fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// Longer signs first, so that `<=` is not read as `<`.
const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl Operator {
    /// Whether the comparison holds.
    #[allow(
        clippy::float_cmp,
        reason = "counts are whole numbers, and == on a rate is what the user asked"
    )]
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Operator::Less => left < right,
            Operator::LessOrEqual => left <= right,
            Operator::Greater => left > right,
            Operator::GreaterOrEqual => left >= right,
            Operator::Equal => left == right,
            Operator::NotEqual => left != right,
        }
    }
}

/// What the metric is compared with.
#[derive(Debug, Clone, Copy)]
enum Bound {
    /// A value in the metric's own unit.
    Value(f64),
    /// Another metric of the same kind.
    Metric(&'static Metric),
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
    #[error("expectation {text:?}: there is no metric {name:?}; there are {}", metric_names().collect::<Vec<_>>().join(", "))]
    UnknownMetric {
        /// The whole expectation.
        text: String,
        /// The name in it.
        name: String,
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

/// One condition on the result.
#[derive(Debug, Clone)]
pub struct Expectation {
    text: String,
    metric: &'static Metric,
    operator: Operator,
    bound: Bound,
}

impl FromStr for Expectation {
    type Err = ExpectError;

    fn from_str(text: &str) -> Result<Expectation, ExpectError> {
        let place = text.find(['<', '>', '=', '!']).unwrap_or(text.len());
        let (name, rest) = (text[..place].trim(), &text[place..]);
        let (sign, operator) = OPERATORS
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(|| ExpectError::NoOperator(text.to_owned()))?;
        let metric = metric(name).ok_or_else(|| ExpectError::UnknownMetric {
            text: text.to_owned(),
            name: name.to_owned(),
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
fn bound(left: &'static Metric, text: &str) -> Option<Bound> {
    if let Some(right) = metric(text) {
        return (right.kind == left.kind).then_some(Bound::Metric(right));
    }
    let (number, unit) = split_number(text)?;
    Some(Bound::Value(number * left.kind.factor(unit)?))
}

impl Expectation {
    /// The expectation as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Compares with the result; what could not be measured does not meet any expectation.
    pub fn evaluate(&self, summary: &Summary) -> ExpectationResult {
        let actual = (self.metric.value)(summary).filter(|value| !value.is_nan());
        let bound = match self.bound {
            Bound::Value(value) => Some(value),
            Bound::Metric(metric) => (metric.value)(summary),
        };
        let met = actual
            .zip(bound)
            .is_some_and(|(actual, bound)| self.operator.holds(actual, bound));
        ExpectationResult {
            text: self.text.clone(),
            actual,
            unit: self.metric.kind.unit().to_owned(),
            met,
        }
    }
}
