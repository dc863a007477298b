//! `search`: the highest rate that is carried, for each frame size and goal, and every trial on the way there.

pub mod estimate;
mod page;
mod picture;
mod tables;
mod terminal;
mod trials;

use std::path::Path;

use maud::Markup;
use measure::Note;
use measure::search::SearchReport;
use serde::{Serialize, Serializer};

use crate::kind::{Entry, Kind, Mark, Standing, Tile, Verdict};
use crate::number::{counted, pps, round, span, time};
use crate::read::{self, ReadError, part};
use crate::rundir::file;
use crate::style::Style;

pub use terminal::render;
pub use trials::SearchedTrial;

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "search",
    file: file::SEARCH,
    required: &[
        "method",
        "complete",
        "reasons",
        "sizes.*.goals",
        "trials",
        "seconds",
    ],
    read: |run| Ok(Box::new(Searched::read(run)?)),
    unfinished,
    metrics: &[],
};

/// What a search came to.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Its answers.
    pub report: SearchReport,
    /// Its trials, as they were made.
    pub trials: Vec<SearchedTrial>,
}

/// `search.json` holds the answers.
impl Serialize for Searched {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.report.serialize(serializer)
    }
}

/// The answers in the run directory `run`.
pub fn read(run: &Path) -> Result<SearchReport, ReadError> {
    read::result(run, &KIND, |report: &SearchReport| {
        match (report.complete, report.sizes.is_empty()) {
            (true, true) => Err("it says complete, and has no frame size".to_owned()),
            _ => Ok(()),
        }
    })
}

impl Searched {
    /// The whole of it.
    pub fn read(run: &Path) -> Result<Self, ReadError> {
        let report = read(run)?;
        let trials = trials::read(run, &report)?;
        Ok(Self { report, trials })
    }
}

/// A search can go on where it stopped.
fn unfinished(run: &Path) -> Result<Option<ReadError>, ReadError> {
    let Some(journal) = part(run, file::SEARCH_TRIALS)? else {
        return Ok(None);
    };
    let what = format!(
        "it is a search of {} so far, and has no {}; go on with: dropless search --resume {}",
        counted(trials::made(&journal), "trial"),
        file::SEARCH,
        run.display()
    );
    Ok(Some(ReadError::Unfinished(run.to_owned(), what)))
}

/// What a search took: `9 trials, 3 s of sending`.
fn spent(report: &SearchReport) -> String {
    // In whole seconds a short one would have sent for none.
    let sending = if report.seconds > 0.0 && report.seconds < 10.0 {
        round(&time(report.seconds * 1e9))
    } else {
        span(report.seconds)
    };
    format!("{}, {sending} of sending", counted(report.trials, "trial"))
}

impl Kind for Searched {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        let report = &self.report;
        let spent = spent(report);
        if !report.complete {
            return Verdict {
                standing: Standing::Invalid,
                mark: Some(Mark::NotFinished),
                outcome: spent,
                reasons: Note::texts(&report.reasons),
            };
        }
        Verdict {
            standing: Standing::of_exit(report.exit_code().min(1)),
            mark: Some(Mark::Found),
            outcome: spent,
            reasons: page::answers(report),
        }
    }

    /// Of each size and goal; a search that ended without a rate that is carried has found 0.
    fn figures(&self, name: &str) -> Vec<(String, f64)> {
        if name != "throughput" {
            return Vec::new();
        }
        let sizes = self.report.sizes.iter();
        let goals = sizes.flat_map(|size| size.result.goals.iter().map(move |goal| (&size.size, goal)));
        goals
            .filter_map(|(size, goal)| {
                let value = goal.throughput_pps.or(goal.complete.then_some(0.0))?;
                Some((format!("{size} {}", goal.name), value))
            })
            .collect()
    }

    fn tiles(&self) -> Vec<Tile> {
        let found = self.figures("throughput").into_iter();
        Tile::known(found.map(|(of, value)| (of, Some(pps(value)))))
    }

    fn terminal(&self, style: &Style) -> String {
        render(&self.report, style)
    }

    fn page(&self, named: &str, id: &str) -> Markup {
        page::render(self, named, id)
    }

    fn notes(&self) -> &[Note] {
        &self.report.notes
    }
}
