//! Several runs side by side: what each came to, what they were not made alike in, every figure and its change.

use super::join;
use crate::compare::tables;
use crate::input::clean;
use crate::load::Loaded;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};

/// A line for each run, and the tables of what they are.
pub fn render(runs: &[Loaded], style: &Style) -> String {
    let all: Vec<&Loaded> = runs.iter().collect();
    join(&[
        list(runs, style),
        tables::settings(&all).terminal("Made with", style),
        tables::figures(&all).terminal("Side by side", style),
    ])
}

/// Each run and what it came to.
fn list(runs: &[Loaded], style: &Style) -> String {
    let mut table = Table::indented(2);
    // A path is there to be copied: it is never shortened, as a number is not.
    let paths: Vec<String> = runs
        .iter()
        .map(|run| clean(&run.path.display().to_string()))
        .collect();
    let widest = paths.iter().map(|path| path.chars().count()).max().unwrap_or(0);
    for (run, path) in runs.iter().zip(paths) {
        let standing = run.result.verdict().standing;
        table.row([
            Cell::left(&run.name).paint(Paint::Head),
            Cell::right(format!("{path:widest$}")),
            Cell::left(run.line()).paint(standing.paint()),
        ]);
    }
    table.render(style)
}
