//! Reads `stalls.csv`: sums over all pauses, and those worth drawing.

use std::collections::BTreeMap;
use std::path::Path;

use super::lines::Lines;
use super::series::TIME_MAX_MS;
use crate::csv::split;
use crate::files::STALL_COLUMNS;
use crate::read::ReadError;
use crate::sane::NUMBER_MAX;

/// Pauses that are kept: the longest, and those that cost most.
pub const KEPT_MAX: usize = 3000;
/// Causes told apart; there are a handful.
const CAUSES_MAX: usize = 200;

/// One pause.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pause {
    /// When it ended, in ms since the start.
    pub end_ms: f64,
    /// The core.
    pub core: u32,
    /// What the worker does there.
    pub role: String,
    /// Its length in ns.
    pub gap_ns: u64,
    /// What had the core; empty where nobody asked.
    pub cause: String,
    /// Packets missed meanwhile.
    pub lost: u64,
}

/// All pauses of one cause.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// How many.
    pub pauses: u64,
    /// All of their time in ns.
    pub total_ns: u64,
    /// The longest in ns.
    pub max_ns: u64,
    /// Packets missed.
    pub lost: u64,
}

impl Cause {
    fn add(&mut self, pause: &Pause) {
        self.pauses += 1;
        self.total_ns = self.total_ns.saturating_add(pause.gap_ns);
        self.max_ns = self.max_ns.max(pause.gap_ns);
        self.lost = self.lost.saturating_add(pause.lost);
    }
}

/// The pauses of a run.
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    /// All together.
    pub all: Cause,
    /// By cause.
    pub causes: BTreeMap<String, Cause>,
    /// Those that are drawn, in the order of time.
    pub kept: Vec<Pause>,
}

/// The pauses in the file `path`.
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
        let pause = pause(&fields).map_err(|what| lines.damaged(&what))?;
        stalls.add(pause);
    }
    stalls.shorten();
    stalls
        .kept
        .sort_by(|one, other| one.end_ms.total_cmp(&other.end_ms));
    Ok(stalls)
}

fn pause(fields: &[String]) -> Result<Pause, String> {
    let count = |place: usize| {
        let count = fields[place].parse::<u64>().ok();
        count
            .filter(|count| *count as f64 <= NUMBER_MAX)
            .ok_or_else(|| format!("`{}` is not a count", fields[place]))
    };
    let is_time = |time: &f64| (0.0..=TIME_MAX_MS).contains(time);
    let end_ms = fields[0].parse::<f64>().ok().filter(is_time);
    Ok(Pause {
        end_ms: end_ms.ok_or_else(|| format!("`{}` is not a time", fields[0]))?,
        core: u32::try_from(count(1)?).map_err(|_| format!("`{}` is not a core", fields[1]))?,
        role: fields[2].clone(),
        gap_ns: count(3)?,
        cause: fields[5].clone(),
        lost: count(6)?,
    })
}

impl Stalls {
    fn add(&mut self, pause: Pause) {
        self.all.add(&pause);
        if self.causes.contains_key(&pause.cause) || self.causes.len() < CAUSES_MAX {
            self.causes.entry(pause.cause.clone()).or_default().add(&pause);
        }
        self.kept.push(pause);
        if self.kept.len() >= 4 * KEPT_MAX {
            self.shorten();
        }
    }

    /// Keeps those that cost most, and the longest.
    fn shorten(&mut self) {
        self.kept
            .sort_by_key(|pause| std::cmp::Reverse((pause.lost, pause.gap_ns)));
        if self.kept.len() > KEPT_MAX / 2 {
            self.kept[KEPT_MAX / 2..].sort_by_key(|pause| std::cmp::Reverse(pause.gap_ns));
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
