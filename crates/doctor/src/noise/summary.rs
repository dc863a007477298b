//! What was seen of some cores, summed up as a result.

use host::cores::Core;
use host::cpu::USER_HZ;
use measure::bucket::{Bucket, Ring, SERVICE};
use measure::{CauseNoise, CoreNoise, InterruptLine, NoiseSummary, Note};

use super::attribute::{AttributedStall, Span};
use super::spin::Stalls;
use super::tally::tally;

/// Columns of the time line.
const COLUMNS: usize = 60;

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Stalls are longer than this, ns.
    pub threshold_ns: u64,
    /// Receive descriptors that costs are worked out for.
    pub descriptors: u32,
    /// The receiver that costs are worked out for, where a rate was given.
    pub ring: Option<Ring>,
}

/// What was seen.
#[derive(Debug)]
pub struct Seen {
    /// Core by core.
    pub cores: Vec<SeenOn>,
    /// Ticks a second.
    pub hz: f64,
    /// Why there are no causes, if there are none.
    pub untraced: Option<String>,
    /// Events that the trace lost.
    pub missed: u64,
    /// Whether somebody ended it early.
    pub interrupted: bool,
    /// What the user should know.
    pub notes: Vec<Note>,
}

/// What was seen on one core.
#[derive(Debug)]
pub struct SeenOn {
    /// The core.
    pub core: Core,
    /// Its loop.
    pub stalls: Stalls,
    /// The stalls with their causes.
    pub named: Vec<AttributedStall>,
    /// The kernel's counters against the trace.
    pub lines: Vec<InterruptLine>,
    /// Ticks of `USER_HZ` that the hypervisor says it took.
    pub steal: u64,
}

/// Sums up; `run` is the run directory.
pub fn summarise(asked: &Asked, seen: &Seen, run: &str) -> NoiseSummary {
    let mut notes = seen.notes.clone();
    notes.extend(events_lost_note(seen.missed));
    let cores: Vec<CoreNoise> = seen.cores.iter().map(|on| of_core(asked, seen, on)).collect();
    notes.extend(seen.cores.iter().filter_map(moved));
    NoiseSummary {
        run: run.to_owned(),
        reasons: cores
            .iter()
            .filter_map(|core| core.looks_are_stalls().or_else(|| core.dropped()))
            .collect(),
        threshold_ns: asked.threshold_ns,
        ring: asked.descriptors,
        rate_pps: asked.ring.map(|ring| ring.rate_pps),
        service_pps: asked.ring.map(|ring| ring.service_pps),
        causes_known: seen.untraced.is_none(),
        causes_missing: seen.untraced.clone(),
        cores,
        interrupted: seen.interrupted,
        notes,
        ..NoiseSummary::default()
    }
}

/// Whether the loop was moved off its core.
fn moved(on: &SeenOn) -> Option<Note> {
    let mut after = on.stalls.all().iter().chain([&on.stalls.span]);
    let elsewhere = after.find(|span| span.core != on.core.0)?;
    Some(moved_note("loop", on.core.0, elsewhere.core))
}

/// That `lost` events of the kernel, or more, are not there to name stalls by.
pub fn events_lost_note(lost: u64) -> Option<Note> {
    let text = format!(
        "{lost} events of the kernel were lost at least: what had a core then, or who had it interrupted, is not known"
    );
    (lost > 0).then(|| Note::new("trace_incomplete", text))
}

/// That somebody moved a loop, or a worker, off its core.
pub fn moved_note(what: &str, from: u32, to: u32) -> Note {
    Note::new(
        "moved",
        format!(
            "the {what} of core {from} was moved to CPU {to} by somebody who changed its affinity or its cpuset: what is \
             said of core {from} is not of that core alone"
        ),
    )
}

