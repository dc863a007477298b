//! Every figure of every run as CSV: a row for each.

use std::fmt::Write as _;

use super::Export;
use crate::compare::rows;
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

/// The table: a row for each run and each figure it knows.
pub fn table(runs: &[Loaded]) -> String {
    let rows = rows(runs);
    let mut text = format!("{COLUMNS}\n");
    for (at, run) in runs.iter().enumerate() {
        let path = field(&clean(&run.path.display().to_string()));
        for row in &rows {
            let Some(value) = row.values[at] else { continue };
            let change = row.change(at);
            let (name, unit) = (field(&row.name()), row.metric.unit.name());
            // A `String` takes everything.
            let _ = writeln!(
                text,
                "{path},{name},{unit},{value},{},{},{}",
                optional(row.values[0]),
                optional(change.map(|change| change.difference)),
                optional(change.and_then(|change| change.part).map(|part| part * 100.0)),
            );
        }
    }
    text
}
