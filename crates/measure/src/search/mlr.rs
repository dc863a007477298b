//! `MLRsearch`: several goals in one search, from short trials to certain ones (draft-ietf-bmwg-mlrsearch).

use super::bounds::{Bounds, Database, Target, targets};
use super::goal::Goal;
use super::grid::{Grid, Load};
use super::result::{Bound, GoalResult, Limit, SearchResult};
use super::selector::{Selector, Why};
use super::{Again, Ask, Ceiling, Doubt, Purpose, Range, SPOILED_IN_A_ROW_MAX, Step, Trial};
use crate::units::{format_rate, format_share};

/// No search of any use takes as many trials; one that does has an unstable path before it.
pub(super) const TRIALS_MAX: u64 = 5000;

/// What the trial that is out is for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Aim {
    /// At the highest rate.
    First,
    /// At the rate that came back in the first.
    Second,
    /// Beside the second.
    Third { second: Load },
    /// A goal's wish.
    Goal { index: usize, why: Why },
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    load: Load,
    duration_ns: u64,
    aim: Aim,
}

/// The machine.
#[derive(Debug, Clone)]
pub struct Mlr {
    goals: Vec<Goal>,
    ceiling: Ceiling,
    grid: Grid,
    database: Database,
    selectors: Vec<Selector>,
    pending: Option<Pending>,
    doubt: Doubt,
    /// Trials in a row that our sender spoiled.
    spoiled_in_a_row: u32,
    /// The highest rate that our sender has offered.
    offered: Option<Load>,
    trials: u64,
    invalid_trials: u64,
    bunched_trials: u64,
    seconds: f64,
    is_cut: bool,
}

impl Mlr {
    /// A search for `goals` in `range`. Without goals it is done at once.
    pub fn new(goals: Vec<Goal>, range: Range) -> Mlr {
        let narrowest = goals.iter().map(|goal| goal.relative_width).fold(0.5, f64::min);
        let grid = Grid::new(range.min_pps, range.max_pps, narrowest);
        let mut search = Mlr {
            goals,
            ceiling: range.ceiling,
            database: Database::default(),
            selectors: Vec::new(),
            pending: None,
            doubt: Doubt::default(),
            spoiled_in_a_row: 0,
            offered: None,
            trials: 0,
            invalid_trials: 0,
            bunched_trials: 0,
            seconds: 0.0,
            is_cut: false,
            grid,
        };
        let max = search.grid.max();
        search.pending = search.first_look(max, Aim::First);
        search
    }

    /// The trial that is wanted now.
    pub fn next(&self) -> Step {
        self.doubt.step(self.pending.as_ref().map(|pending| {
            let ask = Ask::lasting(self.grid.rate_pps(pending.load), pending.duration_ns);
            let purpose = self.purpose(pending);
            match self.spoiled_in_a_row {
                0 => (ask, purpose),
                _ => (ask, purpose.again(Again::Spoiled(Limit::Sender))),
            }
        }))
    }

    /// Takes its outcome, and says whether it counts: one that does not is asked for again.
    pub fn record(&mut self, trial: &Trial) -> bool {
        let Some(pending) = self.pending else { return false };
        if !self.doubt.accepts(trial) {
            self.invalid_trials += 1;
            return false;
        }
        let charged = self.doubt.charged(trial);
        if self.is_spoiled(pending.load, trial, &charged) {
            self.invalid_trials += 1;
            return false;
        }
        self.trials += 1;
        self.seconds += trial.ask.seconds();
        // Its place on the grid counts, not what a file made of the number.
        let trial = Trial {
            ask: Ask::lasting(self.grid.rate_pps(pending.load), pending.duration_ns),
            ..charged
        };
        self.database.add(pending.load, trial.clone());
        self.pending = match pending.aim {
            Aim::First => self.after_first(&trial),
            Aim::Second => self.after_second(pending.load, &trial),
            Aim::Third { second } => self.start(second, pending.load),
            Aim::Goal { index, why } => {
                self.selectors[index].measured(pending.load, why, &self.database);
                self.choose()
            }
        };
        if self.trials >= TRIALS_MAX && self.pending.take().is_some() {
            self.is_cut = true;
        }
        true
    }

