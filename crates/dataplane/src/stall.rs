//! The stalls of a worker: from one poll to the next, where that took longer than it should.

use measure::Ticks;

/// A time in which a worker did not poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StallRecord {
    /// The poll before.
    pub from: Ticks,
    /// The poll after.
    pub to: Ticks,
    /// Packets that the worker moved meanwhile: its own work, which takes time too.
    pub moved: u32,
    /// Packets that it moved next, which had waited.
    pub next: u32,
    /// The core that it was on when it polled again.
    pub core: u32,
}

/// Stalls, in a room that was made, and touched, before the worker began.
#[derive(Debug)]
pub struct StallLog {
    /// Shorter ones are none, ticks.
    threshold: u64,
    seen: Vec<StallRecord>,
    /// Stalls that found no room.
    pub dropped: u64,
    /// Tells the core that it runs on; asked after stalls only.
    this_core: fn() -> u32,
}

impl StallLog {
    /// Room for `most` stalls longer than `threshold` ticks.
    pub fn with_room(most: usize, threshold: u64, this_core: fn() -> u32) -> Self {
        // What is all zeroes the allocator may leave to the kernel, which gives no memory before it is written to.
        let written = StallRecord {
            from: Ticks(1),
            to: Ticks(1),
            moved: 0,
            next: 0,
            core: 0,
        };
        let mut seen = vec![written; most];
        seen.clear();
        Self {
            threshold,
            seen,
            dropped: 0,
            this_core,
        }
    }

    /// The stalls, in order.
    pub fn all(&self) -> &[StallRecord] {
        &self.seen
    }

    /// Two polls that follow each other, and how much was moved between them; whether that was a stall.
    #[inline]
    pub fn record(&mut self, from: Ticks, to: Ticks, moved: usize) -> bool {
        let stalled = to.since(from) > self.threshold;
        if stalled {
            self.keep(StallRecord {
                from,
                to,
                moved: moved as u32,
                next: 0,
                core: (self.this_core)(),
            });
        }
        stalled
    }

    /// What was moved right after the stall that was recorded last.
    #[cold]
    pub fn followed_by(&mut self, moved: usize) {
        // One that found no room must not be mistaken for the one before.
        let kept = self.seen.last_mut().filter(|_| self.dropped == 0);
        if let Some(stall) = kept {
            stall.next = moved as u32;
        }
    }

    #[cold]
    fn keep(&mut self, stall: StallRecord) {
        if self.seen.len() < self.seen.capacity() {
            self.seen.push(stall);
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
        let mut stalls = StallLog::with_room(2, 100, || 3);
        for (from, to, moved) in [(0, 100, 1), (100, 201, 2), (201, 400, 0), (400, 900, 5)] {
            if stalls.record(Ticks(from), Ticks(to), moved) {
                stalls.followed_by(moved + 7);
            }
        }
        let kept: Vec<_> = stalls
            .all()
            .iter()
            .map(|stall| (stall.from.0, stall.to.0, stall.moved, stall.next))
            .collect();
        assert!(stalls.all().iter().all(|stall| stall.core == 3));
        assert_eq!(
            (kept, stalls.dropped),
            (vec![(100, 201, 2, 9), (201, 400, 0, 7)], 1)
        );
    }

    #[test]
    fn a_clock_that_steps_back_is_no_stall() {
        let mut stalls = StallLog::with_room(2, 100, || 0);
        assert!(!stalls.record(Ticks(1000), Ticks(999), 0));
        assert!(!stalls.record(Ticks(1000), Ticks(0), 3));
        assert!(stalls.all().is_empty());
    }
}
