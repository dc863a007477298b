//! The stalls of a worker: from one poll to the next, where that took longer than it should.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use measure::{Counter, Ticks};

/// A time in which a worker did not poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StallRecord {
    /// The poll before.
    pub from: Ticks,
    /// The poll after.
    pub to: Ticks,
    /// Packets that the worker moved meanwhile: its own work, which takes time too.
    pub moved: u32,
    /// Packets that it moved next, which had waited; not known before it has polled again.
    pub next: Option<u32>,
    /// The core that it was on when it polled again.
    pub core: u32,
}

/// Stalls, in a room that was made, and touched, before the worker began. One writer; others read while it goes on.
#[derive(Debug, Default)]
pub struct Stalls {
    places: Box<[Place]>,
    kept: AtomicUsize,
    dropped: Counter,
    long_dropped: Counter,
}

/// What was moved next is not known.
const UNKNOWN: u64 = u64::MAX;

/// That part of the room is for long stalls alone: short ones may be many.
const PART_FOR_LONG: usize = 8;

#[derive(Debug, Default)]
struct Place {
    from: Counter,
    to: Counter,
    moved: Counter,
    next: Counter,
    core: Counter,
}

impl Stalls {
    /// Room for `most`.
    pub fn with_room(most: usize) -> Self {
        let places: Box<[Place]> = (0..most).map(|_| Place::default()).collect();
        // What is all zeroes the allocator may leave to the kernel, which gives no memory before it is written to.
        for place in &places {
            place.from.set(1);
        }
        Self {
            places,
            ..Self::default()
        }
    }

    /// Those that are kept, in order, without the first ones. Of the last one `next` may not be known yet.
    pub fn after(&self, first: usize) -> impl ExactSizeIterator<Item = StallRecord> + '_ {
        let kept = &self.places[..self.kept.load(Ordering::Acquire)];
        let places = kept.get(first..).unwrap_or_default();
        places.iter().map(|place| StallRecord {
            from: Ticks(place.from.get()),
            to: Ticks(place.to.get()),
            moved: place.moved.get() as u32,
            next: u32::try_from(place.next.get()).ok(),
            core: place.core.get() as u32,
        })
    }

    /// Stalls to be told that found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped.get()
    }

    /// Long ones that found no room, whether they were to be told or not.
    pub fn long_dropped(&self) -> u64 {
        self.long_dropped.get()
    }
}

/// The worker's side of its stalls.
#[derive(Debug)]
pub struct StallLog<'s> {
    stalls: &'s Stalls,
    /// Shorter ones are none, ticks.
    threshold: u64,
    /// Longer ones are to be told, ticks.
    told: u64,
    /// Longer ones are long, ticks.
    long: u64,
    /// Tells the core that it runs on; asked after stalls only.
    this_core: fn() -> u32,
    /// Where the last one is kept; nowhere if it found no room.
    last: Cell<usize>,
}

const NOWHERE: usize = usize::MAX;

impl<'s> StallLog<'s> {
    /// Keeps stalls longer than `told` ticks. The caller makes one of `stalls` only.
    pub fn new(stalls: &'s Stalls, told: u64, this_core: fn() -> u32) -> Self {
        Self {
            stalls,
            threshold: told,
            told,
            long: told,
            this_core,
            last: Cell::new(NOWHERE),
        }
    }

    /// Keeps those longer than `long` ticks, too, and has a part of the room for them alone.
    #[must_use]
    pub fn with_long(self, long: u64) -> Self {
        Self {
            threshold: self.told.min(long),
            long,
            ..self
        }
    }

    /// Two polls that follow each other, and how much was moved between them; whether that was a stall.
    #[inline]
    pub fn record(&self, from: Ticks, to: Ticks, moved: usize) -> bool {
        let stalled = to.since(from) > self.threshold;
        if stalled {
            self.keep(from, to, moved);
        }
        stalled
    }

