//! Reads run directories back: those of this version, and of every earlier one, for ever.

use std::io;
use std::path::{Path, PathBuf};

use measure::summary::VERSION;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kind::Entry;
use crate::rundir::file;
use crate::{input, kinds, sane};

/// Characters of what is wrong with a file; what is longer is not read.
const SENTENCE_MAX: usize = 300;

/// Why a run directory cannot be read: the file, and what is wrong with it. One line.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such file, or not readable.
    #[error("cannot read {0}: {1}; {advice}", advice = advice(.0, .1))]
    Io(PathBuf, io::Error),
    /// Nothing is there.
    #[error("cannot read {0}: {1}; name a run directory (ls runs) or a file of intervals")]
    Absent(PathBuf, io::Error),
    /// A pipe, a device: what it is.
    #[error(
        "{0} is {1}, and that is not waited for; name a run directory or a file of intervals (a stream: COMMAND | dropless report /dev/stdin)"
    )]
    NoFile(PathBuf, &'static str),
    /// Something else altogether, and what tells.
    #[error("{0} is neither a run directory nor a file of intervals: {1}")]
    Foreign(PathBuf, String),
    /// A run without its result (it was killed, or is still at work): what is missing, and what can be done.
    #[error("{0} {1}")]
    Unfinished(PathBuf, String),
    /// Not what the file should hold.
    #[error("{0} is damaged: {what}", what = short(.1))]
    Damaged(PathBuf, String),
    /// Written by a later dropless: its version.
    #[error("{0} has format version {1}, and this dropless reads up to {VERSION}; fix: use a newer dropless")]
    TooNew(PathBuf, u64),
    /// Of a command that is not known here.
    #[error("{0} is the result of `{1}`, which this dropless cannot show; fix: use a newer dropless")]
    Unknown(PathBuf, String),
    /// Of another command than the one wanted, which comes last.
    #[error("{0} is the result of `{1}`, not of `{2}`")]
    OtherCommand(PathBuf, String, &'static str),
}

impl ReadError {
    /// What the system said of `path`.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        |cause| Self::Io(path.to_owned(), cause)
    }

    /// What is wrong, for who says himself which file is meant.
    pub fn without_path(&self) -> String {
        match self {
            Self::Io(_, cause) | Self::Absent(_, cause) => cause.to_string(),
            Self::NoFile(_, kind) => format!("it is {kind}, and that is not waited for"),
            Self::Damaged(_, what) => short(what),
            other => other.to_string(),
        }
    }

    /// What is wrong with what `path` holds.
    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged(path.to_owned(), what.into())
    }
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

/// The result of `kind` in the run directory `run`; `judge` says what in it cannot be.
pub(crate) fn result<T: DeserializeOwned + Serialize>(
    run: &Path,
    kind: &Entry,
    judge: impl Fn(&T) -> Result<(), String>,
) -> Result<T, ReadError> {
    let (path, value, command) = checked(run, kind.file)?;
    if command != kind.command {
        return Err(ReadError::OtherCommand(path, command, kind.command));
    }
    // By way of the type first: of a value of the wrong kind more can be said than that it is absent.
    let read = T::deserialize(&value).map_err(|error| error.to_string());
    let whole = read.and_then(|read| {
        sane::has_all(&value, kind.required)?;
        sane::numbers(&read)?;
        sane::stalls(&value)?;
        judge(&read)?;
        Ok(read)
    });
    whole.map_err(|what| ReadError::Damaged(path, what))
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
    let absent = format!("it has no {}", file::SUMMARY);
    let is_run = part(run, file::PLAN)?.is_some() || part(run, file::INTERVALS)?.is_some();
    Ok(if is_run {
        ReadError::Unfinished(path, format!("{absent}, so it was killed or is still at work"))
    } else if let Some(name) = run_within(run) {
        let what = format!("{absent}; runs are in it: name them, {name}/*");
        ReadError::Foreign(path, what)
    } else {
        ReadError::Foreign(path, absent)
    })
}

/// The directory itself, if what lies in it are run directories.
fn run_within(path: &Path) -> Option<std::path::Display<'_>> {
    let mut entries = std::fs::read_dir(path).ok()?.flatten();
    entries
        .any(|entry| entry.path().join(file::PLAN).is_file())
        .then(|| path.display())
}

/// The command whose result is in the file `name` of the run directory `run`.
pub(crate) fn command(run: &Path, name: &str) -> Result<String, ReadError> {
    checked(run, name).map(|(_, _, command)| command)
}

/// `summary.json` or its like, of a version that we know, and the command that wrote it.
fn checked(run: &Path, name: &str) -> Result<(PathBuf, Value, String), ReadError> {
    let path = run.join(name);
    let value = input::json_file(&path)?;
    // The version first: what a later one means by the other keys is not ours to judge.
    match value["version"].as_u64() {
        Some(version) if version > u64::from(VERSION) => return Err(ReadError::TooNew(path, version)),
        Some(1..) => {}
        _ => return Err(ReadError::damaged(&path, "it has no format version")),
    }
    match value["command"].as_str().map(str::to_owned) {
        Some(command) => Ok((path, value, command)),
        None => Err(ReadError::damaged(
            &path,
            "it does not say which command wrote it",
        )),
    }
}
