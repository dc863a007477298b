//! The figures of a result that an expectation can be about.

use crate::summary::Summary;
use crate::units::{decimal_prefix, time_unit_ns};

/// What a metric counts in, and so which units its bound may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Kind::Ratio => "ratio",
            Kind::Packets => "packets",
            Kind::Nanoseconds => "ns",
            Kind::Rate => "pps",
        }
    }

    /// The units a bound may be written in.
    pub(crate) fn allowed(self) -> &'static str {
        match self {
            Kind::Ratio => "% or ppm",
            Kind::Packets => "a whole number, k or M",
            Kind::Nanoseconds => "ns, us, ms or s",
            Kind::Rate => "pps, kpps, Mpps or Gpps",
        }
    }

    /// How many of the metric's own unit one of the written unit is.
    pub(crate) fn factor(self, unit: &str) -> Option<f64> {
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
pub(crate) struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub value: fn(&Summary) -> Option<f64>,
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
pub(crate) fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}
