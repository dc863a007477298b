//! Which sequence numbers of a lane have come: new, twice, out of order or too far behind to tell.

use std::hint::black_box;
use std::ops::AddAssign;
use std::sync::Arc;

use crate::stagger;
use crate::time::{Nanos, sign_extend_48};
use crate::union::LaneUnion;

/// Sequence numbers have 48 bits on the wire and wrap.
pub const SEQUENCE_MASK: u64 = (1 << 48) - 1;

/// What a run of packets turned out to be; `fresh + duplicate + too_old` is the length of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Packets seen for the first time, reordered ones included.
    pub fresh: u64,
    /// Packets seen before.
    pub duplicate: u64,
    /// Those of `fresh` that came after a packet with a higher number (RFC 4737, section 3.3).
    pub reordered: u64,
    /// The largest extent among them: next expected number less the packet's own, at the time it came.
    ///
    /// RFC 4737, section 4.2, counts positions of arrival instead; without loss both are the same.
    pub extent_max: u64,
    /// Packets further behind than the window (or before the first number): new or not, nobody can tell.
    pub too_old: u64,
}

impl AddAssign for Outcome {
    /// Sums the counts and keeps the larger extent.
    #[inline]
    fn add_assign(&mut self, other: Outcome) {
        self.fresh += other.fresh;
        self.duplicate += other.duplicate;
        self.reordered += other.reordered;
        self.extent_max = self.extent_max.max(other.extent_max);
        self.too_old += other.too_old;
    }
}

/// Sequence numbers of a lane that had not come when a later one did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The lane.
    pub lane: u16,
    /// The first of them.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// When the later one was received.
    pub at: Nanos,
}

/// A bitmap over the last numbers before the next expected one.
///
/// Bit `i mod bits` belongs to number i for the numbers in `next - bits .. next`; a number is new exactly if its bit
/// is clear. Advancing clears (or sets) every bit it passes, at most the whole window once.
#[derive(Debug, Clone)]
pub struct SequenceWindow {
    words: Box<[u64]>,
    /// Where numbers go that leave the window, if other queues see the lane, too.
    union: Option<Arc<LaneUnion>>,
    /// Next expected number, unwrapped; numbers start at [`ORIGIN`].
    next: u64,
    /// So many numbers before `next` came one after the other, and their bits are not set yet: words of a thousand lanes
    /// are not all in the nearest cache.
    unwritten: u32,
    /// Words by which this window's numbers are shifted: see [`crate::stagger`].
    shift: u32,
}

/// Where unwrapped numbers start: on the wire this is 0, and there is room for numbers before it.
const ORIGIN: u64 = 1 << 48;

/// Bits are set from so many on.
const WORD: u32 = 64;
/// The longest run whose bits may wait for others: a burst.
const RUN_MAX: u64 = 128;

/// A mask of `count` bits (1 to 64) from bit `from` on.
#[inline]
fn mask(from: u64, count: u64) -> u64 {
    (u64::MAX >> (64 - count)) << from
}

impl SequenceWindow {
    /// A window of `bits` numbers, rounded up to a power of two from 64 on; its memory is touched here, not later.
    pub fn new(bits: usize) -> SequenceWindow {
        let words = bits.next_power_of_two().max(64) / 64;
        // Written with ones, and hidden from the optimiser, so that the kernel maps real pages now.
        let mut words = black_box(vec![u64::MAX; words].into_boxed_slice());
        words.fill(0);
        SequenceWindow {
            words,
            shift: stagger::next_lines() as u32 * 8,
            unwritten: 0,
            next: ORIGIN,
            union: None,
        }
    }

    /// The same where other queues see the lane, too: what leaves this window goes to `union`, whole words at a time.
    #[must_use]
    pub fn shared(mut self, union: Option<Arc<LaneUnion>>) -> SequenceWindow {
        self.union = union;
        self
    }

    /// Hands over what is still in the window; nothing comes any more.
    pub fn end(&mut self) {
        self.write();
        if self.union.is_some() {
            // So far beyond the last number that all of the window's words were entered since.
            let last = self.next.wrapping_sub(1) / 64;
            self.hand_over(last + 1, last + self.words.len() as u64);
        }
    }

    /// Hands over the words that the numbers of the words `first` to `last` (numbers / 64) take the place of.
    #[cold]
    fn hand_over(&mut self, first: u64, last: u64) {
        let words = self.words.len() as u64;
        for word in first..=last.min(first + words - 1) {
            // The first of the numbers that were there; before the origin there are none.
            let number = word.saturating_sub(words) * 64;
            let seen = self.word(number).map_or(0, std::mem::take);
            if let (Some(union), true) = (&self.union, seen != 0) {
                union.add(number, seen);
            }
        }
    }

    /// Sets the bits that are not set yet.
    #[inline]
    fn write(&mut self) {
        let n = u64::from(std::mem::take(&mut self.unwritten));
        self.next -= n;
        self.append(n);
    }

    /// Sets the bits of the next `n` numbers: word by word, for a word may be handed over that the first of them are in.
    #[inline]
    fn append(&mut self, n: u64) {
        let mut left = n;
        while left != 0 {
            let count = (64 - self.next % 64).min(left);
            self.enter(count);
            self.fill(self.next, count);
            self.next += count;
            left -= count;
        }
    }

