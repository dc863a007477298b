//! What a search has to say of its own answer: bunches of our sender, and a limit that did not stay where it was.

use measure::Note;
use measure::bunch;
use measure::search::drift::drift;
use measure::search::{GoalResult, SizeResult, Trial};
use report::number::{counted, pps};

/// What is to be said of the search for frames of one size, and its trials in the order in which they were made.
pub fn doubts(result: &SizeResult, trials: &[Trial]) -> Vec<Note> {
    let goals = result.result.goals.iter();
    let drifts = goals.filter_map(|goal| drifted(&result.size, goal, trials));
    drifts.chain(bunched(result, trials)).collect()
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
