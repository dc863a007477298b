//! Checksums, lag codes, pattern and stamp against slow, obvious versions of themselves.

#![allow(
    clippy::unwrap_used,
    clippy::single_match_else,
    reason = "tests say what they expect"
)]

use crate::common::slow_sum;
use proptest::prelude::*;
use wire::{BurstStamp, PROBE_LEN, Probe, checksum, lag, pattern};

/// Folds, and reads the little-endian sum in network order.
fn folded(sum: u64) -> u16 {
    checksum::fold(sum).swap_bytes()
}

#[test]
fn rfc_1071_example() {
    let bytes = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
    assert_eq!(folded(checksum::sum(&bytes)), 0xDDF2);
    assert_eq!(checksum::field(checksum::sum(&bytes)), [0x22, 0x0D]);
}

#[test]
fn only_udp_has_two_forms_of_zero() {
    let ones = checksum::sum(&[0xFF, 0xFF]);
    assert_eq!(
        (checksum::field(ones), checksum::udp_field(ones)),
        ([0, 0], [0xFF, 0xFF])
    );
    assert_eq!(
        (checksum::field(1), checksum::udp_field(1)),
        ([0xFE, 0xFF], [0xFE, 0xFF])
    );
}

#[test]
fn the_largest_sums_do_not_overflow() {
    for len in [0, 1, 7, 8, 9, 31, 32, 33, 63, 65_535, 1 << 20] {
        let ones = vec![0xFF; len];
        assert_eq!(folded(checksum::sum(&ones)), slow_sum(&ones), "{len}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn wide_sums_are_right(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xFF), Just(0)], 0..2000)) {
        prop_assert_eq!(folded(checksum::sum(&bytes)), slow_sum(&bytes));
        let whole = [&bytes[..], &[0_u8; 1][..bytes.len() % 2], &checksum::field(checksum::sum(&bytes))].concat();
        prop_assert!(checksum::is_valid(checksum::sum(&whole)));
    }

    #[test]
    fn validity_is_a_fold_to_all_ones(sum: u64) {
        prop_assert_eq!(checksum::is_valid(sum), checksum::fold(sum) == 0xFFFF);
        let multiple = sum - sum % 65535;
        prop_assert_eq!(checksum::is_valid(multiple), multiple != 0);
    }

    #[test]
    fn lag_is_never_understated_and_at_most_a_tenth_over(lag_ns in prop_oneof![0_u64..1000, 0_u64..50_000_000_000]) {
        let told_ns = lag::decode(lag::encode(lag_ns));
        prop_assert!(told_ns >= lag_ns);
        prop_assert!(told_ns <= (lag_ns + lag_ns / 10).max(16) + 1, "{} told as {}", lag_ns, told_ns);
    }

    #[test]
    fn probes_survive_the_wire(run: u8, lag: u8, lane: u16, sequence in 0_u64..1 << 48, time_ns in 0_u64..1 << 48) {
        let probe = Probe { run, lag, lane, sequence, time_ns };
        let mut bytes = [0xEE; PROBE_LEN];
        probe.write(&mut bytes);
        prop_assert_eq!(Probe::read(&bytes), Some(probe));
        bytes[1] ^= 2;
        prop_assert_eq!(Probe::read(&bytes), None);
        prop_assert_eq!(BurstStamp::new(time_ns | 1 << 50, lag).time_ns(), time_ns);
    }
}

proptest! {
    // Few, for the slow sum is slow.
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_pattern_s_sum_is_the_sum_of_the_pattern(run: u8, lane: u16, len in prop_oneof![0_usize..200, 0..=pattern::MAX_LEN]) {
        let bytes = pattern::expected(run, lane, len).unwrap();
        let sum = pattern::expected_sum(run, lane, len).unwrap();
        prop_assert_eq!(bytes.len(), len);
        prop_assert_eq!(folded(sum), slow_sum(bytes));
    }
}

#[test]
fn the_pattern_ends_somewhere() {
    for run in 0..=255 {
        assert!(pattern::expected(run, 0, pattern::MAX_LEN).is_some());
        assert!(pattern::expected_sum(run, 0, pattern::MAX_LEN).is_some());
        assert_eq!(pattern::expected(run, 0, 1 << 20), None);
        assert_eq!(pattern::expected_sum(run, 0, 1 << 20), None);
    }
}

#[test]
fn lag_codes_follow_their_formula() {
    assert_eq!(
        (lag::decode(0), lag::decode(1), lag::encode(0), lag::encode(1)),
        (0, 16, 0, 1)
    );
    for code in 1..=255_u8 {
        let exact_ns = 16.0 * 2_f64.powf((f64::from(code) - 1.0) / 8.0);
        assert!(
            (lag::decode(code) as f64 - exact_ns.ceil()).abs() <= 1.0,
            "{code}"
        );
        assert!(lag::decode(code) > lag::decode(code - 1));
        assert_eq!(lag::encode(lag::decode(code)), code);
        if let (Some(next), true) = (code.checked_add(1), code > 0) {
            assert_eq!(lag::encode(lag::decode(code) + 1), next);
        }
    }
    assert_eq!(
        (lag::encode(u64::MAX), lag::encode(lag::decode(255) + 1)),
        (255, 255)
    );
}
