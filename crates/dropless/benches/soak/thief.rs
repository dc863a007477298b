//! A busy process on one core: a child of the round, stopped but for its bursts, and ended with it.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::round::{Round, sleep};
use crate::support::Running;

/// Ends when it is dropped.
pub struct Thief(Running);

impl Thief {
    /// A thief of this core, who rests.
    pub fn start(round: &Round<'_>, core: u32) -> Self {
        // Preferred by the kernel, so that a worker gets what is left.
        let running = round.lab.shell(&format!(
            "exec taskset -c {core} nice -n -10 sh -c 'kill -STOP $$; while :; do :; done'"
        ));
        Self(running)
    }

    /// Takes the core for this long.
    pub fn works(&self, time: Duration) {
        self.0.signal(Signal::SIGCONT);
        sleep(time);
        self.0.signal(Signal::SIGSTOP);
    }
}
