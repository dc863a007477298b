//! Several runs side by side: what each came to, what they were not made alike in, every figure and its change.

use super::super::element::section;
use crate::compare::settings::differing;
use crate::compare::{Row, groups, members, percent, rows, tiles};
use crate::kind::Standing;
use crate::load::Loaded;
use crate::sheet::Sheet;
use crate::style::Paint;
use crate::table::Cell;

/// Each run in a row, and what it came to.
pub fn list(runs: &[Loaded]) -> String {
    let table = Sheet::of(runs)
        .name("run", |run| run.name.clone())
        .words("kind", |run| {
            run.result.entry().map_or("", |entry| entry.command).to_owned()
        })
        .cell("verdict", |run| {
            let verdict = run.result.verdict();
            let is_bad = verdict.standing == Standing::Invalid;
            Cell::left(verdict.line()).paint(if is_bad { Paint::Bad } else { Paint::None })
        })
        .html("What each run came to");
    section("Runs", &table)
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
    let mut sheet = Sheet::of(runs.iter().zip(values)).name("run", |(run, _)| run.name.clone());
    for (at, name) in names.iter().enumerate() {
        sheet = sheet.optional(name, |(_, values)| values[at].clone());
    }
    sheet.html("First figures")
}

fn settings(runs: &[&Loaded]) -> String {
    let mut sheet = Sheet::of(differing(runs)).name("setting", |setting| setting.name.clone());
    for (at, run) in runs.iter().enumerate() {
        sheet = sheet.words(&run.name, |setting| setting.values[at].clone());
    }
    sheet.html("What the runs were not made alike in")
}

fn figures(runs: &[&Loaded]) -> String {
    let shown = |at: usize| move |row: &Row| Some(row.metric.unit.show(row.values[at]?));
    let mut sheet = Sheet::of(rows(runs))
        .name("metric", Row::label)
        .optional(&runs[0].name, shown(0));
    for (at, run) in runs.iter().enumerate().skip(1) {
        sheet = sheet
            .optional(&run.name, shown(at))
            .optional("difference", |row| {
                Some(row.metric.unit.show_difference(row.change(at)?.difference))
            })
            .optional("percent", |row| Some(percent(&row.change(at)?)))
            .cell("", |row| {
                match row.change(at).and_then(|change| change.is_worse) {
                    Some(true) => Cell::right("worse").paint(Paint::Bad),
                    Some(false) => Cell::left("better"),
                    None => Cell::left(""),
                }
            });
    }
    sheet.html("Each run against the first; worse and better from 5 % on")
}
