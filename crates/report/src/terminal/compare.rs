//! Several runs side by side: what each came to, what they were not made alike in, every figure and its change.

use std::ops::Range;

use super::join;
use crate::compare::settings::{Setting, differing};
use crate::compare::{Row, groups, members, percent, rows, tiles};
use crate::load::Loaded;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::wrap::wrapped;

/// Characters of a setting.
const VALUE_MAX: usize = 32;
/// Runs that lie side by side, in columns; more are a row each.
pub const BESIDE_MAX: usize = 4;

/// A line for each run, and the tables of each kind.
pub fn render(runs: &[Loaded], style: &Style) -> String {
    let groups = groups(runs);
    let is_long = runs.len() > BESIDE_MAX || groups.len() > 1;
    let mut parts = vec![list(runs, style)];
    for group in &groups {
        let of_kind = members(runs, group);
        let numbers: Vec<usize> = group.iter().map(|at| at + 1).collect();
        if is_long {
            parts.push(in_rows(&of_kind, &numbers, style));
        }
        if of_kind.len() > 1 {
            parts.push(made_with(&of_kind, &numbers, style));
        }
        if (2..=BESIDE_MAX).contains(&of_kind.len()) {
            parts.push(side_by_side(&of_kind, &numbers, style));
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
    let paths: Vec<String> = runs.iter().map(|run| run.path.display().to_string()).collect();
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

/// A row for each run, with the figures that its kind is asked first; what has no room beside them follows below.
fn in_rows(runs: &[&Loaded], numbers: &[usize], style: &Style) -> String {
    let (names, rows) = tiles(runs);
    let kind = runs[0].result.compared_with();
    let table = |columns: Range<usize>| {
        let titles: Vec<String> = names[columns.clone()]
            .iter()
            .map(|name| format!(">{name}"))
            .collect();
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let mut table = Table::section(kind, &titles);
        for (number, row) in numbers.iter().zip(&rows) {
            let cell = |value: &Option<String>| Cell::right(value.as_deref().unwrap_or("-"));
            table.item(&format!("[{number}]"), row[columns.clone()].iter().map(cell));
        }
        table
    };
    let mut text = String::new();
    let mut from = 0;
    while from < names.len() {
        let fits = |to: &usize| table(from..*to).width() <= style.width;
        let to = (from + 1..=names.len()).rev().find(fits).unwrap_or(from + 1);
        text += &table(from..to).render(style);
        from = to;
    }
    text
}

/// What runs of one kind were not made alike in: in columns, or of many runs for each what is not as in the first.
fn made_with(runs: &[&Loaded], numbers: &[usize], style: &Style) -> String {
    let settings = differing(runs);
    if settings.is_empty() {
        return String::new();
    }
    if runs.len() <= BESIDE_MAX {
        let names = titles(numbers);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut table = Table::section("Made with", &names);
        for Setting { name, values } in settings {
            table.item(&name, values.into_iter().map(|value| Cell::right(clipped(value))));
        }
        return table.render(style);
    }
    let head = format!("Made with, where it is not as [{}] was", numbers[0]);
    let mut text = style.paint(Paint::Head, &head) + "\n";
    for (place, number) in numbers.iter().enumerate().skip(1) {
        let own: Vec<String> = settings
            .iter()
            .filter(|setting| setting.values[place] != setting.values[0])
            .map(|setting| format!("{} {}", setting.name, clipped(setting.values[place].clone())))
            .collect();
        if !own.is_empty() {
            wrapped(
                &mut text,
                &format!("[{number}] {}", own.join(", ")),
                2,
                Paint::None,
                style,
            );
        }
    }
    text
}

fn titles(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|number| format!(">[{number}]")).collect()
}

/// Every figure; each further run has its value and its change in percent.
fn side_by_side(runs: &[&Loaded], numbers: &[usize], style: &Style) -> String {
    let rows = rows(runs);
    if rows.is_empty() {
        return String::new();
    }
    let names = titles(numbers);
    let mut columns = vec![names[0].as_str()];
    for name in &names[1..] {
        columns.extend([name.as_str(), ">change", ""]);
    }
    let mut table = Table::section("Side by side", &columns);
    for row in rows {
        table.item(&row.label(), cells(&row));
    }
    table.render(style)
}

/// The page and `--json` have all of it.
fn clipped(value: String) -> String {
    if value.chars().count() <= VALUE_MAX {
        return value;
    }
    let kept: String = value.chars().take(VALUE_MAX - 3).collect();
    kept + "..."
}

fn cells(row: &Row) -> Vec<Cell> {
    let shown = |at: usize| {
        let value = row.values.get(at).copied().flatten();
        Cell::right(value.map_or_else(|| "-".to_owned(), |value| row.metric.unit.show(value)))
    };
    let mut cells = vec![shown(0)];
    for at in 1..row.values.len() {
        let change = row.change(at);
        let (word, paint) = match change.and_then(|change| change.is_worse) {
            Some(true) => ("worse", Paint::Bad),
            Some(false) => ("better", Paint::Good),
            None => ("", Paint::None),
        };
        let part = change.map_or_else(|| "-".to_owned(), |change| percent(&change));
        cells.extend([
            shown(at),
            Cell::right(part).paint(paint),
            Cell::left(word).paint(paint),
        ]);
    }
    cells
}
