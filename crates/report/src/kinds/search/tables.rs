//! The tables of a search: its answers, and the tests of RFC 2544.

use measure::Percentiles;
use measure::search::rfc2544::{BackToBackResult, FrameLossRow, LatencyResult};
use measure::search::{Bound, GoalResult, Limit, SearchReport, SizeResult};

use crate::number::{bps, count, loss, ns, pps, time, two_digits};
use crate::sheet::Sheet;
use crate::style::Paint;
use crate::table::Cell;

/// Narrower than this, there is no room for the rates of layer 2, which follow from the others.
const WITH_LAYER_2: usize = 100;
/// Narrower than this, there is no room for all of latency.
const WITH_LATENCY: usize = 120;
/// Narrower than this, there is no room for what says least of bursts.
const WITH_ALL_OF_BURSTS: usize = 92;

/// A row of the answers: what one goal came to; a size that was not begun has none.
pub type Answer<'r> = (&'r SizeResult, Option<&'r GoalResult>);

/// All answers, and the sizes that were not begun.
pub fn answers(report: &SearchReport) -> impl Iterator<Item = Answer<'_>> {
    report.sizes.iter().flat_map(|size| {
        let goals = size.result.goals.iter().map(move |goal| (size, Some(goal)));
        goals.chain(size.range.is_none().then_some((size, None)))
    })
}

/// Between which rates each answer lies.
pub fn rates<'r>(answers: impl Iterator<Item = Answer<'r>>) -> Sheet<Answer<'r>> {
    Sheet::of(answers)
        .always()
        .name("size", |(size, _)| size.size.clone())
        .cell("goal", |(_, goal)| match goal {
            Some(goal) => Cell::left(&goal.name),
            None => Cell::left("not begun").paint(Paint::Warn),
        })
        .words(
            "loss allowed",
            of(|goal| format!("{} %", goal.loss_ratio * 100.0)),
        )
        .on_page()
        .number("carried", of(|goal| rate(goal.lower)))
        .number("not carried", of(|goal| rate(goal.upper)))
        .number("p50", of(|goal| latency_of(goal, |latency| latency.p50)))
        .at_width(WITH_LATENCY)
        .number("p99", of(|goal| latency_of(goal, |latency| latency.p99)))
        .number("max", of(|goal| latency_of(goal, |latency| latency.max)))
        .at_width(WITH_LATENCY)
        .number("layer 1", of(|goal| bits(goal.lower, |bound| bound.rate_bps_l1)))
        .number("layer 2", of(|goal| bits(goal.lower, |bound| bound.rate_bps_l2)))
        .at_width(WITH_LAYER_2)
        .number(
            "trials",
            of(|goal| {
                let trials = |bound: Option<Bound>| bound.map_or(0, |bound| bound.trials);
                format!("{}+{}", trials(goal.lower), trials(goal.upper))
            }),
        )
        .cell("limit", |(_, goal)| {
            let is_path = goal.is_none_or(|goal| goal.limit.is_path());
            let limit = goal.map_or_else(String::new, |goal| goal.limit.to_string());
            Cell::left(limit).paint(if is_path { Paint::None } else { Paint::Warn })
        })
        .in_terminal()
        .words("limit", of(|goal| goal.limit.to_string()))
        .on_page()
}

/// What is shown of a goal, where there is one.
fn of(shown: fn(&GoalResult) -> String) -> impl Fn(&Answer<'_>) -> String {
    move |(_, goal)| goal.map_or_else(String::new, shown)
}

fn rate(bound: Option<Bound>) -> String {
    bound.map_or_else(|| "-".to_owned(), |bound| pps(bound.rate_pps))
}

/// At the rate that was carried.
fn latency_of(goal: &GoalResult, pick: fn(&Percentiles) -> Option<u64>) -> String {
    let latency = goal.lower.and_then(|bound| pick(&bound.latency_ns));
    latency.map_or_else(|| "-".to_owned(), |of| time(of as f64))
}

fn bits(bound: Option<Bound>, pick: fn(Bound) -> f64) -> String {
    bound.map_or_else(|| "-".to_owned(), |bound| bps(pick(bound)))
}

/// Latency at the throughput of frames of `size`.
pub fn latency<'r>(size: &str, latency: &'r LatencyResult) -> Sheet<&'r LatencyResult> {
    Sheet::of([latency])
        .name("", |_| size.to_owned())
        .in_terminal()
        .number("rate", |latency| pps(latency.rate_pps))
        .optional("min", |latency| ns(latency.min_ns))
        .optional("mean", |latency| latency.mean_ns.map(time))
        .optional("p50", |latency| latency.p50_ns.map(time))
        .optional("p99", |latency| latency.p99_ns.map(time))
        .optional("max", |latency| ns(latency.max_ns))
        .optional("lost", |latency| latency.lost.map(count))
        .on_page()
        .number("trials", |latency| latency.trials.to_string())
}

/// The loss at parts of the highest rate.
pub fn frame_loss<'r>(size: &str, rows: &'r [FrameLossRow]) -> Sheet<&'r FrameLossRow> {
    Sheet::of(rows)
        .name("", |_| size.to_owned())
        .in_terminal()
        .number("of highest", |row| format!("{} %", row.percent))
        .in_terminal()
        .name("of the highest", |row| format!("{} %", row.percent))
        .on_page()
        .number("asked", |row| pps(row.asked_pps))
        .number("offered", |row| pps(row.offered_pps))
        .number("lost", |row| loss(row.loss_ratio))
        .in_terminal()
        .cell("lost", |row| {
            Cell::bar(row.loss_ratio, two_digits(row.loss_ratio))
        })
        .on_page()
        .words("by", |row| by(row.limit))
}

/// The longest burst that was carried whole.
pub fn back_to_back<'r>(size: &str, burst: &'r BackToBackResult) -> Sheet<&'r BackToBackResult> {
    let seconds = |value: f64| time(value * 1e9);
    Sheet::of([burst])
        .name("", |_| size.to_owned())
        .in_terminal()
        .number("rate", |burst| pps(burst.rate_pps))
        .number("packets", |burst| format!("{:.0}", burst.packets_mean))
        .number("least", |burst| count(burst.packets_min))
        .number("most", |burst| {
            let open = if burst.is_open { " or more" } else { "" };
            count(burst.packets_max) + open
        })
        .number("deviation", |burst| format!("{:.1}", burst.packets_deviation))
        .at_width(WITH_ALL_OF_BURSTS)
        .number("buffer", |burst| seconds(burst.implied_buffer_s))
        .optional("corrected (RFC 9004)", |burst| {
            burst.corrected_buffer_s.map(seconds)
        })
        .short("corrected")
        .number("times", |burst| burst.repeats.to_string())
        .at_width(WITH_ALL_OF_BURSTS)
        .words("limit", |burst| by(burst.limit))
}

fn by(limit: Option<Limit>) -> String {
    limit.map_or_else(String::new, |limit| limit.to_string())
}
