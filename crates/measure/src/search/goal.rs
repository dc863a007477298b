//! What is searched for: a loss ratio and how sure the answer must be (draft-ietf-bmwg-mlrsearch, search goals).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::mlr::TRIALS_MAX;
use crate::fields::given_twice;
use crate::metric::Kind;
use crate::units::parse_duration;

/// One search goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// What it is called in the result.
    pub name: String,
    /// The largest loss ratio (0 to 1) of a good trial.
    pub loss_ratio: f64,
    /// The part (0 to 1) of the time at a rate that may be bad trials while the rate still counts as carried.
    pub exceed_ratio: f64,
    /// The bounds are close enough when they differ by this part of the upper one.
    pub relative_width: f64,
    /// The shortest trial.
    pub initial_duration_ns: u64,
    /// The longest trial.
    pub final_duration_ns: u64,
    /// The time at a rate after which it is decided.
    pub duration_sum_ns: u64,
    /// Coarser and shorter targets on the way.
    pub preceding_targets: u32,
    /// By how much a step outwards grows when one was not enough.
    pub expansion: u32,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Goal {
    /// No loss at all.
    pub fn ndr() -> Goal {
        Goal {
            name: "ndr".to_owned(),
            loss_ratio: 0.0,
            exceed_ratio: 0.5,
            relative_width: 0.005,
            initial_duration_ns: SECOND_NS,
            final_duration_ns: SECOND_NS,
            duration_sum_ns: 21 * SECOND_NS,
            preceding_targets: 2,
            expansion: 2,
        }
    }

    /// At most half a percent of loss.
    pub fn pdr() -> Goal {
        Goal {
            name: "pdr".to_owned(),
            loss_ratio: 0.005,
            ..Goal::ndr()
        }
    }

    /// Reads `ndr`, `pdr` or `FIELD=VALUE,...`, on top of `base` for what it does not say.
    pub fn parse(text: &str, base: &Goal) -> Result<Goal, GoalError> {
        let mut goal = base.clone();
        let mut is_named = false;
        let mut has_loss = false;
        let fields = text.split(',').map(str::trim);
        let fields = fields.map(|item| {
            if ["ndr", "pdr"].contains(&item) {
                "loss"
            } else {
                item
            }
        });
        if let Some(field) = given_twice(fields) {
            return Err(GoalError::Twice(field.to_owned()));
        }
        for item in text.split(',').map(str::trim) {
            let Some((field, value)) = item.split_once('=') else {
                let preset = match item {
                    "ndr" => Goal::ndr(),
                    "pdr" => Goal::pdr(),
                    _ => return Err(GoalError::Item(item.to_owned())),
                };
                (goal.name, goal.loss_ratio) = (preset.name, preset.loss_ratio);
                has_loss = true;
                continue;
            };
            match field {
                "name" => {
                    value.clone_into(&mut goal.name);
                    is_named = true;
                }
                "loss" => {
                    goal.loss_ratio = share(field, value)?;
                    has_loss = true;
                    if !is_named {
                        goal.name = format!("loss={value}");
                    }
                }
                "exceed" => goal.exceed_ratio = share(field, value)?,
                "width" => goal.relative_width = share(field, value)?,
                "initial" => goal.initial_duration_ns = time(field, value)?,
                "final" => goal.final_duration_ns = time(field, value)?,
                "sum" => goal.duration_sum_ns = time(field, value)?,
                "steps" => goal.preceding_targets = number(field, value)?,
                "expand" => goal.expansion = number(field, value)?,
                _ => return Err(GoalError::Field(field.to_owned())),
            }
        }
        if !has_loss {
            return Err(GoalError::NoLoss(text.to_owned()));
        }
        goal.check()?;
        Ok(goal)
    }

    /// Whether its values go together.
    pub fn check(&self) -> Result<(), GoalError> {
        let name = || self.name.clone();
        if !(0.0..1.0).contains(&self.loss_ratio) || !(0.0..1.0).contains(&self.exceed_ratio) {
            return Err(GoalError::Share(name()));
        }
        if !(self.relative_width >= 1e-5 && self.relative_width < 0.5) {
            return Err(GoalError::Width(name()));
        }
        // Shorter trials measure the start of a program, and not the path.
        if self.initial_duration_ns < 10_000_000 {
            return Err(GoalError::Short(name()));
        }
        if self.final_duration_ns < self.initial_duration_ns || self.duration_sum_ns < self.final_duration_ns
        {
            return Err(GoalError::Order(name()));
        }
        if !(2..=16).contains(&self.expansion) || self.preceding_targets > 8 {
            return Err(GoalError::Steps(name()));
        }
        if self.preceding_targets == 0 && self.initial_duration_ns < self.duration_sum_ns {
            return Err(GoalError::NoSteps(name()));
        }
        Ok(())
    }

    /// Whether a search can meet it in as many trials as it makes: what decides about both bounds is one sum, of final trials.
    pub fn can_be_met(&self) -> Result<(), GoalError> {
        let trials = self.duration_sum_ns / self.final_duration_ns.max(1);
        if trials > TRIALS_MAX {
            return Err(GoalError::Endless(self.name.clone(), trials));
        }
        Ok(())
    }
}