fn of_core(asked: &Asked, seen: &Seen, on: &SeenOn) -> CoreNoise {
    let ns = |ticks: f64| ticks / seen.hz * 1e9;
    let all = on.stalls.all();
    let taken: u64 = all.iter().map(|stall| stall.ticks()).sum();
    let longest = all.iter().map(|stall| stall.ticks()).max().unwrap_or(0);
    let span = on.stalls.span.ticks().max(1);
    let tallies = tally(&on.named, asked.ring, seen.hz);
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
        gaps: one.stalls,
        total_ns: ns(one.total as f64),
        p99_ns: ns(one.p99 as f64),
        max_ns: ns(one.max as f64),
        lost: asked.ring.map(|_| one.lost),
        period_ns: one.period.map(ns),
    });
    CoreNoise {
        core: on.core.0,
        watched_s: span as f64 / seen.hz,
        looks: on.stalls.looks,
        gaps: all.len() as u64,
        gaps_dropped: on.stalls.dropped,
        taken_ns: ns(taken as f64),
        taken_share: taken as f64 / span as f64,
        max_ns: ns(longest as f64),
        named_share: (traced && taken > 0).then(|| 1.0 - outside as f64 / taken as f64),
        // Where nothing was counted nothing is proven.
        complete: (traced && !on.lines.is_empty())
            .then(|| seen.missed == 0 && on.lines.iter().all(|line| line.proven)),
        steal_ns: on.steal as f64 * 1e9 / USER_HZ as f64,
        lost: asked.ring.map(|_| tallies.iter().map(|one| one.lost).sum()),
        lossless_pps: lossless_pps(asked, all, seen.hz),
        causes: causes.collect(),
        timeline: timeline(on),
        interrupts: on.lines.clone(),
    }
}

/// The highest rate at which a receiver as good as the one that was asked for loses nothing.
fn lossless_pps(asked: &Asked, stalls: &[Span], hz: f64) -> Option<f64> {
    let service = asked
        .ring
        .map_or(SERVICE, |ring| ring.service_pps / ring.rate_pps);
    let mut time = Bucket::of_time(service);
    let first = stalls.first()?.from;
    let seconds = |at: u64| at.saturating_sub(first) as f64 / hz;
    let waits = stalls.iter().map(|stall| {
        time.stall(seconds(stall.from), seconds(stall.to));
        time.waiting(seconds(stall.to))
    });
    Some(f64::from(asked.descriptors) / waits.fold(0.0, f64::max))
}

/// Share of each part of the run that its stalls took.
fn timeline(on: &SeenOn) -> Vec<f64> {
    let span = on.stalls.span;
    let width = (span.ticks() as f64 / COLUMNS as f64).max(1.0);
    let mut columns = vec![0.0; COLUMNS];
    for stall in on.stalls.all() {
        let (from, to) = (
            stall.from.saturating_sub(span.from) as f64 / width,
            stall.to.saturating_sub(span.from) as f64 / width,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Three stalls of 50 ms, 4 ms apart: what came in 148 ms waits at the end of the last.
    #[test]
    fn stalls_that_follow_each_other_add_up() {
        let stall = |from_ms: u64| Span {
            from: from_ms * 1_000_000,
            to: (from_ms + 50) * 1_000_000,
            core: 1,
        };
        let asked = |ring| Asked {
            threshold_ns: 1000,
            descriptors: 1480,
            ring,
        };
        let stalls = [0, 54, 108].map(stall);
        let lossless = |ring, stalls| lossless_pps(&asked(ring), stalls, 1e9).map(f64::round);
        assert_eq!(lossless(None, &stalls), Some(10_000.0));
        assert_eq!(
            lossless(None, &stalls[..1]),
            Some(29_600.0),
            "of one it is its length"
        );
        assert_eq!(lossless(None, &[]), None);
        // Four times as fast, it has worked off 12 ms of each 50 before the next.
        let fast = Ring {
            rate_pps: 1e3,
            service_pps: 4e3,
            free: 1480.0,
        };
        assert_eq!(lossless(Some(fast), &stalls), Some((1480.0_f64 / 0.126).round()));
    }
}
