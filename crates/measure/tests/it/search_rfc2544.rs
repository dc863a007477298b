//! The tests of RFC 2544 over paths on paper.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use measure::search::{
    Extent, Goal, Limit, ModelPath, Range, Rfc2544, Rfc2544Settings, Search, SearchResult, Step, Test, Trial,
};

use crate::dice::Dice;
use crate::search::{SECOND_NS, assert_sound, for_seeds, range, run};

fn settings(tests: &[Test]) -> Rfc2544Settings {
    Rfc2544Settings {
        tests: tests.to_vec(),
        burst_repeats: 5,
        latency_trials: 3,
        ..Rfc2544Settings::default()
    }
}

fn rfc2544(tests: &[Test], range: Range, path: &ModelPath) -> (SearchResult, Vec<Trial>) {
    let mut search = Search::Rfc2544(Rfc2544::new(&settings(tests), range));
    let trials = run(&mut search, path, &mut Dice::new(7));
    (search.result(), trials)
}

#[test]
fn throughput_by_halving_holds_the_truth() {
    for_seeds(0..200, |dice| {
        let range = range(1e4, 1e7);
        let path = ModelPath::limited(dice.between(5e3, 2e7));
        let (result, trials) = rfc2544(&[Test::Throughput], range, &path);
        let goal = &result.goals[0];
        assert_sound(goal, &Goal::ndr(), range);
        let (lower, upper) = (
            goal.throughput_pps.unwrap_or(0.0),
            goal.upper.map_or(f64::INFINITY, |b| b.rate_pps),
        );
        assert!(
            lower <= path.limit_pps + 1.0 && path.limit_pps <= upper + 1.0,
            "{path:?}: {goal:?}"
        );
        assert!(
            trials
                .iter()
                .all(|trial| trial.ask.extent == Extent::DurationNs(60 * SECOND_NS))
        );
        assert!(trials.len() <= 24, "{} trials", trials.len());
    });
}

/// Runs the tests over `path`, with the trials changed by `spoil` on the way.
fn rfc2544_with(path: &ModelPath, mut spoil: impl FnMut(&mut Trial)) -> SearchResult {
    let all = [Test::Throughput, Test::Latency, Test::FrameLoss, Test::BackToBack];
    let mut search = Search::Rfc2544(Rfc2544::new(&settings(&all), range(1e4, 1e6)));
    while let Step::Trial(ask, _) = search.next() {
        let mut trial = path.run(ask, &mut || 0.5);
        spoil(&mut trial);
        search.record(&trial);
    }
    search.result()
}

#[test]
fn a_trial_that_we_spoiled_ourselves_is_repeated() {
    for_seeds(0..50, |dice| {
        let path = ModelPath::limited(dice.between(5e3, 2e6));
        let truth = rfc2544_with(&path, |_| {});
        let (mut in_a_row, mut spoiled) = (0, 0);
        let found = rfc2544_with(&path, |trial| {
            let hits = trial.lost.total() == 0 && in_a_row < 2 && dice.roll() < 0.3;
            in_a_row = if hits { in_a_row + 1 } else { 0 };
            spoiled += u64::from(hits);
            trial.lost.receiver += u64::from(hits);
        });
        assert_eq!(found.invalid_trials, spoiled);
        assert_eq!(
            (&found.goals, &found.rfc2544, found.trials),
            (&truth.goals, &truth.rfc2544, truth.trials)
        );
    });
}

#[test]
fn a_limit_of_ours_that_comes_again_is_told() {
    for (path, limit) in [
        (
            ModelPath {
                receiver_pps: 3e5,
                ..ModelPath::limited(6e5)
            },
            Limit::Receiver,
        ),
        (
            ModelPath {
                sender_pps: 3e5,
                ..ModelPath::limited(6e5)
            },
            Limit::Sender,
        ),
    ] {
        let result = rfc2544_with(&path, |_| {});
        let throughput = &result.goals[0];
        assert_eq!((throughput.limit, result.complete), (limit, true), "{result:?}");
        assert!(
            (throughput.throughput_pps.unwrap() - 3e5).abs() < 3e3,
            "{result:?}"
        );
        assert!(result.invalid_trials > 0);
    }
}

