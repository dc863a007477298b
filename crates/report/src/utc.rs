//! Names moments in UTC, for directories and files.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// The moment as `2025-11-20T23-30-45Z`: sorts by time, and has no character that a file system or a shell
/// minds. Moments before 1970 read as 1970.
pub fn stamp(moment: SystemTime) -> String {
    let moment = Timestamp::try_from(moment.max(UNIX_EPOCH)).unwrap_or(Timestamp::MAX);
    moment.strftime("%Y-%m-%dT%H-%M-%SZ").to_string()
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
