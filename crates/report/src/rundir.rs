//! The run directory: makes one of its own for every run, and writes the files of version 1 into it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use measure::Note;
use serde::Serialize;
use serde_json::Value;

use crate::{atomic, input, json, ours, utc};

/// The files of a run directory, version 1.
pub mod file {
    /// The validated plan; `--plan` replays it.
    pub const PLAN: &str = "plan.json";
    /// Facts about the machine.
    pub const HOST: &str = "host.json";
    /// The whole result.
    pub const SUMMARY: &str = "summary.json";
    /// The whole result of a search.
    pub const SEARCH: &str = "search.json";
    /// Every trial of `search` on a line.
    pub const SEARCH_TRIALS: &str = "trials.jsonl";
    /// The ledger alone.
    pub const LEDGER: &str = "ledger.json";
    /// One row per statistics interval.
    pub const INTERVALS: &str = "intervals.csv";
    /// One row per flow that was in the tables at the end.
    pub const FLOWS: &str = "flows.csv";
    /// One row per statistics interval and stream, when there is more than one stream.
    pub const STREAMS: &str = "streams.csv";
    /// Latency as an `HdrHistogram` percentile distribution.
    pub const LATENCY: &str = "latency.hgrm";
    /// Gaps between departures, in the same form.
    pub const PACING: &str = "pacing.hgrm";
    /// By how much the gaps of a replay differ from those of its capture, in the same form.
    pub const GAP_ERROR: &str = "gap_error.hgrm";
    /// How long after it was due each packet of a replay left.
    pub const LATENESS: &str = "lateness.hgrm";
    /// What the doctor found before the start.
    pub const DOCTOR: &str = "doctor.json";
    /// The whole run as one page.
    pub const REPORT: &str = "report.html";
    /// Times at which a worker did not poll.
    pub const STALLS: &str = "stalls.csv";
    /// Every gap that `noise` saw.
    pub const GAPS: &str = "gaps.csv";
    /// What `compare` found.
    pub const COMPARE: &str = "compare.json";
    /// The directory of the trials of `compare` or `search`: what each run said, and its own run directory.
    pub const TRIALS: &str = "trials";
}

/// A plan or a result with what the user called the run.
#[derive(Debug, Serialize)]
pub struct Labelled<'l, T: ?Sized> {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'l str>,
    #[serde(flatten)]
    of: &'l T,
}

/// The key of what the user called a run, in its plan and in its result.
const LABEL: &str = "label";

/// Runs of one command begun in the same second; far beyond what anybody starts.
const SAME_SECOND_MAX: u32 = 1000;

/// Why there is no run directory. One line; nothing has been sent yet.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a run directory in {}: {cause}; fix: {}", base.display(), fix(base, cause))]
pub struct RunDirError {
    base: PathBuf,
    cause: io::Error,
}

fn fix(base: &Path, cause: &io::Error) -> String {
    if let Some(fix) = ours::limit(cause, base) {
        return fix;
    }
    let is_there = base.is_dir();
    let base = base.display();
    match cause.kind() {
        // What is not there cannot be given to anybody.
        ErrorKind::PermissionDenied if !is_there => {
            "name a directory you may write to: --runs DIR".to_owned()
        }
        ErrorKind::PermissionDenied => {
            format!("name a directory you may write to (--runs DIR), or: sudo chown \"$USER\" {base}")
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            format!("a file is in the way (ls -ld {base}); name a directory")
        }
        _ => "name a directory on a file system you may write to".to_owned(),
    }
}

/// Why one file of the run directory, whose name comes first, is not there, or not whole. The run goes on without it.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file could not be written.
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// The value would not become JSON.
    #[error("{0}: cannot be made into JSON: {1}")]
    Json(String, serde_json::Error),
    /// Some rows of a streamed file are missing.
    #[error("{name}: {lost} of {rows} rows are missing: {cause}")]
    Rows {
        /// The file's name.
        name: String,
        /// Rows that are not in the file.
        lost: u64,
        /// Rows that should be.
        rows: u64,
        /// Why the first of them is not.
        cause: String,
    },
}

/// What the user called the run, as its plan and its result have it.
pub(crate) fn label_of(file: Option<&Value>) -> Option<String> {
    let label = file?.get(LABEL)?.as_str()?;
    (!label.is_empty()).then(|| label.to_owned())
}

/// The directory of one run. Its files may fail (a full disk): the run then goes on, and [`RunDir::note`] says so.
/// Clones are the same directory.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
    label: Option<String>,
    /// What went wrong first, and how many more times after.
    trouble: Arc<Mutex<Option<(String, u64)>>>,
}

impl RunDir {
    /// Makes `base/<UTC time>-<command>/`, and `base` itself if need be. Two runs never share a directory:
    /// the second of one second gets `-2` behind its name, and so on.
    pub fn create(base: &Path, command: &str, now: SystemTime) -> Result<Self, RunDirError> {
        let failed = |cause| RunDirError {
            base: base.to_owned(),
            cause,
        };
        ours::make_dirs(base).map_err(failed)?;
        let name = format!("{}-{command}", utc::stamp(now));
        for attempt in 1..=SAME_SECOND_MAX {
            let path = match attempt {
                1 => base.join(&name),
                again => base.join(format!("{name}-{again}")),
            };
            match ours::make_dir(&path) {
                Ok(()) => return Ok(Self::reopen(&path)),
                Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(failed(cause)),
            }
        }
        Err(failed(io::Error::other(format!(
            "{SAME_SECOND_MAX} runs are named {name} already"
        ))))
    }

