//! How the time of a packet is written.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::text::Text;

const SECOND_NS: i64 = 1_000_000_000;

/// A way to write a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// The time of day: `15:04:05.678901`.
    #[default]
    Clock,
    /// With its date: `2026-01-02 15:04:05.678901`.
    Date,
    /// Seconds since the epoch of Unix: `1767366245.678901`.
    Epoch,
    /// As RFC 3339 has it: `2026-01-02T15:04:05.678901Z`. For UTC only.
    Iso,
}

/// Writes times. What a second looks like is worked out once for all packets of that second.
#[derive(Debug)]
pub struct Clock {
    format: TimeFormat,
    zone: TimeZone,
    second: Option<i64>,
    text: Text,
}

impl Clock {
    /// Of UTC, or of the time zone of this machine (`TZ` in the environment, else `/etc/localtime`).
    pub fn new(format: TimeFormat, is_utc: bool) -> Self {
        Self {
            format,
            zone: if is_utc { TimeZone::UTC } else { TimeZone::system() },
            second: None,
            text: Text::default(),
        }
    }

    /// Writes a time with this many digits behind the second, 6 or 9; dashes for one that is not known.
    #[inline]
    pub fn write(&mut self, text: &mut Text, time_ns: Option<i64>, digits: u8) {
        let Some(time_ns) = time_ns else {
            text.put("--:--:--.------");
            return;
        };
        let (mut second, mut fraction) = (time_ns.div_euclid(SECOND_NS), time_ns.rem_euclid(SECOND_NS));
        if time_ns < 0 && self.format == TimeFormat::Epoch {
            // A number's sign is that of all of it.
            text.byte(b'-');
            (second, fraction) = ((time_ns / SECOND_NS).abs(), (time_ns % SECOND_NS).abs());
        }
        let fraction = fraction as u32;
        if self.second != Some(second) {
            self.begin(second);
        }
        text.bytes(self.text.as_bytes()).six(fraction / 1000);
        if digits > 6 {
            text.byte(b'0' + (fraction / 100 % 10) as u8).pair(fraction);
        }
        if self.format == TimeFormat::Iso {
            text.byte(b'Z');
        }
    }

    #[cold]
    fn begin(&mut self, second: i64) {
        self.second = Some(second);
        self.text.clear();
        let text = &mut self.text;
        if self.format == TimeFormat::Epoch {
            text.number(second).byte(b'.');
            return;
        }
        // Nanoseconds of 64 bits are within the years that it knows.
        let stamp = Timestamp::from_second(second).unwrap_or_default();
        let time = self.zone.to_datetime(stamp);
        if self.format != TimeFormat::Clock {
            text.number(time.year())
                .byte(b'-')
                .pair(time.month() as u32)
                .byte(b'-');
            text.pair(time.day() as u32)
                .byte(if self.format == TimeFormat::Iso {
                    b'T'
                } else {
                    b' '
                });
        }
        for part in [time.hour(), time.minute()] {
            text.pair(part as u32).byte(b':');
        }
        text.pair(time.second() as u32).byte(b'.');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(format: TimeFormat, time_ns: Option<i64>, digits: u8) -> String {
        let mut text = Text::default();
        Clock::new(format, true).write(&mut text, time_ns, digits);
        String::from_utf8(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn as_tcpdump_writes_it() {
        let time = Some(1_767_366_245_678_901_234);
        assert_eq!(said(TimeFormat::Clock, time, 6), "15:04:05.678901");
        assert_eq!(said(TimeFormat::Clock, time, 9), "15:04:05.678901234");
        assert_eq!(said(TimeFormat::Date, time, 6), "2026-01-02 15:04:05.678901");
        assert_eq!(said(TimeFormat::Epoch, time, 9), "1767366245.678901234");
        assert_eq!(said(TimeFormat::Iso, time, 9), "2026-01-02T15:04:05.678901234Z");
        assert_eq!(said(TimeFormat::Clock, None, 9), "--:--:--.------");
    }

    #[test]
    fn before_the_epoch_and_at_the_ends() {
        assert_eq!(
            said(TimeFormat::Date, Some(-1), 9),
            "1969-12-31 23:59:59.999999999"
        );
        assert_eq!(
            said(TimeFormat::Date, Some(i64::MAX), 6),
            "2262-04-11 23:47:16.854775"
        );
        assert_eq!(
            said(TimeFormat::Date, Some(i64::MIN), 6),
            "1677-09-21 00:12:43.145224"
        );
        for (time_ns, expected) in [
            (-500_000_000, "-0.500000000"),
            (-1_500_000_000, "-1.500000000"),
            (-2_000_000_000, "-2.000000000"),
            (i64::MIN, "-9223372036.854775808"),
        ] {
            assert_eq!(said(TimeFormat::Epoch, Some(time_ns), 9), expected);
        }
    }

    /// Each second has its own hour, also where the clock is put on in between.
    #[test]
    fn a_second_after_another() {
        let mut clock = Clock {
            zone: TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap(),
            ..Clock::new(TimeFormat::Clock, true)
        };
        let mut text = Text::default();
        // 2026-03-29 01:00 UTC.
        for second in [1_774_745_999, 1_774_746_000, 1_774_746_000] {
            clock.write(&mut text, Some(second * SECOND_NS), 6);
            text.put(" ");
        }
        let text = String::from_utf8(text.as_bytes().to_vec()).unwrap();
        assert_eq!(text, "01:59:59.000000 03:00:00.000000 03:00:00.000000 ");
    }
}
