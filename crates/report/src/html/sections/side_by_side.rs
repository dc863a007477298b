//! Several runs side by side: what each came to, what they were not made alike in, every figure and its change.

use super::super::element::{Cell, section, table};
use crate::compare::metrics::Unit;
use crate::compare::settings::{Setting, differing};
use crate::compare::{Row, groups, members, percent, rows, tiles};
use crate::kind::Standing;
use crate::load::Loaded;

/// Each run in a row, and what it came to.
pub fn list(runs: &[Loaded]) -> String {
    let row = |run: &Loaded| {
        let verdict = run.result.verdict();
        let kind = run.result.entry().map_or("", |entry| entry.command);
        let words = match verdict.standing {
            Standing::Invalid => Cell::Warning(verdict.line()),
            Standing::Clean | Standing::Loss | Standing::Plain => Cell::Text(verdict.line()),
        };
        vec![Cell::Name(run.name.clone()), Cell::Text(kind.to_owned()), words]
    };
    let rows: Vec<Vec<Cell>> = runs.iter().map(row).collect();
    let caption = "What each run came to";
    section("Runs", &table(caption, &["run", "kind", "verdict"], &rows))
}

/// The tables of each kind of result.
pub fn sections(runs: &[Loaded]) -> String {
    let groups = groups(runs);
    let is_mixed = groups.len() > 1;
    let of_kind = |group: &Vec<usize>| {
        let runs = members(runs, group);
        let kind = runs[0].result.compared_with();
        let mut inner = String::new();
        if is_mixed || runs.len() > super::FRAMES_MAX {
            inner += &first_figures(&runs);
        }
        if runs.len() > 1 {
            inner += &settings(&runs);
            inner += &figures(&runs);
        }
        let title = match runs.len() {
            1 => format!("One run of {kind}"),
            _ if is_mixed => format!("Side by side: {kind}"),
            _ => "Side by side".to_owned(),
        };
        section(&title, &inner)
    };
    groups.iter().map(of_kind).collect()
}

/// What the kind is asked first, a row a run.
fn first_figures(runs: &[&Loaded]) -> String {
    let (names, values) = tiles(runs);
    if names.is_empty() {
        return String::new();
    }
    let names = names.iter().map(String::as_str);
    let head: Vec<&str> = std::iter::once("run").chain(names).collect();
    let row = |(run, values): (&&Loaded, Vec<Option<String>>)| {
        let values = values
            .into_iter()
            .map(|value| Cell::Number(value.unwrap_or_else(|| "-".to_owned())));
        std::iter::once(Cell::Name(run.name.clone()))
            .chain(values)
            .collect()
    };
    let rows: Vec<Vec<Cell>> = runs.iter().zip(values).map(row).collect();
    table("First figures", &head, &rows)
}

fn settings(runs: &[&Loaded]) -> String {
    let settings = differing(runs);
    if settings.is_empty() {
        return String::new();
    }
    let names = runs.iter().map(|run| run.name.as_str());
    let head: Vec<&str> = std::iter::once("setting").chain(names).collect();
    let row = |Setting { name, values }: Setting| {
        let values = values.into_iter().map(Cell::Text);
        std::iter::once(Cell::Name(name)).chain(values).collect()
    };
    let rows: Vec<Vec<Cell>> = settings.into_iter().map(row).collect();
    table("What the runs were not made alike in", &head, &rows)
}

fn figures(runs: &[&Loaded]) -> String {
    let rows = rows(runs);
    if rows.is_empty() {
        return String::new();
    }
    let mut head = vec!["metric", runs[0].name.as_str()];
    for run in &runs[1..] {
        head.extend([run.name.as_str(), "difference", "percent", ""]);
    }
    let rows: Vec<Vec<Cell>> = rows.iter().map(|row| of_row(row, runs.len())).collect();
    let caption = "Each run against the first; worse and better from 5 % on";
    table(caption, &head, &rows)
}

fn of_row(row: &Row, runs: usize) -> Vec<Cell> {
    let unit = row.metric.unit;
    let shown =
        |unit: Unit, value: Option<f64>| Cell::Number(value.map_or("-".to_owned(), |value| unit.show(value)));
    let mut cells = vec![Cell::Name(row.label()), shown(unit, row.values[0])];
    for at in 1..runs {
        cells.push(shown(unit, row.values[at]));
        let change = row.change(at);
        cells.push(Cell::Number(change.map_or("-".to_owned(), |change| {
            unit.show_difference(change.difference)
        })));
        cells.push(Cell::Number(
            change.map_or("-".to_owned(), |change| percent(&change)),
        ));
        cells.push(match change.and_then(|change| change.is_worse) {
            Some(true) => Cell::Bad("worse".to_owned()),
            Some(false) => Cell::Text("better".to_owned()),
            None => Cell::Text(String::new()),
        });
    }
    cells
}
