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
    let shift = (value | (1 << sub_bits)).ilog2() - sub_bits;
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

impl Default for Exact {
    /// Of no value.
    fn default() -> Self {
        Self {
            sum: 0,
            min: u64::MAX,
            max: 0,
            saturated: 0,
        }
    }
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
        Histogram {
            sub_bits,
            count: counts.iter().copied().fold(0, u64::saturating_add),
            counts,
            sum: exact.sum,
            min: exact.min,
            max: exact.max,
            saturated: exact.saturated,
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

    /// The sum of all values in ns, exact.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Every bucket that counted something, the lowest first: its largest value, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(bucket, count)| (highest_of(bucket, self.sub_bits), *count))
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
#[path = "histogram_tests.rs"]
mod tests;
