//! Figures of all runs for programs: CSV with a row a run and figure, and one JSON object.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::settings::differing;
use super::{Row, rows};
use crate::csv::{field, optional};
use crate::input::clean;
use crate::load::Loaded;

/// Version of both.
pub const VERSION: u32 = 1;
/// Columns of the CSV.
pub const COLUMNS: &str = "run,metric,unit,value,baseline,difference,percent";

/// The CSV: a row for each run and each figure it knows.
pub fn csv(runs: &[Loaded]) -> String {
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

/// What `--json` prints.
#[derive(Serialize)]
pub struct Export {
    version: u32,
    runs: Vec<Value>,
    /// What the runs were not made alike in: the values of each run, in their order.
    settings: Vec<Value>,
    /// Against the first run, one object a figure and further run.
    differences: Vec<Value>,
    /// The rules of `--fail-if` that failed, a line each.
    failed: Vec<String>,
}

/// The object of `runs`, and the lines of the rules that `failed`.
pub fn object(runs: &[Loaded], failed: &[String]) -> Export {
    let rows = rows(runs);
    Export {
        version: VERSION,
        runs: runs.iter().enumerate().map(|(at, run)| one(run, &rows, at)).collect(),
        settings: differing(runs)
            .iter()
            .map(|setting| json!({"name": setting.name, "values": setting.values}))
            .collect(),
        differences: (1..runs.len()).flat_map(|at| rows.iter().filter_map(move |row| Some((at, row, row.change(at)?))))
            .map(|(at, row, change)| {
                json!({
                    "run": runs[at].path.display().to_string(), "metric": row.name(), "unit": row.metric.unit.name(),
                    "value": row.values[at], "baseline": row.values[0], "difference": change.difference,
                    "percent": change.part.map(|part| part * 100.0), "is_worse": change.is_worse,
                })
            })
            .collect(),
        failed: failed.to_vec(),
    }
}

fn one(run: &Loaded, rows: &[Row], at: usize) -> Value {
    let metrics: Map<String, Value> = rows
        .iter()
        .filter_map(|row| row.values[at].map(|value| (row.name(), json!(value))))
        .collect();
    json!({
        "path": run.path.display().to_string(),
        "metrics": metrics,
        "intervals": run.series.as_ref().map(|series| series.rows),
        "summary": run.result.value().unwrap_or(Value::Null),
    })
}