    /// Whether only a moment of our sender's kept the trial from being good, and another one may tell more: it bunched, or it
    /// fell short of a rate that it can offer.
    fn is_spoiled(&mut self, load: Load, trial: &Trial, charged: &Trial) -> bool {
        let ratios = self.goals.iter().map(|goal| goal.loss_ratio);
        let mut missed = ratios.filter(|ratio| charged.limit(*ratio) == Some(Limit::Sender));
        let can_offer = self.offered.is_some_and(|offered| load <= offered);
        let is_short = !trial.is_offered() && can_offer && missed.clone().next().is_some();
        let is_bunched = missed.any(|ratio| trial.limit(ratio) == Some(Limit::Path));
        self.bunched_trials += u64::from(is_bunched);
        if trial.is_offered() {
            self.offered = self.offered.max(Some(load));
        }
        self.spoiled_in_a_row += 1;
        if !(is_bunched || is_short) || self.spoiled_in_a_row >= SPOILED_IN_A_ROW_MAX {
            self.spoiled_in_a_row = 0;
        }
        self.spoiled_in_a_row > 0
    }

    /// What is known so far.
    pub fn result(&self) -> SearchResult {
        SearchResult {
            goals: (0..self.goals.len())
                .map(|index| self.goal_result(index))
                .collect(),
            rfc2544: None,
            trials: self.trials,
            invalid_trials: self.invalid_trials,
            bunched_trials: self.bunched_trials,
            seconds: self.seconds,
            complete: self.pending.is_none() && !self.is_cut,
        }
    }

    /// A trial as long as the first target of the most subject goal.
    fn first_look(&self, load: Load, aim: Aim) -> Option<Pending> {
        let duration_ns = self.first_targets().map(|target| target.duration_ns).max()?;
        Some(Pending {
            load,
            duration_ns,
            aim,
        })
    }

