//! The histogram against sorted vectors, and its edges.

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
        for &value in &values {
            histogram.record(value, 1);
        }
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
