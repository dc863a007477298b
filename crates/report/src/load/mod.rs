//! Loads what a report is drawn of: a run directory, or a file of intervals alone. Whole, or one line that says why not.

mod curve;
pub mod heat;
mod lines;
mod point;
mod search;
pub mod series;
pub mod stalls;
pub mod thin;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use measure::{Percentiles, ReflectSummary, Summary, Validity};
use serde_json::Value;

pub use curve::Quantile;
pub use search::{Searched, SearchedTrial};
pub use series::{Channel, Series};
pub use stalls::Stalls;

use crate::comparison::Comparison;
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
    let missing = (series.more_back > 0).then(|| {
        format!(
            "in {} more packets came back than were sent: what the file says of loss there is not to be relied on",
            counted(series.more_back, "interval")
        )
    });
    Ok(Loaded {
        name,
        path: path.to_owned(),
        outcome: Outcome::Intervals,
        series: Some(series),
        latency: Vec::new(),
        pacing: Vec::new(),
        stalls: None,
        host: None,
        findings: None,
        missing: missing.into_iter().collect(),
    })
}

fn directory(path: &Path, name: String) -> Result<Loaded, ReadError> {
    if let Some(outcome) = of_many(path)? {
        let host = path.join(file::HOST);
        return Ok(Loaded {
            name,
            path: path.to_owned(),
            outcome,
            series: None,
            latency: Vec::new(),
            pacing: Vec::new(),
            stalls: None,
            host: host.exists().then(|| value(&host)).transpose()?,
            findings: None,
            missing: Vec::new(),
        });
    }
    if !path.join(file::SUMMARY).exists() {
        if path.join(file::SEARCH_TRIALS).exists() {
            return Err(ReadError::Unfinished {
                path: path.to_owned(),
            });
        }
        let what = if path.join(file::INTERVALS).exists() {
            let rows = path.join(file::INTERVALS);
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
    let there = |name: &str| Some(path.join(name)).filter(|file| file.exists());
    let missing = expected(&outcome)
        .into_iter()
        .filter(|(name, _)| there(name).is_none())
        .map(|(name, shows)| format!("{name} is not in the run directory: {shows} cannot be shown"))
        .collect();
    let curve = |name| there(name).map_or(Ok(Vec::new()), |file| curve::read(&file));
    Ok(Loaded {
        name,
        path: path.to_owned(),
        outcome,
        series: there(file::INTERVALS)
            .map(|file| series::read(&file))
            .transpose()?,
        latency: curve(file::LATENCY)?,
        pacing: curve(file::PACING)?,
        stalls: there(file::STALLS).map(|file| stalls::read(&file)).transpose()?,
        host: there(file::HOST).map(|file| value(&file)).transpose()?,
        findings: there(file::DOCTOR).map(|file| value(&file)).transpose()?,
        missing,
    })
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
    if path.join(file::SEARCH).exists() {
        return Ok(Some(Outcome::Search(Box::new(search::read(path)?))));
    }
    if path.join(file::COMPARE).exists() {
        let comparison = read::comparison(path)?;
        return Ok(Some(Outcome::Compare(Box::new(comparison))));
    }
    Ok(None)
}

fn value(path: &Path) -> Result<Value, ReadError> {
    let text = fs::read_to_string(path).map_err(|cause| match cause.kind() {
        ErrorKind::InvalidData => ReadError::Damaged {
            path: path.to_owned(),
            what: "not text".to_owned(),
        },
        _ => ReadError::Io {
            path: path.to_owned(),
            cause,
        },
    })?;
    serde_json::from_str(&text).map_err(|error| ReadError::Damaged {
        path: path.to_owned(),
        what: error.to_string(),
    })
}
