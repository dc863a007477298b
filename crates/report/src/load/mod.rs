//! Loads what a report is drawn of: a run directory, or a file of intervals alone. Whole, or one line that says why not.

mod columns;
mod curve;
pub mod heat;
pub(crate) mod lines;
mod point;
mod search;
pub mod series;
pub mod stalls;
pub mod thin;

use std::fs;
use std::path::{Path, PathBuf};

use measure::{Percentiles, ReflectSummary, Summary, Validity};
use serde_json::Value;

pub use curve::Quantile;
pub use search::{Searched, SearchedTrial};
pub use series::{Channel, Contradictions, Series};
pub use stalls::Stalls;

use crate::comparison::Comparison;
use crate::input::{clean, is_there, json_file};
use crate::number::counted;
use crate::read::{self, ReadError};
use crate::rundir::file;

/// What is known of one run.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// As the user named it, shortened to its last part.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What it came to.
    pub outcome: Outcome,
    /// What happened in each interval.
    pub series: Option<Series>,
    /// Latency from the real departure; empty where nothing came back or no file was kept.
    pub latency: Vec<Quantile>,
    /// Gaps between departures.
    pub pacing: Vec<Quantile>,
    /// Pauses of the workers.
    pub stalls: Option<Stalls>,
    /// What was asked for.
    pub plan: Option<Value>,
    /// Facts about the machine.
    pub host: Option<Value>,
    /// What the doctor found before the run.
    pub findings: Option<Value>,
    /// What is not shown, or not to be relied on, a sentence each: files that such a run writes and that are not there,
    /// rows that contradict themselves.
    pub missing: Vec<String>,
}

/// What a run came to, by its kind.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Of `send`.
    Send(Box<Summary>),
    /// Of `reflect`.
    Reflect(Box<ReflectSummary>),
    /// Of `search`: the answers, and every trial.
    Search(Box<Searched>),
    /// Of `compare`.
    Compare(Box<Comparison>),
    /// Only intervals are known: a file of the older dpdk-project, or of a run that did not end.
    Intervals,
}

impl Loaded {
    /// The summary of a `send` run.
    pub fn summary(&self) -> Option<&Summary> {
        match &self.outcome {
            Outcome::Send(summary) => Some(summary),
            _ => None,
        }
    }

    /// Whether its verdict is that its numbers must not be believed.
    pub fn is_invalid(&self) -> bool {
        match &self.outcome {
            Outcome::Send(summary) => summary.verdict == Validity::Invalid,
            Outcome::Reflect(summary) => summary.verdict == Validity::Invalid,
            Outcome::Search(searched) => !searched.report.complete,
            Outcome::Compare(comparison) => comparison.interrupted,
            Outcome::Intervals => false,
        }
    }

    /// Latency in ns that a `share` (0 to 1) of the packets does not exceed.
    pub fn latency_within(&self, share: f64) -> Option<f64> {
        let known = self
            .summary()
            .map(|summary| summary.latency_ns)
            .unwrap_or_default();
        within(&self.latency, &known, share)
    }

    /// The same of the gaps between departures.
    pub fn gap_within(&self, share: f64) -> Option<f64> {
        let gaps = self.summary().map(|summary| summary.gap_ns).unwrap_or_default();
        let known = Percentiles::from(gaps);
        within(&self.pacing, &known, share)
    }

    /// Whether it is of many runs: a search, or a comparison of ways.
    pub fn is_of_many(&self) -> bool {
        matches!(self.outcome, Outcome::Search(_) | Outcome::Compare(_))
    }
}

/// What the summary knows comes from it, so that a percentile is the same wherever it stands; the rows of a `.hgrm` are
/// for the others: the next one above `share` that there is.
fn within(curve: &[Quantile], known: &Percentiles, share: f64) -> Option<f64> {
    let shares = [
        (0.0, known.min),
        (0.5, known.p50),
        (0.9, known.p90),
        (0.99, known.p99),
        (0.999, known.p999),
        (1.0, known.max),
    ];
    let exact = shares
        .iter()
        .find(|(at, _)| (at - share).abs() < 1e-9)
        .and_then(|(_, value)| *value);
    match exact {
        Some(ns) => Some(ns as f64),
        None => curve
            .iter()
            .find(|row| row.share >= share)
            .map(|row| row.value_ns),
    }
}

/// Loads the run directory or the file of intervals `path`.
pub fn load(path: &Path) -> Result<Loaded, ReadError> {
    let kind = fs::metadata(path).map_err(|cause| ReadError::Absent {
        path: path.to_owned(),
        cause,
    })?;
    let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = name.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    let name = clean(&name);
    if kind.is_dir() {
        directory(path, name)
    } else {
        intervals(path, name)
    }
}

fn intervals(path: &Path, name: String) -> Result<Loaded, ReadError> {
    if path.extension().is_some_and(|extension| extension == "json") {
        return Err(ReadError::Foreign {
            path: path.to_owned(),
            what: "name the run directory it lies in".to_owned(),
        });
    }
    let series = series::read(path)?;
    if series.rows == 0 {
        return Err(ReadError::Damaged {
            path: path.to_owned(),
            what: "it has no rows".to_owned(),
        });
    }
    let missing = contradictions(&series);
    Ok(Loaded {
        name,
        path: path.to_owned(),
        outcome: Outcome::Intervals,
        series: Some(series),
        latency: Vec::new(),
        pacing: Vec::new(),
        stalls: None,
        plan: None,
        host: None,
        findings: None,
        missing,
    })
}

