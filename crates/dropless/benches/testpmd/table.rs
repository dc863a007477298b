//! Tables of the results, readable on a terminal and in Markdown alike.

use crate::flat::FlatRounds;
use crate::rounds::{Measured, Rounds, rate, rate_per_cpu_second, total};
use crate::statistics::{median, spread};
use crate::tables::{dash, layout, number};
use std::fmt::Write as _;

/// One row as a line, when it is done.
pub fn line(rounds: &Rounds, judged: bool) -> String {
    let name = rounds.row.name;
    if let Some(reason) = &rounds.failed {
        return format!("{name}: NOT MEASURED: {reason}");
    }
    let mut line = format!("{name}: {} Mpps", mpps(rate(&rounds.ours)));
    if !rounds.theirs.is_empty() {
        let _ = write!(
            line,
            " beside {}: {}",
            mpps(rate(&rounds.theirs)),
            number(rounds.ratio(), 2)
        );
    }
    if let Some(target) = rounds.target {
        let _ = write!(line, " of {target:.1}");
    }
    line + &format!(", {}", met(rounds, judged))
}

/// One series as a line, when it is done.
pub fn flat_line(rounds: &FlatRounds) -> String {
    let name = rounds.flat.name;
    if let Some(reason) = &rounds.failed {
        return format!("{name}: NOT MEASURED: {reason}");
    }
    let costs: Vec<String> = rounds
        .costs()
        .iter()
        .map(|cost| format!("{}: {:.1} ns", cost.count, cost.ns))
        .collect();
    format!("{name}: {}", costs.join(", "))
}

/// The figures by the wall clock, which are judged.
pub fn rates(all: &[Rounds], other: &str, judged: bool) -> String {
    let head = [
        "row",
        "dropless, Mpps",
        &format!("{other}, Mpps"),
        "ratio",
        "by round: median (range)",
        "target",
        "met",
    ];
    let rows = all.iter().map(|rounds| {
        vec![
            rounds.row.name.into(),
            mpps(rate(&rounds.ours)),
            mpps(rate(&rounds.theirs)),
            number(rounds.ratio(), 2),
            ratios(rounds),
            rounds.target.map_or_else(dash, |target| target.to_string()),
            met(rounds, judged),
        ]
    });
    layout(&head, rows.collect())
}

/// The figures by the time that the workers had, which neighbours cannot take.
pub fn rates_per_cpu_second(all: &[Rounds], other: &str) -> String {
    let head = [
        "row",
        "dropless, Mpps",
        &format!("{other}, Mpps"),
        "ratio",
        "dropless had",
        &format!("{other} had"),
        "stolen",
        "line there and back, ns",
    ];
    let rows = all.iter().map(|rounds| {
        vec![
            rounds.row.name.into(),
            mpps(rate_per_cpu_second(&rounds.ours)),
            mpps(rate_per_cpu_second(&rounds.theirs)),
            number(rounds.ratio_per_cpu_second(), 2),
            share(&rounds.ours),
            share(&rounds.theirs),
            format!("{:.1} %", rounds.stolen_share * 100.0),
            spread(&rounds.line_ns).map_or_else(dash, |(low, high)| format!("{low:.0} .. {high:.0}")),
        ]
    });
    layout(&head, rows.collect())
}

/// What was lost, and where, of what was to come back.
pub fn losses(all: &[Rounds], other: &str) -> String {
    let head = ["row", "dropless sent", "lost", "where", &format!("{other} lost")];
    let rows = all.iter().filter_map(|rounds| {
        let (lost, sent) = rounds.lost()?;
        let places: Vec<String> = rounds
            .lost_at()
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let others = total(&rounds.theirs).map_or_else(dash, |(lost, sent)| percent(lost, sent));
        let places = if places.is_empty() {
            dash()
        } else {
            places.join(", ")
        };
        Some(vec![
            rounds.row.name.into(),
            sent.to_string(),
            format!("{lost} ({})", percent(lost, sent)),
            places,
            others,
        ])
    });
    layout(&head, rows.collect())
}

/// Nanoseconds a packet, line by line of every series.
pub fn costs(all: &[FlatRounds]) -> String {
    let head = [
        "work",
        "number",
        "ns/packet",
        "to the first",
        "worker's ns/packet",
        "to the first",
    ];
    let mut rows = Vec::new();
    for rounds in all {
        for cost in rounds.costs() {
            rows.push(vec![
                rounds.flat.work.into(),
                cost.count.to_string(),
                format!("{:.2}", cost.ns),
                format!("{:.2}", cost.ratio),
                number(cost.cpu_ns, 2),
                number(cost.cpu_ratio, 2),
            ]);
        }
    }
    layout(&head, rows)
}

fn met(rounds: &Rounds, judged: bool) -> String {
    match (rounds.shortfall(), rounds.target) {
        // One short round says nothing of speed.
        (None | Some("NO"), Some(_)) if !judged => "not judged".into(),
        (Some(shortfall), _) => shortfall.into(),
        (None, Some(_)) => "yes".into(),
        (None, None) => "reported".into(),
    }
}

fn ratios(rounds: &Rounds) -> String {
    let ratios = rounds.ratios();
    match (median(&ratios), spread(&ratios)) {
        (Some(median), Some((low, high))) => format!("{median:.2} ({low:.2} .. {high:.2})"),
        _ => dash(),
    }
}

fn share(all: &[Measured]) -> String {
    let shares: Vec<f64> = all.iter().filter_map(|measured| measured.share).collect();
    median(&shares).map_or_else(dash, |share| format!("{:.1} %", share * 100.0))
}

fn mpps(rate: Option<f64>) -> String {
    number(rate.map(|rate| rate / 1e6), 2)
}

fn percent(part: u64, whole: u64) -> String {
    match part as f64 / whole.max(1) as f64 * 100.0 {
        percent if part > 0 && percent < 0.001 => "< 0.001 %".into(),
        percent => format!("{percent:.3} %"),
    }
}
