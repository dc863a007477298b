//! A loop that does nothing but look at the clock: whatever takes its core shows as a gap.

use std::sync::atomic::{AtomicBool, Ordering};

use super::attribute::Gap;

/// The gaps that a loop saw, in a room that was made before it began.
#[derive(Debug)]
pub struct Gaps {
    seen: Vec<Gap>,
    /// Gaps that found no room.
    pub dropped: u64,
    /// Looks at the clock.
    pub looks: u64,
    /// Its first and last look, ticks.
    pub span: Gap,
    /// The thread that looked.
    pub thread: u32,
}

impl Gaps {
    /// Room for `most` gaps, all of its memory touched.
    pub fn with_room(most: usize) -> Self {
        let nothing = Gap { from: 0, to: 0 };
        let mut seen = vec![nothing; most];
        seen.clear();
        Self {
            seen,
            dropped: 0,
            looks: 0,
            span: nothing,
            thread: 0,
        }
    }

    /// The gaps, in order.
    pub fn all(&self) -> &[Gap] {
        &self.seen
    }

    /// Looks at the clock until `stop`, and notes every pair of looks that lie more than `threshold` ticks apart. The
    /// caller has bound this thread to its core.
    pub fn spin(&mut self, clock: fn() -> u64, threshold: u64, stop: &AtomicBool) {
        self.thread = nix::unistd::gettid().as_raw() as u32;
        let first = clock();
        let mut last = first;
        while !stop.load(Ordering::Relaxed) {
            // The flag is looked at rarely: its line is another core's.
            for _ in 0..256 {
                let now = clock();
                if now.wrapping_sub(last) > threshold {
                    let gap = Gap { from: last, to: now };
                    if self.seen.len() < self.seen.capacity() {
                        self.seen.push(gap);
                    } else {
                        self.dropped += 1;
                    }
                }
                last = now;
            }
            self.looks += 256;
        }
        self.span = Gap {
            from: first,
            to: last,
        };
    }
}
