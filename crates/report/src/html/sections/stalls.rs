//! The stalls of the workers: over time, the worst of them, and by cause.

use super::super::element::{Cell, bad, details, section, table};
use super::super::figures::chart;
use crate::load::Loaded;
use crate::load::stalls::{Cause, Stall, Stalls};
use crate::number::{count, counted, time};
use crate::rundir::file;

/// Rows of the table of one run.
const ROWS_MAX: usize = 20;
/// Causes shown; `stalls.csv` has all.
const CAUSES_MAX: usize = 64;
/// Causes that are not folded away.
const CAUSES_SHOWN: usize = 8;

/// The chart, where any run had stalls.
pub fn chart_of(runs: &[Loaded]) -> String {
    let known: Vec<(&Loaded, &Stalls)> = runs
        .iter()
        .filter_map(|run| Some((run, run.stalls.as_ref()?)))
        .collect();
    if known.iter().all(|(_, stalls)| stalls.kept.is_empty()) {
        return String::new();
    }
    let mut words: Vec<String> = known
        .iter()
        .map(|(run, stalls)| {
            let named = if runs.len() > 1 {
                format!("{}: ", run.name)
            } else {
                String::new()
            };
            named + &sentence(run, stalls)
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
    let tables: String = known
        .iter()
        .filter(|(_, stalls)| !stalls.kept.is_empty())
        .map(|(run, stalls)| as_table(run, stalls))
        .collect();
    let below = details("The same as a table", &tables);
    chart("stalls", "Stalls of the workers", &words, &below)
}

fn sentence(run: &Loaded, stalls: &Stalls) -> String {
    let all = &stalls.all;
    let shown = if all.count > stalls.kept.len() as u64 {
        let kept = count(stalls.kept.len() as u64);
        format!("; drawn are the {kept} longest and costliest")
    } else {
        String::new()
    };
    let missed = if has_packets(run) {
        format!(", {} missed meanwhile", counted(all.lost, "packet"))
    } else {
        String::new()
    };
    format!(
        "{}, the longest {}{missed}{shown}.",
        counted(all.count, "stall"),
        time(all.max_ns as f64),
    )
}

/// A column: its title, whether it is shown, and what stands in it.
type Column = (&'static str, bool, fn(&Stall) -> Cell);

/// Those that cost most, then the longest.
fn as_table(run: &Loaded, stalls: &Stalls) -> String {
    let mut worst: Vec<&Stall> = stalls.kept.iter().collect();
    worst.sort_by_key(|stall| std::cmp::Reverse((stall.lost, stall.length_ns)));
    worst.truncate(ROWS_MAX);
    let is_of_noise = !has_packets(run);
    // Without --explain nobody asked for causes.
    let has_causes = worst.iter().any(|stall| !stall.cause.is_empty());
    let all: [Column; 6] = [
        ("ended at", true, |stall| {
            Cell::Number(time(stall.end_ms.max(0.0) * 1e6))
        }),
        ("stall", true, |stall| Cell::Number(time(stall.length_ns as f64))),
        ("missed", !is_of_noise, |stall| bad(stall.lost)),
        ("core", true, |stall| Cell::Number(stall.core.to_string())),
        ("it does", !is_of_noise, |stall| Cell::Text(stall.role.clone())),
        ("cause", has_causes, |stall| Cell::Text(stall.cause.clone())),
    ];
    let shown = || all.iter().filter(|(_, is_shown, _)| *is_shown);
    let head: Vec<&str> = shown().map(|(title, ..)| *title).collect();
    let row = |stall: &&Stall| shown().map(|(.., cell)| cell(stall)).collect();
    let rows: Vec<Vec<Cell>> = worst.iter().map(row).collect();
    let file = if is_of_noise { file::GAPS } else { file::STALLS };
    let rest = match stalls.all.count.saturating_sub(rows.len() as u64) {
        0 => String::new(),
        more => format!("; {} more are in {file}", count(more)),
    };
    let caption = format!("{}: what cost most first, then the longest{rest}", run.name);
    table(&caption, &head, &rows)
}

/// `noise` has none to miss, and tells causes in sections of its own.
fn has_packets(run: &Loaded) -> bool {
    run.awaits(file::STALLS)
}

/// What took the cores of a run, by cause.
pub fn by_cause(run: &Loaded, named: &str) -> String {
    let known = run.stalls.as_ref().filter(|_| has_packets(run));
    let Some(stalls) = known.filter(|stalls| stalls.all.count > 0) else {
        return String::new();
    };
    let row = |name: &str, cause: &Cause| {
        vec![
            Cell::Name(name.to_owned()),
            Cell::Number(count(cause.count)),
            Cell::Number(time(cause.total_ns as f64)),
            Cell::Number(time(cause.max_ns as f64)),
            bad(cause.lost),
        ]
    };
    let causes = stalls.ranked();
    let name = |name: &str| {
        if name.is_empty() {
            "not asked for (--explain names causes)".to_owned()
        } else {
            name.to_owned()
        }
    };
    let mut rows: Vec<Vec<Cell>> = causes
        .iter()
        .take(CAUSES_MAX)
        .map(|(cause, sums)| row(&name(cause), sums))
        .collect();
    let rest = rows.split_off(rows.len().min(CAUSES_SHOWN));
    rows.push(row("all", &stalls.all));
    let head = ["cause", "stalls", "total", "longest", "missed"];
    let mut inner = table("Stalls by cause, what cost most first", &head, &rows);
    if !rest.is_empty() {
        inner += &details("Further causes", &table("What cost less", &head, &rest));
    }
    section(&format!("Who took the cores{named}"), &inner)
}
