//! How every command that has a run directory ends: its result is written, those who watch are told, its page is drawn, and the
//! result is printed.

use measure::noise::NoiseSummary;
use measure::{
    CaptureSummary, FilterSummary, ForwardSummary, GuardSummary, Note, ReflectSummary, ReplaySummary,
    RunResult as _, Summary,
};
use report::out::Console;
use report::published::{Ended, State};
use report::rundir::{RunDir, WriteError, file};
use report::style::Style;
use report::terminal::{named, render};
use report::{html, load};
use serde::Serialize;

use crate::status::StatusBoard;

/// What a command comes to.
pub trait Outcome: Serialize {
    /// What else the user should know: it grows until it is written.
    fn notes(&mut self) -> &mut Vec<Note>;
    /// Writes it.
    fn write(&self, dir: &RunDir) -> Result<(), WriteError>;
    /// All of it for people.
    fn text(&self, style: &Style) -> String;
    /// For who watches.
    fn ended(&self) -> Ended;
    /// Why it is not to be believed, if it is not.
    fn doubt(&self) -> Option<&Note> {
        None
    }
}

macro_rules! judged_outcomes {
    ($($result:ty)*) => {$(
        impl Outcome for $result {
            fn notes(&mut self) -> &mut Vec<Note> {
                &mut self.notes
            }

            fn write(&self, dir: &RunDir) -> Result<(), WriteError> {
                dir.write_result(self)
            }

            fn text(&self, style: &Style) -> String {
                render(self, style)
            }

            fn ended(&self) -> Ended {
                Ended {
                    verdict: self.validity().name().into(),
                    exit: self.exit_code(),
                    reasons: self.reasons.clone(),
                }
            }

            fn doubt(&self) -> Option<&Note> {
                self.reasons.first()
            }
        }
    )*};
}

judged_outcomes! {
    Summary ReflectSummary CaptureSummary ReplaySummary ForwardSummary FilterSummary GuardSummary NoiseSummary
}

/// Who is told of the end.
pub struct Finish<'f> {
    pub dir: &'f RunDir,
    pub console: Console,
    /// Those who watch, where anybody can.
    pub board: Option<&'f StatusBoard>,
}

impl Finish<'_> {
    /// Ends with `outcome`, whose exit code is the result; `settle` makes the state that was told last what it says.
    pub fn with<R: Outcome>(
        &self,
        mut outcome: R,
        settle: impl FnOnce(&R, &mut State),
    ) -> anyhow::Result<u8> {
        self.keep(&mut outcome);
        self.tell(&outcome, settle)
    }

    /// Writes the outcome, with a note where anything is missing beside it, or itself.
    fn keep(&self, outcome: &mut impl Outcome) {
        let incomplete = self.dir.note();
        let notes = outcome.notes();
        notes.extend(self.board.and_then(StatusBoard::note));
        notes.extend(incomplete.clone());
        if outcome.write(self.dir).is_err() {
            // Told once, with the outcome itself among what is missing.
            let notes = outcome.notes();
            notes.retain(|note| Some(note) != incomplete.as_ref());
            notes.extend(self.dir.note());
        }
    }

    /// Tells everybody what it came to.
    fn tell<R: Outcome>(&self, outcome: &R, settle: impl FnOnce(&R, &mut State)) -> anyhow::Result<u8> {
        // Nothing else of it is seen then.
        let doubt = outcome
            .doubt()
            .filter(|_| self.console.quiet && !self.console.json);
        if let Some(doubt) = doubt {
            self.console.error(&format!("dropless: INVALID: {doubt}"));
        }
        let ended = outcome.ended();
        let exit = ended.exit;
        if let Some(board) = self.board {
            board.end(ended, |state| settle(outcome, state));
        }
        self.draw();
        let style = self.console.style();
        let text = named(self.dir.label(), &outcome.text(&style), &style);
        self.console.human(&text)?;
        self.console.object(&self.dir.labelled(outcome))?;
        Ok(exit)
    }

    /// Leaves the page in the directory. Without one the run is as good: that is told, and no more.
    fn draw(&self) {
        if self.dir.note().is_some() {
            // Told already; a page would be drawn of half of it.
            return;
        }
        let drawn = load::load(self.dir.path())
            .map_err(anyhow::Error::from)
            .and_then(|run| Ok(html::write(&self.dir.file(file::REPORT), &[run])?));
        if let Err(error) = drawn {
            self.console
                .error(&format!("note: no {}: {error:#}", file::REPORT));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_is_missing_is_told_once_with_the_outcome_among_it() {
        let base = tempfile::tempdir().expect("a directory");
        let dir = RunDir::create(base.path(), "filter", SystemTime::now()).expect("a run directory");
        let finish = Finish {
            dir: &dir,
            console: Console {
                json: false,
                quiet: true,
            },
            board: None,
        };
        let mut whole = FilterSummary::default();
        finish.keep(&mut whole);
        assert!(whole.notes.is_empty() && dir.file(file::SUMMARY).is_file());
        std::fs::remove_dir_all(dir.path()).expect("removed");
        for (more, ends) in [(false, "summary.json: "), (true, "(and 2 more)")] {
            if more {
                dir.write_text(file::GAPS, "x").expect_err("no directory");
            }
            let mut outcome = FilterSummary::default();
            finish.keep(&mut outcome);
            let told = Note::texts(&outcome.notes).join("\n");
            assert_eq!(told.matches("is incomplete").count(), 1, "{told}");
            assert!(told.contains(ends), "{told}");
        }
    }
}
