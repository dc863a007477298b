//! Searches over paths on paper, whose truth is known: many seeds, and the failing one is printed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use measure::Note;
use measure::search::{
    Ask, Ceiling, Goal, GoalResult, Limit, Losses, Mlr, ModelPath, Pace, Range, Rfc2544, Rfc2544Settings,
    Search, SearchReport, SizeResult, Step, Trial, estimate,
};

use crate::dice::Dice;

/// No search on paper is so long.
const TRIALS_MAX: u64 = 3000;
pub const SECOND_NS: u64 = 1_000_000_000;

pub fn range(min_pps: f64, max_pps: f64) -> Range {
    Range {
        min_pps,
        max_pps,
        ceiling: Ceiling::Asked,
    }
}

/// Searches to the end; the trials it took.
pub fn run(search: &mut Search, path: &ModelPath, dice: &mut Dice) -> Vec<Trial> {
    let mut trials = Vec::new();
    while let Step::Trial(ask, purpose) = search.next() {
        // Beside the trial's number, its rate and the time left, so much fits a line of 80 columns.
        let fits = (1..=36).contains(&purpose.brief().chars().count()) || purpose.again.is_some();
        assert!(
            fits && !purpose.to_string().is_empty() && ask.rate_pps > 0.0 && ask.seconds() > 0.0,
            "{ask:?}"
        );
        let trial = path.run(ask, &mut || dice.roll());
        search.record(&trial);
        trials.push(trial);
        assert!((trials.len() as u64) < TRIALS_MAX, "no end");
    }
    assert_eq!(search.next(), Step::Done);
    trials
}

/// What was found for each of `goals`.
fn found(search: &Search, goals: &[Goal]) -> Vec<(GoalResult, Goal)> {
    let found = search.result().goals;
    assert_eq!(found.len(), goals.len(), "a result for each goal");
    found.into_iter().zip(goals.iter().cloned()).collect()
}

fn mlr(goals: &[Goal], range: Range) -> Search {
    Search::Mlr(Mlr::new(goals.to_vec(), range))
}

/// Bounds that contradict nobody: themselves, the range and the goal.
pub fn assert_sound(goal: &GoalResult, wanted: &Goal, range: Range) {
    let (lower, upper) = (goal.lower.map(|b| b.rate_pps), goal.upper.map(|b| b.rate_pps));
    for rate in [lower, upper].into_iter().flatten() {
        assert!(
            (range.min_pps..=range.max_pps).contains(&rate),
            "{goal:?} outside {range:?}"
        );
    }
    assert!(goal.complete, "{goal:?}");
    assert_eq!(goal.throughput_pps, lower);
    match (lower, upper) {
        (Some(lower), Some(upper)) => {
            assert!(lower < upper, "{goal:?}");
            assert!(
                (upper - lower) / upper <= wanted.relative_width * 1.02,
                "{goal:?} is wider than {wanted:?}"
            );
        }
        (Some(lower), None) => assert!(lower >= range.max_pps, "{goal:?}"),
        (None, Some(upper)) => assert!(upper <= range.min_pps, "{goal:?}"),
        (None, None) => panic!("{goal:?} has no bound at all"),
    }
    if let (Some(bound), Some(forwarded)) = (goal.lower, goal.conditional_throughput_pps) {
        assert!(bound.trials > 0 && bound.seconds > 0.0, "{goal:?}");
        assert!(
            forwarded <= bound.rate_pps && forwarded >= bound.rate_pps * (1.0 - goal.loss_ratio) - 1.0,
            "{goal:?}"
        );
    }
}

/// Tries each seed, and says which one failed.
pub fn for_seeds(seeds: std::ops::Range<u64>, test: impl Fn(&mut Dice) + std::panic::RefUnwindSafe) {
    for seed in seeds {
        let result = std::panic::catch_unwind(|| test(&mut Dice::new(seed)));
        assert!(result.is_ok(), "failing seed: {seed}");
    }
}

fn any_goal(dice: &mut Dice, name: &str) -> Goal {
    let initial = dice.pick(&[SECOND_NS / 10, SECOND_NS]);
    let last = dice.pick(&[initial, 10 * initial]);
    Goal {
        name: name.to_owned(),
        loss_ratio: dice.pick(&[0.0, 0.001, 0.005, 0.1]),
        exceed_ratio: dice.pick(&[0.0, 0.3, 0.5, 0.9]),
        relative_width: dice.between(0.001, 0.2),
        initial_duration_ns: initial,
        final_duration_ns: last,
        duration_sum_ns: dice.pick(&[last, 5 * last, 21 * last]),
        preceding_targets: dice.pick(&[1, 2, 3]),
        expansion: dice.pick(&[2, 4]),
    }
}