impl FromStr for Goal {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Goal, GoalError> {
        Goal::parse(text, &Goal::ndr())
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}

/// Why a goal cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GoalError {
    /// Neither a preset nor a field.
    #[error("goal `{0}` is neither ndr, pdr nor FIELD=VALUE; write e.g. ndr, pdr or loss=0.1%,width=1%")]
    Item(String),
    /// No such field.
    #[error(
        "a goal has no field `{0}`; fields are name, loss, exceed, width, initial, final, sum, steps, expand (ndr and pdr stand for loss=0 and loss=0.5%)"
    )]
    Field(String),
    /// Two values for one field.
    #[error("a goal has one `{0}`; give it once (ndr and pdr are a loss)")]
    Twice(String),
    /// A value that its field cannot have.
    #[error("goal field {field}={value} is not understood; write {wanted}")]
    Value {
        /// The field.
        field: String,
        /// Its value.
        value: String,
        /// How to write it.
        wanted: &'static str,
    },
    /// The loss is not said.
    #[error("goal `{0}` does not say which loss it allows; write loss=0.1% (or ndr for none)")]
    NoLoss(String),
    /// A share outside 0..1.
    #[error("goal {0}: loss and exceed are shares from 0 to below 100%")]
    Share(String),
    /// A width that cannot be reached, or is none.
    #[error("goal {0}: the width is not between 0.001% and 50%; write it with its %: 0.5% is usual")]
    Width(String),
    /// Too short a trial.
    #[error("goal {0}: trials below 10ms measure the start and not the path; use --initial-duration 1s")]
    Short(String),
    /// Durations that contradict.
    #[error(
        "goal {0}: needs initial <= final <= sum; see --initial-duration, --final-duration, --duration-sum"
    )]
    Order(String),
    /// More trials than a search makes.
    #[error(
        "goal {0}: takes {1} trials at least, and a search is given up after {TRIALS_MAX}; give a shorter --duration-sum or a longer --final-duration"
    )]
    Endless(String, u64),
    /// Steps outside what is useful.
    #[error("goal {0}: steps are 0 to 8, expand is 2 to 16")]
    Steps(String),
    /// No steps, but a way to go.
    #[error("goal {0}: without steps the initial duration must be the sum; write steps=1 or more")]
    NoSteps(String),
}

fn share(field: &str, value: &str) -> Result<f64, GoalError> {
    let (number, unit) = value
        .strip_suffix('%')
        .map_or((value, ""), |number| (number, "%"));
    let parsed = number.trim().parse::<f64>().ok();
    parsed
        .and_then(|number| Kind::Ratio.value(number, unit))
        .filter(|share| share.is_finite())
        .ok_or_else(|| wrong(field, value, "a share such as 0.5% or 0.005"))
}

fn time(field: &str, value: &str) -> Result<u64, GoalError> {
    parse_duration(value)
        .map(|duration| duration.as_nanos() as u64)
        .map_err(|_| wrong(field, value, "a time such as 1s or 500ms"))
}

fn number(field: &str, value: &str) -> Result<u32, GoalError> {
    value.parse().map_err(|_| wrong(field, value, "a small number"))
}

fn wrong(field: &str, value: &str, wanted: &'static str) -> GoalError {
    GoalError::Value {
        field: field.to_owned(),
        value: value.to_owned(),
        wanted,
    }
}
