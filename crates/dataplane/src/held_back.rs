//! A task whose frames wait for the run, as those of a file do: none of them came before.

use measure::Ticks;

use crate::{Phase, Task};

/// Holds a task back until the run begins.
pub struct HeldBack<T: ?Sized>(pub Box<T>);

impl<T: Task + ?Sized> Task for HeldBack<T> {
    fn poll(&mut self, now: Ticks, phase: Phase) -> usize {
        match phase {
            Phase::Warm => 0,
            _ => self.0.poll(now, phase),
        }
    }

    fn renew(&mut self) {
        self.0.renew();
    }

    fn finish(self: Box<Self>) {
        self.0.finish();
    }
}
