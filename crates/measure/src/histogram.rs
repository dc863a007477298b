//! A histogram of times with a bounded relative error, mergeable, with exact minimum, maximum and sum.

/// Values up to 2^36 ns (68 s) have a bucket of their own size; longer ones share the top bucket.
pub const RANGE_BITS: u32 = 36;

/// How many buckets a histogram with `sub_bits` has.
pub(crate) const fn bucket_count(sub_bits: u32) -> usize {
    ((RANGE_BITS - sub_bits + 1) << sub_bits) as usize
}

/// Keeps `sub_bits` where buckets make sense: 1 (50 %) to 16 (0.0015 %).
pub(crate) const fn clamp_sub_bits(sub_bits: u32) -> u32 {
    if sub_bits < 1 {
        1
    } else if sub_bits > 16 {
        16
    } else {
        sub_bits
    }
}

/// The bucket of a value below 2^36: exact below 2^`sub_bits`, then 2^`sub_bits` buckets to every power of two.
#[inline]
pub(crate) fn bucket_of(value: u64, sub_bits: u32) -> usize {
    let shift = 63 - (value | (1 << sub_bits)).leading_zeros() - sub_bits;
    ((u64::from(shift) << sub_bits) + (value >> shift)) as usize
}

/// The largest value of a bucket.
pub(crate) fn highest_of(bucket: usize, sub_bits: u32) -> u64 {
    let bucket = bucket as u64;
    let block = bucket >> sub_bits;
    // The first two blocks are exact: shift 0.
    let shift = block.saturating_sub(1);
    let mantissa = bucket - (shift << sub_bits);
    ((mantissa + 1) << shift) - 1
}

/// Counts of values in ns, read as percentiles; the relative error is at most 2^-`sub_bits`.
///
/// Values from 2^36 ns on are counted in the top bucket and as [`Histogram::saturated`]; a percentile that falls
/// there is given as the exact maximum, never as less than the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    sub_bits: u32,
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    saturated: u64,
}

/// The exact figures a histogram keeps beside its buckets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exact {
    pub sum: u128,
    pub min: u64,
    pub max: u64,
    pub saturated: u64,
}

impl Histogram {
    /// An empty histogram with a relative error of 2^-`sub_bits` (`sub_bits` from 1 to 16).
    pub fn new(sub_bits: u32) -> Histogram {
        let sub_bits = clamp_sub_bits(sub_bits);
        Histogram {
            sub_bits,
            counts: vec![0; bucket_count(sub_bits)],
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
            saturated: 0,
        }
    }

    /// A histogram from buckets counted elsewhere.
    pub(crate) fn from_parts(sub_bits: u32, counts: Vec<u64>, exact: Exact) -> Histogram {
        let count = counts
            .iter()
            .fold(0u64, |sum, &bucket| sum.saturating_add(bucket));
        let Exact {
            sum,
            min,
            max,
            saturated,
        } = exact;
        Histogram {
            sub_bits,
            counts,
            count,
            sum,
            min,
            max,
            saturated,
        }
    }

