//! Writes numbers for people, as `measure` writes them in its reasons.

pub use measure::units::{
    format_bps as bps, format_count as count, format_part as loss, format_rate as pps, format_share as share,
};

/// A time of so many ns in the unit that suits it: `850 ns`, `1.234 us`.
pub fn time(time_ns: f64) -> String {
    measure::units::format_duration(time_ns.round() as u64)
}

/// The same of a whole number of ns, where there is one.
pub fn ns(time_ns: Option<u64>) -> Option<String> {
    time_ns.map(|ns| time(ns as f64))
}

/// A part of a whole (0 to 1), where also the smallest are told apart: `0.0312 %`, `1.20e-7 %`.
pub fn ratio(part: f64) -> String {
    match part {
        _ if part != 0.0 && part < 1e-6 => format!("{:.2e} %", part * 100.0),
        _ => loss(part),
    }
}

/// A part of a whole (0 to 1) in two digits, where more would say nothing; never 0 % of something: `0.050 %`, `49 %`.
pub fn two_digits(part: f64) -> String {
    let percent = part * 100.0;
    if percent <= 0.0 {
        return "0 %".to_owned();
    }
    // By what it is rounded to: 9.97 is 10.
    let digits = 1.0 - (percent * 1.005).log10().floor();
    format!("{percent:.precision$} %", precision = digits.max(0.0) as usize)
}

/// The speed of a link: `25 Gbit/s`.
pub fn link_speed(mbps: u32) -> String {
    round(&bps(f64::from(mbps) * 1e6))
}

/// A number with its unit, without the zeros behind its point: `2.50 Gbit/s` is `2.5 Gbit/s`.
pub fn round(text: &str) -> String {
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}")
        }
        _ => text.to_owned(),
    }
}

/// `number` of a thing: `1 packet`, `35,000,000 packets`.
pub fn counted(number: u64, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", count(number))
}

/// A time for people who wait, in its two largest units: `45 s`, `2 min 20 s`, `1 h 3 min`.
pub fn span(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let two = |large: u64, unit: &str, small: u64, smaller: &str| match small {
        0 => format!("{large} {unit}"),
        small => format!("{large} {unit} {small} {smaller}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        _ => {
            let minutes = (seconds + 30) / 60;
            two(minutes / 60, "h", minutes % 60, "min")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_units() {
        assert_eq!(
            [1, 2000].map(|number| counted(number, "packet")),
            ["1 packet", "2,000 packets"]
        );
        assert_eq!([0.4, 849.6, 1234.4].map(time), ["0 ns", "850 ns", "1.234 us"]);
        assert_eq!(time(-1.0), "0 ns");
        assert_eq!(
            [100, 2_500, 25_000].map(link_speed),
            ["100 Mbit/s", "2.5 Gbit/s", "25 Gbit/s"]
        );
    }

    #[test]
    fn a_part_is_never_all_of_something() {
        let parts = [0.0, 1.2e-9, 0.000_312, 1_000_000_000.0 / 1_000_000_001.0, 1.0];
        assert_eq!(
            parts.map(ratio),
            ["0 %", "1.20e-7 %", "0.0312 %", ">99.9999 %", "100 %"]
        );
        assert_eq!(loss(34_999_999.0 / 35_000_000.0), ">99.9999 %");
        assert_eq!(loss(0.999_999), "99.9999 %");
    }

    #[test]
    fn two_digits_are_never_none_of_something() {
        assert_eq!(
            [0.0, 5e-8, 0.0005, 0.00997, 0.0754, 0.0997, 0.4856, 1.0].map(two_digits),
            [
                "0 %",
                "0.0000050 %",
                "0.050 %",
                "1.0 %",
                "7.5 %",
                "10 %",
                "49 %",
                "100 %"
            ]
        );
    }

    /// One rule, whatever the length: nobody has to compare minutes with seconds and parts of hours.
    #[test]
    fn times_to_wait() {
        assert_eq!(
            [0.0, 45.2, 59.6, 84.0, 140.0, 3780.0, 4000.0, 8280.0, 90_000.0].map(span),
            [
                "0 s",
                "45 s",
                "1 min",
                "1 min 24 s",
                "2 min 20 s",
                "1 h 3 min",
                "1 h 7 min",
                "2 h 18 min",
                "25 h"
            ]
        );
    }
}
