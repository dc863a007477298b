//! How long a search will take: the search itself, run on paper over paths with different limits.

use super::{ModelPath, Range, Search, Step};

/// Places of the path's limit that an estimate tries, evenly spread in relative terms.
const PLACES: u32 = 9;
/// What is left of the limit under too much load, in the friendly case and in the hostile one.
const UNDER_OVERLOAD: [f64; 2] = [1.0, 0.2];
/// A search on paper that is longer than that is as good as endless.
const TRIALS_MAX: u64 = 20_000;

/// What a trial takes beyond its own time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Start, waiting for the last packets, reports: seconds a trial.
    pub overhead_s: f64,
}

/// How many trials, and how long all of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// Trials in the middle case.
    pub trials: u64,
    /// Seconds in the middle case.
    pub seconds: f64,
    /// Trials in the longest case.
    pub trials_max: u64,
    /// Seconds in the longest case.
    pub seconds_max: f64,
}

impl Estimate {
    /// One search after the other.
    #[must_use]
    pub fn and(self, other: Estimate) -> Estimate {
        Estimate {
            trials: self.trials + other.trials,
            seconds: self.seconds + other.seconds,
            trials_max: self.trials_max + other.trials_max,
            seconds_max: self.seconds_max + other.seconds_max,
        }
    }
}

/// The time of a search that has not begun, whatever the path's limit is within `range`.
pub fn estimate(search: &Search, range: Range, pace: Pace) -> Estimate {
    let ratio = range.max_pps / range.min_pps;
    // The highest place lies above the range: a path that carries all is a case, too.
    let limit_at = |place: u32| range.min_pps * ratio.powf(f64::from(place) / f64::from(PLACES)) * 1.001;
    let mut runs = Vec::new();
    for under_overload in UNDER_OVERLOAD {
        for limit_pps in (1..=PLACES).map(limit_at) {
            let path = ModelPath {
                under_overload,
                ..ModelPath::limited(limit_pps)
            };
            runs.push(run(search.clone(), &path, pace));
        }
    }
    runs.sort_by(|one, other| one.1.total_cmp(&other.1));
    let (middle, longest) = (runs[runs.len() / 2], runs[runs.len() - 1]);
    Estimate {
        trials: middle.0,
        seconds: middle.1,
        trials_max: longest.0,
        seconds_max: longest.1,
    }
}

/// The seconds that are left of a search that has begun, if the path's limit is where it looks now.
pub fn remaining(search: &Search, pace: Pace) -> f64 {
    let Step::Trial(ask, _) = search.next() else {
        return 0.0;
    };
    let result = search.result();
    let goal = result.goals.first();
    let bounds = goal.and_then(|goal| goal.lower.zip(goal.upper));
    let limit_pps = bounds.map_or(ask.rate_pps, |(lower, upper)| {
        (lower.rate_pps * upper.rate_pps).sqrt()
    });
    run(search.clone(), &ModelPath::limited(limit_pps), pace).1
}

/// Trials and seconds until `search` is over, on this path.
fn run(mut search: Search, path: &ModelPath, pace: Pace) -> (u64, f64) {
    let (mut trials, mut seconds) = (0, 0.0);
    while let Step::Trial(ask, _) = search.next() {
        let trial = path.run(ask, &mut || 0.5);
        search.record(&trial);
        trials += 1;
        seconds += ask.seconds() + pace.overhead_s;
        if trials >= TRIALS_MAX {
            break;
        }
    }
    (trials, seconds)
}
