//! Every figure of every run as CSV: a row for each.

use std::fmt::Write as _;

use super::Export;
use crate::compare::{Row, groups, members, rows};
use crate::csv::{field, optional};
use crate::input::clean;
use crate::load::Loaded;

/// The form.
pub const EXPORT: Export = Export {
    name: "csv",
    help: "Print every figure of every run as CSV",
    file: None,
    render: |shown| Ok(table(shown.runs)),
};

/// Its columns.
const COLUMNS: &str = "run,metric,unit,value,baseline,difference,percent";

/// The table: a row for each run and each figure it knows, against the first run of its kind.
pub fn table(runs: &[Loaded]) -> String {
    let mut lines = vec![String::new(); runs.len()];
    for group in groups(runs) {
        let rows = rows(&members(runs, &group));
        for (place, at) in group.into_iter().enumerate() {
            lines[at] = of_run(&runs[at], &rows, place);
        }
    }
    format!("{COLUMNS}\n{}", lines.concat())
}

/// The rows of the run that is at `place` in its group.
fn of_run(run: &Loaded, rows: &[Row], place: usize) -> String {
    let mut text = String::new();
    let called = field(&clean(&run.in_words()));
    for row in rows {
        let Some(value) = row.values[place] else { continue };
        let change = row.change(place);
        let (name, unit) = (field(&row.name()), row.metric.unit.name());
        // A `String` takes everything.
        let _ = writeln!(
            text,
            "{called},{name},{unit},{value},{},{},{}",
            optional(row.values[0]),
            optional(change.map(|change| change.difference)),
            optional(change.and_then(|change| change.part).map(|part| part * 100.0)),
        );
    }
    text
}
