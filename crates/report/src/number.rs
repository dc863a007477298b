//! Writes numbers for people: grouped counts, rates, bits, and times in the unit that suits them.

/// `35000000` as `35,000,000`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `number` of a thing: `1 packet`, `35,000,000 packets`.
pub fn counted(number: u64, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", count(number))
}

/// Packets per second with an SI prefix and four digits: `3.500 Mpps`.
pub fn pps(rate_pps: f64) -> String {
    scaled(rate_pps, "pps")
}

/// Bits per second with an SI prefix and four digits: `9.920 Gbps`.
pub fn bps(rate_bps: f64) -> String {
    scaled(rate_bps, "bps")
}

fn scaled(value: f64, unit: &str) -> String {
    // 999.95 would read 1000.0: the next prefix begins where four digits end.
    for (size, prefix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= 0.999_95 * size {
            return format!("{} {prefix}{unit}", four_digits(value / size));
        }
    }
    format!("{} {unit}", four_digits(value))
}

fn four_digits(value: f64) -> String {
    match value {
        value if value >= 999.95 => format!("{value:.0}"),
        value if value >= 99.995 => format!("{value:.1}"),
        value if value >= 9.999_5 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

/// A time in ns, us, ms or s, four digits at most: `850 ns`, `1.234 us`.
pub fn time(time_ns: f64) -> String {
    match time_ns {
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999.95e3 => format!("{} us", four_digits(ns / 1e3)),
        ns if ns < 999.95e6 => format!("{} ms", four_digits(ns / 1e6)),
        ns => format!("{} s", four_digits(ns / 1e9)),
    }
}

/// A share of a whole in percent: never `0 %` when there is a part, never `100 %` when some is missing.
pub fn share(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    if part == whole {
        return "100 %".to_owned();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        percent if percent < 0.000_1 => "<0.0001 %".to_owned(),
        percent if percent < 1.0 => format!("{percent:.4} %"),
        percent if percent < 99.995 => format!("{percent:.2} %"),
        percent if percent < 100.0 => ">99.99 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        let texts = [0, 7, 999, 1000, 35_000_000, u64::MAX].map(count);
        assert_eq!(
            texts,
            [
                "0",
                "7",
                "999",
                "1,000",
                "35,000,000",
                "18,446,744,073,709,551,615"
            ]
        );
        assert_eq!(
            [1, 2].map(|number| counted(number, "packet")),
            ["1 packet", "2 packets"]
        );
    }

    #[test]
    fn rates_have_four_digits() {
        let texts = [0.0, 1.0, 999.9, 999.99, 14_880_952.0, 148_809_523.0, 2.5e12].map(pps);
        let expected = [
            "0.000 pps",
            "1.000 pps",
            "999.9 pps",
            "1.000 kpps",
            "14.88 Mpps",
            "148.8 Mpps",
            "2500 Gpps",
        ];
        assert_eq!(texts, expected);
        assert_eq!(bps(999_960_000.0), "1.000 Gbps");
    }

    #[test]
    fn times_take_the_unit_that_suits() {
        let texts = [0.0, 850.4, 999.6, 1234.0, 45_678.0, 999_960.0, 1.5e9].map(time);
        assert_eq!(
            texts,
            [
                "0 ns", "850 ns", "1.000 us", "1.234 us", "45.68 us", "1.000 ms", "1.500 s"
            ]
        );
    }

    #[test]
    fn a_share_never_hides_a_packet() {
        assert_eq!(share(0, 10), "0 %");
        assert_eq!(share(1, 1_000_000_000), "<0.0001 %");
        assert_eq!(share(1, 100_000), "0.0010 %");
        assert_eq!(share(35, 100), "35.00 %");
        assert_eq!(share(999_999, 1_000_000), ">99.99 %");
        assert_eq!(share(10, 10), "100 %");
        assert_eq!(share(0, 0), "0 %");
        assert_eq!(share(3, 2), "150.0 %");
    }
}
