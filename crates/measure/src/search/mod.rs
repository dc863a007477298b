//! Which rate a path carries: searches as state machines that say which trial they want next and are told how it went.
//!
//! A search never sends, never looks at a clock and never rolls a die. What it asks depends on what was recorded, so
//! an interrupted search is continued by recording its trials again, in order.

mod bounds;
pub mod drift;
pub mod estimate;
pub mod goal;
mod grid;
mod judge;
pub mod mlr;
pub mod model;
mod purpose;
pub mod report;
pub mod result;
pub mod rfc2544;
mod selector;
pub mod trial;

pub use estimate::{Estimate, Pace, estimate, remaining};
pub use goal::{Goal, GoalError};
pub use judge::disbelieved;
pub use mlr::Mlr;
pub use model::ModelPath;
pub use purpose::{Again, Purpose};
pub use report::{Method, SearchReport, SizeResult};
pub use result::{Bound, GoalResult, Limit, Rfc2544Result, SearchResult};
pub use rfc2544::{Rfc2544, Rfc2544Settings, Test};
pub use trial::{Ask, Extent, Losses, Trial};

use serde::{Deserialize, Serialize};

use crate::bunch;
use crate::note::Note;

/// Trials that may be invalid in a row before a search is given up.
pub const INVALID_IN_A_ROW_MAX: u32 = 3;

/// What a search wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// This trial, for this.
    Trial(Ask, Purpose),
    /// Nothing more.
    Done,
    /// It cannot go on: the last trials could not be believed, for these reasons.
    Failed(Vec<Note>),
}

/// Where the highest rate that a search tries comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ceiling {
    /// The user gave it.
    #[default]
    Asked,
    /// It is what our sender reaches as fast as it can.
    Sender,
    /// It is the line rate of the port.
    Line,
}

/// The rates between which a search looks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The lowest rate tried, in packets per second.
    pub min_pps: f64,
    /// The highest rate tried, in packets per second.
    pub max_pps: f64,
    /// Where that comes from.
    pub ceiling: Ceiling,
}

/// A search of any method, for one frame size.
#[allow(clippy::large_enum_variant, reason = "there is one of them")]
#[derive(Debug, Clone)]
pub enum Search {
    /// Several goals at once.
    Mlr(Mlr),
    /// The tests of RFC 2544.
    Rfc2544(Rfc2544),
}

impl Search {
    /// The trial that is wanted now; the same until one is recorded.
    pub fn next(&self) -> Step {
        match self {
            Search::Mlr(search) => search.next(),
            Search::Rfc2544(search) => search.next(),
        }
    }

    /// Takes the outcome of the trial that [`Search::next`] asked for, and says whether it counts: one that does not is asked
    /// for again.
    pub fn record(&mut self, trial: &Trial) -> bool {
        match self {
            Search::Mlr(search) => search.record(trial),
            Search::Rfc2544(search) => search.record(trial),
        }
    }

    /// What is known so far.
    pub fn result(&self) -> SearchResult {
        match self {
            Search::Mlr(search) => search.result(),
            Search::Rfc2544(search) => search.result(),
        }
    }
}

/// Trials at a rate, of which our own side spoils each, before it is believed to be the limit there.
///
/// What ails us always is told by the third trial as well.
const SPOILED_IN_A_ROW_MAX: u32 = 3;

/// Trials that must agree on what the path bears at once: in one of them something may have spread a bunch.
const BORNE_TRIALS: usize = 3;

/// Counts trials that could not be believed; shared by the machines.
#[derive(Debug, Clone, Default)]
struct Doubt {
    in_a_row: u32,
    reasons: Vec<Note>,
    /// What the path bore at once in those trials in which it bore most.
    borne: [u64; BORNE_TRIALS],
}

impl Doubt {
    /// Whether the trial may be used.
    fn accepts(&mut self, trial: &Trial) -> bool {
        if trial.invalid.is_empty() {
            self.in_a_row = 0;
            return true;
        }
        self.in_a_row += 1;
        self.reasons.clone_from(&trial.invalid);
        false
    }

    /// The trial, with what our sender's bunches may have cost charged to it (see [`bunch`]).
    fn charged(&mut self, trial: &Trial) -> Trial {
        let borne = bunch::borne(&trial.bunches, trial.lost.total());
        // The least of the largest is what all of them bore.
        self.borne.sort_unstable();
        self.borne[0] = self.borne[0].max(borne);
        let all_bore = self.borne.into_iter().min().unwrap_or(0);
        // The kernel's own queues may have put two bunches together on their way to the path.
        trial.without_bunches(all_bore / 2)
    }

    fn step(&self, wanted: Option<(Ask, Purpose)>) -> Step {
        match wanted {
            None => Step::Done,
            Some(_) if self.in_a_row >= INVALID_IN_A_ROW_MAX => Step::Failed(self.reasons.clone()),
            Some((ask, purpose)) if self.in_a_row > 0 => Step::Trial(ask, purpose.again(Again::Invalid)),
            Some((ask, purpose)) => Step::Trial(ask, purpose),
        }
    }
}
