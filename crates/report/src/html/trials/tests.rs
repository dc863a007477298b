//! What the chart of a search must keep apart.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn trial(number: u64, rate_pps: f64, lost: u64) -> SearchedTrial {
    let line = format!(
        "{{\"number\":{number},\"size\":\"64\",\"why\":\"so\",\"rate_pps\":{rate_pps},\"duration_ns\":1000000000,\
         \"due\":10000,\"offered\":10000,\"lost\":{{\"path\":{lost},\"reflector\":0,\"receiver\":0,\"sender\":0}}}}"
    );
    serde_json::from_str(&line).unwrap()
}

#[test]
fn what_our_own_side_lost_is_no_loss_of_the_path() {
    let (path, mut ours) = (trial(1, 10_000.0, 5), trial(2, 11_000.0, 0));
    ours.trial.lost.receiver = 5;
    let page = chart(&[&path, &ours], &[], "t");
    assert!(
        page.contains("trial 1: 10.00 kpps, loss 0.050 %, the limit was the path"),
        "{page}"
    );
    assert!(page.contains("trial 2: 11.00 kpps, loss 0.050 %, the limit was our receiver"));
    assert_eq!(
        (
            page.matches("<path class=odd").count(),
            page.matches("class=part").count()
        ),
        (1, 1)
    );
}

/// Where each text of a class stands: x and y as they are written.
fn texts(page: &str, class: &str) -> Vec<(f64, f64, String)> {
    let start = format!("<text class=\"{class}\" x=\"");
    let one = |part: &str| {
        let (x, rest) = part.split_once("\" y=\"").unwrap();
        let (y, rest) = rest.split_once("\">").unwrap();
        let words = rest.split_once('<').unwrap().0;
        (x.parse().unwrap(), y.parse().unwrap(), words.to_owned())
    };
    page.split(start.as_str()).skip(1).map(one).collect()
}

/// Twenty trials within a few per cent of each other: no number stands upon another one, and none is cut.
#[test]
fn numbers_never_stand_upon_each_other() {
    let trials: Vec<SearchedTrial> = (1..=20_u32)
        .map(|at| {
            trial(
                u64::from(at),
                10_000.0 + 37.0 * f64::from(at * at % 17),
                u64::from(at % 5),
            )
        })
        .chain([trial(21, 90_000.0, 9000)])
        .collect();
    let page = chart(&trials.iter().collect::<Vec<_>>(), &[], "t");
    let numbers = texts(&page, "number start");
    assert!(numbers.len() >= 3, "{numbers:?}");
    for (at, one) in numbers.iter().enumerate() {
        let right = one.0 + one.2.len() as f64 * 6.0;
        assert!(right < WIDTH);
        for other in &numbers[at + 1..] {
            let other_right = other.0 + other.2.len() as f64 * 6.0;
            let is_apart = (one.1 - other.1).abs() >= 11.0 || right <= other.0 || other_right <= one.0;
            assert!(is_apart, "{one:?} {other:?}");
        }
    }
    assert!(page.contains(">rate</text>") && page.contains("loss, logarithmic"));
}

/// Goals whose bounds are close together or the same: every name has a row of its own.
#[test]
fn every_goal_has_a_row_of_its_own() {
    let goal = |name: &str| GoalResult {
        name: name.to_owned(),
        loss_ratio: 0.0,
        complete: true,
        limit: Limit::Path,
        throughput_pps: None,
        conditional_throughput_pps: None,
        lower: Some(measure::search::Bound {
            rate_pps: 10_820.0,
            ..Default::default()
        }),
        upper: None,
    };
    let goals = ["ndr", "pdr", "a goal with a long name"].map(goal);
    let trials = [trial(1, 20_000.0, 3), trial(2, 10_820.0, 0)];
    let page = chart(&trials.iter().collect::<Vec<_>>(), &goals, "t");
    let rows = texts(&page, "goal end");
    let names: Vec<&str> = rows.iter().map(|row| row.2.as_str()).collect();
    assert_eq!(names, ["ndr", "pdr", "a goal with a \u{2026}"]);
    assert!(rows.windows(2).all(|two| two[1].1 - two[0].1 >= 14.0), "{rows:?}");
    assert_eq!(page.matches("class=\"bound carried\"").count(), 3);
}