    /// Records `n` packets with `value` ns.
    pub fn record(&mut self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        if value >> RANGE_BITS != 0 {
            self.saturated += n;
        }
        let bucket = bucket_of(value.min((1 << RANGE_BITS) - 1), self.sub_bits);
        self.counts[bucket] += n;
        self.count += n;
        self.sum += u128::from(value) * u128::from(n);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all of `other`; with different resolutions the coarser one's error remains.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if self.sub_bits == other.sub_bits {
            for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
                *mine += theirs;
            }
        } else {
            for (bucket, &n) in other.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
                self.counts[bucket_of(highest_of(bucket, other.sub_bits), self.sub_bits)] += n;
            }
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.saturated += other.saturated;
    }

    /// The value that `percent` percent of the packets do not exceed, in ns; `None` when empty.
    ///
    /// It is the upper end of the bucket, at most the exact maximum: never below the truth, above it by at most
    /// 2^-`sub_bits`. `percent` is resolved to 0.0001.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        // Whole parts per million, so that 99.9 % of 1000 packets is the 999th and not, by rounding, the 1000th.
        let millionths = (percent.clamp(0.0, 100.0) * 1e4).round() as u128;
        let rank = (millionths * u128::from(self.count)).div_ceil(1_000_000).max(1);
        if rank == 1 {
            return Some(self.min);
        }
        let mut seen = 0u128;
        for (bucket, &n) in self.counts.iter().enumerate() {
            seen += u128::from(n);
            if seen >= rank {
                let top = bucket + 1 == self.counts.len() && self.saturated > 0;
                return Some(if top {
                    self.max
                } else {
                    highest_of(bucket, self.sub_bits).min(self.max)
                });
            }
        }
        Some(self.max)
    }

    /// The arithmetic mean in ns; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest value in ns, exact.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value in ns, exact.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Packets recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Packets with 2^36 ns or more.
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// The resolution: the relative error is at most 2^-`sub_bits`.
    pub fn sub_bits(&self) -> u32 {
        self.sub_bits
    }

    /// 99.9th percentile less minimum: the packet delay variation of RFC 8219, section 7.3.1, in ns.
    pub fn pdv(&self) -> Option<u64> {
        Some(self.percentile(99.9)?.saturating_sub(self.min()?))
    }

    /// The same counts as an `HdrHistogram` with three significant digits, for `.hgrm` and other tools.
    pub fn to_hdr(&self) -> Result<hdrhistogram::Histogram<u64>, hdrhistogram::CreationError> {
        let mut hdr = hdrhistogram::Histogram::new_with_bounds(1, self.max.max(2), 3)?;
        let last = self.counts.len() - 1;
        let mut first = true;
        for (bucket, &n) in self.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let value = if bucket == last && self.saturated > 0 {
                u64::MAX
            } else {
                highest_of(bucket, self.sub_bits)
            };
            // One packet of the lowest bucket is known exactly.
            let exact = u64::from(first);
            first = false;
            hdr.saturating_record_n(self.min, exact);
            hdr.saturating_record_n(value.min(self.max), n - exact);
        }
        Ok(hdr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The value of the rank that `percent` means, from the sorted values themselves.
    fn naive(sorted: &[u64], percent_millionths: usize) -> u64 {
        let rank = (percent_millionths * sorted.len()).div_ceil(1_000_000).max(1);
        sorted[rank - 1]
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = prop_oneof![
            0u64..100,
            0u64..100_000,
            (0u32..36).prop_map(|bits| 1 << bits),
            0u64..(1 << 36)
        ];
        prop::collection::vec(value, 1..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn percentiles_stay_within_the_bound(mut values in values(), sub_bits in 1u32..12) {
            let mut histogram = Histogram::new(sub_bits);
            values.iter().for_each(|&value| histogram.record(value, 1));
            values.sort_unstable();
            for millionths in [0, 500_000, 900_000, 990_000, 999_000, 999_900, 1_000_000] {
                let truth = naive(&values, millionths);
                let found = histogram.percentile(millionths as f64 / 1e4).unwrap();
                prop_assert!(found >= truth, "{found} understates {truth}");
                prop_assert!(found - truth <= truth >> sub_bits, "{found} overstates {truth}");
            }
            prop_assert_eq!(histogram.min(), values.first().copied());
            prop_assert_eq!(histogram.max(), values.last().copied());
            let mean = values.iter().map(|&value| value as f64).sum::<f64>() / values.len() as f64;
            prop_assert!((histogram.mean().unwrap() - mean).abs() <= mean * 1e-9);
        }

        #[test]
        fn a_merge_is_as_if_recorded_together(a in values(), b in values()) {
            let (mut first, mut second, mut both) = (Histogram::new(7), Histogram::new(7), Histogram::new(7));
            for value in &a { first.record(*value, 3); both.record(*value, 3); }
            for value in &b { second.record(*value, 1); both.record(*value, 1); }
            first.merge(&second);
            prop_assert_eq!(first, both);
        }

        #[test]
        fn every_value_lies_in_its_bucket(value in 0u64..(1 << 36), sub_bits in 1u32..17) {
            let bucket = bucket_of(value, sub_bits);
            prop_assert!(bucket < bucket_count(sub_bits));
            prop_assert!(value <= highest_of(bucket, sub_bits));
            prop_assert!(bucket == 0 || value > highest_of(bucket - 1, sub_bits));
        }
    }

    #[test]
    fn an_empty_histogram_has_no_values() {
        let mut empty = Histogram::new(10);
        empty.record(5, 0);
        assert_eq!(empty.percentile(50.0), None);
        assert_eq!(
            (empty.min(), empty.max(), empty.mean(), empty.pdv()),
            (None, None, None, None)
        );
    }

    #[test]
    fn above_the_range_the_maximum_stays_true() {
        let mut histogram = Histogram::new(5);
        histogram.record(1, 1);
        histogram.record(1 << 40, 2);
        assert_eq!(histogram.saturated(), 2);
        assert_eq!(histogram.percentile(99.0), Some(1 << 40));
        assert_eq!(histogram.percentile(10.0), Some(1));
    }

    #[test]
    fn the_bucket_edges_of_3_percent() {
        assert_eq!(bucket_count(5), 1024);
        assert_eq!(highest_of(bucket_of(31, 5), 5), 31);
        assert_eq!(highest_of(bucket_of(63, 5), 5), 63);
        assert_eq!(highest_of(bucket_of(64, 5), 5), 65);
        assert_eq!(bucket_of((1 << 36) - 1, 5), 1023);
    }

    #[test]
    fn a_thousand_packets_have_their_999th() {
        let mut histogram = Histogram::new(10);
        histogram.record(10, 999);
        histogram.record(1_000, 1);
        assert_eq!(histogram.percentile(99.9), Some(10));
        assert_eq!(histogram.pdv(), Some(0));
        assert_eq!(histogram.percentile(100.0), Some(1_000));
    }

    #[test]
    fn merging_a_finer_one_keeps_count_and_extremes() {
        let (mut coarse, mut fine) = (Histogram::new(5), Histogram::new(10));
        fine.record(1_000, 4);
        fine.record(123_456, 1);
        coarse.merge(&fine);
        assert_eq!(
            (coarse.count(), coarse.min(), coarse.max()),
            (5, Some(1_000), Some(123_456))
        );
        assert!(coarse.percentile(50.0).unwrap() - 1_000 <= 1_000 / 16);
    }

    #[test]
    fn hdr_sees_the_same_packets() {
        let mut histogram = Histogram::new(10);
        for value in 1..=10_000u64 {
            histogram.record(value * 7, 2);
        }
        histogram.record(1 << 40, 1);
        let hdr = histogram.to_hdr().unwrap();
        assert_eq!(hdr.len(), histogram.count());
        assert_eq!(hdr.min(), 7);
        assert!(hdr.max() >= 1 << 40);
        let (ours, theirs) = (
            histogram.percentile(90.0).unwrap() as f64,
            hdr.value_at_quantile(0.9) as f64,
        );
        assert!((ours - theirs).abs() / ours < 0.002);
    }
}
