//! What `noise` found, as numbers.

use std::fmt::Write as _;

use host::noise::complete::Line;
use host::noise::tally::tally;
use measure::noise::{CauseNoise, CoreNoise, InterruptLine, NoiseSummary};
use report::csv;

use super::NoisePlan;
use super::watch::{Seen, SeenOn};

/// Columns of the time line.
const COLUMNS: usize = 60;

/// Sums up.
pub fn summarise(plan: &NoisePlan, seen: &Seen, run: &str) -> NoiseSummary {
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
    NoiseSummary {
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
        ..NoiseSummary::default()
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
        interrupts: on.lines.iter().map(interrupts).collect(),
    }
}

fn interrupts(line: &Line) -> InterruptLine {
    let line = line.clone();
    InterruptLine {
        line: line.line,
        name: line.name,
        counted: line.counted,
        traced_min: line.traced_min,
        traced_max: line.traced_max,
        proven: line.proven,
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
