//! The figures of a result by their names: what an expectation can be about, and what results are compared by.

use crate::balance::Balance;
use crate::capture::CaptureSummary;
use crate::forward::ForwardSummary;
use crate::place::{DENIED, FILTERED, RING_FULL, RX_MISSED, SAMPLED_OUT, TX_FULL};
use crate::replay::ReplaySummary;
use crate::summary::Summary;
use crate::units::{decimal_prefix, time_unit_ns};

/// What a metric counts in, and so which units its bound may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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

    /// What `number` of the written unit is in the metric's own, rounded once: 1.1 % is what 11 of 1,000 are, and 1.1 times 0.01
    /// is more.
    pub(crate) fn value(self, number: f64, unit: &str) -> Option<f64> {
        let power_of_ten = self.factor(unit)?.log10().round();
        format!("{number}e{power_of_ten}").parse().ok()
    }

    /// How many of the metric's own unit one of the written unit is: a power of ten.
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

/// Something of the result `S` that can be compared.
#[derive(Debug)]
pub struct Metric<S> {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) value: fn(&S) -> Option<f64>,
}

/// A result that expectations can be about.
pub trait Measured: Sized + 'static {
    /// Every metric there is.
    fn metrics() -> &'static [Metric<Self>];
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

/// A count of what came back, where that was asked for.
fn back(summary: &Summary, value: u64) -> Option<f64> {
    count(value).filter(|_| !summary.is_one_way())
}

/// A latency from the schedule, where there is one: without a rate it would be that from the departure again.
fn scheduled(summary: &Summary, value: Option<u64>) -> Option<f64> {
    time(value).filter(|_| summary.rate_asked_pps.is_some())
}

const fn row<S>(name: &'static str, kind: Kind, value: fn(&S) -> Option<f64>) -> Metric<S> {
    Metric { name, kind, value }
}

/// The metrics of a run that sends.
static METRICS: [Metric<Summary>; 26] = [
    row("loss", Kind::Ratio, |s| s.loss().filter(|_| !s.is_one_way())),
    row("lost", Kind::Packets, |s| back(s, s.lost)),
    row("sent", Kind::Packets, |s| count(s.sent)),
    row("received", Kind::Packets, |s| back(s, s.received)),
    row("unsent", Kind::Packets, |s| count(s.ledger.unsent)),
    row("duplicate", Kind::Packets, |s| back(s, s.duplicate)),
    row("reordered", Kind::Packets, |s| back(s, s.reordered)),
    row("corrupt", Kind::Packets, |s| back(s, s.corrupt)),
    row("late", Kind::Packets, |s| back(s, s.late)),
    row("unexplained", Kind::Packets, |s| back(s, s.unexplained)),
    row("latency_min", Kind::Nanoseconds, |s| time(s.latency_ns.min)),
    row("latency_mean", Kind::Nanoseconds, |s| s.latency_ns.mean),
    row("latency_p50", Kind::Nanoseconds, |s| time(s.latency_ns.p50)),
    row("latency_p90", Kind::Nanoseconds, |s| time(s.latency_ns.p90)),
    row("latency_p99", Kind::Nanoseconds, |s| time(s.latency_ns.p99)),
    row("latency_p999", Kind::Nanoseconds, |s| time(s.latency_ns.p999)),
    row("latency_max", Kind::Nanoseconds, |s| time(s.latency_ns.max)),
    row("latency_scheduled_p50", Kind::Nanoseconds, |s| {
        scheduled(s, s.latency_scheduled_ns.p50)
    }),
    row("latency_scheduled_p90", Kind::Nanoseconds, |s| {
        scheduled(s, s.latency_scheduled_ns.p90)
    }),
    row("latency_scheduled_p99", Kind::Nanoseconds, |s| {
        scheduled(s, s.latency_scheduled_ns.p99)
    }),
    row("latency_scheduled_p999", Kind::Nanoseconds, |s| {
        scheduled(s, s.latency_scheduled_ns.p999)
    }),
    row("latency_scheduled_max", Kind::Nanoseconds, |s| {
        scheduled(s, s.latency_scheduled_ns.max)
    }),
    row("jitter", Kind::Nanoseconds, |s| s.jitter_ns),
    row("pdv", Kind::Nanoseconds, |s| time(s.pdv_ns)),
    row("rate_tx", Kind::Rate, |s| Some(s.rate_tx_pps)),
    row("rate_rx", Kind::Rate, |s| {
        Some(s.rate_rx_pps).filter(|_| !s.is_one_way())
    }),
];

