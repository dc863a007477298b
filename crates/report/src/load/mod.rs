//! Loads what a report is drawn of: a run directory, or a file of intervals alone. Whole, or one line that says why not.

mod columns;
mod curve;
pub mod heat;
pub(crate) mod lines;
mod names;
mod point;
pub mod series;
pub mod stalls;
pub mod thin;

use std::fs;
use std::path::{Path, PathBuf};

use measure::{Percentiles, WorkerSummary};
use serde_json::Value;

pub use curve::Quantile;
use series::Origin;
pub use series::{Channel, Contradictions, Series};
pub use stalls::Stalls;

use crate::input::{clean, json_file};
use crate::kind::{Entry, Kind, Standing};
use crate::kinds;
use crate::kinds::intervals::Intervals;
use crate::kinds::unfinished::Unfinished;
use crate::number::counted;
use crate::read::{self, ReadError, part};
use crate::rundir::{file, label_of};

/// Stalls that a worker had room for when results did not say yet (up to November 2026) how many it had: as many rows may
/// not be all.
const ROOM_OF_WORKER: u64 = 1 << 16;

/// What is known of one run.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What stands for it where it is shown: alone its label or its folder, among others its label or its number `[2]`.
    pub name: String,
    /// The last part of its path.
    pub folder: String,
    /// What the user called it.
    pub label: Option<String>,
    /// Where it is.
    pub path: PathBuf,
    /// What it came to.
    pub result: Box<dyn Kind>,
    /// What happened in each interval.
    pub series: Option<Series>,
    /// Latency from the real departure; empty where nothing came back or no file was kept.
    pub latency: Vec<Quantile>,
    /// Gaps between departures.
    pub pacing: Vec<Quantile>,
    /// Stalls of the workers.
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

impl Loaded {
    /// The result, if it is of this kind.
    pub fn result_of<T: Kind + 'static>(&self) -> Option<&T> {
        self.result.as_any().downcast_ref()
    }

    /// Whether it came to a result; of what was killed, or is still at work, there is what it left.
    pub fn has_ended(&self) -> bool {
        self.result_of::<Unfinished>().is_none()
    }

    /// Whether there is something that could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.result_of::<Unfinished>()
            .is_some_and(Unfinished::is_unreadable)
    }

    /// Whether its verdict is that its numbers must not be believed.
    pub fn is_invalid(&self) -> bool {
        self.result.verdict().standing == Standing::Invalid
    }

    /// How many of its expectations failed.
    pub fn failed(&self) -> usize {
        let expectations = self.result.expectations().iter();
        expectations.filter(|expectation| !expectation.met).count()
    }

    /// What it came to, in one line, and how many expectations failed.
    pub fn line(&self) -> String {
        self.result.verdict().line(self.failed())
    }

    /// The values of the figure `name`, each with what it is of; empty where the run does not know it.
    pub fn figures(&self, name: &str) -> Vec<(String, f64)> {
        let known = self.result.figures(name);
        if !known.is_empty() {
            return known;
        }
        let value = match name {
            "pauses" => self.stalled().map(|(count, _)| count),
            "pause_max" => self.stalled().map(|(_, longest_ns)| longest_ns),
            _ => None,
        };
        let value = value.map(|value| (String::new(), value as f64));
        value.into_iter().collect()
    }

    /// How many stalls its workers had, and how long the longest was, ns; nothing where nobody knows. The rows of its file
    /// tell it only of results whose workers do not, and that had room for all.
    fn stalled(&self) -> Option<(u64, u64)> {
        let workers = self.result.workers();
        let longest_ns = workers.iter().map(|worker| worker.poll_gap_ns_max).max()?;
        let of_workers = || {
            let add = |sum: u64, worker: &WorkerSummary| Some(sum.saturating_add(worker.stalls?));
            let count = workers.iter().try_fold(0, add)?;
            Some((count, if count > 0 { longest_ns } else { 0 }))
        };
        let of_rows = || {
            let all = &self.stalls.as_ref()?.all;
            (all.count < ROOM_OF_WORKER).then_some((all.count, all.max_ns))
        };
        of_workers().or_else(of_rows)
    }

    /// The figure `name` of a run that has one of it.
    pub fn figure(&self, name: &str) -> Option<f64> {
        match self.figures(name).as_slice() {
            [(_, only)] => Some(*only),
            _ => None,
        }
    }

    /// Whether runs of its kind write the file `name`.
    pub fn awaits(&self, name: &str) -> bool {
        self.result.parts().iter().any(|part| part.file == name)
    }

    /// Whether it has a course over time; what is of many runs has none.
    pub fn is_over_time(&self) -> bool {
        self.series.is_some() || !self.result.parts().is_empty()
    }

    /// Latency in ns that a `share` (0 to 1) of the packets does not exceed.
    pub fn latency_within(&self, share: f64) -> Option<f64> {
        within(&self.latency, &self.result.latency(), share)
    }

    /// The same of the gaps between departures.
    pub fn gap_within(&self, share: f64) -> Option<f64> {
        let known = Percentiles::from(self.result.departures());
        within(&self.pacing, &known, share)
    }
}

