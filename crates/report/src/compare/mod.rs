//! Lays runs side by side: every figure, and how far each run is from the first.

pub mod fail_if;
pub mod metrics;
pub mod settings;
pub(crate) mod tables;

use crate::kind::Tile;
use crate::load::Loaded;
use metrics::{Metric, Worse};

/// Smaller changes are neither called better nor worse: two runs of one thing differ by that much.
const REMARKABLE: f64 = 0.05;

/// One figure of all runs.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which.
    pub metric: Metric,
    /// Of what, where a run has several.
    pub of: String,
    /// Of each run.
    pub values: Vec<Option<f64>>,
    /// Whether each run may be believed: of one that is INVALID no figure is better or worse.
    pub believed: Vec<bool>,
}

/// How far a value is from that of the first run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// In the figure's unit.
    pub difference: f64,
    /// As a part of the first; nothing where that is 0.
    pub part: Option<f64>,
    /// `Some(true)` where it is clearly worse, `Some(false)` where it is clearly better.
    pub is_worse: Option<bool>,
}

impl Row {
    /// What it is called in files.
    pub fn name(&self) -> String {
        format!("{} {}", self.metric.name, self.of).trim_end().to_owned()
    }

    /// What people call it.
    pub fn label(&self) -> String {
        format!("{} {}", self.metric.label, self.of).trim_end().to_owned()
    }

    /// The change of the run `at` against the first.
    pub fn change(&self, at: usize) -> Option<Change> {
        let (before, after) = (self.values.first().copied()??, self.values.get(at).copied()??);
        let difference = after - before;
        let part = (before != 0.0).then(|| difference / before);
        let is_remarkable = difference != 0.0 && part.is_none_or(|part| part.abs() >= REMARKABLE);
        let is_believed = [0, at].iter().all(|run| self.believed.get(*run) == Some(&true));
        let is_worse = (is_remarkable && is_believed)
            .then_some((difference > 0.0) == (self.metric.worse == Worse::Higher));
        Some(Change {
            difference,
            part,
            is_worse,
        })
    }
}

/// Runs that lie side by side, in columns of a terminal; more are a row each.
pub const BESIDE_MAX: usize = 4;

/// Whether `runs` are laid side by side in a terminal: two to four of one kind, which all ended. Others are listed.
pub fn is_compared(runs: &[Loaded]) -> bool {
    (2..=BESIDE_MAX).contains(&runs.len()) && groups(runs).len() == 1 && runs.iter().all(Loaded::has_ended)
}

/// The places of the runs that are compared with each other, the baseline of each group first.
pub fn groups(runs: &[Loaded]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let kind = run.result.compared_with();
        match groups
            .iter_mut()
            .find(|group| runs[group[0]].result.compared_with() == kind)
        {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

/// The runs of a group.
pub fn members<'r>(runs: &'r [Loaded], group: &[usize]) -> Vec<&'r Loaded> {
    group.iter().filter_map(|at| runs.get(*at)).collect()
}

/// The tiles of runs of one kind: their names, and the values of each run.
pub fn tiles<'r>(runs: impl Iterator<Item = &'r Loaded>) -> (Vec<String>, Vec<Vec<Option<String>>>) {
    let all: Vec<Vec<Tile>> = runs.map(|run| run.result.tiles()).collect();
    let mut names: Vec<String> = Vec::new();
    for tile in all.iter().flatten() {
        if !names.contains(&tile.name) {
            names.push(tile.name.clone());
        }
    }
    let value = |tiles: &[Tile], name: &String| {
        let tile = tiles.iter().find(|tile| tile.name == *name);
        tile.map(|tile| tile.value.clone())
    };
    let row = |tiles: &Vec<Tile>| names.iter().map(|name| value(tiles, name)).collect();
    let rows = all.iter().map(row).collect();
    (names, rows)
}

/// Every figure that at least one run knows, against the first of them.
pub fn rows(runs: &[&Loaded]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for &metric in metrics::all() {
        let first = rows.len();
        for (at, run) in runs.iter().enumerate() {
            for (of, value) in run.figures(metric.name) {
                let known = rows[first..].iter().position(|row| row.of == of);
                let index = known.map_or(rows.len(), |index| first + index);
                if known.is_none() {
                    rows.push(Row {
                        metric,
                        of,
                        values: vec![None; runs.len()],
                        believed: runs.iter().map(|run| !run.is_invalid()).collect(),
                    });
                }
                rows[index].values[at] = Some(value);
            }
        }
    }
    rows
}

/// A change in percent, with its sign; `new` where there was nothing before.
pub fn percent(change: &Change) -> String {
    match change.part {
        Some(part) => grown(part),
        None if change.difference == 0.0 => "0 %".to_owned(),
        None => "new".to_owned(),
    }
}

/// A part of the baseline that was added to it, as people read it: nobody reads 421520 %.
fn grown(part: f64) -> String {
    if part >= 10.0 {
        format!("{} times", crate::number::count((part + 1.0).round() as u64))
    } else {
        format!("{:+.1} %", part * 100.0)
    }
}