#[test]
fn a_steady_path_is_found_within_the_width() {
    for_seeds(0..400, |dice| {
        let range = range(dice.between(1e2, 1e4), dice.between(1e5, 1e8));
        let goals = [any_goal(dice, "one"), any_goal(dice, "two")];
        let shortest = goals.iter().map(|goal| goal.final_duration_ns).min().unwrap() as f64 / 1e9;
        let path = ModelPath {
            buffer: dice
                .pick(&[0.0_f64, 100.0, 10_000.0])
                .min(range.max_pps * shortest / 4.0),
            ..ModelPath::limited(dice.between(range.min_pps / 2.0, range.max_pps * 2.0))
        };
        let mut search = mlr(&goals, range);
        let trials = run(&mut search, &path, dice);
        for (goal, wanted) in found(&search, &goals) {
            assert_sound(&goal, &wanted, range);
            // What a trial carries: the limit, and the buffer once. The longer trials of the other goal count, too.
            // Trials are of whole packets.
            let initial = goals.iter().map(|goal| goal.initial_duration_ns).min().unwrap() as f64 / 1e9;
            let truth = |duration_ns: u64, packets: f64| {
                let seconds = duration_ns as f64 / 1e9;
                let carried = path.limit_pps * seconds + path.buffer;
                carried / (1.0 - wanted.loss_ratio) / seconds + packets / initial
            };
            let longest = goals.iter().map(|goal| goal.final_duration_ns).max().unwrap();
            let lower = goal.lower.map_or(0.0, |bound| bound.rate_pps);
            let upper = goal.upper.map_or(f64::INFINITY, |bound| bound.rate_pps);
            let (high, low) = (truth(wanted.final_duration_ns, 3.0), truth(longest, -3.0));
            assert!(
                lower <= high && low <= upper,
                "{low} to {high} is not in {goal:?} of {path:?}"
            );
            let expected = match (goal.lower, goal.upper) {
                (Some(_), Some(_)) => Limit::Path,
                (Some(_), None) => Limit::MaxRate,
                _ => Limit::MinRate,
            };
            assert_eq!(goal.limit, expected, "{goal:?}");
        }
        let per_load = goals
            .iter()
            .map(|goal| goal.duration_sum_ns / goal.initial_duration_ns)
            .max()
            .unwrap();
        assert!(
            (trials.len() as u64) < 60 * (1 + per_load),
            "{} trials",
            trials.len()
        );
    });
}

#[test]
fn random_loss_contradicts_nothing_and_ends() {
    for_seeds(0..300, |dice| {
        let range = range(dice.between(1e3, 1e4), dice.between(1e5, 1e7));
        let goals = [
            any_goal(dice, "one"),
            any_goal(dice, "two"),
            any_goal(dice, "three"),
        ];
        let path = ModelPath {
            random_loss: dice.between(1e-9, 1e-2),
            buffer: dice.between(1.0, 1e5),
            under_overload: dice.pick(&[1.0, 0.5, 0.1]),
            ..ModelPath::limited(dice.between(range.min_pps, range.max_pps * 2.0))
        };
        let mut search = mlr(&goals, range);
        run(&mut search, &path, dice);
        for (goal, wanted) in found(&search, &goals) {
            assert_sound(&goal, &wanted, range);
        }
        let result = search.result();
        // More loss allowed with the same patience is never a lower rate by more than a width, whatever was rolled.
        assert!(result.complete && result.invalid_trials == 0);
    });
}

#[test]
fn a_path_that_breaks_down_under_overload_is_found_all_the_same() {
    for_seeds(0..200, |dice| {
        let range = range(1e4, 1e7);
        let path = ModelPath {
            under_overload: dice.between(0.01, 1.0),
            ..ModelPath::limited(dice.between(range.min_pps * 1.1, range.max_pps))
        };
        let mut search = mlr(&[Goal::ndr()], range);
        run(&mut search, &path, dice);
        let goal = &search.result().goals[0];
        assert_sound(goal, &Goal::ndr(), range);
        let (lower, upper) = (
            goal.lower.unwrap().rate_pps,
            goal.upper.map_or(f64::INFINITY, |b| b.rate_pps),
        );
        assert!(
            lower <= path.limit_pps + 1.0 && path.limit_pps <= upper + 1.0,
            "{path:?}: {goal:?}"
        );
    });
}

