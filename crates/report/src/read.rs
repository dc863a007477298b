//! Reads run directories back: those of this version, and of every earlier one, for ever.

use std::io;
use std::path::{Path, PathBuf};

use measure::summary::VERSION;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::csv::split;
use crate::kind::Entry;
use crate::load::lines::Lines;
use crate::rundir::file;
use crate::{input, kinds, sane};

/// Characters of what is wrong with a file; what is longer is not read.
const SENTENCE_MAX: usize = 300;

/// Why a run directory cannot be read. One line.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such file, or not readable.
    #[error("cannot read {}: {cause}; {}", path.display(), advice(path, cause))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Nothing is there.
    #[error("cannot read {}: {cause}; name a run directory (ls runs) or a file of intervals", path.display())]
    Absent {
        /// What was named.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A pipe, a device.
    #[error("{} is {kind}, and that is not waited for; name a run directory or a file of intervals (a stream: COMMAND | dropless report /dev/stdin)", path.display())]
    NoFile {
        /// What was named.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// Something else altogether.
    #[error("{} is neither a run directory nor a file of intervals: {what}", path.display())]
    Foreign {
        /// What was named.
        path: PathBuf,
        /// What tells.
        what: String,
    },
    /// A run that ended without its result: it was killed, or is still at work.
    #[error("{} {what}", path.display())]
    Unfinished {
        /// Its run directory.
        path: PathBuf,
        /// What it is, what is missing, and what can be done.
        what: String,
    },
    /// Not what the file should hold.
    #[error("{} is damaged: {}", path.display(), short(what))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Written by a later dropless.
    #[error("{} has format version {found}, and this dropless reads up to {VERSION}; fix: use a newer dropless", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// Of a command that is not known here.
    #[error("{} is the result of `{found}`, which this dropless cannot show; fix: use a newer dropless", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The command that wrote it.
        found: String,
    },
    /// Of another command.
    #[error("{} is the result of `{found}`, not of `{wanted}`", path.display())]
    OtherCommand {
        /// The file.
        path: PathBuf,
        /// The command that wrote it.
        found: String,
        /// The command wanted.
        wanted: &'static str,
    },
}

/// What is quoted of a broken file may be of any length.
fn short(what: &str) -> String {
    match what.char_indices().nth(SENTENCE_MAX) {
        Some((end, _)) => format!("{}...", &what[..end]),
        None => what.to_owned(),
    }
}

fn advice(path: &Path, cause: &io::Error) -> String {
    let parent = path.parent().unwrap_or(path).display();
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("fix: as the user who measured, or with sudo (ls -ld {parent} tells who may)")
        }
        _ => format!("is {parent} a run directory?"),
    }
}

pub use crate::kinds::compare::read as comparison;
pub use crate::kinds::reflect::read as reflect_summary;
pub use crate::kinds::search::read as search_report;
pub use crate::kinds::send::read as summary;

/// What the file of a kind of result must hold.
pub(crate) struct Form<T> {
    /// Which kind.
    pub kind: &'static Entry,
    /// The keys that it must have.
    pub required: &'static [&'static str],
    /// Says what in it cannot be.
    pub judge: fn(&T) -> Result<(), String>,
}

impl<T: DeserializeOwned + Serialize> Form<T> {
    /// Reads the result in the run directory `run`.
    pub fn read(&self, run: &Path) -> Result<T, ReadError> {
        let (path, value, command) = checked(run, self.kind.file)?;
        if command != self.kind.command {
            return Err(ReadError::OtherCommand {
                path,
                found: command,
                wanted: self.kind.command,
            });
        }
        // By way of the type first: of a value of the wrong kind more can be said than that it is absent.
        let read = T::deserialize(&value).map_err(|error| error.to_string());
        let whole = read.and_then(|read| {
            sane::has_all(&value, self.required)?;
            sane::numbers(&read)?;
            (self.judge)(&read)?;
            Ok(read)
        });
        whole.map_err(|what| ReadError::Damaged { path, what })
    }
}

/// The file `name` of the run directory `run`, if there is one.
pub(crate) fn part(run: &Path, name: &str) -> Result<Option<PathBuf>, ReadError> {
    let file = run.join(name);
    Ok(input::is_there(&file)?.then_some(file))
}

