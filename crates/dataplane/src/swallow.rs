//! The end of a path inside this process: takes what comes and frees it.

use measure::Ticks;

use crate::io::{Frames, Receive};
use crate::{BURST_MAX, Phase, Task};

/// Receives from one queue, and gives every buffer back.
pub struct SwallowTask<R: Receive> {
    rx: R,
    frames: R::Frames,
}

impl<R: Receive> SwallowTask<R> {
    /// A task that empties `rx`.
    pub fn new(rx: R) -> Self {
        Self {
            frames: rx.batch(),
            rx,
        }
    }
}

impl<R: Receive> Task for SwallowTask<R> {
    fn poll(&mut self, _now: Ticks, _phase: Phase) -> usize {
        let count = self.rx.receive(&mut self.frames, BURST_MAX / 2);
        self.frames.clear();
        count
    }

    fn renew(&mut self) {
        self.rx.renew();
    }

    fn finish(self: Box<Self>) {}
}