/// What the rows say against each other, a sentence each.
fn contradictions(series: &Series) -> Vec<String> {
    let Contradictions {
        more_back,
        other_rate,
    } = series.contradictions;
    let mut told = Vec::new();
    if more_back > 0 {
        let so = if series.totals.received > series.totals.sent {
            ", and in all: of loss the file says nothing"
        } else {
            ": loss is that of the whole file, its drop rates over time are not to be relied on"
        };
        told.push(format!(
            "in {} more packets came back than were sent{so}",
            counted(more_back, "interval")
        ));
    }
    if other_rate > 0 {
        told.push(format!(
            "in {} drop_rate is not what tx_packets and rx_packets make of it: the charts show drop_rate, the sums are of the packets",
            counted(other_rate, "interval")
        ));
    }
    told
}

fn directory(path: &Path, name: String) -> Result<Loaded, ReadError> {
    let json = |name| there(path, name)?.map(|file| json_file(&file)).transpose();
    if let Some(outcome) = of_many(path)? {
        return Ok(Loaded {
            name,
            path: path.to_owned(),
            outcome,
            series: None,
            latency: Vec::new(),
            pacing: Vec::new(),
            stalls: None,
            plan: json(file::PLAN)?,
            host: json(file::HOST)?,
            findings: None,
            missing: Vec::new(),
        });
    }
    if there(path, file::SUMMARY)?.is_none() {
        if there(path, file::SEARCH_TRIALS)?.is_some() {
            return Err(ReadError::Unfinished {
                path: path.to_owned(),
            });
        }
        let is_comparison = || -> Result<bool, ReadError> {
            Ok(json(file::PLAN)?.is_some_and(|plan| plan["command"] == "compare"))
        };
        let what = if is_comparison()? {
            format!(
                "it is a comparison that did not end, so it has no {}; what its trials said is in {}",
                file::COMPARE,
                path.join(file::TRIALS).display()
            )
        } else if let Some(rows) = there(path, file::INTERVALS)? {
            format!(
                "it has no {}, so the run did not end; its intervals alone: dropless report {}",
                file::SUMMARY,
                rows.display()
            )
        } else {
            format!("it has no {}", file::SUMMARY)
        };
        return Err(ReadError::Foreign {
            path: path.to_owned(),
            what,
        });
    }
    let outcome = match read::command(path)?.as_str() {
        "reflect" => Outcome::Reflect(Box::new(read::reflect_summary(path)?)),
        _ => Outcome::Send(Box::new(read::summary(path)?)),
    };
    let mut missing = Vec::new();
    for (name, shows) in expected(&outcome) {
        if there(path, name)?.is_none() {
            missing.push(format!(
                "{name} is not in the run directory: {shows} cannot be shown"
            ));
        }
    }
    let curve = |name| there(path, name)?.map_or(Ok(Vec::new()), |file| curve::read(&file));
    Ok(Loaded {
        name,
        path: path.to_owned(),
        outcome,
        series: there(path, file::INTERVALS)?
            .map(|file| series::read(&file))
            .transpose()?,
        latency: curve(file::LATENCY)?,
        pacing: curve(file::PACING)?,
        stalls: there(path, file::STALLS)?
            .map(|file| stalls::read(&file))
            .transpose()?,
        plan: json(file::PLAN)?,
        host: json(file::HOST)?,
        findings: json(file::DOCTOR)?,
        missing,
    })
}

/// The file `name` of the run directory `path`, if there is one.
fn there(path: &Path, name: &str) -> Result<Option<PathBuf>, ReadError> {
    let file = path.join(name);
    Ok(is_there(&file)?.then_some(file))
}

/// The files that a run with this outcome has written, and what they show.
fn expected(outcome: &Outcome) -> Vec<(&'static str, &'static str)> {
    let (workers, has_latency) = match outcome {
        Outcome::Send(summary) => (&summary.workers, summary.latency_ns.max.is_some()),
        Outcome::Reflect(summary) => (&summary.workers, false),
        Outcome::Search(_) | Outcome::Compare(_) | Outcome::Intervals => return Vec::new(),
    };
    let all = [
        (!workers.is_empty(), file::INTERVALS, "what happened over time"),
        (!workers.is_empty(), file::STALLS, "the pauses of the workers"),
        (has_latency, file::LATENCY, "the curve of latency percentiles"),
    ];
    all.into_iter()
        .filter_map(|(is_expected, name, shows)| is_expected.then_some((name, shows)))
        .collect()
}

/// A search or a comparison, told by its file.
fn of_many(path: &Path) -> Result<Option<Outcome>, ReadError> {
    if there(path, file::SEARCH)?.is_some() {
        return Ok(Some(Outcome::Search(Box::new(search::read(path)?))));
    }
    if there(path, file::COMPARE)?.is_some() {
        let comparison = read::comparison(path)?;
        return Ok(Some(Outcome::Compare(Box::new(comparison))));
    }
    Ok(None)
}