/// The metrics of a capture.
static CAPTURE_METRICS: [Metric<CaptureSummary>; 12] = [
    row("loss", Kind::Ratio, CaptureSummary::loss),
    row("lost", Kind::Packets, |s| count(s.lost())),
    row("came", Kind::Packets, |s| count(s.ledger.entered)),
    row("received", Kind::Packets, |s| count(s.received)),
    row("captured", Kind::Packets, |s| count(s.captured)),
    row("late", Kind::Packets, |s| count(s.late)),
    row("rx_missed", Kind::Packets, |s| charged(&s.ledger, RX_MISSED)),
    row("ring_full", Kind::Packets, |s| charged(&s.ledger, RING_FULL)),
    row("filtered", Kind::Packets, |s| charged(&s.ledger, FILTERED)),
    row("sampled_out", Kind::Packets, |s| charged(&s.ledger, SAMPLED_OUT)),
    row("unexplained", Kind::Packets, |s| count(s.ledger.unexplained)),
    row("rate_rx", Kind::Rate, |s| Some(s.rate_rx_pps)),
];

/// Those of a replay.
static REPLAY_METRICS: [Metric<ReplaySummary>; 13] = [
    row("loss", Kind::Ratio, ReplaySummary::loss),
    row("lost", Kind::Packets, |s| count(s.lost())),
    row("sent", Kind::Packets, |s| count(s.ledger.left)),
    row("unexplained", Kind::Packets, |s| count(s.ledger.unexplained)),
    row("rate_tx", Kind::Rate, |s| Some(s.rate_tx_pps)),
    row("gap_error_p50", Kind::Nanoseconds, |s| time(s.gap_error_ns.p50)),
    row("gap_error_p99", Kind::Nanoseconds, |s| time(s.gap_error_ns.p99)),
    row("gap_error_p999", Kind::Nanoseconds, |s| time(s.gap_error_ns.p999)),
    row("gap_error_max", Kind::Nanoseconds, |s| time(s.gap_error_ns.max)),
    row("lateness_p50", Kind::Nanoseconds, |s| time(s.late_ns.p50)),
    row("lateness_p99", Kind::Nanoseconds, |s| time(s.late_ns.p99)),
    row("lateness_p999", Kind::Nanoseconds, |s| time(s.late_ns.p999)),
    row("lateness_max", Kind::Nanoseconds, |s| time(s.late_ns.max)),
];

/// Those of forwarding.
static FORWARD_METRICS: [Metric<ForwardSummary>; 11] = [
    row("loss", Kind::Ratio, ForwardSummary::loss),
    row("lost", Kind::Packets, |s| count(s.lost())),
    row("came", Kind::Packets, |s| count(s.ledger.entered)),
    row("received", Kind::Packets, |s| count(s.received)),
    row("forwarded", Kind::Packets, |s| count(s.ledger.left)),
    row("denied", Kind::Packets, |s| charged(&s.ledger, DENIED)),
    row("tx_full", Kind::Packets, |s| charged(&s.ledger, TX_FULL)),
    row("rx_missed", Kind::Packets, |s| charged(&s.ledger, RX_MISSED)),
    row("unexplained", Kind::Packets, |s| count(s.ledger.unexplained)),
    row("rate_rx", Kind::Rate, |s| Some(s.rate_rx_pps)),
    row("rate_tx", Kind::Rate, |s| Some(s.rate_tx_pps)),
];

/// What a place of the ledger was charged with.
fn charged(ledger: &Balance, place: &str) -> Option<f64> {
    count(ledger.charged(place))
}

impl Measured for Summary {
    fn metrics() -> &'static [Metric<Self>] {
        &METRICS
    }
}

impl Measured for CaptureSummary {
    fn metrics() -> &'static [Metric<Self>] {
        &CAPTURE_METRICS
    }
}

impl Measured for ForwardSummary {
    fn metrics() -> &'static [Metric<Self>] {
        &FORWARD_METRICS
    }
}

impl Measured for ReplaySummary {
    fn metrics() -> &'static [Metric<Self>] {
        &REPLAY_METRICS
    }
}

/// The names of all metrics of a result.
pub fn metric_names<S: Measured>() -> impl Iterator<Item = &'static str> {
    S::metrics().iter().map(|metric| metric.name)
}

/// The figure of that name; `None` where there is none, or nothing to tell.
pub fn figure<S: Measured>(summary: &S, name: &str) -> Option<f64> {
    metric::<S>(name).and_then(|metric| (metric.value)(summary))
}

/// The metric of that name.
pub(crate) fn metric<S: Measured>(name: &str) -> Option<&'static Metric<S>> {
    S::metrics().iter().find(|metric| metric.name == name)
}
