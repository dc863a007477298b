//! What producer and consumers agree upon: which numbers are stored and loaded, and in which order. No other code does so,
//! and [`model`] runs this code through every order that the language allows.

#[cfg(test)]
mod model;

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use crate::RingError;
use crate::layout::{Geometry, consumer, header, slot};
use crate::pcapng::ENTRY;

/// What is wrong where a segment that a lossless consumer still needs has gone.
pub const OVERWRITTEN: &str = "a segment was overwritten that was not released";

/// Numbers that several processes see: those of shared memory, or of the model.
pub trait Words {
    /// Loads the number at `at`, a multiple of 8.
    fn load(&self, at: usize, order: Ordering) -> u64;
    /// Stores it.
    fn store(&self, at: usize, value: u64, order: Ordering);
    /// As [`std::sync::atomic::fence`].
    fn fence(&self, order: Ordering);
}

/// Whether segment `number` would overwrite one that a consumer, who has released all below `released`, still needs.
pub fn is_held(released: u64, geometry: &Geometry, number: u64) -> bool {
    released.saturating_add(u64::from(geometry.segments)) <= number
}

/// Begins segment `number`, after `first` packets in all segments before it.
pub fn begin(words: &impl Words, geometry: &Geometry, number: u64, first: u64) {
    let at = geometry.slot_at(number);
    // Who reads the one before without a gate sees that it is gone before any of its bytes change; and who sees that, also
    // sees the newer segments that were begun.
    words.store(at + slot::NUMBER, 0, Release);
    words.fence(Release);
    words.store(at + slot::COMMITTED, 0, Relaxed);
    words.store(at + slot::CLOSED, 0, Relaxed);
    words.store(at + slot::FIRST, first, Relaxed);
    words.store(at + slot::NUMBER, number + 1, Release);
    words.store(header::BEGUN, number + 1, Release);
}

/// Lets consumers read so many packets and bytes of a segment.
#[inline]
pub fn commit(words: &impl Words, geometry: &Geometry, number: u64, (packets, bytes): (u32, usize)) {
    let committed = u64::from(packets) << 32 | bytes as u64;
    words.store(geometry.slot_at(number) + slot::COMMITTED, committed, Release);
}

/// Nothing comes to a segment any more: it is pcapng from end to end.
pub fn close(words: &impl Words, geometry: &Geometry, number: u64) {
    let len = u64::from(geometry.segment_len);
    words.store(geometry.slot_at(number) + slot::CLOSED, len, Release);
}

/// No packet comes any more.
pub fn end(words: &impl Words) {
    words.store(header::ENDED, 1, Release);
}

/// Whether the producer has ended.
pub fn is_ended(words: &impl Words) -> bool {
    words.load(header::ENDED, Acquire) == 1
}

/// Segments begun.
pub fn begun(words: &impl Words) -> u64 {
    words.load(header::BEGUN, Acquire)
}

/// Whether a segment is closed, and the packets and bytes of it that may be read: all there will be, where it is.
pub fn committed(
    words: &impl Words,
    geometry: &Geometry,
    number: u64,
) -> (bool, Result<(usize, usize), RingError>) {
    let at = geometry.slot_at(number);
    let is_closed = words.load(at + slot::CLOSED, Acquire) > 0;
    let committed = words.load(at + slot::COMMITTED, Acquire);
    let (packets, bytes) = ((committed >> 32) as usize, (committed & 0xFFFF_FFFF) as usize);
    let fits = packets * ENTRY + bytes + 4 <= geometry.segment_len as usize;
    let there = fits.then_some((packets, bytes));
    let damaged = RingError::Damaged("a segment has more than it can hold");
    (is_closed, there.ok_or(damaged))
}

/// Whether what was loaded before was that of segment `number`: its slot is not another's yet.
pub fn is_there(words: &impl Words, geometry: &Geometry, number: u64) -> bool {
    words.fence(Acquire);
    words.load(geometry.slot_at(number) + slot::NUMBER, Acquire) == number.wrapping_add(1)
}

/// What was there at one look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The segment's number.
    pub number: u64,
    /// Packets of it that were taken before.
    pub taken: usize,
    /// Packets of it now.
    pub packets: usize,
    /// Bytes of their blocks.
    pub bytes: usize,
}

