//! `trials.jsonl`: every trial on a line, forced to the disk before the next one starts, so that a search can go on.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use measure::VERSION;
use measure::search::{Again, Ceiling, INVALID_IN_A_ROW_MAX, Trial};
use nix::fcntl::{Flock, FlockArg};
use report::{input, ours};
use serde::{Deserialize, Serialize};

/// The file's name in the run directory.
pub const FILE: &str = report::rundir::file::SEARCH_TRIALS;

/// One trial of a search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Version of this format.
    pub version: u32,
    /// The trial's number, from 1.
    pub number: u64,
    /// The frame size.
    pub size: String,
    /// Set where the trial only measured the highest rate: where that comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// Why it was made.
    pub why: String,
    /// Set where one was made before: why that was not enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
    /// Its run directory.
    pub run: String,
    /// Seconds it took, with all that belongs to it.
    pub wall_s: f64,
    /// The longest time that one of our workers did not poll, ns.
    #[serde(default)]
    pub pause_ns: u64,
    /// Packets that came after their trial had ended (the one before, most likely), or later than it was to wait for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overdue: u64,
    /// What was asked, and what came of it.
    #[serde(flatten)]
    pub trial: Trial,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's way of asking")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The file, open at its end.
pub struct Journal {
    path: PathBuf,
    /// Locked: two searches in one directory would mix their trials, and send over one another.
    file: Flock<File>,
    /// Lines in it.
    pub lines: u64,
}

