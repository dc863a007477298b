//! Reads and prints what people write: rates, durations, counts, shares.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::pacer::Rate;

/// Preamble, start delimiter and inter-frame gap: what a frame costs on layer 1 beyond its own bytes.
pub const LAYER1_OVERHEAD_BYTES: f64 = 20.0;

/// What Ethernet makes of a frame of `len` bytes without FCS: with it, and filled up to 64 (IEEE 802.3 section 4.2.3.3).
pub fn frame_on_wire(len: u64) -> u64 {
    const FCS: u64 = 4;
    const SHORTEST: u64 = 64;
    (len + FCS).max(SHORTEST)
}

/// A text that is not the value it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} {found:?} is not understood: write {wanted}")]
pub struct UnitError {
    what: &'static str,
    found: String,
    wanted: &'static str,
}

impl UnitError {
    /// An error that says what was wanted and what was found.
    pub fn new(what: &'static str, found: &str, wanted: &'static str) -> UnitError {
        UnitError {
            what,
            found: found.to_owned(),
            wanted,
        }
    }
}

/// A rate as asked for, before frame size and link speed are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateSpec {
    /// As fast as the sender can.
    Max,
    /// Packets per second.
    Pps(f64),
    /// Bits per second on layer 1: frame with FCS plus 20 bytes of preamble and gap.
    BpsL1(f64),
    /// Bits per second on layer 2: frame with FCS.
    BpsL2(f64),
    /// Percent of the link speed (layer 1).
    Percent(f64),
}

/// Why a rate cannot be turned into packets per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RateError {
    /// A percentage needs a link speed.
    #[error("a rate in percent needs a link speed, and this port reports none: give the rate in pps or bps")]
    NoLinkSpeed,
}

impl RateSpec {
    /// What to write where it is no rate at all.
    const WANTED: &str = "3.5Mpps, 10Gbps, 10GbpsL2, 50% or max";

    /// Whether what was wrong with a text is its number alone.
    pub(crate) fn is_of_bounds(error: &UnitError) -> bool {
        error.wanted != Self::WANTED
    }

    /// The rate in packets of `frame_size` bytes (with FCS; the mean of a mix) on a link of `link_bps`.
    pub fn resolve(self, frame_size: f64, link_bps: Option<f64>) -> Result<Rate, RateError> {
        let layer1_bits = (frame_size + LAYER1_OVERHEAD_BYTES) * 8.0;
        Ok(match self {
            RateSpec::Max => Rate::Max,
            RateSpec::Pps(pps) => Rate::Pps(pps),
            RateSpec::BpsL1(bps) => Rate::Pps(bps / layer1_bits),
            RateSpec::BpsL2(bps) => Rate::Pps(bps / (frame_size * 8.0)),
            RateSpec::Percent(percent) => {
                let link_bps = link_bps.filter(|bps| *bps > 0.0).ok_or(RateError::NoLinkSpeed)?;
                Rate::Pps(link_bps * percent / 100.0 / layer1_bits)
            }
        })
    }
}

/// Packets per second: from about one a day to far above every link there is. Results tell the gap between two packets, ns,
/// and how many were intended, and up to 2^53 a fraction counts either: hours of the highest rate.
const PPS: RangeInclusive<f64> = 1e-5..=1e12;
/// The same of bits.
const BPS: RangeInclusive<f64> = 1.0..=1e15;
/// The same of percent: a bit a second of 10 Mbit/s, and all of a link.
const PERCENT: RangeInclusive<f64> = 1e-5..=100.0;

impl FromStr for RateSpec {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<RateSpec, UnitError> {
        let wrong = || UnitError::new("rate", text, RateSpec::WANTED);
        let lower = text.trim().to_ascii_lowercase();
        if lower == "max" {
            return Ok(RateSpec::Max);
        }
        let (number, unit) = split_number(&lower).ok_or_else(wrong)?;
        let bits = (BPS, "a rate from 1bps to 1000Tbps");
        // Layers are of bits only: there is no ppsL2.
        let (prefix, rate, (range, bounds)): (_, fn(f64) -> RateSpec, _) = if unit == "%" {
            ("", RateSpec::Percent, (PERCENT, "a rate from 0.00001% to 100%"))
        } else if let Some(prefix) = unit.strip_suffix("pps") {
            (prefix, RateSpec::Pps, (PPS, "a rate from 0.00001pps to 1Tpps"))
        } else if let Some(prefix) = unit.strip_suffix("bpsl2") {
            (prefix, RateSpec::BpsL2, bits)
        } else {
            let prefix = unit.strip_suffix("l1").unwrap_or(unit).strip_suffix("bps");
            (prefix.ok_or_else(wrong)?, RateSpec::BpsL1, bits)
        };
        let value = number * decimal_prefix(prefix).ok_or_else(wrong)?;
        if range.contains(&value) {
            Ok(rate(value))
        } else {
            Err(UnitError::new("rate", text, bounds))
        }
    }
}

impl fmt::Display for RateSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RateSpec::Max => write!(f, "max"),
            RateSpec::Pps(pps) => write!(f, "{}pps", exact(pps)),
            RateSpec::BpsL1(bps) => write!(f, "{}bps", exact(bps)),
            RateSpec::BpsL2(bps) => write!(f, "{}bpsL2", exact(bps)),
            RateSpec::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The number with the largest prefix that keeps it 1 or more, to be read back as it was.
#[allow(
    clippy::float_cmp,
    reason = "the very question is whether the product is the same number"
)]
fn exact(value: f64) -> String {
    for (factor, prefix) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        // Only where the division loses nothing: what is printed must mean the same rate.
        if value >= factor && (value / factor) * factor == value {
            return format!("{}{prefix}", value / factor);
        }
    }
    format!("{value}")
}

