//! Names moments in UTC, for directories and files.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 86_400;

/// The moment as `2025-11-20T23-30-45Z`: sorts by time, and has no character that a file system or a shell
/// minds. Moments before 1970 read as 1970.
pub fn stamp(moment: SystemTime) -> String {
    let seconds = moment
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (year, month, day) = civil_date(seconds / SECONDS_PER_DAY);
    let of_day = seconds % SECONDS_PER_DAY;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}Z")
}

/// A name such as `2025-11-20T23-30-45Z-send`: the moment, and what follows it.
pub fn stamped(name: &str) -> Option<(&str, &str)> {
    const FORM: &str = "0000-00-00T00-00-00Z";
    let (stamp, rest) = name.split_at_checked(FORM.len())?;
    let is_alike = |(c, form): (char, char)| {
        if form == '0' {
            c.is_ascii_digit()
        } else {
            c == form
        }
    };
    let is_stamp = stamp.chars().zip(FORM.chars()).all(is_alike);
    is_stamp.then(|| (stamp, rest.trim_start_matches('-')))
}

/// The stamp as people write it, without its zone: `2025-11-20 23:30:45`; `between` stands before the hour.
pub fn spoken(stamp: &str, between: &str) -> String {
    let (day, time) = stamp.trim_end_matches('Z').split_once('T').unwrap_or((stamp, ""));
    format!("{day}{between}{}", time.replace('-', ":"))
}

/// Year, month and day of the Gregorian calendar, `days` after 1970-01-01.
/// The year is taken to start in March, which puts the leap day last (Hinnant, "`chrono`-compatible low-level
/// date algorithms", `civil_from_days`).
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> String {
        stamp(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn known_moments() {
        // Each from `date -u -d @N +%FT%H-%M-%SZ`.
        assert_eq!(at(0), "1970-01-01T00-00-00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23-59-59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00-00-00Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23-59-59Z");
        assert_eq!(at(1_763_681_445), "2025-11-20T23-30-45Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00-00-00Z");
    }

    #[test]
    fn a_stamp_is_found_in_a_name_and_spoken() {
        assert_eq!(
            stamped("2025-11-20T23-30-45Z-send-2"),
            Some(("2025-11-20T23-30-45Z", "send-2"))
        );
        assert_eq!(
            stamped("2025-11-20T23-30-45Z"),
            Some(("2025-11-20T23-30-45Z", ""))
        );
        for other in [
            "",
            "before",
            "2025-11-20T23:30:45Z-send",
            "é025-11-20T23-30-45Z-send",
        ] {
            assert_eq!(stamped(other), None, "{other}");
        }
        assert_eq!(spoken("2025-11-20T23-30-45Z", " "), "2025-11-20 23:30:45");
    }

    #[test]
    fn before_1970_is_1970() {
        assert_eq!(stamp(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00-00-00Z");
    }
}
