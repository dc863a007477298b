//! Reads `trials.jsonl`: every trial of a search, in the order in which they were made.

use std::path::Path;

use measure::VERSION;
use measure::search::{SearchReport, Trial};
use serde::Deserialize;

use crate::load::lines::Lines;
use crate::number::counted;
use crate::read::ReadError;
use crate::rundir::file;
use crate::{input, sane};

/// A line of `trials.jsonl`.
#[derive(Clone, Debug, Deserialize)]
pub struct SearchedTrial {
    /// From 1.
    pub number: u64,
    /// The frame size.
    pub size: String,
    /// Why it was made.
    pub why: String,
    /// What was asked, and what came of it.
    #[serde(flatten)]
    pub trial: Trial,
}

/// Those of the search in `directory` whose answers are `report`.
pub fn read(directory: &Path, report: &SearchReport) -> Result<Vec<SearchedTrial>, ReadError> {
    let path = directory.join(file::SEARCH_TRIALS);
    let mut lines = Lines::open(&path)?;
    let mut trials = Vec::new();
    loop {
        let parsed = match lines.next_line()? {
            None => break,
            Some(line) => parse(line),
        };
        match parsed {
            Ok(trial) => trials.push(trial),
            Err(Unread::Later(found)) => return Err(ReadError::TooNew(path, found)),
            // It was being written when the search was interrupted.
            Err(Unread::Damaged(_)) if !lines.is_ended() && !report.complete => break,
            Err(Unread::Damaged(what)) => return Err(lines.damaged(&what)),
        }
    }
    // A search that ended wrote all its trials before its answers.
    if report.complete && trials.len() as u64 != report.trials {
        let what = format!(
            "it has {}, and {} counts {}; fix: copy the run directory again, whole",
            counted(trials.len() as u64, "whole trial"),
            file::SEARCH,
            report.trials
        );
        return Err(ReadError::Damaged(path, what));
    }
    Ok(trials)
}

/// How many the file `journal` of a search that did not end tells of, as far as it can be read.
pub fn made(journal: &Path) -> u64 {
    let Ok(mut lines) = Lines::open(journal) else {
        return 0;
    };
    let mut made = 0;
    while let Ok(Some(_)) = lines.next_line() {
        made += u64::from(lines.is_ended());
    }
    made
}

/// Why a line is no trial.
enum Unread {
    Later(u64),
    Damaged(String),
}

/// The version first: what a later one means by the other keys is not ours to judge.
fn parse(line: &str) -> Result<SearchedTrial, Unread> {
    let damaged = |error: serde_json::Error| Unread::Damaged(error.to_string());
    let value = input::json(line).map_err(damaged)?;
    match value["version"].as_u64() {
        Some(version) if version > u64::from(VERSION) => return Err(Unread::Later(version)),
        Some(1..) => {}
        _ => return Err(Unread::Damaged("it has no format version".to_owned())),
    }
    let trial: SearchedTrial = serde_json::from_value(value).map_err(damaged)?;
    sane::numbers(&trial.trial).map_err(Unread::Damaged)?;
    Ok(trial)
}
