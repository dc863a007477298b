//! Several runs side by side: every figure, and how far each is from the first.

use std::fmt::Write as _;

use crate::compare::settings::differing;
use crate::compare::{Row, percent, rows};
use crate::load::Loaded;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};

/// Characters of a setting.
const VALUE_MAX: usize = 32;

/// The table; each further run has its value and its change in percent.
pub fn render(runs: &[Loaded], style: &Style) -> String {
    let mut text = String::new();
    for (at, run) in runs.iter().enumerate() {
        // A `String` takes everything.
        let number = style.paint(Paint::Head, &format!("[{}]", at + 1));
        let _ = writeln!(text, "  {number} {}", run.path.display());
    }
    let names: Vec<String> = (1..=runs.len()).map(|number| format!(">[{number}]")).collect();
    let settings = differing(runs);
    if !settings.is_empty() {
        let titles: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut table = Table::section("Made with", &titles);
        for setting in settings {
            let cells = setting
                .values
                .into_iter()
                .map(|value| Cell::right(clipped(value)));
            table.item(&setting.name, cells.collect::<Vec<_>>());
        }
        text.push('\n');
        text += &table.render(style);
    }
    let rows = rows(runs);
    if rows.is_empty() {
        return text;
    }
    let mut titles = vec![names[0].as_str()];
    for name in &names[1..] {
        titles.extend([name.as_str(), ">change", ""]);
    }
    let mut table = Table::section("Side by side", &titles);
    for row in rows {
        table.item(&row.label(), cells(&row));
    }
    text + "\n" + &table.render(style)
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
