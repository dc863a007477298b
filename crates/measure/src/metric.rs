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

const fn row(name: &'static str, kind: Kind, value: fn(&Summary) -> Option<f64>) -> Metric {
    Metric { name, kind, value }
}

/// Every metric there is.
static METRICS: [Metric; 21] = [
    row("loss", Kind::Ratio, Summary::loss),
    row("lost", Kind::Packets, |s| count(s.lost)),
    row("sent", Kind::Packets, |s| count(s.sent)),
    row("received", Kind::Packets, |s| count(s.received)),
    row("unsent", Kind::Packets, |s| count(s.ledger.unsent)),
    row("duplicate", Kind::Packets, |s| count(s.duplicate)),
    row("reordered", Kind::Packets, |s| count(s.reordered)),
    row("corrupt", Kind::Packets, |s| count(s.corrupt)),
    row("late", Kind::Packets, |s| count(s.late)),
    row("unexplained", Kind::Packets, |s| count(s.unexplained)),
    row("latency_min", Kind::Nanoseconds, |s| time(s.latency_ns.min)),
    row("latency_mean", Kind::Nanoseconds, |s| s.latency_ns.mean),
    row("latency_p50", Kind::Nanoseconds, |s| time(s.latency_ns.p50)),
    row("latency_p90", Kind::Nanoseconds, |s| time(s.latency_ns.p90)),
    row("latency_p99", Kind::Nanoseconds, |s| time(s.latency_ns.p99)),
    row("latency_p999", Kind::Nanoseconds, |s| time(s.latency_ns.p999)),
    row("latency_max", Kind::Nanoseconds, |s| time(s.latency_ns.max)),
    row("jitter", Kind::Nanoseconds, |s| s.jitter_ns),
    row("pdv", Kind::Nanoseconds, |s| time(s.pdv_ns)),
    row("rate_tx", Kind::Rate, |s| Some(s.rate_tx_pps)),
    row("rate_rx", Kind::Rate, |s| Some(s.rate_rx_pps)),
];

/// The names of all metrics.
pub fn metric_names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|metric| metric.name)
}

/// The metric of that name.
pub(crate) fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}
