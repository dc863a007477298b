//! Whether a rate is carried: the trials at it, weighed against a target (draft-ietf-bmwg-mlrsearch, load classification).

use std::collections::BTreeMap;

use super::goal::Goal;
use super::grid::{Grid, Load};
use super::result::Limit;
use super::trial::{Extent, Trial};

/// One stage on the way to a goal: coarser and quicker than the goal itself, but for the last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Target {
    pub loss_ratio: f64,
    pub exceed_ratio: f64,
    /// Close enough, in steps of the grid.
    pub width: i64,
    pub duration_ns: u64,
    pub sum_ns: u64,
    pub expansion: i64,
}

/// The stages of a goal, the first one first. Each has twice the width of the next; the time at a rate grows by
/// equal factors from one initial trial to the sum.
pub(super) fn targets(goal: &Goal, grid: &Grid) -> Vec<Target> {
    let width = grid.steps_in(goal.relative_width);
    let stage = |sum_ns: u64, doublings: u32| Target {
        loss_ratio: goal.loss_ratio,
        exceed_ratio: goal.exceed_ratio,
        width: width << doublings,
        duration_ns: goal.final_duration_ns.min(sum_ns),
        sum_ns,
        expansion: i64::from(goal.expansion),
    };
    let ratio = goal.initial_duration_ns as f64 / goal.duration_sum_ns as f64;
    let mut stages = Vec::new();
    for before in (1..=goal.preceding_targets).rev() {
        let part = f64::from(before) / f64::from(goal.preceding_targets);
        let sum_ns = (goal.duration_sum_ns as f64 * ratio.powf(part)).round() as u64;
        stages.push(stage(sum_ns, before));
    }
    stages.push(stage(goal.duration_sum_ns, 0));
    stages
}

/// What the trials at one rate say about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Carried, whatever trials may follow.
    Lower,
    /// Not carried, whatever trials may follow.
    Upper,
}

/// All trials at their rates.
#[derive(Debug, Clone, Default)]
pub(super) struct Database {
    trials: BTreeMap<Load, Vec<Trial>>,
}

/// The closest rates that are known to be carried and not to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bounds {
    pub lower: Option<Load>,
    pub upper: Option<Load>,
}

/// Seconds of good and bad trials: long ones are as long as the target wants, short ones are not.
#[derive(Debug, Default)]
struct Weights {
    good_long: f64,
    bad_long: f64,
    good_short: f64,
    bad_short: f64,
}

impl Database {
    pub fn add(&mut self, load: Load, trial: Trial) {
        self.trials.entry(load).or_default().push(trial);
    }

    pub fn at(&self, load: Load) -> &[Trial] {
        self.trials.get(&load).map_or(&[], Vec::as_slice)
    }

    /// The smallest rate that is not carried, and the largest carried one below it: a rate above a lost one is no
    /// lower bound, whatever its own trials said.
    pub fn bounds(&self, target: &Target) -> Bounds {
        let mut bounds = Bounds::default();
        for (&load, trials) in &self.trials {
            match class(trials, target) {
                Some(Class::Upper) => {
                    bounds.upper = Some(load);
                    break;
                }
                Some(Class::Lower) => bounds.lower = Some(load),
                None => {}
            }
        }
        bounds
    }

    /// The largest loss ratio within the best part of the time at a lower bound that the goal looks at: what the
    /// path forwards there at least (conditional throughput).
    pub fn conditional_loss(&self, load: Load, target: &Target) -> f64 {
        let mut long: Vec<(f64, f64)> = self
            .at(load)
            .iter()
            .filter(|trial| is_long(trial, target))
            .map(|trial| (trial.bad_ratio(), trial.ask.seconds()))
            .collect();
        long.sort_by(|one, other| one.0.total_cmp(&other.0));
        let measured: f64 = long.iter().map(|(_, seconds)| seconds).sum();
        let mut remaining = measured.max(target.sum_ns as f64 / 1e9) * (1.0 - target.exceed_ratio);
        for (ratio, seconds) in long {
            remaining -= seconds;
            if remaining <= 1e-9 {
                return ratio;
            }
        }
        // The classification was certain before the time was up; the rest is taken as lost.
        1.0
    }

    /// Who made an upper bound one: whoever kept most of the bad time from being good.
    pub fn limit(&self, load: Load, loss_ratio: f64) -> Limit {
        let whose = [
            Limit::Receiver,
            Limit::Sender,
            Limit::Port,
            Limit::Reflector,
            Limit::Path,
        ];
        let seconds = whose.map(|limit| {
            let bad = self
                .at(load)
                .iter()
                .filter(|trial| trial.limit(loss_ratio) == Some(limit));
            bad.map(|trial| trial.ask.seconds()).sum::<f64>()
        });
        let mut most = 0;
        for (index, value) in seconds.iter().enumerate() {
            // Of equals, not the path: it is accused last.
            if *value > seconds[most] {
                most = index;
            }
        }
        whose[most]
    }
}

fn is_long(trial: &Trial, target: &Target) -> bool {
    match trial.ask.extent {
        Extent::DurationNs(ns) => ns >= target.duration_ns,
        Extent::Packets(_) => false,
    }
}

/// What is certain about a rate: the same if all trials that are still due were good as if they were bad.
fn class(trials: &[Trial], target: &Target) -> Option<Class> {
    let mut weights = Weights::default();
    for trial in trials {
        let is_good = trial.is_good(target.loss_ratio);
        let sum = match (is_long(trial, target), is_good) {
            (true, true) => &mut weights.good_long,
            (true, false) => &mut weights.bad_long,
            (false, true) => &mut weights.good_short,
            (false, false) => &mut weights.bad_short,
        };
        *sum += trial.ask.seconds();
    }
    let exceed = target.exceed_ratio;
    // Short good trials forgive short bad ones, in the proportion that the goal tolerates; they prove nothing else.
    let forgiven = weights.good_short * exceed / (1.0 - exceed);
    let bad = weights.bad_long + (weights.bad_short - forgiven).max(0.0);
    let whole = (weights.good_long + bad).max(target.sum_ns as f64 / 1e9);
    let tolerated = whole * exceed + 1e-9;
    match (bad <= tolerated, whole - weights.good_long <= tolerated) {
        (true, true) => Some(Class::Lower),
        (false, false) => Some(Class::Upper),
        _ => None,
    }
}
