//! Searches over paths whose limit wanders meanwhile, and over such that only waver.

use measure::search::drift::drift;
use measure::search::{Ceiling, Goal, Mlr, ModelPath, Range, Search, Step, Trial};

use crate::dice::Dice;

const TRIALS_MAX: usize = 600;
const SEARCHES: u64 = 300;
const MOST: usize = 270;
const FEW: usize = 6;

/// The trials of a search for `goal` over what `path` makes of trial number so and so.
fn trials(goal: &Goal, dice: &mut Dice, path: &dyn Fn(usize, &mut Dice) -> ModelPath) -> Vec<Trial> {
    let range = Range {
        min_pps: 100.0,
        max_pps: 100_000.0,
        ceiling: Ceiling::Asked,
    };
    let mut search = Search::Mlr(Mlr::new(vec![goal.clone()], range));
    let mut trials: Vec<Trial> = Vec::new();
    while let Step::Trial(ask, _) = search.next() {
        if trials.len() == TRIALS_MAX {
            break;
        }
        let path = path(trials.len(), dice);
        let trial = path.run(ask, &mut || dice.roll());
        search.record(&trial);
        trials.push(trial);
    }
    trials
}

/// How many searches are told that the limit sank, and that it rose.
fn told(path: impl Fn(usize, &mut Dice) -> ModelPath) -> (usize, usize) {
    let goal = Goal::ndr();
    let found = (0..SEARCHES).filter_map(|seed| {
        let trials = trials(&goal, &mut Dice::new(seed + 1), &path);
        drift(&trials, goal.loss_ratio)
    });
    let sank: Vec<bool> = found.map(|drift| drift.sank).collect();
    (
        sank.iter().filter(|sank| **sank).count(),
        sank.iter().filter(|sank| !**sank).count(),
    )
}

#[test]
fn a_limit_that_wanders_is_told_with_its_direction() {
    // By a fifth while a hundred trials are made.
    let wander = |to: f64| {
        move |number: usize, dice: &mut Dice| {
            let part = number.min(100) as f64 / 100.0;
            ModelPath::limited(20_000.0 * (1.0 + to * part) * (1.0 + dice.roll() / 500.0))
        }
    };
    let (sank, rose) = (told(wander(-0.2)), told(wander(0.2)));
    assert!(sank.0 >= MOST && sank.1 == 0, "{sank:?}");
    assert!(rose.1 >= MOST && rose.0 == 0, "{rose:?}");
    // At once, in the middle.
    let falls = told(|number, _| ModelPath::limited(if number < 20 { 20_000.0 } else { 15_000.0 }));
    assert!(falls.0 >= MOST && falls.1 == 0, "{falls:?}");
}

#[test]
fn a_path_that_is_steady_or_loses_at_random_does_not_drift() {
    let steady = told(|_, _| ModelPath::limited(20_000.0));
    assert_eq!(steady, (0, 0));
    // A limit that is another one in every trial, and loss by chance.
    let wavers = told(|_, dice| ModelPath::limited(20_000.0 * (0.95 + dice.roll() / 10.0)));
    assert!(wavers.0 + wavers.1 <= FEW, "{wavers:?}");
    let random = told(|_, _| ModelPath {
        random_loss: 1e-4,
        ..ModelPath::limited(20_000.0)
    });
    assert!(random.0 + random.1 <= FEW, "{random:?}");
}

/// A search begins with short trials and ends with long ones, which lose more on any path that loses at random.
#[test]
fn longer_trials_are_no_drift() {
    for (first, last, sum, random_loss) in [(1, 30, 60, 1e-5), (1, 10, 60, 1e-5), (1, 60, 120, 2e-6)] {
        let goal = Goal {
            initial_duration_ns: first * 1_000_000_000,
            final_duration_ns: last * 1_000_000_000,
            duration_sum_ns: sum * 1_000_000_000,
            ..Goal::ndr()
        };
        let path = |_: usize, _: &mut Dice| ModelPath {
            random_loss,
            ..ModelPath::limited(20_000.0)
        };
        let drifts = |seed: &u64| {
            let trials = trials(&goal, &mut Dice::new(seed + 1), &path);
            drift(&trials, goal.loss_ratio).is_some()
        };
        let found = (0..100).filter(drifts).count();
        assert!(found <= FEW, "{found} for {first}, {last}");
    }
}
