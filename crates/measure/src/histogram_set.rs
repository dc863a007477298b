//! Histograms of many streams, of one writer.

use std::hint::black_box;

use crate::histogram::{Exact, Histogram, RANGE_BITS, bucket_count, bucket_of, clamp_sub_bits};

/// A [`Histogram`] of each of so many members, as one worker writes them.
///
/// The counts of one bucket lie side by side: members that are recorded in turn mostly have values alike, and so share lines
/// of the cache and pages, where blocks of their own would take one of each for every member.
#[derive(Debug)]
pub struct HistogramSet {
    sub_bits: u32,
    exact: Vec<Exact>,
    /// By bucket, then by member.
    counts: Box<[u64]>,
}

impl HistogramSet {
    /// Empty histograms with a relative error of 2^-`sub_bits` (`sub_bits` from 1 to 16), all memory touched.
    pub fn new(members: usize, sub_bits: u32) -> HistogramSet {
        let sub_bits = clamp_sub_bits(sub_bits);
        // Written with ones, and hidden from the optimiser, so that the kernel maps real pages now.
        let mut counts = black_box(vec![u64::MAX; members * bucket_count(sub_bits)].into_boxed_slice());
        counts.fill(0);
        HistogramSet {
            sub_bits,
            exact: vec![Exact::default(); members],
            counts,
        }
    }

    /// Records `n` packets of `member` with `value` ns.
    #[inline]
    pub fn record(&mut self, member: usize, value: u64, n: u64) {
        let members = self.exact.len();
        let Some(exact) = self.exact.get_mut(member).filter(|_| n > 0) else {
            return;
        };
        exact.sum += u128::from(value) * u128::from(n);
        exact.min = exact.min.min(value);
        exact.max = exact.max.max(value);
        let bucket = if value >> RANGE_BITS == 0 {
            bucket_of(value, self.sub_bits)
        } else {
            exact.saturated += n;
            bucket_count(self.sub_bits) - 1
        };
        if let Some(count) = self.counts.get_mut(bucket * members + member) {
            *count += n;
        }
    }

    /// All of them.
    pub fn histograms(&self) -> Vec<Histogram> {
        let buckets = bucket_count(self.sub_bits);
        let mut counts = vec![vec![0; buckets]; self.exact.len()];
        // As they lie, and not by member: each would read a line of every bucket.
        for (bucket, row) in self.counts.chunks_exact(self.exact.len().max(1)).enumerate() {
            for (counts, count) in counts.iter_mut().zip(row) {
                counts[bucket] = *count;
            }
        }
        let of = |(counts, exact)| Histogram::from_parts(self.sub_bits, counts, exact);
        counts
            .into_iter()
            .zip(self.exact.iter().copied())
            .map(of)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_equals_the_plain_histogram(
            records in prop::collection::vec((0_usize..4, any::<u64>(), 0u32..64, 0u64..1_000), 0..200),
            sub_bits in 1u32..11,
        ) {
            let mut plain = vec![Histogram::new(sub_bits); 3];
            let mut set = HistogramSet::new(3, sub_bits);
            for (member, value, shift, n) in records {
                if let Some(plain) = plain.get_mut(member) {
                    plain.record(value >> shift, n);
                }
                set.record(member, value >> shift, n);
            }
            prop_assert_eq!(set.histograms(), plain);
        }
    }
}
