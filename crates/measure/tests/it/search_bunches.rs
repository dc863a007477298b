//! Searches over a policer, by a sender that is kept from its core now and then and catches up in bunches.

use measure::bunch::Bunch;
use measure::search::{
    Again, Ask, Ceiling, Goal, Limit, Losses, Mlr, Range, Rfc2544, Rfc2544Settings, Search, Step, Trial,
};

use crate::dice::Dice;

/// What the policer lets through for ever, and at once.
const LIMIT_PPS: f64 = 20_100.0;
const DEPTH: u64 = 50;
/// The largest bunch of the sender.
const BUNCH_MAX: u64 = 400;

/// A trial whose sender bunched so much: what exceeds the rate is lost, and of every bunch what the bucket does not hold.
fn trial(ask: Ask, bunches: Vec<Bunch>) -> Trial {
    let packets = ask.packets();
    let over = packets.saturating_sub((LIMIT_PPS * ask.seconds()) as u64 + DEPTH);
    let of_bunches: u64 = bunches.iter().map(|bunch| bunch.due.saturating_sub(DEPTH)).sum();
    Trial {
        ask,
        due: packets,
        short: None,
        offered: packets,
        lost: Losses {
            path: over + of_bunches,
            ..Losses::default()
        },
        bunches,
        latency_ns: measure::Percentiles::default(),
        invalid: Vec::new(),
    }
}

fn bunch(due: u64) -> Bunch {
    Bunch {
        due,
        times: 1,
        whole: 1,
    }
}

/// Of ten trials so many have a bunch.
fn searched(mut search: Search, tenths: u64, seed: u64) -> Search {
    let mut dice = Dice::new(seed);
    while let Step::Trial(ask, _) = search.next() {
        let is_late = dice.below(10) < tenths;
        let largest = BUNCH_MAX.min(ask.packets() / 2).max(34);
        let bunches = is_late.then(|| bunch(3 + dice.below(largest - 3)));
        search.record(&trial(ask, bunches.into_iter().collect()));
    }
    search
}

fn range() -> Range {
    Range {
        min_pps: 40.0,
        max_pps: 40_000.0,
        ceiling: Ceiling::Asked,
    }
}

fn mlr() -> Search {
    Search::Mlr(Mlr::new(vec![Goal::ndr()], range()))
}

fn halving() -> Search {
    let settings = Rfc2544Settings {
        trial_ns: 1_000_000_000,
        ..Rfc2544Settings::default()
    };
    Search::Rfc2544(Rfc2544::new(&settings, range()))
}

/// A path that carries a rate is never said not to, whatever our sender did; and where it is itself half of the time, its
/// limit is found.
#[test]
fn what_our_bunches_cost_is_not_the_paths() {
    for (seed, start) in (0..400_u64).flat_map(|seed| [(seed, mlr()), (seed, halving())]) {
        let tenths = seed % 9;
        let result = searched(start, tenths, seed).result();
        let goal = &result.goals[0];
        let upper = goal.upper.expect("an upper bound").rate_pps;
        if goal.limit == Limit::Path {
            assert!(upper > LIMIT_PPS * 0.995, "seed {seed}: {goal:?}");
        }
        if tenths <= 2 {
            assert!(
                goal.throughput_pps > Some(LIMIT_PPS * 0.98) && goal.limit == Limit::Path,
                "seed {seed}: {goal:?}"
            );
        }
        assert!(tenths > 0 || result.bunched_trials == 0, "{result:?}");
        assert!(
            result.bunched_trials <= result.invalid_trials + result.trials,
            "{result:?}"
        );
    }
}

/// A small `--backlog` makes no bunches, and a sender that falls short of what it can offer instead: for moments, in a third
/// of the trials.
#[test]
fn a_moment_in_which_our_sender_falls_short_is_not_its_limit() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed + 1_u64);
        let mut search = mlr();
        while let Step::Trial(ask, _) = search.next() {
            let mut trial = trial(ask, Vec::new());
            if dice.below(3) == 0 {
                trial.offered -= trial.due / 100 + 2;
                trial.lost.path = trial.lost.path.saturating_sub(trial.due / 100 + 2);
            }
            search.record(&trial);
        }
        let result = search.result();
        let goal = &result.goals[0];
        assert!(
            goal.throughput_pps > Some(LIMIT_PPS * 0.98) && goal.limit == Limit::Path,
            "seed {seed}: {goal:?}"
        );
    }
}

#[test]
fn a_bunched_trial_is_made_again_and_the_third_in_a_row_counts() {
    for mut search in [mlr(), halving()] {
        // The highest rate: what is lost exceeds all that bunches can cost.
        let Step::Trial(ask, _) = search.next() else {
            panic!("no trial")
        };
        search.record(&trial(ask, vec![bunch(100)]));
        let Step::Trial(ask, purpose) = search.next() else {
            panic!("no trial")
        };
        assert_eq!((purpose.again, search.result().trials), (None, 1));
        assert!(ask.rate_pps < LIMIT_PPS, "{ask:?}");
        for (again, counts) in [
            (None, false),
            (Some(Again::Spoiled(Limit::Sender)), false),
            (Some(Again::Spoiled(Limit::Sender)), true),
        ] {
            let Step::Trial(same, purpose) = search.next() else {
                panic!("no trial")
            };
            assert_eq!((same, purpose.again, search.result().trials), (ask, again, 1));
            assert_eq!(search.record(&trial(ask, vec![bunch(100)])), counts);
        }
        assert_eq!(search.result().trials, 2);
        assert_eq!(search.result().bunched_trials, 3);
    }
}

/// What is borne explains nothing, and of a larger bunch only what exceeds it.
#[test]
fn what_is_borne_is_no_excuse() {
    let lossy = |due: u64| Trial {
        lost: Losses {
            path: 10,
            ..Losses::default()
        },
        ..trial(Ask::lasting(1000.0, 1_000_000_000), vec![bunch(due)])
    };
    let blamed = |borne: u64, due: u64| lossy(due).without_bunches(borne).limit(0.0);
    assert_eq!(blamed(0, 40), Some(Limit::Sender));
    assert_eq!(blamed(40, 40), Some(Limit::Path));
    assert_eq!(blamed(40, 45), Some(Limit::Path));
    assert_eq!(blamed(40, 50), Some(Limit::Sender));
}
