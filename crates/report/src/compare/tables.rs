//! Runs of one kind side by side, as tables of a terminal and of a page.

use super::settings::{Setting, differing};
use super::{Row, percent, rows, tiles};
use crate::load::Loaded;
use crate::sheet::Sheet;
use crate::style::Paint;
use crate::table::Cell;

/// Characters of a setting in a terminal; the page and `--json` have all of it.
const VALUE_MAX: usize = 32;

/// A run with its values of the figures, where it has them.
pub type Figures<'r> = (&'r Loaded, Vec<Option<String>>);

/// What the kind is asked first, a row a run; nothing where it is asked nothing.
pub fn first_figures<'r>(runs: &[&'r Loaded]) -> Option<Sheet<Figures<'r>>> {
    let (names, values) = tiles(runs.iter().copied());
    let mut sheet = Sheet::of(runs.iter().copied().zip(values)).name("run", |(run, _)| run.name.clone());
    for (at, name) in names.iter().enumerate() {
        sheet = sheet.optional(name, |(_, values)| values[at].clone());
    }
    (!names.is_empty()).then_some(sheet)
}

/// What the runs were not made alike in.
pub fn settings(runs: &[&Loaded]) -> Sheet<Setting> {
    let mut sheet = Sheet::of(differing(runs)).name("setting", Setting::label);
    for (at, run) in runs.iter().enumerate() {
        sheet = sheet
            .number(&run.name, |setting| clipped(&setting.value(at)))
            .in_terminal()
            .words(&run.name, |setting| setting.value(at))
            .on_page();
    }
    sheet
}

/// As much of a setting as a terminal has room for.
fn clipped(value: &str) -> String {
    if value.chars().count() <= VALUE_MAX {
        return value.to_owned();
    }
    value.chars().take(VALUE_MAX - 3).chain("...".chars()).collect()
}

/// Every figure; each further run has its value and its change.
pub fn figures(runs: &[&Loaded]) -> Sheet<Row> {
    let mut sheet = Sheet::of(rows(runs)).name("metric", Row::label);
    for (at, run) in runs.iter().enumerate() {
        sheet = sheet.optional(&run.name, |row| Some(row.metric.unit.show(row.values[at]?)));
        if at > 0 {
            sheet = with_change(sheet, at);
        }
    }
    sheet
}

fn with_change(sheet: Sheet<Row>, at: usize) -> Sheet<Row> {
    let word = |row: &Row| match row.change(at).and_then(|change| change.is_worse) {
        Some(true) => ("worse", Paint::Bad),
        Some(false) => ("better", Paint::Good),
        None => ("", Paint::None),
    };
    let part = |row: &Row| row.change(at).map(|change| percent(&change));
    sheet
        .cell("change", |row| {
            Cell::right(part(row).unwrap_or_else(|| "-".to_owned())).paint(word(row).1)
        })
        .in_terminal()
        .optional("difference", |row| {
            Some(row.metric.unit.show_difference(row.change(at)?.difference))
        })
        .on_page()
        .optional("percent", part)
        .on_page()
        .cell("", |row| Cell::left(word(row).0).paint(word(row).1))
        .in_terminal()
        .cell("", |row| match word(row) {
            ("worse", paint) => Cell::right("worse").paint(paint),
            (word, _) => Cell::left(word),
        })
        .on_page()
}
