//! What `noise` found, as numbers.

use std::fmt::Write as _;

use host::noise::complete::Line;
use host::noise::tally::tally;
use measure::summary::VERSION;
use report::csv;
use serde::Serialize;

use super::NoisePlan;
use super::watch::{Seen, SeenOn};

/// Columns of the time line.
const COLUMNS: usize = 60;

/// The whole result.
#[derive(Debug, Serialize)]
pub struct Noise {
    version: u32,
    command: &'static str,
    /// The run directory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Gaps are longer than this, ns.
    pub threshold_ns: u64,
    /// Receive descriptors that costs are worked out for.
    pub ring: u32,
    /// The rate that costs are worked out for, packets/s.
    pub rate_pps: Option<f64>,
    /// The rate at which a receiver works a full ring off, packets/s.
    pub service_pps: Option<f64>,
    /// Whether the kernel told the causes; if not, why.
    pub causes_known: bool,
    /// Why there are no causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causes_missing: Option<String>,
    /// Core by core.
    pub cores: Vec<CoreNoise>,
    /// Whether somebody ended it early.
    pub interrupted: bool,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// One core.
#[derive(Debug, Serialize)]
pub struct CoreNoise {
    /// The core.
    pub core: u32,
    /// How long it was watched, s.
    pub watched_s: f64,
    /// Looks at the clock.
    pub looks: u64,
    /// Gaps.
    pub gaps: u64,
    /// Gaps that found no room, and are in none of these numbers but this one.
    pub gaps_dropped: u64,
    /// Time in gaps, ns.
    pub taken_ns: f64,
    /// Their share of the time.
    pub taken_share: f64,
    /// The longest, ns.
    pub max_ns: f64,
    /// Share of the time in gaps whose cause the kernel named.
    pub named_share: Option<f64>,
    /// Whether every interrupt that the kernel counted was recorded: without that, nothing can be said to be outside it.
    pub complete: Option<bool>,
    /// Time that the hypervisor admits to have taken, ns.
    pub steal_ns: f64,
    /// Packets that would have been lost at the given rate.
    pub lost: Option<f64>,
    /// The highest rate that the longest gap lets through with an empty ring of the given size, packets/s.
    pub lossless_pps: Option<f64>,
    /// By cause, the worst first.
    pub causes: Vec<CauseNoise>,
    /// Share of the time in gaps, in equal parts of the run.
    pub timeline: Vec<f64>,
    /// The kernel's own counts, and what was recorded.
    pub interrupts: Vec<Line>,
}

/// One cause.
#[derive(Debug, Serialize)]
pub struct CauseNoise {
    /// In words.
    pub cause: String,
    /// Gaps that it is the largest part of.
    pub gaps: u64,
    /// All of its time, ns.
    pub total_ns: f64,
    /// 99 in a hundred of its gaps are no longer, ns.
    pub p99_ns: f64,
    /// The longest of its gaps, ns.
    pub max_ns: f64,
    /// Packets.
    pub lost: Option<f64>,
    /// From one of its gaps to the next, ns, where that is regular.
    pub period_ns: Option<f64>,
}

/// Sums up.
pub fn summarise(plan: &NoisePlan, seen: &Seen, run: &str) -> Noise {
    let mut notes = seen.notes.clone();
    if seen.missed > 0 {
        notes.push(format!(
            "the kernel's tracer lost {} events at least: some causes are missing, and others may be wrong there",
            seen.missed
        ));
    }
    let cores: Vec<CoreNoise> = seen.cores.iter().map(|on| of_core(plan, seen, on)).collect();
    for core in &cores {
        if core.gaps_dropped > 0 {
            notes.push(format!(
                "core {}: {} gaps found no room; give a higher --threshold or a shorter --duration",
                core.core, core.gaps_dropped
            ));
        }
    }
    Noise {
        version: VERSION,
        command: "noise",
        run: run.to_owned(),
        threshold_ns: plan.threshold_ns,
        ring: plan.slots,
        rate_pps: plan.ring.map(|ring| ring.rate_pps),
        service_pps: plan.ring.map(|ring| ring.service_pps),
        causes_known: seen.untraced.is_none(),
        causes_missing: seen.untraced.clone(),
        cores,
        interrupted: seen.interrupted,
        notes,
    }
}

fn of_core(plan: &NoisePlan, seen: &Seen, on: &SeenOn) -> CoreNoise {
    let ns = |ticks: f64| ticks / seen.hz * 1e9;
    let all = on.gaps.all();
    let taken: u64 = all.iter().map(|gap| gap.ticks()).sum();
    let longest = all.iter().map(|gap| gap.ticks()).max().unwrap_or(0);
    let span = on.gaps.span.ticks().max(1);
    let tallies = tally(&on.named, plan.ring, seen.hz);
    let outside: u64 = tallies
        .iter()
        .filter(|one| one.outside)
        .map(|one| one.total)
        .sum();
    let traced = seen.untraced.is_none();
    let causes = tallies.iter().map(|one| CauseNoise {
        cause: if traced {
            one.cause.clone()
        } else {
            "unknown".into()
        },
        gaps: one.gaps,
        total_ns: ns(one.total as f64),
        p99_ns: ns(one.p99 as f64),
        max_ns: ns(one.max as f64),
        lost: plan.ring.map(|_| one.lost),
        period_ns: one.period.map(ns),
    });
    CoreNoise {
        core: on.core.0,
        watched_s: span as f64 / seen.hz,
        looks: on.gaps.looks,
        gaps: all.len() as u64,
        gaps_dropped: on.gaps.dropped,
        taken_ns: ns(taken as f64),
        taken_share: taken as f64 / span as f64,
        max_ns: ns(longest as f64),
        named_share: (traced && taken > 0).then(|| 1.0 - outside as f64 / taken as f64),
        // Where nothing was counted nothing is proven.
        complete: (traced && !on.lines.is_empty())
            .then(|| seen.missed == 0 && on.lines.iter().all(|line| line.proven)),
        // USER_HZ is 100 on every architecture that this runs on.
        steal_ns: on.steal as f64 * 1e7,
        lost: plan.ring.map(|_| tallies.iter().map(|one| one.lost).sum()),
        lossless_pps: (longest > 0).then(|| f64::from(plan.slots) / (longest as f64 / seen.hz)),
        causes: causes.collect(),
        timeline: timeline(on),
        interrupts: on.lines.clone(),
    }
}

/// Share of each part of the run that its gaps took.
fn timeline(on: &SeenOn) -> Vec<f64> {
    let span = on.gaps.span;
    let width = (span.ticks() as f64 / COLUMNS as f64).max(1.0);
    let mut columns = vec![0.0; COLUMNS];
    for gap in on.gaps.all() {
        let (from, to) = (
            gap.from.saturating_sub(span.from) as f64 / width,
            gap.to.saturating_sub(span.from) as f64 / width,
        );
        let touched = (to as usize + 1).saturating_sub(from as usize);
        for (index, column) in columns.iter_mut().enumerate().skip(from as usize).take(touched) {
            let begin = from.max(index as f64);
            let end = to.min((index + 1) as f64);
            *column += (end - begin).max(0.0);
        }
    }
    columns
}

/// Every gap as a row of CSV.
pub fn rows(seen: &Seen) -> String {
    let mut text = String::from("core,start_s,duration_ns,cause,parts\n");
    for on in &seen.cores {
        for named in &on.named {
            let start = named.gap.from.saturating_sub(on.gaps.span.from) as f64 / seen.hz;
            let parts: Vec<String> = named
                .parts
                .iter()
                .map(|(cause, ticks)| format!("{cause}: {:.0} ns", *ticks as f64 / seen.hz * 1e9))
                .collect();
            let cause = if seen.untraced.is_none() {
                named.cause().to_string()
            } else {
                "unknown".into()
            };
            let _ = writeln!(
                text,
                "{},{start:.9},{:.0},{},{}",
                on.core,
                named.gap.ticks() as f64 / seen.hz * 1e9,
                csv::field(&cause),
                csv::field(&parts.join("; "))
            );
        }
    }
    text
}
