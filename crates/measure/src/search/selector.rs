//! One goal's wish: the rate whose trial would bring its bounds together soonest (draft-ietf-bmwg-mlrsearch, load selection).

use std::fmt;

use super::bounds::{Bounds, Database, Target};
use super::grid::{Grid, Load};

/// Why a rate is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The middle of what a shorter look found.
    Halve,
    /// What was carried in a shorter look.
    ConfirmLower,
    /// What was not carried in a shorter look.
    ConfirmUpper,
    /// Nothing is carried yet.
    Down,
    /// Everything was carried so far.
    Up,
    /// Between the bounds.
    Between,
}

impl Why {
    /// In the words that fit a line.
    pub fn brief(self) -> &'static str {
        match self {
            Why::Halve => "halfway between the bounds",
            Why::ConfirmLower => "does the lower bound hold?",
            Why::ConfirmUpper => "does the upper bound hold?",
            Why::Down => "further down",
            Why::Up => "further up",
            Why::Between => "between the bounds",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Halve => "halfway between the bounds of shorter trials",
            Why::ConfirmLower => "does the lower bound of shorter trials hold?",
            Why::ConfirmUpper => "does the upper bound of shorter trials hold?",
            Why::Down => "further down, nothing was carried yet",
            Why::Up => "further up, all was carried so far",
            Why::Between => "between the bounds",
        })
    }
}

/// A goal on its way through its targets.
#[derive(Debug, Clone)]
pub(super) struct Selector {
    pub targets: Vec<Target>,
    stage: usize,
    /// The bounds of the stage before, or where the first trials led: they may not hold.
    hint: Bounds,
    /// The next step outwards.
    reach: i64,
    /// The goal has what it wanted.
    pub is_done: bool,
}

impl Selector {
    pub fn new(targets: Vec<Target>, hint: Bounds) -> Selector {
        let mut selector = Selector {
            targets,
            stage: 0,
            hint,
            reach: 1,
            is_done: false,
        };
        selector.start_stage(hint);
        selector
    }

    pub fn target(&self) -> &Target {
        &self.targets[self.stage]
    }

    /// The rate this goal wants next; goes on to the next target where one is reached.
    pub fn nominate(&mut self, database: &Database, grid: &Grid) -> Option<(Load, Why)> {
        // What another goal measured meanwhile may have opened its bounds again.
        self.is_done = false;
        loop {
            let bounds = database.bounds(self.target());
            if let Some(wish) = self.wish(bounds, grid) {
                return Some(wish);
            }
            if self.stage + 1 == self.targets.len() {
                self.is_done = true;
                return None;
            }
            self.stage += 1;
            self.start_stage(bounds);
        }
    }

    /// Its wish was measured: where a step outwards was not enough, the next one is longer.
    pub fn measured(&mut self, load: Load, why: Why, database: &Database) {
        let bounds = database.bounds(self.target());
        let missed = match why {
            Why::Down => bounds.upper == Some(load),
            Why::Up => bounds.lower == Some(load),
            _ => false,
        };
        if missed {
            self.reach = self.reach.saturating_mul(self.target().expansion);
        }
    }

    fn start_stage(&mut self, hint: Bounds) {
        self.hint = hint;
        let between = hint
            .lower
            .zip(hint.upper)
            .map_or(0, |(lower, upper)| upper.0 - lower.0);
        self.reach = between.max(self.target().width) * self.target().expansion;
    }

    fn wish(&self, bounds: Bounds, grid: &Grid) -> Option<(Load, Why)> {
        self.halve(bounds)
            .map(|load| (load, Why::Halve))
            .or_else(|| self.hinted(self.hint.lower, bounds, Why::ConfirmLower))
            .or_else(|| self.hinted(self.hint.upper, bounds, Why::ConfirmUpper))
            .or_else(|| self.outwards(bounds, grid))
            .or_else(|| self.between(bounds))
    }

    /// The stage before was twice as wide: with luck one trial in its middle is enough.
    fn halve(&self, bounds: Bounds) -> Option<Load> {
        let (lower, upper) = self.hint.lower.zip(self.hint.upper)?;
        let width = upper.0 - lower.0;
        let load = Load(lower.0 + width / 2);
        (width > self.target().width && width <= 2 * self.target().width && self.is_worth(load, bounds))
            .then_some(load)
    }

    fn hinted(&self, hint: Option<Load>, bounds: Bounds, why: Why) -> Option<(Load, Why)> {
        hint.filter(|load| self.is_worth(*load, bounds))
            .map(|load| (load, why))
    }

    fn outwards(&self, bounds: Bounds, grid: &Grid) -> Option<(Load, Why)> {
        let width = self.target().width;
        let (load, why) = match (bounds.lower, bounds.upper) {
            (None, Some(upper)) if upper > grid.min() => {
                let load = Load(upper.0 - self.reach).max(grid.min());
                // No trial so close to the end that the end would need one of its own.
                let near_end = load.0 - grid.min().0 < width;
                (if near_end { grid.min() } else { load }, Why::Down)
            }
            (Some(lower), None) if lower < grid.max() => {
                let load = Load(lower.0.saturating_add(self.reach)).min(grid.max());
                let near_end = grid.max().0 - load.0 < width;
                (if near_end { grid.max() } else { load }, Why::Up)
            }
            _ => return None,
        };
        self.is_worth(load, bounds).then_some((load, why))
    }

    /// Inwards: the middle.
    fn between(&self, bounds: Bounds) -> Option<(Load, Why)> {
        let (lower, upper) = bounds.lower.zip(bounds.upper)?;
        let width = upper.0 - lower.0;
        (width > self.target().width).then_some((Load(lower.0 + width / 2), Why::Between))
    }

    /// Whether a trial there can create a bound, or a better one.
    fn is_worth(&self, load: Load, bounds: Bounds) -> bool {
        let beyond = bounds.lower.is_some_and(|lower| lower >= load)
            || bounds.upper.is_some_and(|upper| upper <= load);
        let near = bounds
            .lower
            .zip(bounds.upper)
            .is_some_and(|(lower, upper)| upper.0 - lower.0 <= self.target().width);
        !beyond && !near
    }
}
