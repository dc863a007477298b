//! What people write and read: rates, durations, counts, shares.
#![allow(clippy::panic, reason = "a test helper shows the error it met")]

use std::time::Duration;

use measure::units::{
    RateError, format_bps, format_count, format_duration, format_rate, format_share, parse_count,
    parse_duration,
};
use measure::{Rate, RateSpec};
use proptest::prelude::*;

fn rate(text: &str) -> RateSpec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn rates_are_read() {
    assert_eq!(rate("max"), RateSpec::Max);
    assert_eq!(rate("3.5Mpps"), RateSpec::Pps(3.5e6));
    assert_eq!(rate("100pps"), RateSpec::Pps(100.0));
    assert_eq!(rate(" 10 kpps "), RateSpec::Pps(1e4));
    assert_eq!(rate("10Gbps"), RateSpec::BpsL1(1e10));
    assert_eq!(rate("10GbpsL1"), RateSpec::BpsL1(1e10));
    assert_eq!(rate("10gbpsl2"), RateSpec::BpsL2(1e10));
    assert_eq!(rate("50%"), RateSpec::Percent(50.0));
}

#[test]
fn wrong_rates_are_refused() {
    for text in [
        "", "10", "fast", "-1Mpps", "10Mpp", "10GbpsL3", "10MppsL2", "1e6pps", "Mpps", "1..5Mpps", "maximum",
        "5xbps", "1Mbps/s",
    ] {
        let error = text.parse::<RateSpec>().unwrap_err().to_string();
        assert!(
            error.starts_with("rate ") && error.contains("3.5Mpps, 10Gbps"),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_rate_that_no_result_could_tell_is_refused() {
    // Three hours of the highest, and the gap at the lowest, are whole numbers that an f64 has.
    assert_eq!(rate("1Tpps"), RateSpec::Pps(1e12));
    assert_eq!(rate("1000Tbps"), RateSpec::BpsL1(1e15));
    assert_eq!(rate("0.000012pps"), RateSpec::Pps(0.000_012));
    assert_eq!(rate("1bpsL2"), RateSpec::BpsL2(1.0));
    assert_eq!(rate("0.00001%"), RateSpec::Percent(0.000_01));
    for (text, bounds) in [
        ("0pps", "from 0.00001pps to 1Tpps"),
        ("1.001Tpps", "from 0.00001pps to 1Tpps"),
        ("1000Tpps", "from 0.00001pps to 1Tpps"),
        ("0.0000001pps", "from 0.00001pps to 1Tpps"),
        ("99999999999999999999999999pps", "from 0.00001pps to 1Tpps"),
        ("9999999999999999Gbps", "from 1bps to 1000Tbps"),
        ("0.9bpsL2", "from 1bps to 1000Tbps"),
        ("0%", "from 0.00001% to 100%"),
        ("101%", "from 0.00001% to 100%"),
        ("0.000009%", "from 0.00001% to 100%"),
    ] {
        let error = text.parse::<RateSpec>().unwrap_err().to_string();
        assert!(error.contains(bounds), "{text}: {error}");
    }
}

#[test]
fn rates_become_packets() {
    // 64-byte line rate is 14.88 Mpps per 10 Gbit/s on layer 1.
    let Ok(Rate::Pps(pps)) = rate("10Gbps").resolve(64.0, None) else {
        panic!("no rate")
    };
    assert!((pps - 14_880_952.38).abs() < 0.01);
    assert_eq!(rate("50%").resolve(64.0, Some(1e10)), Ok(Rate::Pps(pps / 2.0)));
    assert_eq!(rate("512MbpsL2").resolve(64.0, None), Ok(Rate::Pps(1e6)));
    assert_eq!(rate("max").resolve(64.0, None), Ok(Rate::Max));
    assert_eq!(rate("7pps").resolve(1518.0, None), Ok(Rate::Pps(7.0)));
    assert_eq!(rate("50%").resolve(64.0, None), Err(RateError::NoLinkSpeed));
    assert_eq!(rate("50%").resolve(64.0, Some(0.0)), Err(RateError::NoLinkSpeed));
}

proptest! {
    #[test]
    fn a_printed_rate_is_the_same_rate(value in prop_oneof![1.0..1e12f64, (1u64..1_000_000).prop_map(|v| v as f64 * 1e3)],
                                       kind in 0usize..3) {
        let spec = [RateSpec::Pps(value), RateSpec::BpsL1(value), RateSpec::BpsL2(value)][kind];
        let back = rate(&spec.to_string());
        let (RateSpec::Pps(found) | RateSpec::BpsL1(found) | RateSpec::BpsL2(found)) = back else {
            return Err(TestCaseError::fail("another kind"));
        };
        prop_assert_eq!(std::mem::discriminant(&spec), std::mem::discriminant(&back));
        prop_assert!((found / value - 1.0).abs() < 1e-15);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,12}") {
        let _ = text.parse::<RateSpec>();
        let _ = text.parse::<measure::SizeMix>();
        let _ = text.parse::<measure::Expectation>();
        let _ = format!("loss<{text}").parse::<measure::Expectation>();
        let _ = parse_duration(&text);
        let _ = parse_count(&text);
    }
}

#[test]
fn durations_are_read() {
    for (text, ns) in [
        ("10s", 10_000_000_000),
        ("500ms", 500_000_000),
        ("100us", 100_000),
        ("1m", 60_000_000_000),
        ("1m30s", 90_000_000_000),
        ("1.5s", 1_500_000_000),
        ("1h", 3_600_000_000_000),
        ("7ns", 7),
        (" 2 s ", 2_000_000_000),
    ] {
        assert_eq!(parse_duration(text), Ok(Duration::from_nanos(ns)), "{text}");
    }
    for text in ["", "10", "s", "10 x", "-1s", "1s2", "1e3s", "9000000h", "..s"] {
        let error = parse_duration(text).unwrap_err().to_string();
        assert!(error.contains("1m30s"), "{text}: {error}");
    }
}

#[test]
fn counts_are_read() {
    for (text, count) in [
        ("0", 0),
        ("1000", 1_000),
        ("10k", 10_000),
        ("1.5M", 1_500_000),
        ("2G", 2_000_000_000),
    ] {
        assert_eq!(parse_count(text), Ok(count), "{text}");
    }
    assert_eq!(parse_count("1_000_000"), Ok(1_000_000));
    assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
    for text in [
        "",
        "1.5",
        "0.0001k",
        "-1",
        "k",
        "10kk",
        "18446744073709551616",
        "1x",
    ] {
        assert!(parse_count(text).is_err(), "{text}");
    }
}

#[test]
fn figures_are_printed_for_people() {
    assert_eq!(format_rate(14_880_952.38), "14.88 Mpps");
    assert_eq!(format_rate(3.5e6), "3.500 Mpps");
    assert_eq!(format_rate(999_999.0), "1.000 Mpps");
    assert_eq!(format_rate(100.0), "100 pps");
    assert_eq!(format_rate(0.0), "0 pps");
    assert_eq!(format_bps(1e10), "10.00 Gbit/s");
    assert_eq!(format_duration(0), "0 ns");
    assert_eq!(format_duration(12_340), "12.34 us");
    assert_eq!(format_duration(999_999), "1.000 ms");
    assert_eq!(format_duration(2_000_000_000), "2.000 s");
    assert_eq!(format_count(0), "0");
    assert_eq!(format_count(999), "999");
    assert_eq!(format_count(1_234_567), "1,234,567");
}

#[test]
fn a_share_never_hides_a_packet() {
    assert_eq!(format_share(0, 10), "0 %");
    assert_eq!(format_share(10, 10), "100 %");
    assert_eq!(format_share(1, 10_000_000_000), "<0.0001 %");
    assert_eq!(format_share(9_999_999_999, 10_000_000_000), ">99.9999 %");
    assert_eq!(format_share(1, 1_000), "0.1000 %");
    assert_eq!(format_share(0, 0), "-");
}
