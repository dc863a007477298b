//! The figures by which runs are compared: their names, units, and which way is worse.

use crate::kinds;
use crate::number::{count, pps, ratio, time};

/// What a figure counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A part of a whole, 0 to 1.
    Ratio,
    /// Packets.
    Packets,
    /// Stalls of workers.
    Stalls,
    /// Nanoseconds.
    Nanoseconds,
    /// Packets per second.
    Rate,
}

impl Unit {
    /// Its name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Packets => "packets",
            Self::Stalls => "pauses",
            Self::Nanoseconds => "ns",
            Self::Rate => "pps",
        }
    }

    /// `value` as people write it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Ratio => ratio(value),
            Self::Packets | Self::Stalls => count(value.round().max(0.0) as u64),
            Self::Nanoseconds => time(value),
            Self::Rate => pps(value),
        }
    }

    /// A difference with its sign.
    pub fn show_difference(self, difference: f64) -> String {
        let sign = if difference < 0.0 { "-" } else { "+" };
        let shown = self.show(difference.abs());
        match self {
            Self::Ratio => format!("{sign}{} points", shown.trim_end_matches(" %")),
            Self::Packets | Self::Stalls | Self::Nanoseconds | Self::Rate => format!("{sign}{shown}"),
        }
    }
}

/// Which way a figure gets worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worse {
    /// When it grows.
    Higher,
    /// When it shrinks.
    Lower,
}

/// One figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, as in `--expect`, in CSV and in JSON.
    pub name: &'static str,
    /// The same for people.
    pub label: &'static str,
    /// What it counts in.
    pub unit: Unit,
    /// Which way is worse.
    pub worse: Worse,
}

impl Metric {
    const fn shown_as(self, label: &'static str) -> Self {
        Self { label, ..self }
    }
}

pub(crate) const fn higher(name: &'static str, unit: Unit) -> Metric {
    Metric {
        name,
        label: name,
        unit,
        worse: Worse::Higher,
    }
}

pub(crate) const fn lower(name: &'static str, unit: Unit) -> Metric {
    Metric {
        name,
        label: name,
        unit,
        worse: Worse::Lower,
    }
}

/// The figures of more than one kind of result, in the order in which they are shown.
const METRICS: [Metric; 30] = [
    lower("throughput", Unit::Rate),
    lower("rate_tx", Unit::Rate),
    lower("rate_rx", Unit::Rate),
    lower("sent", Unit::Packets),
    lower("received", Unit::Packets),
    higher("loss", Unit::Ratio),
    higher("lost", Unit::Packets),
    higher("unsent", Unit::Packets),
    higher("unexplained", Unit::Packets),
    higher("rx_missed", Unit::Packets),
    higher("duplicate", Unit::Packets),
    higher("reordered", Unit::Packets),
    higher("corrupt", Unit::Packets),
    higher("late", Unit::Packets),
    higher("latency_min", Unit::Nanoseconds),
    higher("latency_mean", Unit::Nanoseconds),
    higher("latency_p50", Unit::Nanoseconds),
    higher("latency_p90", Unit::Nanoseconds),
    higher("latency_p99", Unit::Nanoseconds),
    higher("latency_p999", Unit::Nanoseconds),
    higher("latency_max", Unit::Nanoseconds),
    // Paper is no wider.
    higher("latency_scheduled_p50", Unit::Nanoseconds).shown_as("scheduled_p50"),
    higher("latency_scheduled_p90", Unit::Nanoseconds).shown_as("scheduled_p90"),
    higher("latency_scheduled_p99", Unit::Nanoseconds).shown_as("scheduled_p99"),
    higher("latency_scheduled_p999", Unit::Nanoseconds).shown_as("scheduled_p999"),
    higher("latency_scheduled_max", Unit::Nanoseconds).shown_as("scheduled_max"),
    higher("jitter", Unit::Nanoseconds),
    higher("pdv", Unit::Nanoseconds),
    // Their names are older than the word for them.
    higher("pauses", Unit::Stalls).shown_as("stalls"),
    higher("pause_max", Unit::Nanoseconds).shown_as("stall_max"),
];

/// All figures: those that several kinds of result have, then those of one kind.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    METRICS
        .iter()
        .chain(kinds::ALL.iter().flat_map(|entry| entry.metrics))
}

/// The figure that people call `name`: by its name in files, or as it is shown.
pub fn find(name: &str) -> Option<&'static Metric> {
    all().find(|metric| [metric.name, metric.label].contains(&name))
}
