//! What waits in a receive queue when a run ends: it came in the run, and no counter of the port has it.

use crate::BURST_MAX;
use crate::io::{Frames, Receive};

/// More than any receive ring holds: of so much, all that came before the end is a part.
const MOST: usize = 1 << 16;

/// What is still to be taken from a queue, once the run is over.
#[derive(Debug, Default)]
pub struct Rest {
    left: usize,
    is_begun: bool,
}

impl Rest {
    /// Of a queue in which what waits at the end came in the run (`is_whole`), or of another, which has none.
    pub const fn of(is_whole: bool) -> Self {
        Self {
            left: if is_whole { MOST } else { 0 },
            is_begun: false,
        }
    }

    /// Whether there is nothing more that came before the end.
    pub fn is_taken(&self) -> bool {
        self.left == 0
    }

    /// The run is over: whether there is something to be taken.
    pub fn begin(&mut self) -> bool {
        self.is_begun = true;
        !self.is_taken()
    }

    /// So many frames came when the queue was asked.
    pub fn came(&mut self, count: usize) {
        self.left = if count == 0 {
            0
        } else {
            self.left.saturating_sub(count)
        };
    }

    /// Throws away what nobody will take any more, if that was begun, by `frames`, which is emptied: how many frames, and their
    /// bytes.
    pub fn discard<R: Receive>(&mut self, rx: &mut R, frames: &mut R::Frames) -> (u64, u64) {
        let mut thrown = (0, 0);
        while self.is_begun && !self.is_taken() {
            frames.clear();
            self.came(rx.receive(frames, BURST_MAX / 2));
            let bytes: usize = frames.each().map(|(_, len)| len).sum();
            thrown = (thrown.0 + frames.len() as u64, thrown.1 + bytes as u64);
        }
        frames.clear();
        thrown
    }
}
