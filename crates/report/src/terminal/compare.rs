//! Several runs side by side: what each came to, what they were not made alike in, every figure and its change.

use super::join;
use crate::compare::groups;
use crate::compare::settings::differing;
use crate::compare::tables::{self, Numbered};
use crate::input::clean;
use crate::load::Loaded;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::wrap::wrapped;

/// Runs that lie side by side, in columns; more are a row each.
pub const BESIDE_MAX: usize = 4;

/// A line for each run, and the tables of each kind.
pub fn render(runs: &[Loaded], style: &Style) -> String {
    let groups = groups(runs);
    let is_long = runs.len() > BESIDE_MAX || groups.len() > 1;
    let mut parts = vec![list(runs, style)];
    for group in &groups {
        let of_kind: Vec<Numbered> = group.iter().map(|at| (at + 1, &runs[*at])).collect();
        if is_long {
            let kind = of_kind[0].1.result.compared_with();
            let figures = tables::first_figures(&of_kind);
            parts.extend(figures.map(|table| table.terminal_in_parts(kind, style)));
        }
        if of_kind.len() > BESIDE_MAX {
            parts.push(made_otherwise(&of_kind, style));
        } else if of_kind.len() > 1 {
            parts.push(tables::settings(&of_kind).terminal("Made with", style));
            parts.push(tables::figures(&of_kind).terminal("Side by side", style));
        }
    }
    if runs.len() > BESIDE_MAX {
        let more = "Every figure, and how far it is from that of the first run of its kind: --html, --csv or --json. The charts of a run: dropless report RUN";
        let mut text = String::new();
        wrapped(&mut text, more, 0, Paint::Dim, style);
        parts.push(text);
    }
    join(&parts)
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
    for (at, run) in runs.iter().enumerate() {
        let verdict = run.result.verdict();
        table.row([
            Cell::left(format!("[{}]", at + 1)).paint(Paint::Head),
            Cell::right(format!("{:widest$}", paths[at])),
            Cell::left(verdict.line()).paint(verdict.standing.paint()),
        ]);
    }
    table.render(style)
}

/// What each run was not made with as the first one was.
fn made_otherwise(runs: &[Numbered<'_>], style: &Style) -> String {
    let all: Vec<&Loaded> = runs.iter().map(|(_, run)| *run).collect();
    let settings = differing(&all);
    if settings.is_empty() {
        return String::new();
    }
    let head = format!("Made with, where it is not as [{}] was", runs[0].0);
    let mut text = style.paint(Paint::Head, &head) + "\n";
    for (place, (number, _)) in runs.iter().enumerate().skip(1) {
        let own: Vec<String> = settings
            .iter()
            .filter(|setting| setting.values[place] != setting.values[0])
            .map(|setting| format!("{} {}", setting.label(), tables::clipped(&setting.value(place))))
            .collect();
        if !own.is_empty() {
            let line = format!("[{number}] {}", own.join(", "));
            wrapped(&mut text, &line, 2, Paint::None, style);
        }
    }
    text
}
