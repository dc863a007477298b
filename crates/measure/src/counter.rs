//! A counter with one writer (a worker) and any number of readers (control).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts upwards; only one thread may write, every thread may read.
///
/// `add` is a plain load and store: on x86 an ordinary `add` to memory, never a locked instruction. With two
/// writers counts would be lost; the owner of the counter upholds that there is one.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// A counter at 0.
    pub const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    /// Adds `n`; for the one writer.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Replaces the value; for the one writer.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Keeps the larger of the present value and `value`; for the one writer.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.0.load(Relaxed) {
            self.0.store(value, Relaxed);
        }
    }

    /// Keeps the smaller of the present value and `value`; for the one writer.
    #[inline]
    pub fn lower(&self, value: u64) {
        if value < self.0.load(Relaxed) {
            self.0.store(value, Relaxed);
        }
    }

    /// The value as last published.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_keeps_extremes() {
        let counter = Counter::new();
        counter.add(3);
        counter.add(4);
        assert_eq!(counter.get(), 7);
        counter.raise(5);
        assert_eq!(counter.get(), 7);
        counter.raise(9);
        counter.lower(8);
        assert_eq!(counter.get(), 8);
        counter.set(1);
        assert_eq!(counter.get(), 1);
    }
}
