//! The end of a capture that has generators: what they sent is waited for.

use std::time::{Duration, Instant};

use dataplane::worker::ROUNDS_PER_LOOK;

use crate::run::control::Look;

/// What a generator has sent and has not come after this long without a packet is lost.
const GENERATED_QUIET: Duration = Duration::from_secs(3);

/// Generators were told to send no more, and what they have sent is on its way.
pub struct Draining {
    /// Rounds that each worker had made by then.
    rounds: Vec<u64>,
    received: u64,
    moved: Instant,
}

impl Draining {
    pub fn new(look: &Look<'_, '_>, received: u64) -> Self {
        Self {
            rounds: look.rounds.clone(),
            received,
            moved: Instant::now(),
        }
    }

    /// Whether every worker has looked at what is wanted of it since.
    pub fn is_seen(&self, look: &Look<'_, '_>) -> bool {
        let mut both = self.rounds.iter().zip(&look.rounds);
        both.all(|(then, now)| now.saturating_sub(*then) > u64::from(2 * ROUNDS_PER_LOOK))
    }

    /// Whether nothing has come for long.
    pub fn is_quiet(&mut self, received: u64) -> bool {
        if received > self.received {
            (self.received, self.moved) = (received, Instant::now());
        }
        self.moved.elapsed() > GENERATED_QUIET
    }
}
