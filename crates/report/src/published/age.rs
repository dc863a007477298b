//! What is left of what a run told last, when it tells nothing more.

use std::time::Duration;

use super::{Health, Phase, State};

/// Without news for this long something is wrong: a run tells ten times a second.
const SILENT: Duration = Duration::from_secs(2);

impl State {
    /// How long ago it was told, by the clock, `now_unix_ms`; nothing where that is yet to come: the clock was set back.
    pub fn age(&self, now_unix_ms: u64) -> Option<Duration> {
        let soonest = now_unix_ms + SILENT.as_millis() as u64;
        (self.told_unix_ms <= soonest)
            .then(|| Duration::from_millis(now_unix_ms.saturating_sub(self.told_unix_ms)))
    }

    /// Whether the run should have told something since, `age` after it was told; nothing where nobody knows the age.
    pub fn is_silent(&self, age: Option<Duration>) -> bool {
        self.ended.is_none() && age.is_none_or(|age| age > SILENT)
    }

    /// Its health, as far as that can be believed `age` after it was told.
    pub fn health_by_now(&self, age: Option<Duration>) -> Health {
        let mut health = self.health.clone();
        if self.is_silent(age) {
            health.healthy = false;
            let silence = age.map_or_else(
                || "no status since the clock was set back".to_owned(),
                |age| format!("no status for {:.0} s", age.as_secs_f64()),
            );
            health.reason = match self.phase {
                // Ports are opened, and nothing is told meanwhile.
                Phase::Starting => format!("{}; {silence}", health.reason),
                _ => format!("{silence}: is the process stopped, or its core busy with something else?"),
            };
        }
        health
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Ended;

    #[test]
    fn what_is_old_is_not_healthy() {
        let mut state = State {
            told_unix_ms: 100_000,
            phase: Phase::Sending,
            ..State::default()
        };
        state.health.healthy = true;
        let health = |state: &State, now_ms| state.health_by_now(state.age(now_ms));
        for (now_ms, words) in [
            (100_100, ""),
            // Two clocks are read one after the other.
            (99_000, ""),
            (104_000, "no status for 4 s: is the process stopped"),
            (90_000, "no status since the clock was set back: is"),
        ] {
            let Health { healthy, reason } = health(&state, now_ms);
            assert_eq!(healthy, words.is_empty(), "{now_ms}: {reason}");
            assert!(reason.starts_with(words), "{now_ms}: {reason}");
        }
        state.phase = Phase::Starting;
        state.health.reason = "starting".to_owned();
        assert_eq!(health(&state, 105_000).reason, "starting; no status for 5 s");
        state.ended = Some(Ended::default());
        assert_eq!(health(&state, 200_000), state.health);
    }
}