/// What the summary knows comes from it, so that a percentile is the same wherever it stands; the rows of a `.hgrm` are
/// for the others: the next one above `share` that there is.
fn within(curve: &[Quantile], known: &Percentiles, share: f64) -> Option<f64> {
    let known = quantiles(known);
    let exact = known.iter().find(|row| (row.share - share).abs() < 1e-9);
    let row = exact.or_else(|| curve.iter().find(|row| row.share >= share));
    row.map(|row| row.value_ns)
}

/// The percentiles that are known.
pub(crate) fn quantiles(known: &Percentiles) -> Vec<Quantile> {
    let shares = [
        (0.0, known.min),
        (0.5, known.p50),
        (0.9, known.p90),
        (0.99, known.p99),
        (0.999, known.p999),
        (1.0, known.max),
    ];
    let known = shares
        .into_iter()
        .filter_map(|(share, value)| Some((share, value? as f64)));
    known
        .map(|(share, value_ns)| Quantile { value_ns, share })
        .collect()
}

/// Runs that are drawn; of further ones only the figures are kept, so that any number of them can be told apart.
pub const DRAWN_MAX: usize = 12;

/// Loads all of `paths`. One alone that cannot be read is an error; among others it is one that is there and cannot be read.
pub fn all(paths: &[PathBuf]) -> Result<Vec<Loaded>, ReadError> {
    let is_alone = paths.len() == 1;
    let mut runs = Vec::with_capacity(paths.len());
    for path in paths {
        let mut run = match load(path) {
            // What is not there was not meant.
            Err(error) if !is_alone && !matches!(error, ReadError::Absent(..)) => {
                let why = Unfinished::unreadable(clean(&error.to_string()));
                Loaded::of(name_of(path), path, Box::new(why))
            }
            run => run?,
        };
        if runs.len() >= DRAWN_MAX {
            run.forget_drawings();
        }
        runs.push(run);
    }
    if !is_alone {
        names::tell_apart(&mut runs);
    }
    Ok(runs)
}

/// What people call the run at `path`: its last part.
fn name_of(path: &Path) -> String {
    let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = name.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    clean(&name)
}

/// Loads the run directory or the file of intervals `path`.
pub fn load(path: &Path) -> Result<Loaded, ReadError> {
    let kind = fs::metadata(path).map_err(|cause| ReadError::Absent(path.to_owned(), cause))?;
    let name = name_of(path);
    if kind.is_dir() {
        directory(path, name)
    } else {
        intervals(path, name, &kind)
    }
}

