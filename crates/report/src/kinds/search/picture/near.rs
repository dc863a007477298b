//! The trials around the bounds once more, where the picture of all of them has little room for these.

use maud::Markup;
use measure::search::GoalResult;

use super::super::SearchedTrial;
use super::{Axes, LEFT, RIGHT, svg};
use crate::html::element::figure;
use crate::number::{count, counted, pps};

/// Bounds that have less than this part of the picture are drawn again.
const LITTLE: f64 = 0.06;
/// On either side of the bounds, of what lies between them.
const BESIDE: f64 = 0.75;
/// Closer bounds are drawn as if they were this part of their rate apart: a tick has four digits.
const CLOSEST: f64 = 0.004;

/// The second picture; empty where the first one does.
pub fn chart(trials: &[&SearchedTrial], goals: &[GoalResult], all: &Axes, id: &str) -> Markup {
    let Some((low, high)) = range(goals, all) else {
        return Markup::default();
    };
    let rate = |one: &&SearchedTrial| one.trial.ask.rate_pps;
    let inside: Vec<&SearchedTrial> = trials
        .iter()
        .copied()
        .filter(|one| (low..=high).contains(&rate(one)))
        .collect();
    let lower = trials.iter().filter(|one| rate(one) < low).count();
    let higher = trials.iter().filter(|one| rate(one) > high).count();
    let axes = Axes::over(&inside, goals.len(), (low, high), false);
    let words = format!(
        "{} between {} and {}; {} at lower rates and {} at higher ones are not in this picture.",
        counted(inside.len() as u64, "trial"),
        pps(low),
        pps(high),
        count(lower as u64),
        count(higher as u64)
    );
    let drawn = svg(&inside, goals, &axes, &format!("{id}-near"), &words);
    figure("Around the bounds", &[words], &drawn)
}

/// From where to where the second picture reaches.
fn range(goals: &[GoalResult], all: &Axes) -> Option<(f64, f64)> {
    let rates = |pick: fn(&GoalResult) -> Option<measure::search::Bound>| {
        goals
            .iter()
            .filter_map(pick)
            .map(|bound| bound.rate_pps)
            .collect::<Vec<_>>()
    };
    let (carried, refused) = (rates(|goal| goal.lower), rates(|goal| goal.upper));
    // With bounds on one side only the answer lies at the end of the picture.
    if carried.is_empty() || refused.is_empty() {
        return None;
    }
    let both = || carried.iter().chain(&refused).copied();
    let (low, high) = (both().fold(f64::INFINITY, f64::min), both().fold(0.0, f64::max));
    let has_room = all.x(high) - all.x(low) >= LITTLE * (RIGHT - LEFT);
    let beside = BESIDE * (high - low).max(CLOSEST * high);
    (!has_room).then_some(((low - beside).max(0.0), high + beside))
}
