//! What the chart of a search must keep apart.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::html::element::WIDTH;

fn trial(number: u64, rate_pps: f64, lost: u64) -> SearchedTrial {
    let line = format!(
        "{{\"number\":{number},\"size\":\"64\",\"why\":\"so\",\"rate_pps\":{rate_pps},\"duration_ns\":1000000000,\
         \"due\":10000,\"offered\":10000,\"lost\":{{\"path\":{lost},\"reflector\":0,\"receiver\":0,\"sender\":0}}}}"
    );
    serde_json::from_str(&line).unwrap()
}

fn page_of(trials: &[&SearchedTrial], goals: &[GoalResult]) -> String {
    chart(trials, goals, "t").into_string()
}

#[test]
fn what_our_own_side_lost_is_no_loss_of_the_path() {
    let (path, mut ours) = (trial(1, 10_000.0, 5), trial(2, 11_000.0, 0));
    ours.trial.lost.receiver = 5;
    let page = page_of(&[&path, &ours], &[]);
    assert!(
        page.contains("trial 1: 10.00 kpps, loss 0.050 %, the limit was the path"),
        "{page}"
    );
    assert!(page.contains("trial 2: 11.00 kpps, loss 0.050 %, the limit was our receiver"));
    assert_eq!(
        (
            page.matches("<path class=\"odd\"").count(),
            page.matches("class=\"part\"").count()
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
    let page = page_of(&trials.iter().collect::<Vec<_>>(), &[]);
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

fn goal(name: &str, lower_pps: Option<f64>, upper_pps: Option<f64>) -> GoalResult {
    let bound = |rate_pps: f64| measure::search::Bound {
        rate_pps,
        ..Default::default()
    };
    GoalResult {
        name: name.to_owned(),
        loss_ratio: 0.0,
        complete: true,
        limit: Limit::Path,
        throughput_pps: None,
        conditional_throughput_pps: None,
        lower: lower_pps.map(bound),
        upper: upper_pps.map(bound),
    }
}

/// Where the lines of both bounds stand, of each picture.
fn bounds_of(page: &str) -> Vec<(f64, f64)> {
    let at = |picture: &str, class: &str| -> f64 {
        let line = picture
            .split_once(&format!("class=\"bound down {class}\" d=\"M"))
            .unwrap()
            .1;
        line.split_once(' ').unwrap().0.parse().unwrap()
    };
    let pictures = page.split("<svg").skip(1);
    pictures
        .map(|picture| (at(picture, "carried"), at(picture, "refused")))
        .collect()
}

/// The highest rate is far above: what was found is drawn once more, with room, and nothing is left unsaid.
#[test]
fn close_bounds_are_drawn_again_with_room() {
    let trials = [
        trial(1, 1e6, 9000),
        trial(2, 10_550.0, 0),
        trial(3, 10_600.0, 1),
        trial(4, 9_000.0, 0),
    ];
    let trials: Vec<&SearchedTrial> = trials.iter().collect();
    let goals = [goal("ndr", Some(10_550.0), Some(10_600.0))];
    let page = page_of(&trials, &goals);
    let bounds = bounds_of(&page);
    let apart = |(carried, refused): (f64, f64)| (refused - carried) / (RIGHT - LEFT);
    assert_eq!(bounds.len(), 2, "{page}");
    assert!(apart(bounds[0]) < 0.01 && apart(bounds[1]) > 0.2, "{bounds:?}");
    assert!(
        page.contains("2 trials between 10.51 kpps and 10.64 kpps; 1 at lower rates and 1 at higher ones"),
        "{page}"
    );
    // Names that the alternatives refer to stand once.
    assert_eq!(page.matches("id=\"t-t\"").count(), 1);
    assert_eq!(page.matches("id=\"t-near-t\"").count(), 1);

    let wide = [goal("ndr", Some(10_000.0), Some(400_000.0))];
    assert_eq!(bounds_of(&page_of(&trials, &wide)).len(), 1);
    let open = [goal("ndr", Some(1e6), None)];
    assert!(!page_of(&trials, &open).contains("Around the bounds"));
}

/// Goals whose bounds are close together or the same: every name has a row of its own.
#[test]
fn every_goal_has_a_row_of_its_own() {
    let goals = ["ndr", "pdr", "a goal with a long name"].map(|name| goal(name, Some(10_820.0), None));
    let trials = [trial(1, 20_000.0, 3), trial(2, 10_820.0, 0)];
    let page = page_of(&trials.iter().collect::<Vec<_>>(), &goals);
    let rows = texts(&page, "goal end");
    let names: Vec<&str> = rows.iter().map(|row| row.2.as_str()).collect();
    assert_eq!(names, ["ndr", "pdr", "a goal with a \u{2026}"]);
    assert!(rows.windows(2).all(|two| two[1].1 - two[0].1 >= 14.0), "{rows:?}");
    assert_eq!(page.matches("class=\"bound carried\"").count(), 3);
}