#[test]
fn what_the_sender_cannot_offer_is_never_the_paths_throughput() {
    for_seeds(0..300, |dice| {
        let range = range(1e4, 1e7);
        let path = ModelPath {
            sender_pps: dice.between(2e4, 2e7),
            receiver_pps: dice.between(2e4, 2e7),
            ..ModelPath::limited(dice.between(2e4, 2e7))
        };
        let mut search = mlr(&[Goal::ndr(), Goal::pdr()], range);
        run(&mut search, &path, dice);
        let (truth, whose) = path.truth();
        for (goal, wanted) in found(&search, &[Goal::ndr(), Goal::pdr()]) {
            assert_sound(&goal, &wanted, range);
            let lower = goal.lower.unwrap().rate_pps;
            // Offered within the verdict's tolerance of a thousandth counts as offered.
            assert!(lower <= path.sender_pps * 1.002, "{path:?}: {goal:?}");
            if truth > range.max_pps * 1.01 {
                assert_eq!(goal.limit, Limit::MaxRate);
                continue;
            }
            // Limits further apart than the widths and the tolerated loss have one answer.
            let rivals = [path.limit_pps, path.sender_pps, path.receiver_pps];
            let clear = rivals.iter().filter(|pps| **pps < truth * 1.02).count() == 1;
            if clear && truth < range.max_pps * 0.99 {
                assert_eq!(goal.limit, whose, "{path:?}: {goal:?}");
            }
        }
    });
}

#[test]
fn a_search_cut_anywhere_goes_on_the_same() {
    for_seeds(0..20, |dice| {
        let range = range(1e3, 1e7);
        let goals = [Goal::ndr(), Goal::pdr()];
        let path = ModelPath {
            random_loss: 1e-7,
            ..ModelPath::limited(dice.between(1e4, 1e7))
        };
        let mut whole = mlr(&goals, range);
        let trials = run(&mut whole, &path, dice);
        for cut in (0..trials.len()).step_by(7) {
            let mut again = mlr(&goals, range);
            for (index, trial) in trials.iter().enumerate() {
                // The process that goes on knows nothing but the trials.
                if index == cut {
                    let mut fresh = mlr(&goals, range);
                    assert!(trials[..cut].iter().all(|trial| fresh.record(trial)));
                    again = fresh;
                }
                let Step::Trial(ask, _) = again.next() else {
                    panic!("ended early")
                };
                assert_eq!(ask, trial.ask, "trial {index} after a cut at {cut}");
                again.record(trial);
            }
            assert_eq!(again.result(), whole.result());
        }
    });
}

fn imbalance() -> Note {
    Note::new("unbalanced", "the ledger does not balance")
}

fn invalid(ask: Ask) -> Trial {
    Trial {
        ask,
        due: ask.packets(),
        short: None,
        offered: ask.packets(),
        lost: Losses::default(),
        bunches: Vec::new(),
        latency_ns: measure::Percentiles::default(),
        invalid: vec![imbalance()],
    }
}

#[test]
fn what_cannot_be_believed_is_repeated_and_then_given_up() {
    let settings = Rfc2544Settings::default();
    let range = range(1e3, 1e6);
    for mut search in [
        mlr(&[Goal::ndr()], range),
        Search::Rfc2544(Rfc2544::new(&settings, range)),
    ] {
        let Step::Trial(first, _) = search.next() else {
            panic!("no trial")
        };
        for _ in 0..3 {
            let Step::Trial(ask, _) = search.next() else {
                panic!("given up too early")
            };
            assert_eq!(ask, first);
            search.record(&invalid(ask));
        }
        assert_eq!(search.next(), Step::Failed(vec![imbalance()]));
        let result = search.result();
        assert_eq!(
            (result.complete, result.trials, result.invalid_trials),
            (false, 0, 3)
        );
        assert_eq!(result.goals[0].limit, Limit::Unknown);
        // One that can be believed after all is not too late.
        search.record(&ModelPath::limited(1e5).run(first, &mut || 0.5));
        assert!(matches!(search.next(), Step::Trial(..)));
    }
}

const PACE: Pace = Pace { overhead_s: 1.0 };

#[test]
fn more_to_find_takes_longer() {
    let range = range(1e3, 1e6);
    let seconds = |goals: &[Goal], pace| {
        let estimate = estimate(&mlr(goals, range), range, pace);
        assert!(estimate.seconds <= estimate.seconds_max && estimate.trials <= estimate.trials_max);
        assert!(estimate.trials > 0);
        estimate.seconds_max
    };
    let width = |relative_width| Goal {
        relative_width,
        ..Goal::ndr()
    };
    let sum = |seconds: u64| Goal {
        duration_sum_ns: seconds * SECOND_NS,
        ..Goal::ndr()
    };
    let widths = [0.2, 0.05, 0.01, 0.002].map(|value| seconds(&[width(value)], PACE));
    let sums = [2, 5, 21, 60].map(|value| seconds(&[sum(value)], PACE));
    let paces = [0.0, 1.0, 5.0].map(|overhead_s| seconds(&[Goal::ndr()], Pace { overhead_s }));
    let goals = [
        seconds(&[Goal::ndr()], PACE),
        seconds(&[Goal::ndr(), Goal::pdr()], PACE),
    ];
    for row in [&widths[..], &sums, &paces] {
        assert!(row.windows(2).all(|pair| pair[0] < pair[1]), "{row:?}");
    }
    // The trials of one goal may serve the other.
    assert!(goals[0] <= goals[1], "{goals:?}");
}