    fn first_targets(&self) -> impl Iterator<Item = Target> + '_ {
        self.goals.iter().map(|goal| targets(goal, &self.grid)[0])
    }

    /// The rate that would have come back whole, if all that the goal tolerates were lost: a hint, on the low side.
    fn hinted(&self, trial: &Trial) -> Load {
        let ratio = self.goals.iter().map(|goal| goal.loss_ratio).fold(1.0, f64::min);
        self.grid.at_or_below(trial.forwarded_pps() / (1.0 - ratio))
    }

    fn widest(&self) -> i64 {
        self.first_targets().map(|target| target.width).max().unwrap_or(1)
    }

    fn after_first(&mut self, trial: &Trial) -> Option<Pending> {
        let max = self.grid.max();
        let hint = self.hinted(trial);
        if hint >= max || max.0 <= self.grid.min().0 {
            return self.start(max, max);
        }
        let load = hint.min(Load(max.0 - self.widest())).max(self.grid.min());
        self.first_look(load, Aim::Second)
    }

    fn after_second(&mut self, second: Load, trial: &Trial) -> Option<Pending> {
        let lost = self.goals.iter().all(|goal| !trial.is_good(goal.loss_ratio));
        let (min, max, width) = (self.grid.min(), self.grid.max(), self.widest());
        let third = if lost {
            self.hinted(trial).min(Load(second.0 - width)).max(min)
        } else {
            Load(second.0 + width)
        };
        if third == second || third >= max {
            return self.start(second, second);
        }
        self.first_look(third, Aim::Third { second })
    }

    /// The first trials are over: every goal begins with where they led.
    fn start(&mut self, one: Load, other: Load) -> Option<Pending> {
        let hint = Bounds {
            lower: Some(one.min(other)),
            upper: Some(one.max(other)),
        };
        self.selectors = self
            .goals
            .iter()
            .map(|goal| Selector::new(targets(goal, &self.grid), hint))
            .collect();
        self.choose()
    }

    /// The lowest rate that any goal wants, and of those the longest trial: low rates help all goals.
    fn choose(&mut self) -> Option<Pending> {
        let mut best: Option<Pending> = None;
        for (index, selector) in self.selectors.iter_mut().enumerate() {
            let Some((load, why)) = selector.nominate(&self.database, &self.grid) else {
                continue;
            };
            let duration_ns = selector.target().duration_ns;
            let is_better = best
                .is_none_or(|best| load < best.load || (load == best.load && duration_ns > best.duration_ns));
            if is_better {
                best = Some(Pending {
                    load,
                    duration_ns,
                    aim: Aim::Goal { index, why },
                });
            }
        }
        best
    }

    fn goal_result(&self, index: usize) -> GoalResult {
        let goal = &self.goals[index];
        let stages = targets(goal, &self.grid);
        let last = &stages[stages.len() - 1];
        let bounds = self.database.bounds(last);
        let complete = self.selectors.get(index).is_some_and(|selector| selector.is_done);
        let bound = |load: Load| Bound::of(self.grid.rate_pps(load), self.database.at(load), goal.loss_ratio);
        let limit = match (bounds.lower, bounds.upper) {
            (Some(lower), None) if lower == self.grid.max() => match self.ceiling {
                Ceiling::Asked => Limit::MaxRate,
                Ceiling::Sender => Limit::Sender,
                Ceiling::Line => Limit::Line,
            },
            (_, None) => Limit::Unknown,
            (lower, Some(upper)) => match self.database.limit(upper, goal.loss_ratio) {
                Limit::Path if lower.is_none() && upper == self.grid.min() => Limit::MinRate,
                limit => limit,
            },
        };
        let forwarded =
            |load: Load| self.grid.rate_pps(load) * (1.0 - self.database.conditional_loss(load, last));
        GoalResult {
            name: goal.name.clone(),
            loss_ratio: goal.loss_ratio,
            complete,
            limit,
            throughput_pps: bounds.lower.map(|load| self.grid.rate_pps(load)),
            conditional_throughput_pps: bounds.lower.map(forwarded),
            lower: bounds.lower.map(bound),
            upper: bounds.upper.map(bound),
        }
    }

    fn purpose(&self, pending: &Pending) -> Purpose {
        let (index, why) = match pending.aim {
            Aim::First => return Purpose::new("", "the highest rate first"),
            Aim::Second => return Purpose::new("", "what came back of the highest rate"),
            Aim::Third { second } if pending.load < second => {
                return Purpose::new("", "what came back of that");
            }
            Aim::Third { .. } => return Purpose::new("", "a little above what was carried"),
            Aim::Goal { index, why } => (index, why),
        };
        let selector = &self.selectors[index];
        let bounds = self.database.bounds(selector.target());
        let name = &self.goals[index].name;
        let known = match (bounds.lower, bounds.upper) {
            (Some(lower), Some(upper)) => {
                format!("between {} and {}", self.shown(lower), self.shown(upper))
            }
            (Some(lower), None) => format!("above {}", self.shown(lower)),
            (None, Some(upper)) => format!("below {}", self.shown(upper)),
            (None, None) => "no bound yet".to_owned(),
        };
        match why {
            Why::Between => Purpose::new(name, known),
            // These look at what a stage before found; of its own this one may know nothing yet.
            _ if bounds == Bounds::default() => Purpose::new(name, why.to_string()),
            _ => Purpose::new(name, format!("{why} ({known})")),
        }
        .in_brief(format!("{name}: {}", why.brief()))
    }

    /// A rate and the loss that was seen there.
    fn shown(&self, load: Load) -> String {
        let trials = self.database.at(load);
        let lost: u64 = trials.iter().map(|trial| trial.lost.total()).sum();
        let offered: u64 = trials.iter().map(|trial| trial.offered).sum();
        let due: u64 = trials.iter().map(|trial| trial.due).sum();
        let rate = format_rate(self.grid.rate_pps(load));
        if trials.iter().any(|trial| !trial.is_offered()) {
            return format!("{rate} ({} of it sent)", format_share(offered, due));
        }
        match lost {
            0 => format!("{rate} (no loss)"),
            _ => format!("{rate} (loss {})", format_share(lost, offered)),
        }
    }
}
