//! A histogram that one worker writes and control reads at the same time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::counter::Counter;
use crate::histogram::{Exact, Histogram, RANGE_BITS, bucket_count, bucket_of, clamp_sub_bits};
use crate::stagger;

/// One bucket; the width of the count differs between the two forms.
pub trait Bucket: Default {
    /// Adds `n`, staying at the largest value instead of wrapping; for the one writer.
    fn add(&self, n: u64);
    /// The count.
    fn get(&self) -> u64;
    /// Sets the count to 0.
    fn clear(&self);
}

impl Bucket for AtomicU64 {
    #[inline]
    fn add(&self, n: u64) {
        self.store(self.load(Relaxed).saturating_add(n), Relaxed);
    }

    fn get(&self) -> u64 {
        self.load(Relaxed)
    }

    fn clear(&self) {
        self.store(0, Relaxed);
    }
}

impl Bucket for AtomicU32 {
    #[inline]
    fn add(&self, n: u64) {
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        self.store(self.load(Relaxed).saturating_add(n), Relaxed);
    }

    fn get(&self) -> u64 {
        u64::from(self.load(Relaxed))
    }

    fn clear(&self) {
        self.store(0, Relaxed);
    }
}

/// A [`Histogram`] of one writer and any number of readers, without locked instructions.
///
/// A snapshot taken while the worker writes may miss what it writes just then; once the worker has stopped (or has
/// handed the histogram over) it is exact.
#[derive(Debug)]
pub struct Shared<B> {
    sub_bits: u32,
    min: Counter,
    max: Counter,
    sum_low: Counter,
    sum_high: Counter,
    saturated: Counter,
    /// Unused buckets before the first: see [`crate::stagger`].
    lead: usize,
    buckets: Box<[B]>,
}

/// For a whole run: counts of 64 bits.
pub type SharedHistogram = Shared<AtomicU64>;

/// For one interval: counts of 32 bits (4 KiB at `sub_bits` 5), which stay at 4.29e9 packets in a bucket.
pub type CompactHistogram = Shared<AtomicU32>;

impl<B: Bucket> Shared<B> {
    /// An empty histogram with a relative error of 2^-`sub_bits` (`sub_bits` from 1 to 16), all memory touched.
    pub fn new(sub_bits: u32) -> Shared<B> {
        let sub_bits = clamp_sub_bits(sub_bits);
        let lead = stagger::next_lines() * 64 / size_of::<B>();
        let shared = Shared {
            sub_bits,
            lead,
            min: Counter::new(),
            max: Counter::new(),
            sum_low: Counter::new(),
            sum_high: Counter::new(),
            saturated: Counter::new(),
            buckets: (0..lead + bucket_count(sub_bits)).map(|_| B::default()).collect(),
        };
        shared.clear();
        shared
    }

    /// Records `n` packets with `value` ns; for the one writer.
    #[inline]
    pub fn record(&self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.min.lower(value);
        self.max.raise(value);
        self.add_to_sum(value, n);
        let index = if value >> RANGE_BITS == 0 {
            bucket_of(value, self.sub_bits)
        } else {
            self.saturate(n)
        };
        if let Some(bucket) = self.buckets.get(self.lead + index) {
            bucket.add(n);
        }
    }

    /// Adds `value * n` to the 128-bit sum.
    #[inline]
    fn add_to_sum(&self, value: u64, n: u64) {
        let product = u128::from(value) * u128::from(n);
        let (low, carry) = self.sum_low.get().overflowing_add(product as u64);
        self.sum_low.set(low);
        let high = (product >> 64) as u64 + u64::from(carry);
        // Almost never: the high word stays untouched for days.
        if high != 0 {
            self.sum_high.add(high);
        }
    }

    /// Counts values beyond the range and gives the top bucket.
    #[cold]
    fn saturate(&self, n: u64) -> usize {
        self.saturated.add(n);
        self.buckets.len() - self.lead - 1
    }

    /// What has been recorded so far.
    pub fn snapshot(&self) -> Histogram {
        let counts = self.buckets.iter().skip(self.lead).map(Bucket::get).collect();
        let exact = Exact {
            sum: (u128::from(self.sum_high.get()) << 64) | u128::from(self.sum_low.get()),
            min: self.min.get(),
            max: self.max.get(),
            saturated: self.saturated.get(),
        };
        Histogram::from_parts(self.sub_bits, counts, exact)
    }

    /// Forgets everything; only while the writer does not write.
    pub fn clear(&self) {
        self.buckets.iter().for_each(Bucket::clear);
        self.min.set(u64::MAX);
        self.max.set(0);
        self.sum_low.set(0);
        self.sum_high.set(0);
        self.saturated.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_snapshot_equals_the_plain_histogram(
            records in prop::collection::vec((any::<u64>(), 0u32..64, 0u64..1_000), 0..200),
            sub_bits in 1u32..11,
        ) {
            let mut plain = Histogram::new(sub_bits);
            let (wide, compact) = (SharedHistogram::new(sub_bits), CompactHistogram::new(sub_bits));
            for (value, shift, n) in records {
                plain.record(value >> shift, n);
                wide.record(value >> shift, n);
                compact.record(value >> shift, n);
            }
            prop_assert_eq!(&wide.snapshot(), &plain);
            prop_assert_eq!(&compact.snapshot(), &plain);
            wide.clear();
            prop_assert_eq!(wide.snapshot(), Histogram::new(sub_bits));
        }
    }

    #[test]
    fn the_sum_carries_beyond_64_bits() {
        let shared = SharedHistogram::new(5);
        shared.record(u64::MAX, 3);
        shared.record(u64::MAX, 1);
        let mean = shared.snapshot().mean().unwrap();
        assert!((mean / u64::MAX as f64 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_compact_bucket_stays_full_instead_of_wrapping() {
        let shared = CompactHistogram::new(5);
        shared.record(7, u64::from(u32::MAX));
        shared.record(7, 5);
        assert_eq!(shared.snapshot().count(), u64::from(u32::MAX));
    }
}