    /// What was moved right after the stall that was recorded last.
    #[cold]
    pub fn followed_by(&self, moved: usize) {
        if let Some(place) = self.stalls.places.get(self.last.get()) {
            place.next.set(moved as u64);
        }
    }

    #[cold]
    #[inline(never)]
    fn keep(&self, from: Ticks, to: Ticks, moved: usize) {
        let (places, ticks) = (&self.stalls.places, to.since(from));
        let room = if ticks > self.long {
            places.len()
        } else {
            places.len() - places.len() / PART_FOR_LONG
        };
        let kept = self.stalls.kept.load(Ordering::Relaxed);
        let Some(place) = places[..room].get(kept) else {
            self.stalls.dropped.add(u64::from(ticks > self.told));
            self.stalls.long_dropped.add(u64::from(ticks > self.long));
            self.last.set(NOWHERE);
            return;
        };
        self.last.set(kept);
        place.from.set(from.0);
        place.to.set(to.0);
        place.moved.set(moved as u64);
        place.next.set(UNKNOWN);
        place.core.set((self.this_core)().into());
        // Who sees it counted sees all of it.
        self.stalls.kept.store(kept + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ones_are_kept_while_there_is_room() {
        let stalls = Stalls::with_room(2);
        let log = StallLog::new(&stalls, 100, || 3);
        for (from, to, moved) in [(0, 100, 1), (100, 201, 2), (201, 400, 0), (400, 900, 5)] {
            if log.record(Ticks(from), Ticks(to), moved) {
                log.followed_by(moved + 7);
            }
        }
        let kept: Vec<_> = stalls
            .after(0)
            .map(|stall| (stall.from.0, stall.to.0, stall.moved, stall.next.unwrap()))
            .collect();
        assert!(stalls.after(0).all(|stall| stall.core == 3));
        assert_eq!(
            (kept, stalls.dropped()),
            (vec![(100, 201, 2, 9), (201, 400, 0, 7)], 1)
        );
        assert_eq!([1, 2, 3].map(|first| stalls.after(first).len()), [1, 0, 0]);
    }

    /// Has stalls of these lengths, one after the other, told and long where they are longer than these: those kept, with what
    /// was moved after them, and how many to be told and how many long ones found no room.
    fn recorded(room: usize, of: [u64; 2], lengths: &[u64]) -> (Vec<(u64, u32)>, [u64; 2]) {
        let stalls = Stalls::with_room(room);
        let log = StallLog::new(&stalls, of[0], || 0).with_long(of[1]);
        let mut from = Ticks(0);
        for (number, length) in lengths.iter().enumerate() {
            let to = Ticks(from.0 + length);
            if log.record(from, to, 0) {
                log.followed_by(number);
            }
            from = to;
        }
        let kept = stalls.after(0);
        let kept = kept.map(|stall| (stall.to.since(stall.from), stall.next.unwrap()));
        (kept.collect(), [stalls.dropped(), stalls.long_dropped()])
    }

    #[test]
    fn short_ones_leave_room_for_long_ones() {
        let lengths = [11, 12, 13, 14, 15, 16, 17, 18, 101, 19, 102];
        let (kept, dropped) = recorded(8, [10, 100], &lengths);
        assert_eq!(kept[6..], [(17, 6), (101, 8)]);
        assert_eq!(dropped, [3, 1]);
    }

    #[test]
    fn long_ones_are_kept_that_are_not_told() {
        let (kept, dropped) = recorded(3, [1000, 100], &[99, 100, 101, 2000, 102, 103, 2001]);
        assert_eq!(kept, [(101, 2), (2000, 3), (102, 4)]);
        assert_eq!(dropped, [1, 2]);
    }

    #[test]
    fn a_clock_that_steps_back_is_no_stall() {
        let stalls = Stalls::with_room(2);
        let log = StallLog::new(&stalls, 100, || 0);
        assert!(!log.record(Ticks(1000), Ticks(999), 0));
        assert!(!log.record(Ticks(1000), Ticks(0), 3));
        assert_eq!(stalls.after(0).len(), 0);
    }
}