#[test]
fn an_estimate_is_what_a_search_then_takes() {
    let range = range(1e3, 1e6);
    let search = mlr(&[Goal::ndr(), Goal::pdr()], range);
    let expected = estimate(&search, range, PACE);
    for limit in [2e3, 5e4, 7e5, 2e6] {
        let mut search = search.clone();
        let trials = run(&mut search, &ModelPath::limited(limit), &mut Dice::new(1)).len() as u64;
        assert!(
            trials <= expected.trials_max * 5 / 4,
            "{trials} of at most {expected:?}"
        );
    }
}

#[test]
fn the_exit_code_tells_an_answer_from_a_limit_of_ours() {
    let report = |path: &ModelPath| {
        let range = range(1e4, 1e7);
        let mut search = mlr(&[Goal::ndr()], range);
        run(&mut search, path, &mut Dice::new(3));
        SearchReport {
            complete: true,
            sizes: vec![SizeResult {
                size: "64".into(),
                mean_frame_bytes: 64.0,
                range: Some(range),
                result: search.result(),
            }],
            ..SearchReport::default()
        }
    };
    let slow_sender = ModelPath {
        sender_pps: 1e6,
        ..ModelPath::limited(2e6)
    };
    assert_eq!(report(&ModelPath::limited(2e6)).exit_code(), 0);
    assert_eq!(report(&slow_sender).exit_code(), 1);
    assert_eq!(report(&ModelPath::limited(1e3)).exit_code(), 1);
    let unfinished = SearchReport {
        complete: false,
        ..report(&ModelPath::limited(2e6))
    };
    assert_eq!(unfinished.exit_code(), 2);
    let text = serde_json::to_string(&unfinished).unwrap();
    assert_eq!(
        serde_json::from_str::<SearchReport>(&text).unwrap().sizes[0].size,
        "64"
    );
}

#[test]
fn a_goal_that_takes_more_trials_than_a_search_makes_cannot_be_met() {
    let met = |text: &str| text.parse::<Goal>().unwrap().can_be_met();
    for text in ["ndr", "ndr,initial=10ms,final=10ms", "ndr,sum=5000s"] {
        assert_eq!(met(text), Ok(()), "{text}");
    }
    let error = met("ndr,initial=10ms,final=10ms,sum=60s")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("6000 trials") && error.contains("after 5000; give a shorter --duration-sum"),
        "{error}"
    );
}

#[test]
fn goals_are_read_as_they_are_written() {
    let goal: Goal = "loss=0.1%,width=1%,exceed=0.3,initial=2s,final=3s,sum=9s,steps=3,expand=4,name=x"
        .parse()
        .unwrap();
    assert_eq!(
        (goal.name.as_str(), goal.loss_ratio, goal.relative_width),
        ("x", 0.001, 0.01)
    );
    assert_eq!(
        (goal.initial_duration_ns, goal.duration_sum_ns),
        (2 * SECOND_NS, 9 * SECOND_NS)
    );
    assert_eq!("pdr".parse::<Goal>().unwrap(), Goal::pdr());
    // Eleven of a thousand are no more.
    assert!("loss=1.1%".parse::<Goal>().unwrap().loss_ratio <= 0.011);
    assert_eq!("loss=2%".parse::<Goal>().unwrap().name, "loss=2%");
    for (text, word) in [
        ("xdr", "neither ndr, pdr"),
        ("loss=x", "share such as"),
        ("width=1%", "which loss"),
        ("ndr,speed=1", "no field `speed`"),
        ("ndr,sum=9s,sum=8s", "one `sum`; give it once"),
        ("ndr,loss=1%", "one `loss`"),
        ("ndr,width=60%", "width"),
        ("ndr,final=1ms", "initial <= final"),
        ("ndr,initial=1ms", "below 10ms"),
        ("ndr,exceed=1", "shares"),
        ("ndr,steps=0", "without steps"),
        ("ndr,expand=1", "expand is 2 to 16"),
        ("", "neither"),
    ] {
        let error = text.parse::<Goal>().unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}
