//! Reads `stalls.csv`: sums over all stalls, and those worth drawing.

use std::collections::BTreeMap;
use std::path::Path;

use super::lines::Lines;
use super::series::TIME_MAX_MS;
use crate::csv::split;
use crate::files::STALL_COLUMNS;
use crate::read::ReadError;
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
    /// Those that are drawn, in the order of time.
    pub kept: Vec<Stall>,
}

/// The stalls in the file `path`.
pub fn read(path: &Path) -> Result<Stalls, ReadError> {
    let mut lines = Lines::open(path)?;
    // A later version may add columns behind these.
    if !lines.next_line()?.unwrap_or_default().starts_with(STALL_COLUMNS) {
        return Err(lines.damaged("not the columns of a stalls.csv"));
    }
    let columns = STALL_COLUMNS.split(',').count();
    let mut stalls = Stalls::default();
    while let Some(line) = lines.next_line()? {
        let fields = split(line);
        if fields.len() < columns || !lines.is_ended() {
            return Err(lines.damaged(&format!(
                "{} fields under {columns} columns, or cut off",
                fields.len()
            )));
        }
        let stall = stall(&fields).map_err(|what| lines.damaged(&what))?;
        stalls.add(stall);
    }
    stalls.shorten();
    stalls
        .kept
        .sort_by(|one, other| one.end_ms.total_cmp(&other.end_ms));
    Ok(stalls)
}

fn stall(fields: &[String]) -> Result<Stall, String> {
    let count = |place: usize| {
        let count = fields[place].parse::<u64>().ok();
        count
            .filter(|count| *count as f64 <= NUMBER_MAX)
            .ok_or_else(|| format!("`{}` is not a count", fields[place]))
    };
    let is_time = |time: &f64| (0.0..=TIME_MAX_MS).contains(time);
    let end_ms = fields[0].parse::<f64>().ok().filter(is_time);
    Ok(Stall {
        end_ms: end_ms.ok_or_else(|| format!("`{}` is not a time", fields[0]))?,
        core: u32::try_from(count(1)?).map_err(|_| format!("`{}` is not a core", fields[1]))?,
        role: fields[2].clone(),
        length_ns: count(3)?,
        cause: fields[5].clone(),
        lost: count(6)?,
    })
}

impl Stalls {
    fn add(&mut self, stall: Stall) {
        self.all.add(&stall);
        if self.causes.contains_key(&stall.cause) || self.causes.len() < CAUSES_MAX {
            self.causes.entry(stall.cause.clone()).or_default().add(&stall);
        }
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