fn intervals(path: &Path, name: String, kind: &fs::Metadata) -> Result<Loaded, ReadError> {
    if path.extension().is_some_and(|extension| extension == "json") {
        let what = "name the run directory it lies in";
        return Err(ReadError::Foreign(path.to_owned(), what.to_owned()));
    }
    let no_rows = || {
        let what = "has no rows: the run that writes it was ended before its first interval was over, or is still at work";
        ReadError::Unfinished(path.to_owned(), what.to_owned())
    };
    if kind.is_file() && kind.len() == 0 {
        return Err(no_rows());
    }
    let series = series::read(path)?;
    match (series.rows, series.origin) {
        (0, Origin::Older) => return Err(ReadError::damaged(path, "it has no rows")),
        (0, _) => return Err(no_rows()),
        _ => {}
    }
    let missing = contradictions(&series);
    let result = Box::new(Intervals::of(&series));
    Ok(Loaded {
        missing,
        series: Some(series),
        ..Loaded::of(name, path, result)
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
        let so = if series.lost().is_none() {
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

/// A run directory without a result: what was written until then is shown, and what cannot be read of it is said.
fn unfinished(path: &Path, name: String, what: &str) -> Loaded {
    let mut run = Loaded::of(name, path, Box::new(Unfinished::of(String::new(), None)));
    let mut missing = Vec::new();
    let mut tell = |error: ReadError| missing.push(error.to_string());
    let mut json = |name| {
        let file = part(path, name).and_then(|file| file.map(|file| json_file(&file)).transpose());
        file.unwrap_or_else(|error| {
            tell(error);
            None
        })
    };
    run.plan = json(file::PLAN);
    run.take_label(label_of(run.plan.as_ref()));
    run.host = json(file::HOST);
    run.findings = json(file::DOCTOR);
    let files = [file::STALLS, file::GAPS, file::LATENCY, file::PACING];
    for name in files.into_iter().chain([file::INTERVALS]) {
        let file = part(path, name);
        let added = file.and_then(|file| file.map_or(Ok(()), |file| run.add(name, &file)));
        if let Err(error) = added {
            tell(error);
        }
    }
    run.missing = missing;
    let left = match &run.series {
        Some(series) => format!(
            "; it left {}, and no ledger says where their packets went",
            counted(series.rows, "interval")
        ),
        None if path.join(file::INTERVALS).exists() => "; it left no interval".to_owned(),
        None => String::new(),
    };
    let why = format!("{}{left}", clean(what));
    run.result = Box::new(Unfinished::of(why, run.series.as_ref()));
    run
}

fn directory(path: &Path, name: String) -> Result<Loaded, ReadError> {
    let result = match result(path) {
        Err(ReadError::Unfinished(path, what)) => return Ok(unfinished(&path, name, &what)),
        result => result?,
    };
    let json = |name| part(path, name)?.map(|file| json_file(&file)).transpose();
    let mut run = Loaded {
        plan: json(file::PLAN)?,
        host: json(file::HOST)?,
        ..Loaded::of(name, path, result)
    };
    let mut label = label_of(run.plan.as_ref());
    if label.is_none() {
        let file = run.result.entry().map_or(file::SUMMARY, |entry| entry.file);
        label = label_of(json(file)?.as_ref());
    }
    run.take_label(label);
    let parts = run.result.parts();
    if !parts.is_empty() {
        run.findings = json(file::DOCTOR)?;
    }
    for one in parts {
        match part(path, one.file)? {
            Some(file) => run.add(one.file, &file)?,
            None if one.is_expected => run.missing.push(format!(
                "{} is not in the run directory: {} cannot be shown",
                one.file, one.shows
            )),
            None => {}
        }
    }
    Ok(run)
}

/// The result in the run directory `path`, of whichever kind it is.
fn result(path: &Path) -> Result<Box<dyn Kind>, ReadError> {
    let has_own_file = |entry: &&&Entry| entry.file != file::SUMMARY;
    for entry in kinds::ALL.iter().filter(has_own_file) {
        if part(path, entry.file)?.is_some() {
            return (entry.read)(path);
        }
    }
    if part(path, file::SUMMARY)?.is_none() {
        return Err(read::without_result(path)?);
    }
    let found = read::command(path, file::SUMMARY)?;
    let entry = kinds::ALL.iter().find(|entry| entry.command == found);
    match entry {
        Some(entry) => (entry.read)(path),
        None => Err(ReadError::Unknown(path.join(file::SUMMARY), found)),
    }
}

impl Loaded {
    /// A result alone.
    fn of(folder: String, path: &Path, result: Box<dyn Kind>) -> Self {
        Self {
            name: folder.clone(),
            folder,
            label: None,
            path: path.to_owned(),
            result,
            series: None,
            latency: Vec::new(),
            pacing: Vec::new(),
            stalls: None,
            plan: None,
            host: None,
            findings: None,
            missing: Vec::new(),
        }
    }

    /// Keeps what tables need.
    fn forget_drawings(&mut self) {
        self.series = None;
        self.latency = Vec::new();
        self.pacing = Vec::new();
        if let Some(stalls) = &mut self.stalls {
            stalls.kept = Vec::new();
        }
    }

    /// Reads a file that is drawn together with the result.
    fn add(&mut self, name: &str, path: &Path) -> Result<(), ReadError> {
        match name {
            file::INTERVALS => {
                self.series = if self.has_ended() {
                    Some(series::read(path)?)
                } else {
                    series::so_far(path)?
                }
            }
            file::LATENCY => self.latency = curve::read(path)?,
            file::PACING => self.pacing = curve::read(path)?,
            file::STALLS | file::GAPS => self.stalls = Some(stalls::read(path, name)?),
            _ => {}
        }
        Ok(())
    }
}
