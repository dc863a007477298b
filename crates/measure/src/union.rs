//! What several receive queues saw of one lane, together: a number that two of them saw came twice.
//!
//! Each queue has a window of its own, and hands over what leaves it; a copy is found when the second queue hands over
//! the same number. Nobody waits for anybody: a word of the union is 32 numbers and the time round the ring to which
//! they belong, and is changed in one step.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers of one word.
const NUMBERS: u64 = 32;

/// The union of a lane's windows.
#[derive(Debug)]
pub struct LaneUnion {
    words: Box<[AtomicU64]>,
    copies: AtomicU64,
    unsure: AtomicU64,
}

impl LaneUnion {
    /// For windows of `bits` numbers. One of them may be behind another by as many.
    pub fn new(bits: usize) -> Self {
        let words = (2 * bits.next_power_of_two() / NUMBERS as usize).max(4);
        // Written with ones, and hidden from the optimiser, so that the kernel maps real pages now.
        let words: Box<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(black_box(u64::MAX))).collect();
        words.iter().for_each(|word| word.store(0, Relaxed));
        Self {
            words,
            copies: AtomicU64::new(0),
            unsure: AtomicU64::new(0),
        }
    }

    /// Packets that one queue took for first ones, and another one, too: all but one of each are copies.
    pub fn copies(&self) -> u64 {
        self.copies.load(Relaxed)
    }

    /// Packets of which nobody can tell any more whether they are copies: their queue was too far behind another one.
    pub fn unsure(&self) -> u64 {
        self.unsure.load(Relaxed)
    }

    /// Takes the 64 numbers from `first` (a multiple of 64) on that a queue has seen, a bit each; each number once a queue.
    pub(crate) fn add(&self, first: u64, seen: u64) {
        for (place, seen) in [
            (first / NUMBERS, seen as u32),
            (first / NUMBERS + 1, (seen >> 32) as u32),
        ] {
            if seen != 0 {
                self.add_word(place, seen);
            }
        }
    }

    fn add_word(&self, place: u64, seen: u32) {
        let len = self.words.len() as u64;
        let Some(word) = self.words.get((place % len) as usize) else {
            return;
        };
        let round = (place / len) as u32;
        let mut old = word.load(Relaxed);
        loop {
            let (old_round, old_seen) = ((old >> 32) as u32, old as u32);
            let all = match old_round.cmp(&round) {
                std::cmp::Ordering::Less => seen,
                std::cmp::Ordering::Equal => old_seen | seen,
                std::cmp::Ordering::Greater => {
                    self.unsure.fetch_add(u64::from(seen.count_ones()), Relaxed);
                    return;
                }
            };
            let new = u64::from(round) << 32 | u64::from(all);
            match word.compare_exchange_weak(old, new, Relaxed, Relaxed) {
                Err(now) => old = now,
                Ok(_) if old_round == round && old_seen & seen != 0 => {
                    let copies = u64::from((old_seen & seen).count_ones());
                    self.copies.fetch_add(copies, Relaxed);
                    return;
                }
                Ok(_) => return,
            }
        }
    }
}
