//! Pauses of a capture that are longer than anybody would wait without a word, as from a stamp that is wrong to the next.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use measure::Clock;
use measure::units::format_duration;
use report::number::counted;

/// A packet that is due so long after the one before is told of.
const LONG_NS: u64 = 60_000_000_000;
const DAY_NS: u64 = 86_400_000_000_000;
/// So many are found before the first of them has begun; whoever has more is told of these.
const MOST: usize = 64;

/// The thread that reads finds them.
pub struct Finder {
    long: u64,
    /// When the packet before was due, ticks after the first.
    before: u64,
    sender: SyncSender<(u64, u64)>,
}

/// Control tells them.
pub struct Pauses {
    clock: Clock,
    /// From when a packet was due to when the next one is.
    next: Option<(u64, u64)>,
    receiver: Receiver<(u64, u64)>,
}

/// Both ends.
pub fn pauses(clock: Clock) -> (Finder, Pauses) {
    let (sender, receiver) = sync_channel(MOST);
    let finder = Finder {
        long: clock.ticks_from_ns(LONG_NS),
        before: 0,
        sender,
    };
    let pauses = Pauses {
        clock,
        next: None,
        receiver,
    };
    (finder, pauses)
}

impl Finder {
    /// The next packet is due at `at`, ticks after the first.
    #[inline]
    pub fn look(&mut self, at: u64) {
        let before = std::mem::replace(&mut self.before, at);
        if at - before > self.long {
            let _ = self.sender.try_send((before, at));
        }
    }
}

impl Pauses {
    /// What is to be said once the packet that was due at `due` has been sent, and no later one.
    pub fn line(&mut self, due: u64) -> Option<String> {
        loop {
            let (from, to) = self.next.take().or_else(|| self.receiver.try_recv().ok())?;
            if due < from {
                self.next = Some((from, to));
                return None;
            }
            if due < to {
                let ns = self.clock.ns_from_ticks(to - from);
                let pause = match ns / DAY_NS {
                    0 => format_duration(ns),
                    days => counted(days, "day"),
                };
                return Some(format!(
                    "the next packet is due in {pause}, as the capture has it; --max-gap 1s cuts such pauses\n"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_told_once_when_it_begins() {
        let second = 1_000_000_000;
        let (mut finder, mut pauses) = pauses(Clock::from_calibration(0, 0, 1e9));
        for at in [0, 5, 65, 135, 1000, 1001] {
            finder.look(at * second);
        }
        assert_eq!(pauses.line(5 * second), None);
        let line = pauses.line(65 * second);
        assert!(line.is_some_and(|line| line.contains("due in 70")));
        assert_eq!(pauses.line(65 * second), None, "said once");
        // That before 1000 s is over by now.
        assert_eq!(pauses.line(1001 * second), None);
    }
}