/// Of a run directory that holds no result: a run that did not end, or something else altogether.
pub(crate) fn without_result(run: &Path) -> Result<ReadError, ReadError> {
    for entry in kinds::ALL {
        if let Some(unfinished) = (entry.unfinished)(run)? {
            return Ok(unfinished);
        }
    }
    let path = run.to_owned();
    let absent = format!("has no {}", file::SUMMARY);
    Ok(match (part(run, file::INTERVALS)?, part(run, file::PLAN)?) {
        (Some(rows), _) => ReadError::Unfinished {
            path,
            what: format!(
                "{absent}, so the run did not end; its intervals alone: dropless report {}",
                rows.display()
            ),
        },
        (None, Some(_)) => ReadError::Unfinished {
            path,
            what: format!("{absent}, so the run did not end"),
        },
        (None, None) => ReadError::Foreign {
            path,
            what: format!("it {absent}"),
        },
    })
}

/// The command whose result is in the file `name` of the run directory `run`.
pub(crate) fn command(run: &Path, name: &str) -> Result<String, ReadError> {
    checked(run, name).map(|(_, _, command)| command)
}

/// `summary.json` or its like, of a version that we know, and the command that wrote it.
fn checked(run: &Path, name: &str) -> Result<(PathBuf, Value, String), ReadError> {
    let path = run.join(name);
    let value = input::json_file(&path)?;
    let damaged = |what: &str| ReadError::Damaged {
        path: path.clone(),
        what: what.to_owned(),
    };
    // The version first: what a later one means by the other keys is not ours to judge.
    match value.get("version").and_then(Value::as_u64) {
        Some(version) if version > u64::from(VERSION) => {
            return Err(ReadError::TooNew { path, found: version });
        }
        Some(1..) => {}
        _ => return Err(damaged("it has no format version")),
    }
    match value.get("command").and_then(Value::as_str) {
        Some(command) => {
            let command = command.to_owned();
            Ok((path, value, command))
        }
        None => Err(damaged("it does not say which command wrote it")),
    }
}

/// One row of `intervals.csv`. Files of the older dpdk-project have the first five figures only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// End of the interval in ms since the start of the run.
    pub time_ms: f64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets of these that came back.
    pub rx_packets: u64,
    /// Loss in percent; `None` when nothing was sent.
    pub drop_rate: Option<f64>,
    /// Mean latency in ms; `None` when nothing came back.
    pub avg_latency_ms: Option<f64>,
    /// Every further column by its name, where it is not empty.
    pub more: Vec<(String, f64)>,
}

impl Interval {
    /// A column beyond the first five.
    pub fn get(&self, column: &str) -> Option<f64> {
        self.more
            .iter()
            .find(|(name, _)| name == column)
            .map(|(_, value)| *value)
    }
}

/// The rows of `intervals.csv` in the directory `run`.
pub fn intervals(run: &Path) -> Result<Vec<Interval>, ReadError> {
    let mut lines = Lines::open(&run.join(file::INTERVALS))?;
    let columns = split(lines.next_line()?.unwrap_or_default());
    let mut rows = Vec::new();
    loop {
        let row = match lines.next_line()? {
            None => return Ok(rows),
            Some(line) => interval(&columns, &split(line)),
        };
        rows.push(row.map_err(|what| lines.damaged(&what))?);
    }
}

fn interval(columns: &[String], fields: &[String]) -> Result<Interval, String> {
    if columns.len() != fields.len() {
        return Err(format!("{} fields under {} columns", fields.len(), columns.len()));
    }
    let mut row = Interval::default();
    let mut seen = 0;
    for (column, field) in columns.iter().zip(fields) {
        let number = || {
            field
                .parse::<f64>()
                .map_err(|_| format!("{column} is `{field}`, not a number"))
        };
        let count = || {
            field
                .parse::<u64>()
                .map_err(|_| format!("{column} is `{field}`, not a count"))
        };
        let optional = || {
            if field.is_empty() {
                Ok(None)
            } else {
                number().map(Some)
            }
        };
        seen += 1;
        match column.as_str() {
            "time" => row.time_ms = number()?,
            "tx_packets" => row.tx_packets = count()?,
            "rx_packets" => row.rx_packets = count()?,
            "drop_rate" => row.drop_rate = optional()?,
            "avg_latency" => row.avg_latency_ms = optional()?,
            other => {
                seen -= 1;
                row.more
                    .extend(optional()?.map(|value| (other.to_owned(), value)));
            }
        }
    }
    if seen == 5 {
        Ok(row)
    } else {
        Err("not the columns of an intervals.csv".to_owned())
    }
}
