//! Reads `stalls.csv`, and `gaps.csv` of `noise`: sums over all stalls, and those worth drawing.

use std::collections::BTreeMap;
use std::path::Path;

use super::lines::Lines;
use super::series::TIME_MAX_MS;
use crate::csv::split;
use crate::files::{GAP_COLUMNS, STALL_COLUMNS};
use crate::read::ReadError;
use crate::rundir::file;
use crate::sane::NUMBER_MAX;

/// Stalls that are kept: the longest, and those that cost most.
pub const KEPT_MAX: usize = 3000;
/// Causes told apart; there are a handful.
const CAUSES_MAX: usize = 200;

/// One stall.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stall {
    /// When it ended, in ms since the start.
    pub end_ms: f64,
    /// The core.
    pub core: u32,
    /// What the worker does there.
    pub role: String,
    /// Its length in ns.
    pub length_ns: u64,
    /// What had the core; empty where nobody asked.
    pub cause: String,
    /// Packets missed meanwhile.
    pub lost: u64,
}

/// All stalls of one cause.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// How many.
    pub count: u64,
    /// All of their time in ns.
    pub total_ns: u64,
    /// The longest in ns.
    pub max_ns: u64,
    /// Packets missed.
    pub lost: u64,
}

impl Cause {
    fn add(&mut self, stall: &Stall) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(stall.length_ns);
        self.max_ns = self.max_ns.max(stall.length_ns);
        self.lost = self.lost.saturating_add(stall.lost);
    }
}

/// The stalls of a run.
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    /// All together.
    pub all: Cause,
    /// By cause.
    pub causes: BTreeMap<String, Cause>,
    /// By length: those of a key are from 2 to its power up to twice as many ns.
    pub lengths: BTreeMap<u32, Cause>,
    /// Those that are drawn, in the order of time.
    pub kept: Vec<Stall>,
}

/// What makes a stall of the fields of a row.
type OfRow = fn(&[String]) -> Result<Stall, String>;

/// The stalls in the file `path`, which is named `name` in a run directory.
pub fn read(path: &Path, name: &str) -> Result<Stalls, ReadError> {
    let (name, titles, of_row): (_, _, OfRow) = match name {
        file::GAPS => (file::GAPS, GAP_COLUMNS, of_noise),
        _ => (file::STALLS, STALL_COLUMNS, of_worker),
    };
    let mut lines = Lines::open(path)?;
    // A later version may add columns behind these.
    if !lines.next_line()?.unwrap_or_default().starts_with(titles) {
        return Err(lines.damaged(&format!("not the columns of a {name}")));
    }
    let columns = titles.split(',').count();
    let mut stalls = Stalls::default();
    while let Some(line) = lines.next_line()? {
        let fields = split(line);
        if fields.len() < columns || !lines.is_ended() {
            return Err(lines.damaged(&format!(
                "{} fields under {columns} columns, or cut off",
                fields.len()
            )));
        }
        let stall = of_row(&fields).map_err(|what| lines.damaged(&what))?;
        stalls.add(stall);
    }
    stalls.shorten();
    stalls
        .kept
        .sort_by(|one, other| one.end_ms.total_cmp(&other.end_ms));
    Ok(stalls)
}

/// A row of `stalls.csv`.
fn of_worker(fields: &[String]) -> Result<Stall, String> {
    Ok(Stall {
        end_ms: milliseconds(&fields[0], 1.0)?,
        core: core(&fields[1])?,
        role: fields[2].clone(),
        length_ns: count(&fields[3])?,
        cause: fields[5].clone(),
        lost: count(&fields[6])?,
    })
}

/// A row of `gaps.csv`.
fn of_noise(fields: &[String]) -> Result<Stall, String> {
    let length_ns = count(&fields[2])?;
    Ok(Stall {
        end_ms: milliseconds(&fields[1], 1e3)? + length_ns as f64 / 1e6,
        core: core(&fields[0])?,
        role: String::new(),
        length_ns,
        cause: fields[3].clone(),
        lost: 0,
    })
}

fn count(field: &str) -> Result<u64, String> {
    let count = field.parse::<u64>().ok();
    count
        .filter(|count| *count as f64 <= NUMBER_MAX)
        .ok_or_else(|| format!("`{field}` is not a count"))
}

fn core(field: &str) -> Result<u32, String> {
    u32::try_from(count(field)?).map_err(|_| format!("`{field}` is not a core"))
}

/// A time whose unit is so many ms.
fn milliseconds(field: &str, unit_ms: f64) -> Result<f64, String> {
    let time = field.parse::<f64>().ok().map(|time| time * unit_ms);
    time.filter(|time| (0.0..=TIME_MAX_MS).contains(time))
        .ok_or_else(|| format!("`{field}` is not a time"))
}

impl Stalls {
    /// Whether anybody asked what had the core, and counted what was missed meanwhile (`--explain`).
    pub fn is_explained(&self) -> bool {
        self.all.lost > 0 || self.causes.keys().any(|cause| !cause.is_empty())
    }

    fn add(&mut self, stall: Stall) {
        self.all.add(&stall);
        if self.causes.contains_key(&stall.cause) || self.causes.len() < CAUSES_MAX {
            self.causes.entry(stall.cause.clone()).or_default().add(&stall);
        }
        let power = stall.length_ns.max(1).ilog2();
        self.lengths.entry(power).or_default().add(&stall);
        self.kept.push(stall);
        if self.kept.len() >= 4 * KEPT_MAX {
            self.shorten();
        }
    }

    /// Keeps those that cost most, and the longest.
    fn shorten(&mut self) {
        self.kept
            .sort_by_key(|stall| std::cmp::Reverse((stall.lost, stall.length_ns)));
        if self.kept.len() > KEPT_MAX / 2 {
            self.kept[KEPT_MAX / 2..].sort_by_key(|stall| std::cmp::Reverse(stall.length_ns));
        }
        self.kept.truncate(KEPT_MAX);
    }

    /// Causes, what cost most first.
    pub fn ranked(&self) -> Vec<(&str, &Cause)> {
        let mut causes: Vec<_> = self
            .causes
            .iter()
            .map(|(name, cause)| (name.as_str(), cause))
            .collect();
        causes.sort_by_key(|(_, cause)| std::cmp::Reverse((cause.lost, cause.total_ns)));
        causes
    }
}
