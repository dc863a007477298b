//! The pauses of the workers over time, and the worst of them as a table.

use super::super::element::{Cell, details, table};
use super::super::figures::chart;
use crate::load::Loaded;
use crate::load::stalls::{Pause, Stalls};
use crate::number::{count, counted, time};

/// Rows of the table of one run.
const ROWS_MAX: usize = 20;

/// The chart, where any run had pauses.
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
            named + &sentence(stalls)
        })
        .collect();
    if known.iter().any(|(_, stalls)| stalls.all.lost > 0) {
        words.push("A filled square is a pause in which packets were missed.".to_owned());
    }
    words.push(
        "Those after the last interval, while late packets were awaited, are drawn only if they cost any."
            .to_owned(),
    );
    let tables: String = known
        .iter()
        .filter(|(_, stalls)| !stalls.kept.is_empty())
        .map(|(run, stalls)| as_table(run, stalls))
        .collect();
    let below = details("The same as a table", &tables);
    chart("stalls", "Pauses of the workers", &words, &below)
}

fn sentence(stalls: &Stalls) -> String {
    let all = &stalls.all;
    let shown = if all.pauses > stalls.kept.len() as u64 {
        let kept = count(stalls.kept.len() as u64);
        format!("; drawn are the {kept} longest and costliest")
    } else {
        String::new()
    };
    format!(
        "{} of a worker, the longest {}, {} missed meanwhile{shown}.",
        counted(all.pauses, "pause"),
        time(all.max_ns as f64),
        counted(all.lost, "packet")
    )
}

/// Those that cost most, then the longest.
fn as_table(run: &Loaded, stalls: &Stalls) -> String {
    let mut worst: Vec<&Pause> = stalls.kept.iter().collect();
    worst.sort_by_key(|pause| std::cmp::Reverse((pause.lost, pause.gap_ns)));
    worst.truncate(ROWS_MAX);
    // Without --explain nobody asked for causes.
    let has_causes = worst.iter().any(|pause| !pause.cause.is_empty());
    let rows: Vec<Vec<Cell>> = worst
        .iter()
        .map(|pause| {
            let missed = if pause.lost > 0 {
                Cell::Bad(count(pause.lost))
            } else {
                Cell::Number("0".to_owned())
            };
            let mut cells = vec![
                Cell::Number(time(pause.end_ms.max(0.0) * 1e6)),
                Cell::Number(time(pause.gap_ns as f64)),
                missed,
                Cell::Number(pause.core.to_string()),
                Cell::Text(pause.role.clone()),
            ];
            if has_causes {
                cells.push(Cell::Text(pause.cause.clone()));
            }
            cells
        })
        .collect();
    let more = stalls.all.pauses.saturating_sub(rows.len() as u64);
    let rest = match more {
        0 => String::new(),
        more => format!("; {} more are in stalls.csv", count(more)),
    };
    let caption = format!("{}: what cost most first, then the longest{rest}", run.name);
    let head = ["ended at", "pause", "missed", "core", "it does", "cause"];
    table(&caption, &head[..head.len() - usize::from(!has_causes)], &rows)
}
