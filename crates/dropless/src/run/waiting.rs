//! Waiting for what others do, in time in which this process ran: while it stood still, so did its receivers.

use std::time::{Duration, Instant};

/// From one look to the next at most this much counts.
const STEP_MAX: Duration = Duration::from_millis(100);

/// How long something has been waited for.
pub struct Waiting {
    looked: Instant,
    waited: Duration,
}

impl Waiting {
    pub fn begin() -> Self {
        Self {
            looked: Instant::now(),
            waited: Duration::ZERO,
        }
    }

    /// One look more: how long it has been by now. The time since the last look only counts if it `was_awake`.
    pub fn look(&mut self, was_awake: bool) -> Duration {
        let now = Instant::now();
        if was_awake {
            self.waited += now.duration_since(self.looked).min(STEP_MAX);
        }
        self.looked = now;
        self.waited
    }
}