#[test]
fn frame_loss_falls_in_tenths_until_two_trials_are_clean() {
    let (result, _) = rfc2544(&[Test::FrameLoss], range(1e4, 1e6), &ModelPath::limited(5.5e5));
    let rows = result.rfc2544.unwrap().frame_loss;
    let percents: Vec<u32> = rows.iter().map(|row| row.percent).collect();
    assert_eq!(percents, [100, 90, 80, 70, 60, 50, 40]);
    assert!((rows[0].loss_ratio - 0.45).abs() < 1e-6, "{:?}", rows[0]);
    assert!(rows[..5].iter().all(|row| row.limit == Some(Limit::Path)));
    assert!(
        rows[5..]
            .iter()
            .all(|row| row.loss_ratio == 0.0 && row.limit.is_none())
    );
}

#[test]
fn latency_is_measured_at_the_throughput() {
    let (result, trials) = rfc2544(&[Test::Latency], range(1e4, 1e6), &ModelPath::limited(5e5));
    let latency = result.rfc2544.unwrap().latency.unwrap();
    assert_eq!(
        (latency.trials, Some(latency.rate_pps)),
        (3, result.goals[0].throughput_pps)
    );
    let long = trials
        .iter()
        .filter(|trial| trial.ask.extent == Extent::DurationNs(120 * SECOND_NS));
    assert_eq!(long.clone().count(), 3);
    let lost: u64 = long.map(|trial| trial.lost.total()).sum();
    assert_eq!(latency.lost, Some(lost));
}

/// What the sender cannot offer in three trials in a row is no latency at the throughput.
#[test]
fn latency_at_another_rate_is_left_out() {
    let long = |trial: &Trial| trial.ask.extent == Extent::DurationNs(120 * SECOND_NS);
    let mut made = 0;
    let result = rfc2544_with(&ModelPath::limited(5e5), |trial| {
        made += u32::from(long(trial));
        if long(trial) && made <= 3 {
            trial.offered /= 2;
        }
    });
    let latency = result.rfc2544.unwrap().latency.unwrap();
    assert_eq!((latency.trials, made), (2, 5), "{latency:?}");
}

#[test]
fn the_path_is_the_limit_of_bursts_only_where_it_was_of_all() {
    let mut lossy = 0;
    let mut limit = |ours_first| {
        let result = rfc2544_with(&ModelPath::limited(5e5), |trial| {
            let is_lossy = matches!(trial.ask.extent, Extent::Packets(_)) && trial.lost.path > 0;
            lossy += u32::from(is_lossy);
            // The third in a row that our receiver spoiled is believed.
            if is_lossy && ours_first && lossy <= 3 {
                trial.lost.receiver = std::mem::take(&mut trial.lost.path);
            }
        });
        result.rfc2544.unwrap().back_to_back.unwrap().limit
    };
    assert_eq!(limit(true), Some(Limit::Receiver));
    assert_eq!(limit(false), Some(Limit::Path));
}

#[test]
fn a_burst_tells_the_buffer() {
    let path = ModelPath {
        buffer: 5000.0,
        ..ModelPath::limited(4e5)
    };
    let (result, _) = rfc2544(&[Test::BackToBack], range(1e4, 1e6), &path);
    let burst = result.rfc2544.unwrap().back_to_back.unwrap();
    // 5,000 wait while the burst comes at 1 M and 0.4 M leave: it may be 5,000 / (1 - 0.4) long.
    assert!((burst.packets_mean - 5000.0 / 0.6).abs() <= 2001.0, "{burst:?}");
    let corrected = burst.corrected_buffer_s.unwrap();
    assert!(
        (corrected - 5e-3).abs() < 1.3e-3 && corrected < burst.implied_buffer_s,
        "{burst:?}"
    );
    assert_eq!(
        (burst.repeats, burst.limit, burst.is_open),
        (5, Some(Limit::Path), false)
    );
    let (result, _) = rfc2544(&[Test::BackToBack], range(1e4, 1e6), &ModelPath::limited(2e6));
    let burst = result.rfc2544.unwrap().back_to_back.unwrap();
    assert!(
        burst.is_open && burst.packets_min == 2_000_000 && burst.corrected_buffer_s == Some(0.0),
        "{burst:?}"
    );
}
