//! The figures by which runs are compared: their names, units, and which way is worse.

use crate::load::{Channel, Loaded, Outcome};
use crate::number::{count, pps, time};
use measure::ledger::NOT_AWAITED;
use measure::search::SearchReport;

/// What a figure counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A part of a whole, 0 to 1.
    Ratio,
    /// Packets.
    Packets,
    /// Pauses of workers.
    Pauses,
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
            Self::Pauses => "pauses",
            Self::Nanoseconds => "ns",
            Self::Rate => "pps",
        }
    }

    /// `value` as people write it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Ratio if value == 0.0 => "0 %".to_owned(),
            Self::Ratio if value.abs() < 1e-6 => format!("{:.2e} %", value * 100.0),
            Self::Ratio => format!("{:.4} %", value * 100.0),
            Self::Packets | Self::Pauses => count(value.round().max(0.0) as u64),
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
            Self::Packets | Self::Pauses | Self::Nanoseconds | Self::Rate => format!("{sign}{shown}"),
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
    /// Its name, as in `--expect`.
    pub name: &'static str,
    /// What it counts in.
    pub unit: Unit,
    /// Which way is worse.
    pub worse: Worse,
}

const fn higher(name: &'static str, unit: Unit) -> Metric {
    Metric {
        name,
        unit,
        worse: Worse::Higher,
    }
}

const fn lower(name: &'static str, unit: Unit) -> Metric {
    Metric {
        name,
        unit,
        worse: Worse::Lower,
    }
}

/// All figures, in the order in which they are shown.
pub const METRICS: [Metric; 25] = [
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
    higher("jitter", Unit::Nanoseconds),
    higher("pdv", Unit::Nanoseconds),
    higher("pauses", Unit::Pauses),
    higher("pause_max", Unit::Nanoseconds),
];

/// The values of the figure `name` in `run`, each with what it is of: a search has a throughput for each size and goal,
/// a comparison for each way; all else has no name of its own. Empty where the run does not know it.
pub fn values(run: &Loaded, name: &str) -> Vec<(String, f64)> {
    match (&run.outcome, name) {
        (Outcome::Search(searched), "throughput") => throughputs(&searched.report),
        (Outcome::Compare(comparison), "throughput") => comparison
            .methods
            .iter()
            .filter(|method| method.missing.is_none())
            .map(|method| (method.name.clone(), method.lossless_pps.unwrap_or(0.0)))
            .collect(),
        _ => value(run, name)
            .map(|value| (String::new(), value))
            .into_iter()
            .collect(),
    }
}

/// Of each size and goal; a search that ended without a rate that is carried has found 0.
fn throughputs(report: &SearchReport) -> Vec<(String, f64)> {
    let goals = report
        .sizes
        .iter()
        .flat_map(|size| size.result.goals.iter().map(move |goal| (&size.size, goal)));
    goals
        .filter_map(|(size, goal)| {
            let value = goal.throughput_pps.or(goal.complete.then_some(0.0))?;
            Some((format!("{size} {}", goal.name), value))
        })
        .collect()
}

/// The value of a figure that `run` has one of.
pub fn value(run: &Loaded, name: &str) -> Option<f64> {
    let pauses = || run.stalls.as_ref().map(|stalls| &stalls.all);
    match name {
        "pauses" => return pauses().map(|all| all.pauses as f64),
        "pause_max" => return pauses().map(|all| all.max_ns as f64),
        _ => {}
    }
    match &run.outcome {
        Outcome::Send(summary) => of_send(summary, name),
        Outcome::Reflect(summary) => of_reflect(summary, name),
        Outcome::Search(_) | Outcome::Compare(_) => None,
        Outcome::Intervals => of_intervals(run, name),
    }
}

fn of_send(summary: &measure::Summary, name: &str) -> Option<f64> {
    let packets = |number: u64| Some(number as f64);
    let latency = &summary.latency_ns;
    let time = |value: Option<u64>| value.map(|ns| ns as f64);
    // Of a run that only sends, what comes back is no figure.
    let is_one_way = summary.ledger.lost_at.contains_key(NOT_AWAITED);
    if is_one_way && ["rate_rx", "received", "loss", "lost", "unexplained"].contains(&name) {
        return None;
    }
    match name {
        "rate_tx" => Some(summary.rate_tx_pps),
        "rate_rx" => Some(summary.rate_rx_pps),
        "sent" => packets(summary.sent),
        "received" => packets(summary.received),
        "loss" => summary.loss(),
        "lost" => packets(summary.lost),
        "unsent" => packets(summary.ledger.unsent),
        "unexplained" => packets(summary.unexplained),
        "rx_missed" => packets(missed(&summary.ports)),
        "duplicate" => packets(summary.duplicate),
        "reordered" => packets(summary.reordered),
        "corrupt" => packets(summary.corrupt),
        "late" => packets(summary.late),
        "latency_min" => time(latency.min),
        "latency_mean" => latency.mean,
        "latency_p50" => time(latency.p50),
        "latency_p90" => time(latency.p90),
        "latency_p99" => time(latency.p99),
        "latency_p999" => time(latency.p999),
        "latency_max" => time(latency.max),
        "jitter" => summary.jitter_ns,
        "pdv" => time(summary.pdv_ns),
        _ => None,
    }
}

fn missed(ports: &[measure::PortSummary]) -> u64 {
    ports
        .iter()
        .fold(0, |sum, port| sum.saturating_add(port.rx_missed))
}

/// Frames that a reflector drops for these reasons never were probes: neighbour discovery, ARP for others.
pub const NOT_PROBES: [&str; 3] = ["not_ip", "not_udp", "not_ours"];

/// Probes that a reflector got, and those of them that it dropped.
pub(crate) fn probes(summary: &measure::ReflectSummary) -> (u64, u64) {
    let (mut others, mut dropped) = (summary.answered.saturating_add(summary.told), 0_u64);
    for (reason, number) in &summary.dropped {
        let sum = if NOT_PROBES.contains(&reason.as_str()) {
            &mut others
        } else {
            &mut dropped
        };
        *sum = sum.saturating_add(*number);
    }
    (summary.received.saturating_sub(others), dropped)
}

fn of_reflect(summary: &measure::ReflectSummary, name: &str) -> Option<f64> {
    let (probes, dropped) = probes(summary);
    match name {
        "rate_tx" => Some(summary.rate_tx_pps),
        "rate_rx" => Some(summary.rate_rx_pps),
        "sent" => Some(summary.returned as f64),
        "received" => Some(summary.received as f64),
        "loss" => (probes > 0).then(|| dropped as f64 / probes as f64),
        "lost" => Some(dropped as f64),
        "rx_missed" => Some(missed(&summary.ports) as f64),
        _ => None,
    }
}

fn of_intervals(run: &Loaded, name: &str) -> Option<f64> {
    let series = run.series.as_ref()?;
    let (totals, whole) = (&series.totals, &series.whole);
    match name {
        "rate_tx" => whole.span(Channel::Sent).mean(),
        "rate_rx" => whole.span(Channel::Received).mean(),
        "sent" => Some(totals.sent),
        "received" => Some(totals.received),
        "loss" => (totals.sent > 0.0).then(|| totals.lost / totals.sent),
        "lost" => Some(totals.lost),
        "latency_mean" => whole.span(Channel::Mean).mean(),
        "latency_max" => whole
            .span(Channel::Max)
            .mean()
            .map(|_| whole.span(Channel::Max).max),
        _ => None,
    }
}