/// The factor of a lower-case decimal prefix.
pub(crate) fn decimal_prefix(prefix: &str) -> Option<f64> {
    match prefix {
        "" => Some(1.0),
        "k" => Some(1e3),
        "m" => Some(1e6),
        "g" => Some(1e9),
        "t" => Some(1e12),
        _ => None,
    }
}

/// Splits `1.5abc` into its non-negative number and the trimmed rest.
pub(crate) fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse::<f64>().ok()?;
    Some((number, text[end..].trim()))
}

/// Nanoseconds in one of a unit of time.
pub(crate) fn time_unit_ns(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1.0),
        "us" | "µs" | "μs" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        "m" | "min" => Some(60e9),
        "h" => Some(3600e9),
        _ => None,
    }
}

/// Reads a duration such as `10s`, `500ms`, `1m30s`.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let wanted = "a number and a unit: 500us, 100ms, 10s, 1m30s, 1h";
    let wrong = || UnitError::new("duration", text, wanted);
    let mut rest = text.trim();
    let mut total_ns = 0.0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, tail) = split_number(rest).ok_or_else(wrong)?;
        let end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        total_ns += number * time_unit_ns(tail[..end].trim()).ok_or_else(wrong)?;
        rest = &tail[end..];
    }
    // A year is beyond any run, and far inside what 64 bits of nanoseconds hold.
    if total_ns > 365.0 * 86_400e9 {
        return Err(UnitError::new(
            "duration",
            text,
            "a number and a unit, a year at most: 100ms, 10s, 1m30s, 8760h",
        ));
    }
    Ok(Duration::from_nanos(total_ns.round() as u64))
}

/// Reads a count such as `1000`, `10k`, `1.5M`, `1_000_000`.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let wrong = || UnitError::new("count", text, "a whole number, such as 1000, 10k or 1.5M");
    let plain = text.trim().replace('_', "");
    if let Ok(count) = plain.parse::<u64>() {
        return Ok(count);
    }
    let lower = plain.to_ascii_lowercase();
    let (number, prefix) = split_number(&lower).ok_or_else(wrong)?;
    let factor = decimal_prefix(prefix).filter(|_| !prefix.is_empty());
    let value = number * factor.ok_or_else(wrong)?;
    let rounded = value.round();
    // 2^53: above, neighbouring whole numbers are one f64.
    if rounded < 9_007_199_254_740_992.0 && (value - rounded).abs() < 1e-6 {
        Ok(rounded as u64)
    } else {
        Err(wrong())
    }
}

/// Reads a size in bytes such as `4096`, `64KiB`, `100MB` or `1G` (10^9).
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let wrong = || {
        UnitError::new(
            "size",
            text,
            "a number of bytes, such as 4096, 64KiB, 100MB or 1G",
        )
    };
    let lower = text.trim().to_ascii_lowercase();
    let (number, unit) = split_number(&lower).ok_or_else(wrong)?;
    let unit = unit.strip_suffix('b').unwrap_or(unit);
    let factor = match unit.strip_suffix('i') {
        Some(prefix) if !prefix.is_empty() => {
            let powers = decimal_prefix(prefix).ok_or_else(wrong)?.log10() / 3.0;
            1024_f64.powf(powers.round())
        }
        Some(_) => return Err(wrong()),
        None => decimal_prefix(unit).ok_or_else(wrong)?,
    };
    let bytes = (number * factor).round();
    // 2^53: above, neighbouring whole numbers are one f64.
    if bytes < 9_007_199_254_740_992.0 {
        Ok(bytes as u64)
    } else {
        Err(wrong())
    }
}

/// A value with an SI prefix and three to four digits, such as `3.500 M`; the unit follows directly.
pub fn format_si(value: f64, unit: &str) -> String {
    for (factor, prefix) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        // 0.9995: what would round to 1000 of one prefix is written as 1 of the next.
        if value.abs() >= factor * 0.9995 {
            return format!("{} {prefix}{unit}", digits(value / factor));
        }
    }
    if value.fract() == 0.0 {
        format!("{value} {unit}")
    } else {
        format!("{} {unit}", digits(value))
    }
}

/// Four significant digits for values from 1 to 1000.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.995 => format!("{value:.1}"),
        v if v >= 9.9995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A rate in packets per second, such as `14.88 Mpps`.
pub fn format_rate(pps: f64) -> String {
    format_si(pps, "pps")
}

/// A bit rate, such as `10.00 Gbit/s`.
pub fn format_bps(bps: f64) -> String {
    format_si(bps, "bit/s")
}

/// A length of time in the unit that suits it, such as `12.34 us`.
pub fn format_duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_949 => format!("{} us", digits(value / 1e3)),
        999_950..=999_949_999 => format!("{} ms", digits(value / 1e6)),
        _ => format!("{} s", digits(value / 1e9)),
    }
}

/// A whole number in groups of three, such as `1,234,567`.
pub fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A part of a whole (0 to 1) in percent: never `0 %` for something, nor `100 %` for less than everything.
pub fn format_part(part: f64) -> String {
    match part {
        0.0 => "0 %".to_owned(),
        1.0 => "100 %".to_owned(),
        _ if part < 1e-6 => "<0.0001 %".to_owned(),
        _ if part > 0.999_999 && part < 1.0 => ">99.9999 %".to_owned(),
        _ => format!("{:.4} %", part * 100.0),
    }
}

/// The same of two counts.
pub fn format_share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format_part(part as f64 / whole as f64)
}
