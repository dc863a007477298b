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

/// Where one value is counted, of whichever member.
pub struct Value<'h> {
    ns: u64,
    saturates: bool,
    exact: &'h mut [Exact],
    counts: &'h mut [u64],
}

impl Value<'_> {
    /// `n` packets of `member` had it.
    #[inline]
    pub fn record(&mut self, member: usize, n: u64) {
        let (Some(exact), Some(count)) = (self.exact.get_mut(member), self.counts.get_mut(member)) else {
            return;
        };
        if n == 0 {
            return;
        }
        *count += n;
        exact.sum += u128::from(self.ns) * u128::from(n);
        if self.ns < exact.min {
            exact.min = self.ns;
        }
        if self.ns > exact.max {
            exact.max = self.ns;
        }
        if self.saturates {
            exact.saturated += n;
        }
    }
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

    /// Where `ns` is counted.
    #[inline]
    pub fn value(&mut self, ns: u64) -> Value<'_> {
        let saturates = ns >> RANGE_BITS != 0;
        let bucket = if saturates {
            bucket_count(self.sub_bits) - 1
        } else {
            bucket_of(ns, self.sub_bits)
        };
        let members = self.exact.len();
        let first = bucket * members;
        Value {
            ns,
            saturates,
            exact: &mut self.exact,
            counts: self.counts.get_mut(first..first + members).unwrap_or_default(),
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
                set.value(value >> shift).record(member, n);
            }
            prop_assert_eq!(set.histograms(), plain);
        }
    }
}
