//! Writes numbers for people, as `measure` writes them in its reasons.

pub use measure::units::{
    format_bps as bps, format_count as count, format_rate as pps, format_share as share,
};

/// A time of so many ns in the unit that suits it: `850 ns`, `1.234 us`.
pub fn time(time_ns: f64) -> String {
    measure::units::format_duration(time_ns.round() as u64)
}

/// `number` of a thing: `1 packet`, `35,000,000 packets`.
pub fn counted(number: u64, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", count(number))
}

/// A time for people who wait: `45 s`, `3 min`, `2.1 h`.
pub fn span(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
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
    }
}
