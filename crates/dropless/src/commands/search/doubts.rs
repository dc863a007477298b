//! What a search has to say of its own answer: bunches of our sender, and a limit that did not stay where it was.

use std::borrow::Cow;

use measure::bunch;
use measure::search::drift::drift;
use measure::search::{GoalResult, SizeResult, Trial};
use measure::{Note, Shortfall};
use report::number::{counted, pps};

/// What is to be said of the search for frames of one size, and its trials in the order in which they were made.
pub fn doubts(result: &SizeResult, trials: &[Trial]) -> Vec<Note> {
    let goals = result.result.goals.iter();
    let drifts = goals.filter_map(|goal| drifted(&result.size, goal, trials));
    drifts
        .chain(bunched(result, trials))
        .chain(spoiled(result, trials))
        .collect()
}

/// A few trials at the edge of what our sender can do are usual: less than this share of them, and one or two.
const USUAL_SHARE: f64 = 0.1;
const USUAL: usize = 2;

/// That many trials could not be believed, or offered less than was asked, and why most of them: the answer is lower for it.
fn spoiled(result: &SizeResult, trials: &[Trial]) -> Option<Note> {
    let why = |trial: &Trial| {
        let reason = trial.invalid.first().map(|reason| reason.code.clone());
        reason.or_else(|| trial.short.map(|short| short.code().into()))
    };
    let codes: Vec<Cow<'static, str>> = trials.iter().filter_map(why).collect();
    if codes.len() <= USUAL || (codes.len() as f64) < trials.len() as f64 * USUAL_SHARE {
        return None;
    }
    let times = |code: &str| codes.iter().filter(|other| *other == code).count();
    let most = codes.iter().max_by_key(|code| times(code))?;
    let hint = if most == Shortfall::PortFull.code() {
        "the link or the far side is to be looked at, or give --max-rate"
    } else {
        "`dropless noise` and `dropless doctor` say what takes our cores, and --max-rate keeps to what they can do"
    };
    let text = format!(
        "{} of {} of size {} could not be believed or offered less than asked, {} of them for {most}: the answer may be far below what the path carries; {hint}",
        codes.len(),
        counted(trials.len() as u64, "trial"),
        result.size,
        times(most)
    );
    Some(Note::new("trials_spoiled", text))
}

fn drifted(size: &str, goal: &GoalResult, trials: &[Trial]) -> Option<Note> {
    let drift = drift(trials, goal.loss_ratio)?;
    let (first, then) = if drift.sank {
        ("carried at first and no more later", "sank")
    } else {
        ("not carried at first and carried later", "rose")
    };
    let text = format!(
        "the limit {then} while it was looked for (size {size}, {}): from {} to {} the same rates were {first} ({}, {} of them good); the answer is of neither time, search again when the path is steady",
        goal.name,
        pps(drift.failed_pps),
        pps(drift.carried_pps),
        counted(drift.carried + drift.failed, "trial"),
        drift.carried
    );
    Some(Note::new("limit_drifted", text))
}

fn bunched(result: &SizeResult, trials: &[Trial]) -> Option<Note> {
    let bunched = result.result.bunched_trials;
    let lossy = trials.iter().filter(|trial| trial.lost.path > 0);
    let largest = lossy.map(|trial| bunch::largest(&trial.bunches)).max()?;
    (bunched > 0).then(|| {
        let text = format!(
            "our sender fell behind and caught up in {} of size {} that lost packets, up to {largest} at once: a policer or a short buffer loses such a bunch at any rate, so the path was not blamed, and they were made again; `dropless noise` names who took the core, and --backlog bounds what is caught up on",
            counted(bunched, "trial"),
            result.size
        );
        Note::new("sender_bunched", text)
    })
}

#[cfg(test)]
mod tests {
    use super::super::journal::tests::line;
    use super::*;
    use measure::bunch::Bunch;
    use measure::search::{Limit, SearchResult};

    fn size(result: SearchResult) -> SizeResult {
        SizeResult {
            size: "64".into(),
            mean_frame_bytes: 64.0,
            range: None,
            result,
        }
    }

    /// The note of a search of so many good trials, and of others.
    fn told(good: usize, others: &[Trial]) -> Option<Note> {
        let size = size(SearchResult::default());
        let trials: Vec<Trial> = (0..good)
            .map(|_| line(0).trial)
            .chain(others.iter().cloned())
            .collect();
        let notes = doubts(&size, &trials);
        notes.into_iter().find(|note| note.code == "trials_spoiled")
    }

    #[test]
    fn a_search_that_our_own_side_spoiled_says_why() {
        let short = |short| Trial {
            short: Some(short),
            ..line(0).trial
        };
        let unbelieved = Trial {
            invalid: vec![Note::new("clock_bad", "the clock jumped")],
            ..line(0).trial
        };
        let stalled = short(Shortfall::SenderStalled);
        let all = [stalled.clone(), unbelieved, stalled.clone()];
        let text = told(10, &all).map(|note| note.text).unwrap_or_default();
        assert!(
            text.starts_with("3 of 13 trials of size 64") && text.contains("2 of them for sender_stalled"),
            "{text}"
        );
        assert!(text.contains("`dropless noise`"), "{text}");
        assert_eq!(told(10, &all[..2]), None);
        assert_eq!(told(40, &all), None);
        let full = vec![short(Shortfall::PortFull); 4];
        let text = told(1, &full).map(|note| note.text).unwrap_or_default();
        assert!(
            text.contains("for port_full") && !text.contains("noise"),
            "{text}"
        );
    }

    #[test]
    fn a_limit_that_did_not_stay_is_told() {
        let goal = GoalResult {
            name: "ndr".into(),
            loss_ratio: 0.0,
            complete: true,
            limit: Limit::Path,
            throughput_pps: None,
            conditional_throughput_pps: None,
            lower: None,
            upper: None,
        };
        let size = size(SearchResult {
            goals: vec![goal],
            ..SearchResult::default()
        });
        let (good, bad) = (vec![line(0).trial; 5], vec![line(100).trial; 5]);
        let told = |first: &[Trial], then: &[Trial]| {
            let notes = doubts(&size, &[first, then].concat());
            notes.into_iter().find(|note| note.code == "limit_drifted")
        };
        let text = |note: Option<Note>| note.map(|note| note.text).unwrap_or_default();
        assert!(text(told(&good, &bad)).starts_with("the limit sank while"));
        assert!(text(told(&bad, &good)).starts_with("the limit rose while"));
        assert_eq!(told(&good, &good), None);
        // Too few to be no accident.
        assert_eq!(told(&good[..4], &bad[..4]), None);
    }

    #[test]
    fn what_our_own_bunches_may_have_cost_is_told() {
        let lossy = Trial {
            bunches: vec![Bunch {
                due: 64,
                times: 1,
                whole: 1,
            }],
            ..line(9).trial
        };
        let told = |bunched_trials, trial: &Trial| {
            let size = size(SearchResult {
                bunched_trials,
                ..SearchResult::default()
            });
            let notes = doubts(&size, std::slice::from_ref(trial));
            notes.into_iter().find(|note| note.code == "sender_bunched")
        };
        let note = told(2, &lossy).expect("it was lost of a bunch");
        assert!(note.text.contains("in 2 trials of size 64") && note.text.contains("up to 64 at once"));
        assert_eq!(told(0, &lossy), None);
        assert_eq!(told(2, &line(0).trial), None, "nothing was lost");
    }
}