impl Look {
    /// Packets that are new.
    pub fn new_packets(&self) -> usize {
        self.packets - self.taken
    }
}

/// How far a consumer has read.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    geometry: Geometry,
    is_lossless: bool,
    /// The segment that is read, and how many of its packets are done.
    number: u64,
    done: usize,
    /// The number of the next packet among all of the ring.
    next: u64,
}

impl Cursor {
    /// Where the producer has put the consumer of this page.
    pub fn new(geometry: Geometry, page: &impl Words, is_lossless: bool) -> Self {
        Self {
            geometry,
            is_lossless,
            number: page.load(consumer::RELEASED, Acquire),
            done: 0,
            next: page.load(consumer::FIRST, Acquire),
        }
    }

    /// The first segment that was not released.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Goes on to the next segment where this one is done, and says what is new; skips what was overwritten.
    pub fn look(&mut self, ring: &impl Words, page: &impl Words) -> Result<Option<Look>, RingError> {
        loop {
            let begun = begun(ring);
            if self.number >= begun {
                return Ok(None);
            }
            let (is_closed, committed) = committed(ring, &self.geometry, self.number);
            if !is_there(ring, &self.geometry, self.number) {
                if self.is_lossless {
                    return Err(RingError::Damaged(OVERWRITTEN));
                }
                self.skip(ring, page, begun)?;
                continue;
            }
            let (packets, bytes) = committed?;
            if packets < self.done {
                return Err(RingError::Damaged("a segment has fewer packets than before"));
            }
            if packets > self.done {
                return Ok(Some(Look {
                    number: self.number,
                    taken: self.done,
                    packets,
                    bytes,
                }));
            }
            if !is_closed {
                return Ok(None);
            }
            self.go_to(page, self.number + 1);
        }
    }

    /// These packets were taken, and are none of the ring's business any more once their segment is done.
    pub fn took(&mut self, page: &impl Words, look: &Look) {
        self.done = look.packets;
        self.next = self.next.wrapping_add(look.new_packets() as u64);
        add(page, consumer::TAKEN, look.new_packets() as u64);
    }

    /// Gives back all segments up to `number`, of which these packets were taken.
    pub fn release(&mut self, page: &impl Words, number: u64, packets: u64) {
        add(page, consumer::TAKEN, packets);
        self.go_to(page, number.saturating_add(1));
    }

    fn go_to(&mut self, page: &impl Words, number: u64) {
        self.number = number;
        self.done = 0;
        page.store(consumer::RELEASED, number, Release);
    }

    /// Goes to a segment that will not be overwritten at once; what lies between is lost.
    fn skip(&mut self, ring: &impl Words, page: &impl Words, seen: u64) -> Result<(), RingError> {
        // After the end all that is there stays.
        let margin = if is_ended(ring) {
            self.geometry.segments
        } else {
            self.geometry.segments / 2
        };
        let oldest = seen.saturating_sub(margin.into()).max(self.number + 1);
        let there = (oldest..seen).find_map(|number| Some((number, first_of(ring, &self.geometry, number)?)));
        let Some((number, first)) = there else {
            // The newest one is always there, unless it is the newest no more.
            let damaged = RingError::Damaged("its newest segment is not there");
            return (begun(ring) > seen).then_some(()).ok_or(damaged);
        };
        add(page, consumer::LOST, first.saturating_sub(self.next));
        self.next = first;
        self.go_to(page, number);
        Ok(())
    }
}

/// The number of the first packet of a segment, if it is there.
fn first_of(ring: &impl Words, geometry: &Geometry, number: u64) -> Option<u64> {
    let first = ring.load(geometry.slot_at(number) + slot::FIRST, Acquire);
    is_there(ring, geometry, number).then_some(first)
}

/// The number of the oldest packet that was not overwritten.
pub fn oldest(ring: &impl Words, geometry: &Geometry) -> u64 {
    let begun = begun(ring);
    let number = begun.saturating_sub(geometry.segments.into());
    let there = (number..begun).find_map(|number| first_of(ring, geometry, number));
    there.unwrap_or(0)
}

/// Adds to a count of a consumer's page, which nobody else writes.
fn add(page: &impl Words, at: usize, count: u64) {
    page.store(at, page.load(at, Relaxed).wrapping_add(count), Relaxed);
}
