//! One JSON object with every figure, every difference and every result.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Export;
use crate::compare::settings::differing;
use crate::compare::{Row, rows};
use crate::json::pretty;
use crate::load::Loaded;

/// The form.
pub const EXPORT: Export = Export {
    name: "json",
    help: "Print one JSON object with every figure, every difference and every summary",
    file: None,
    render: |shown| Ok(pretty(&object(shown.runs, shown.failed))?),
};

/// Version of the object.
const VERSION: u32 = 1;

/// What `--json` prints.
#[derive(Serialize)]
pub struct Object {
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
pub fn object(runs: &[Loaded], failed: &[String]) -> Object {
    let rows = rows(runs);
    Object {
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
