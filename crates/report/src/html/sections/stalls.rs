//! The stalls of the workers: over time, the worst of them, and by cause.

use maud::{Markup, html};

use super::super::element::{details, section};
use super::super::figures::{chart, moment};
use crate::load::Loaded;
use crate::load::stalls::{Cause, Stall, Stalls};
use crate::number::{count, counted, time};
use crate::rundir::file;
use crate::sheet::Sheet;
use crate::table::{Cell, bad};

/// Rows of the table of one run.
const ROWS_MAX: usize = 20;
/// Causes shown; `stalls.csv` has all.
const CAUSES_MAX: usize = 64;
/// Causes that are not folded away.
const CAUSES_SHOWN: usize = 8;

/// The chart, where any run had stalls.
pub fn chart_of(runs: &[Loaded]) -> Markup {
    let known: Vec<(&Loaded, &Stalls)> = runs
        .iter()
        .filter_map(|run| Some((run, run.stalls.as_ref()?)))
        .collect();
    if known.iter().all(|(_, stalls)| stalls.kept.is_empty()) {
        return Markup::default();
    }
    let mut words: Vec<String> = known
        .iter()
        .map(|(run, stalls)| {
            let named = (runs.len() > 1).then(|| format!("{}: ", run.name));
            named.unwrap_or_default() + &sentence(run, stalls)
        })
        .collect();
    if known.iter().any(|(_, stalls)| stalls.all.lost > 0) {
        words.push("A filled square is a stall in which packets were missed.".to_owned());
    }
    if known.iter().any(|(run, _)| run.series.is_some()) {
        words.push(
            "Those after the last interval, while late packets were awaited, are drawn only if they cost any."
                .to_owned(),
        );
    }
    let with = known.iter().filter(|(_, stalls)| !stalls.kept.is_empty());
    let tables = html! { @for (run, stalls) in with { (as_table(run, stalls)) } };
    let below = details("The same as a table", &tables);
    chart("stalls", "Stalls of the workers", &words, &below)
}

fn sentence(run: &Loaded, stalls: &Stalls) -> String {
    let all = &stalls.all;
    let kept = stalls.kept.len() as u64;
    let is_asked = has_packets(run) && stalls.is_explained();
    let (stalls, longest) = (counted(all.count, "stall"), time(all.max_ns as f64));
    let missed = is_asked.then(|| format!(", {} missed meanwhile", counted(all.lost, "packet")));
    let drawn = (all.count > kept).then(|| format!("; drawn are the {} longest and costliest", count(kept)));
    let (missed, drawn) = (missed.unwrap_or_default(), drawn.unwrap_or_default());
    format!("{stalls}, the longest {longest}{missed}{drawn}.")
}

/// Those that cost most, then the longest.
fn as_table(run: &Loaded, stalls: &Stalls) -> Markup {
    let mut worst: Vec<&Stall> = stalls.kept.iter().collect();
    worst.sort_by_key(|stall| std::cmp::Reverse((stall.lost, stall.length_ns)));
    worst.truncate(ROWS_MAX);
    let is_of_noise = !has_packets(run);
    let is_explained = stalls.is_explained();
    // Without --explain nobody asked for causes.
    let has_causes = worst.iter().any(|stall| !stall.cause.is_empty());
    let file = if is_of_noise { file::GAPS } else { file::STALLS };
    let rest = match stalls.all.count.saturating_sub(worst.len() as u64) {
        0 => String::new(),
        more => format!("; {} more are in {file}", count(more)),
    };
    let caption = format!("{}: what cost most first, then the longest{rest}", run.name);
    Sheet::of(worst)
        .number("ended at", |stall| moment(stall.end_ms))
        .number("stall", |stall| time(stall.length_ns as f64))
        .cell("missed", |stall| missed(stall.lost, is_explained))
        .when(!is_of_noise)
        .number("core", |stall| stall.core.to_string())
        .words("it does", |stall| stall.role.clone())
        .when(!is_of_noise)
        .words("cause", |stall| stall.cause.clone())
        .when(has_causes)
        .html(&caption)
}

/// `noise` has none to miss, and tells causes in sections of its own.
fn has_packets(run: &Loaded) -> bool {
    run.awaits(file::STALLS)
}

/// What took the cores of a run, by cause.
pub fn by_cause(run: &Loaded, named: &str) -> Markup {
    let known = run.stalls.as_ref().filter(|_| has_packets(run));
    let Some(stalls) = known.filter(|stalls| stalls.all.count > 0) else {
        return Markup::default();
    };
    let mut causes = stalls.ranked();
    causes.truncate(CAUSES_MAX);
    let rest = causes.split_off(causes.len().min(CAUSES_SHOWN));
    causes.push(("all", &stalls.all));
    let is_explained = stalls.is_explained();
    let caption = if is_explained {
        "Stalls by cause, what cost most first; what was missed between two readings of the counters is charged as if it had come evenly"
    } else {
        "Stalls by cause, what cost most first"
    };
    let inner = html! {
        (table(causes, is_explained).html(caption))
        @if !rest.is_empty() {
            (details("Further causes", &table(rest, is_explained).html("What cost less")))
        }
    };
    section(&format!("Who took the cores{named}"), &inner)
}

/// How long stalls were: a row for each doubling, also for one without any between two that have some.
pub fn lengths(run: &Loaded, named: &str) -> Markup {
    let Some(stalls) = run.stalls.as_ref().filter(|stalls| stalls.all.count > 1) else {
        return Markup::default();
    };
    let known = || stalls.lengths.keys().copied();
    let (Some(first), Some(last)) = (known().next(), known().next_back()) else {
        return Markup::default();
    };
    let none = Cause::default();
    let rows = (first..=last).map(|power| (power, stalls.lengths.get(&power).unwrap_or(&none)));
    let share = |part: u64, of: u64| Cell::share(part as f64 / of.max(1) as f64);
    let edge = |power: u32| time(f64::from(power).exp2());
    let table = Sheet::of(rows)
        .number("from", |(power, _)| edge(*power))
        .number("to", |(power, _)| edge(power + 1))
        .number("stalls", |(_, cause)| count(cause.count))
        .cell("of all stalls", |(_, cause)| share(cause.count, stalls.all.count))
        .cell("of all their time", |(_, cause)| {
            share(cause.total_ns, stalls.all.total_ns)
        })
        .html("Stalls by their length: how many there were, and how much of the time in stalls they took");
    section(&format!("How long stalls were{named}"), &table)
}

/// Packets missed in a stall; without --explain nobody counted them.
fn missed(packets: u64, is_explained: bool) -> Cell {
    if is_explained {
        bad(packets)
    } else {
        Cell::right("-")
    }
}

fn table<'s>(causes: Vec<(&'s str, &'s Cause)>, is_explained: bool) -> Sheet<(&'s str, &'s Cause)> {
    Sheet::of(causes)
        .name("cause", |(name, _)| match *name {
            "" => "not asked for (--explain names causes)".to_owned(),
            name => name.to_owned(),
        })
        .number("stalls", |(_, cause)| count(cause.count))
        .number("total", |(_, cause)| time(cause.total_ns as f64))
        .number("longest", |(_, cause)| time(cause.max_ns as f64))
        .cell("missed", |(_, cause)| missed(cause.lost, is_explained))
}