    /// Before the numbers up to `next + n` are written: where they begin new words, the old ones are handed over.
    #[inline]
    fn enter(&mut self, n: u64) {
        let (before, last) = ((self.next - 1) / 64, (self.next + n - 1) / 64);
        if before != last && self.union.is_some() {
            self.hand_over(before + 1, last);
        }
    }

    /// Numbers before the next expected one that the window still knows.
    #[inline]
    fn known(&self) -> u64 {
        // A shared one hands over whole words.
        let handed_over = if self.union.is_some() { 64 } else { 0 };
        (self.bits() - handed_over).min(self.next - ORIGIN)
    }

    /// How many numbers the window holds.
    #[inline]
    pub fn bits(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    /// The next expected number as it stands on the wire.
    pub fn next_expected(&self) -> u64 {
        self.next & SEQUENCE_MASK
    }

    /// Whether `sequence` is beyond the next expected number.
    #[inline]
    pub fn is_ahead(&self, sequence: u64) -> bool {
        sign_extend_48(sequence.wrapping_sub(self.next)) > 0
    }

    /// Records `n` packets with consecutive numbers from `sequence` (48 bits, wrapping) on, if that is what is expected: all
    /// are new then, and in order.
    #[inline]
    pub fn record_expected(&mut self, sequence: u64, n: u64) -> bool {
        let is_next = (sequence ^ self.next) & SEQUENCE_MASK == 0;
        if !is_next || n > RUN_MAX {
            return false;
        }
        self.next += n;
        self.unwritten += n as u32;
        if self.unwritten >= WORD {
            self.write();
        }
        true
    }

    /// Records `n` packets with consecutive numbers from `sequence` (48 bits, wrapping) on.
    pub fn record(&mut self, sequence: u64, n: u64) -> Outcome {
        if self.record_expected(sequence, n) {
            return Outcome {
                fresh: n,
                ..Outcome::default()
            };
        }
        self.write();
        let ahead = sign_extend_48(sequence.wrapping_sub(self.next));
        if n == 0 {
            return Outcome::default();
        }
        if ahead > 0 {
            let gap = ahead.unsigned_abs();
            self.enter(gap);
            self.clear(self.next, gap);
            self.next += gap;
            self.append(n);
            return Outcome {
                fresh: n,
                ..Outcome::default()
            };
        }
        let behind = ahead.unsigned_abs();
        let mut outcome = self.record_behind(behind, n.min(behind));
        if n > behind {
            let rest = n - behind;
            self.append(rest);
            outcome.fresh += rest;
        }
        outcome
    }

    /// A run of `n` numbers that begins `behind` before the next expected one and does not reach it.
    fn record_behind(&mut self, behind: u64, n: u64) -> Outcome {
        let mut outcome = Outcome {
            // Numbers before the first were never sent, and their bits are not theirs.
            too_old: behind.saturating_sub(self.known()).min(n),
            ..Outcome::default()
        };
        let mut number = self.next - behind + outcome.too_old;
        let end = self.next - behind + n;
        while number < end {
            let bit = number % 64;
            let count = (64 - bit).min(end - number);
            let Some(word) = self.word(number) else { break };
            let fresh = !*word & mask(bit, count);
            *word |= fresh;
            if fresh != 0 {
                self.reorder(number - bit, fresh, &mut outcome);
            }
            outcome.duplicate += count - u64::from(fresh.count_ones());
            number += count;
        }
        outcome
    }

    /// Counts the packets of one word that came late but new.
    fn reorder(&self, word_start: u64, fresh: u64, outcome: &mut Outcome) {
        outcome.fresh += u64::from(fresh.count_ones());
        outcome.reordered += u64::from(fresh.count_ones());
        let lowest = word_start + u64::from(fresh.trailing_zeros());
        outcome.extent_max = outcome.extent_max.max(self.next - lowest);
    }

    /// The word of a number.
    #[inline]
    fn word(&mut self, number: u64) -> Option<&mut u64> {
        let index = (number / 64 + u64::from(self.shift)) as usize & (self.words.len() - 1);
        self.words.get_mut(index)
    }

    /// Sets the bits of `n` numbers from `number` on: they were the bits of numbers that now leave the window.
    #[inline]
    fn fill(&mut self, number: u64, n: u64) {
        self.apply(number, n, u64::MAX);
    }

    /// Clears the bits of `n` numbers from `number` on.
    #[inline]
    fn clear(&mut self, number: u64, n: u64) {
        self.apply(number, n, 0);
    }

    /// Writes `pattern` (all ones or all zeros) to the bits of `n` numbers; work is bounded by the window.
    #[inline]
    fn apply(&mut self, number: u64, n: u64, pattern: u64) {
        let mut number = number;
        let mut left = n;
        // A jump beyond the window touches every bit once, whichever numbers they belong to.
        if left > self.bits() {
            self.words.fill(pattern);
            return;
        }
        while left != 0 {
            let bit = number % 64;
            let count = (64 - bit).min(left);
            let mask = mask(bit, count);
            if let Some(word) = self.word(number) {
                *word = (*word & !mask) | (pattern & mask);
            }
            number += count;
            left -= count;
        }
    }
}
