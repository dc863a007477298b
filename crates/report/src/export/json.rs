//! One JSON object with every figure, every difference and every result.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Export;
use crate::compare::settings::{Setting, differing};
use crate::compare::{self, groups, members, rows};
use crate::json::pretty;
use crate::list::Row;
use crate::load::Loaded;

/// The form.
pub const EXPORT: Export = Export {
    name: "json",
    help: "Print one JSON object with every figure, every difference and every summary",
    file: None,
    render: |shown| {
        Ok(if shown.is_list {
            pretty(&list(shown.runs))?
        } else {
            pretty(&object(shown.runs, shown.failed))?
        })
    },
};

/// Version of the object.
const VERSION: u32 = 1;

/// What `--json` prints.
#[derive(Serialize)]
pub struct Object {
    version: u32,
    runs: Vec<Value>,
    /// What runs of one kind were not made alike in: the values of each run, in their order.
    settings: Vec<Value>,
    /// Against the first run of the same kind, one object a figure and further run.
    differences: Vec<Value>,
    /// The rules of `--fail-if` that failed, a line each.
    failed: Vec<String>,
}

/// What `--list --json` prints: the rows of the list, in the order of `runs`.
fn list(runs: &[Loaded]) -> Value {
    json!({"version": VERSION, "runs": runs.iter().map(listed).collect::<Vec<_>>()})
}

/// A row of the list, and which run it is.
fn listed(run: &Loaded) -> Value {
    let verdict = run.result.verdict();
    json!({
        "path": run.path.display().to_string(),
        "kind": run.result.entry().map(|entry| entry.command),
        "ended": run.has_ended(),
        "readable": !run.is_unreadable(),
        "says": verdict.words(),
        "row": Row::of(run),
    })
}

/// The object of `runs`, and the lines of the rules that `failed`.
pub fn object(runs: &[Loaded], failed: &[String]) -> Object {
    let mut object = Object {
        version: VERSION,
        runs: vec![Value::Null; runs.len()],
        settings: Vec::new(),
        differences: Vec::new(),
        failed: failed.to_vec(),
    };
    for group in groups(runs) {
        let members = members(runs, &group);
        let rows = rows(&members);
        for (place, at) in group.iter().enumerate() {
            object.runs[*at] = one(&runs[*at], &rows, place);
            if place > 0 {
                object.differences.extend(differences(&runs[*at], &rows, place));
            }
        }
        for Setting { name, values } in differing(&members) {
            // Of runs of another kind it is no setting.
            let mut all = vec![Value::Null; runs.len()];
            group
                .iter()
                .zip(values)
                .for_each(|(at, value)| all[*at] = value.into());
            object.settings.push(json!({"name": name, "values": all}));
        }
    }
    object
}

fn differences(run: &Loaded, rows: &[compare::Row], place: usize) -> Vec<Value> {
    let path = run.path.display().to_string();
    let changed = rows.iter().filter_map(|row| Some((row, row.change(place)?)));
    changed
        .map(|(row, change)| {
            json!({
                "run": path, "metric": row.name(), "unit": row.metric.unit.name(),
                "value": row.values[place], "baseline": row.values[0], "difference": change.difference,
                "percent": change.part.map(|part| part * 100.0), "is_worse": change.is_worse,
            })
        })
        .collect()
}

fn one(run: &Loaded, rows: &[compare::Row], place: usize) -> Value {
    let metrics: Map<String, Value> = rows
        .iter()
        .filter_map(|row| row.values[place].map(|value| (row.name(), json!(value))))
        .collect();
    let mut object = listed(run);
    object["metrics"] = metrics.into();
    object["intervals"] = run.series.as_ref().map(|series| series.rows).into();
    object["summary"] = run.result.value().unwrap_or(Value::Null);
    object
}