    /// The directory of an earlier run, to go on in.
    pub fn reopen(path: &Path) -> Self {
        let plan = path.join(file::PLAN);
        let plan = plan.is_file().then(|| input::json_file(&plan).ok()).flatten();
        Self {
            path: path.to_owned(),
            label: label_of(plan.as_ref()),
            trouble: Arc::default(),
        }
    }

    /// The same directory of a run that the user calls `label`, where there is one.
    #[must_use]
    pub fn called(self, label: Option<&str>) -> Self {
        let label = label.map(str::to_owned).or(self.label);
        Self { label, ..self }
    }

    /// What the user called the run.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// `of` with what the user called the run.
    pub fn labelled<'l, T: ?Sized>(&'l self, of: &'l T) -> Labelled<'l, T> {
        Labelled {
            label: self.label(),
            of,
        }
    }

    /// Where it is, as it was named: below `base`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the file `name` of this run is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes `value` as JSON to the file `name`, whole or not at all. A failure is kept for [`RunDir::note`].
    pub fn write_json<T: Serialize + ?Sized>(&self, name: &str, value: &T) -> Result<(), WriteError> {
        self.keep(match json::pretty(value) {
            Ok(text) => self.whole(name, text.as_bytes()),
            Err(cause) => Err(WriteError::Json(name.to_owned(), cause)),
        })
    }

    /// The same of the plan or the result, with what the user called the run.
    pub fn write_labelled<T: Serialize + ?Sized>(&self, name: &str, value: &T) -> Result<(), WriteError> {
        self.write_json(name, &self.labelled(value))
    }

    /// Writes `text` to the file `name`, whole or not at all. A failure is kept for [`RunDir::note`].
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), WriteError> {
        self.keep(self.whole(name, text.as_bytes()))
    }

    /// Keeps the trouble in `result`, if any, for [`RunDir::note`], and hands it on.
    pub fn keep<T>(&self, result: Result<T, WriteError>) -> Result<T, WriteError> {
        if let Err(error) = &result {
            let mut trouble = self.trouble();
            match trouble.as_mut() {
                Some((_, more)) => *more += 1,
                None => *trouble = Some((error.to_string(), 0)),
            }
        }
        result
    }

    /// One line when anything is missing from the directory: the first trouble, and how many more there were.
    pub fn note(&self) -> Option<Note> {
        let trouble = self.trouble();
        trouble.as_ref().map(|(first, more)| {
            let path = self.path.display();
            let more = match more {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            let text = format!("the run directory {path} is incomplete: {first}{more}");
            Note::new("directory_incomplete", text)
        })
    }

    /// A poisoned lock still holds a whole value: nothing under it can stop half way.
    fn trouble(&self) -> MutexGuard<'_, Option<(String, u64)>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn whole(&self, name: &str, content: &[u8]) -> Result<(), WriteError> {
        atomic::replace(&self.file(name), content).map_err(|cause| WriteError::Io(name.to_owned(), cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    fn moment() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_763_681_445)
    }

    fn name(run: &RunDir) -> &str {
        run.path().file_name().unwrap().to_str().unwrap()
    }

    #[test]
    fn runs_of_one_second_do_not_collide() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("made/on/demand");
        let first = RunDir::create(&deep, "send", moment()).unwrap();
        let second = RunDir::create(&deep, "send", moment()).unwrap();
        let third = RunDir::create(&deep, "reflect", moment()).unwrap();
        assert_eq!(name(&first), "2025-11-20T23-30-45Z-send");
        assert_eq!(name(&second), "2025-11-20T23-30-45Z-send-2");
        assert_eq!(name(&third), "2025-11-20T23-30-45Z-reflect");
    }

    #[test]
    fn many_at_once_each_get_their_own() {
        let base = tempfile::tempdir().unwrap();
        let mut paths: Vec<PathBuf> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| {
                        RunDir::create(base.path(), "send", moment())
                            .unwrap()
                            .path()
                            .to_owned()
                    })
                })
                .collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), 16);
    }

    #[test]
    fn a_base_that_cannot_be_is_one_line_with_a_fix() {
        let base = tempfile::tempdir().unwrap();
        let in_the_way = base.path().join("runs");
        fs::write(&in_the_way, "a file").unwrap();
        for base in [
            in_the_way.clone(),
            in_the_way.join("below"),
            PathBuf::from("/proc/runs"),
        ] {
            let error = RunDir::create(&base, "send", moment()).unwrap_err().to_string();
            assert!(error.starts_with("cannot make a run directory in "), "{error}");
            assert!(error.contains("; fix: ") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn what_is_not_there_is_given_to_nobody() {
        let denied = |base: &Path| fix(base, &ErrorKind::PermissionDenied.into());
        let there = tempfile::tempdir().unwrap();
        let fixes = [there.path().to_owned(), there.path().join("runs")].map(|base| denied(&base));
        assert!(fixes.iter().all(|fix| fix.contains("--runs DIR")), "{fixes:?}");
        assert_eq!(fixes.map(|fix| fix.contains("chown")), [true, false]);
    }

    #[test]
    fn only_the_first_trouble_is_told() {
        let base = tempfile::tempdir().unwrap();
        let run = RunDir::create(base.path(), "send", moment()).unwrap();
        run.write_json(file::PLAN, &1).unwrap();
        assert_eq!(run.note(), None);
        fs::remove_dir_all(run.path()).unwrap();
        run.write_json(file::SUMMARY, &2).unwrap_err();
        run.write_text(file::LATENCY, "x").unwrap_err();
        let note = run.note().unwrap().text;
        assert!(
            note.contains("is incomplete: summary.json: No such file") && note.ends_with("(and 1 more)"),
            "{note}"
        );
    }
}
