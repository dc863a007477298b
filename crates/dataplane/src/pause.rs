//! The pauses of a worker: from one poll to the next, where that took longer than it should.

use measure::Ticks;

/// A time in which a worker did not poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// The poll before.
    pub from: Ticks,
    /// The poll after.
    pub to: Ticks,
    /// Packets that the worker moved meanwhile: its own work, which takes time too.
    pub moved: u32,
    /// Packets that it moved next, which had waited.
    pub next: u32,
}

/// Pauses, in a room that was made, and touched, before the worker began.
#[derive(Debug)]
pub struct Pauses {
    /// Shorter ones are none, ticks.
    threshold: u64,
    seen: Vec<Pause>,
    /// Pauses that found no room.
    pub dropped: u64,
}

impl Pauses {
    /// Room for `most` pauses longer than `threshold` ticks.
    pub fn with_room(most: usize, threshold: u64) -> Self {
        let nothing = Pause {
            from: Ticks(0),
            to: Ticks(0),
            moved: 0,
            next: 0,
        };
        let mut seen = vec![nothing; most];
        seen.clear();
        Self {
            threshold,
            seen,
            dropped: 0,
        }
    }

    /// The pauses, in order.
    pub fn all(&self) -> &[Pause] {
        &self.seen
    }

    /// Two polls that follow each other, and how much was moved between them; whether that was a pause.
    #[inline]
    pub fn record(&mut self, from: Ticks, to: Ticks, moved: usize) -> bool {
        let paused = to.0.wrapping_sub(from.0) > self.threshold;
        if paused {
            self.keep(Pause {
                from,
                to,
                moved: moved as u32,
                next: 0,
            });
        }
        paused
    }

    /// What was moved right after the pause that was recorded last.
    #[cold]
    pub fn followed_by(&mut self, moved: usize) {
        // One that found no room must not be mistaken for the one before.
        let kept = self.seen.last_mut().filter(|_| self.dropped == 0);
        if let Some(pause) = kept {
            pause.next = moved as u32;
        }
    }

    #[cold]
    fn keep(&mut self, pause: Pause) {
        if self.seen.len() < self.seen.capacity() {
            self.seen.push(pause);
        } else {
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ones_are_kept_while_there_is_room() {
        let mut pauses = Pauses::with_room(2, 100);
        for (from, to, moved) in [(0, 100, 1), (100, 201, 2), (201, 400, 0), (400, 900, 5)] {
            if pauses.record(Ticks(from), Ticks(to), moved) {
                pauses.followed_by(moved + 7);
            }
        }
        let kept: Vec<_> = pauses
            .all()
            .iter()
            .map(|pause| (pause.from.0, pause.to.0, pause.moved, pause.next))
            .collect();
        assert_eq!(
            (kept, pauses.dropped),
            (vec![(100, 201, 2, 9), (201, 400, 0, 7)], 1)
        );
    }
}
