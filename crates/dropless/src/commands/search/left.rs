//! How long a search still takes.

use anyhow::Result;
use measure::search::{Pace, Search, SearchResult, remaining};

use super::Run;

impl Run<'_> {
    /// Seconds until all is over: of the size that is searched, so far for `spent_s`, and of those after it.
    pub(super) fn left_s(&self, index: usize, search: Option<&Search>, spent_s: f64) -> Result<f64> {
        // Nobody is told how long a trial takes that was made already.
        if !self.recorded.is_empty() {
            return Ok(0.0);
        }
        let pace = self.pace();
        let size = &self.plan.sizes[index];
        let planned = |size: &str| self.plan.estimate(size, pace).map(|all| all.seconds);
        let known = search.filter(|search| has_bounds(&search.result()));
        let mut left_s = match known {
            Some(search) => remaining(search, pace),
            // Where the limit is was not seen yet: it may be anywhere.
            None => (planned(size)? - spent_s).max(search.map_or(0.0, |search| remaining(search, pace))),
        };
        for size in &self.plan.sizes[index + 1..] {
            left_s += planned(size)?;
        }
        Ok(left_s)
    }

    /// What trials take beyond their own time, as far as is known.
    fn pace(&self) -> Pace {
        let (seconds, trials) = self.overhead;
        if trials < 1.0 {
            return self.plan.pace();
        }
        Pace {
            overhead_s: (seconds / trials).max(0.0),
        }
    }
}

/// Whether every goal knows a rate that was carried and one that was not.
fn has_bounds(result: &SearchResult) -> bool {
    let mut goals = result.goals.iter();
    goals.all(|goal| goal.lower.is_some() && goal.upper.is_some())
}