impl Journal {
    /// Opens the journal of a run directory, and gives the lines that are there. A last line without its end was
    /// being written when the search died: it is cut off. So are the invalid trials for which it was given up, or a highest
    /// rate at which nothing was sent: whatever was wrong has been mended since, or will be told again.
    pub fn open(directory: &Path) -> Result<(Self, Vec<Line>)> {
        let path = directory.join(FILE);
        let file = ours::append(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
            anyhow!(
                "another process goes on with the search in {}; wait for its end, or see it with: dropless top",
                directory.display()
            )
        })?;
        let text = input::whole_lines(&path)?;
        let mut lines: Vec<Line> = Vec::new();
        let (mut ends, mut believed) = (vec![0], 0);
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let damaged = || {
                format!(
                    "{} line {} is damaged; the search cannot go on from it, start a new one",
                    path.display(),
                    index + 1
                )
            };
            let end = ends[index] + line.len();
            let line: Line = serde_json::from_str(line).with_context(damaged)?;
            if line.version > VERSION {
                bail!(
                    "{} has version {}, and this dropless knows up to {VERSION}; use a newer dropless",
                    path.display(),
                    line.version
                );
            }
            ends.push(end);
            let is_believed = line.trial.invalid.is_empty();
            lines.push(line);
            if is_believed {
                believed = lines.len();
            }
        }
        if lines.len() - believed >= INVALID_IN_A_ROW_MAX as usize {
            lines.truncate(believed);
        }
        let has_sent = |line: &Line| line.ceiling.is_none() || line.trial.offered > 0;
        lines.truncate(lines.iter().rposition(has_sent).map_or(0, |last| last + 1));
        file.set_len(ends[lines.len()] as u64)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let journal = Self {
            lines: lines.len() as u64,
            path,
            file,
        };
        Ok((journal, lines))
    }

    /// Adds a trial, and comes back when it is on the disk. The number and the version are the journal's.
    pub fn append(&mut self, line: Line) -> Result<()> {
        self.lines += 1;
        let line = Line {
            version: VERSION,
            number: self.lines,
            ..line
        };
        let mut text = serde_json::to_string(&line).context("cannot write a trial as JSON")?;
        text.push('\n');
        let write = |file: &mut File| -> std::io::Result<()> {
            file.write_all(text.as_bytes())?;
            file.sync_data()
        };
        write(&mut self.file).with_context(|| {
            format!(
                "cannot write {}; the search would not be resumable",
                self.path.display()
            )
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use measure::Note;
    use measure::search::{Ask, Losses};

    /// A trial that lost so many packets on the path.
    pub fn line(lost: u64) -> Line {
        Line {
            version: 0,
            number: 0,
            size: "64".into(),
            ceiling: None,
            why: "a test".into(),
            again: None,
            run: "runs/x".into(),
            wall_s: 1.5,
            pause_ns: 0,
            overdue: 0,
            trial: Trial {
                ask: Ask::lasting(1234.5, 1_000_000_000),
                due: 1234,
                short: None,
                offered: 1234,
                lost: Losses {
                    path: lost,
                    ..Losses::default()
                },
                bunches: Vec::new(),
                latency_ns: measure::Percentiles::default(),
                invalid: Vec::new(),
            },
        }
    }

    #[test]
    fn what_was_appended_is_read_again_and_a_torn_line_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, lines) = Journal::open(directory.path()).unwrap();
        assert!(lines.is_empty());
        journal.append(line(3)).unwrap();
        journal.append(line(5)).unwrap();
        drop(journal);
        let path = directory.path().join(FILE);
        let mut text = std::fs::read(&path).unwrap();
        // Within a letter.
        text.extend_from_slice(b"{\"version\":1,\"why\":\"gr\xc3");
        std::fs::write(&path, text).unwrap();
        let (mut journal, lines) = Journal::open(directory.path()).unwrap();
        assert_eq!(
            lines.iter().map(|line| line.trial.lost.path).collect::<Vec<_>>(),
            [3, 5]
        );
        assert_eq!(lines[1].number, 2);
        assert_eq!(lines[0].trial.ask, line(3).trial.ask);
        journal.append(line(7)).unwrap();
        let refused = Journal::open(directory.path()).err().unwrap().to_string();
        assert!(refused.contains("another process goes on"), "{refused}");
        drop(journal);
        let (_, lines) = Journal::open(directory.path()).unwrap();
        assert_eq!((lines.len(), lines[2].number), (3, 3));
    }

    #[test]
    fn the_trials_for_which_it_was_given_up_get_another_chance() {
        let directory = tempfile::tempdir().unwrap();
        let spoiled = || {
            let mut line = line(0);
            line.trial
                .invalid
                .push(Note::new("clock_bad", "the clock jumped"));
            line
        };
        let (mut journal, _) = Journal::open(directory.path()).unwrap();
        for line in [line(3), spoiled(), line(5), spoiled(), spoiled()] {
            journal.append(line).unwrap();
        }
        drop(journal);
        let (mut journal, lines) = Journal::open(directory.path()).unwrap();
        assert_eq!(lines.len(), 5, "not yet given up");
        journal.append(spoiled()).unwrap();
        drop(journal);
        let (mut journal, lines) = Journal::open(directory.path()).unwrap();
        assert_eq!((lines.len(), lines[2].trial.lost.path), (3, 5));
        journal.append(line(7)).unwrap();
        drop(journal);
        let (_, lines) = Journal::open(directory.path()).unwrap();
        assert_eq!((lines.len(), lines[3].number), (4, 4));
    }

    #[test]
    fn a_highest_rate_of_nothing_is_measured_again() {
        let directory = tempfile::tempdir().unwrap();
        let look = |offered| {
            let mut line = line(0);
            line.ceiling = Some(Ceiling::Sender);
            line.trial.offered = offered;
            line
        };
        let (mut journal, _) = Journal::open(directory.path()).unwrap();
        for line in [look(5), line(3), look(0)] {
            journal.append(line).unwrap();
        }
        drop(journal);
        let (mut journal, lines) = Journal::open(directory.path()).unwrap();
        assert_eq!((lines.len(), lines[1].trial.lost.path), (2, 3));
        journal.append(look(7)).unwrap();
        drop(journal);
        let (_, lines) = Journal::open(directory.path()).unwrap();
        assert_eq!((lines.len(), lines[2].trial.offered), (3, 7));
    }

    #[test]
    fn a_damaged_line_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), "nonsense\n").unwrap();
        let error = format!("{:#}", Journal::open(directory.path()).err().unwrap());
        assert!(
            error.contains("line 1 is damaged") && error.contains("start a new one"),
            "{error}"
        );
    }
}
