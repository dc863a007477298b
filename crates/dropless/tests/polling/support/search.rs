//! What tests of `dropless search` share: short trials, and what a search wrote.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{Finished, Lab};

/// Short trials.
pub const SHORT: &[&str] = &[
    "--initial-duration",
    "100ms",
    "--final-duration",
    "100ms",
    "--duration-sum",
    "300ms",
];
/// On one core, with room to catch up: the sender keeps its rate also on a busy machine.
pub const STEADY: &[&str] = &[
    "--width",
    "10%",
    "--drain",
    "100ms",
    "--backlog",
    "1000000",
    "--cores",
    "0",
];
pub const LIMIT: Duration = Duration::from_secs(240);

/// The goal number `index` of the size number `size`.
pub fn goal(run: &Finished, size: usize, index: usize) -> Value {
    let goal = run.json()["sizes"][size]["goals"][index].clone();
    assert!(goal.is_object(), "no goal {index} of size {size}: {run}");
    goal
}

pub fn rate(bound: &Value) -> f64 {
    bound["rate_pps"]
        .as_f64()
        .unwrap_or_else(|| panic!("{bound} is no bound"))
}

/// The run directory, and the lines of its journal.
pub fn journal(lab: &Lab) -> (PathBuf, Vec<Value>) {
    let directory = run_directory(lab).expect("a run directory");
    let lines = lines_of(&directory);
    (directory, lines)
}

/// The search's; a reflector has one of its own beside it.
pub fn run_directory(lab: &Lab) -> Option<PathBuf> {
    let runs = std::fs::read_dir(lab.path("runs")).ok()?;
    let mut paths = runs.flatten().map(|entry| entry.path());
    paths.find(|path| path.to_string_lossy().ends_with("-search"))
}

pub fn lines_of(directory: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(directory.join("trials.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}
