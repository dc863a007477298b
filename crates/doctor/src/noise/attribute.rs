//! What a stall was: the time that each of its causes had.

use super::cause::Cause;
use super::event::Event;

/// An event at its time. All times here are ticks of the one clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamped {
    /// When.
    pub at: u64,
    /// What.
    pub event: Event,
}

/// A time in which a polling loop did not poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its last stamp before.
    pub from: u64,
    /// Its first stamp after.
    pub to: u64,
    /// The core that it was on after.
    pub core: u32,
}

impl Span {
    /// How long.
    pub fn ticks(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// A stall with its causes. Their times add up to the stall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributedStall {
    /// The stall.
    pub stall: Span,
    /// What had the core, and for how long, ticks; the largest first.
    pub parts: Vec<(Cause, u64)>,
    /// Of that the stretches for which an interrupt or a page fault had the core longer than they take: either they did,
    /// or the core itself was taken away meanwhile.
    pub doubtful: Vec<(Cause, u64)>,
}

impl AttributedStall {
    /// All of it had one cause.
    pub fn whole(stall: Span, cause: Cause) -> Self {
        let parts = vec![(cause, stall.ticks())];
        let doubtful = Vec::new();
        Self {
            stall,
            parts,
            doubtful,
        }
    }

    /// The cause with the largest share.
    pub fn cause(&self) -> &Cause {
        self.parts.first().map_or(&Cause::Outside, |(cause, _)| cause)
    }

    /// Takes up to `ticks` of what the kernel did not see as the program's own work.
    pub fn own_work(&mut self, ticks: u64) {
        self.reassign(|cause| *cause == Cause::Outside, &Cause::OwnWork, ticks);
    }

    /// The time that causes of this kind had, ticks.
    pub fn time_of(&self, is_it: impl Fn(&Cause) -> bool) -> u64 {
        let of_it = self.parts.iter().filter(|(cause, _)| is_it(cause));
        of_it.map(|(_, ticks)| ticks).sum()
    }

    /// Gives up to `ticks` of what causes of this kind had to `to`, from the largest first; returns how many.
    pub fn reassign(&mut self, is_it: impl Fn(&Cause) -> bool, to: &Cause, ticks: u64) -> u64 {
        let mut left = ticks;
        for (_, had) in self.parts.iter_mut().filter(|(cause, _)| is_it(cause)) {
            let taken = left.min(*had);
            *had -= taken;
            left -= taken;
        }
        let given = ticks - left;
        match self.parts.iter_mut().find(|(cause, _)| cause == to) {
            Some((_, had)) => *had += given,
            None => self.parts.push((to.clone(), given)),
        }
        self.parts.retain(|(_, ticks)| *ticks > 0);
        self.parts.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
        given
    }
}
