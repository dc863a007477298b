//! What a file says of an interface: its kind of link, and what its time stamps mean.

use std::fmt;

/// Letters of a name that are kept.
const NAME_MAX: usize = 256;
const SECOND_NS: i128 = 1_000_000_000;

/// Where packets of a file were seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number in its section of the file.
    pub id: u32,
    /// Its name, of letters, digits, ASCII signs and spaces; may be empty.
    pub name: String,
    /// What its packets begin with.
    pub link: LinkType,
    /// Bytes kept of each packet, at most; 0 is all.
    pub snap_len: u32,
    /// The unit of its time stamps.
    pub resolution: Resolution,
    /// Seconds to add to its time stamps.
    pub offset_s: i64,
}

/// What a packet's bytes begin with, by the numbers of `LINKTYPE_` (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Ethernet.
    Ethernet,
    /// IPv4 or IPv6, as its first four bits say.
    Raw,
    /// The head of Linux's "any" interface, 16 bytes.
    Sll,
    /// The same, version 2, 20 bytes.
    Sll2,
    /// A protocol family (4 bytes in the byte order of some machine) before IP.
    Null,
    /// The same in network byte order.
    Loopback,
    /// Another one.
    Other(u16),
}

impl LinkType {
    /// By its number in a file.
    pub fn from_number(number: u16) -> Self {
        match number {
            0 => Self::Null,
            1 => Self::Ethernet,
            // Old files have the numbers of some BSD.
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            108 => Self::Loopback,
            113 => Self::Sll,
            276 => Self::Sll2,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ethernet => out.write_str("Ethernet"),
            Self::Raw => out.write_str("raw IP"),
            Self::Sll => out.write_str("of Linux's `any` interface, SLL"),
            Self::Sll2 => out.write_str("of Linux's `any` interface, SLL2"),
            Self::Null => out.write_str("of a BSD loopback interface, NULL"),
            Self::Loopback => out.write_str("of an OpenBSD loopback interface, LOOP"),
            Self::Other(number) => write!(out, "of link type {number}"),
        }
    }
}

/// The unit of time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// So many nanoseconds.
    Nanoseconds(u64),
    /// So many of them are a nanosecond.
    PerNanosecond(u64),
    /// 2 to the power of this are a second.
    PerSecondLog2(u8),
}

impl Resolution {
    /// What pcapng has where it says nothing.
    pub const MICROSECOND: Self = Self::Nanoseconds(1000);
    /// What this project writes.
    pub const NANOSECOND: Self = Self::Nanoseconds(1);

    /// By the option `if_tsresol`: `None` where no 64 bits of such units are a nanosecond.
    pub(super) fn from_option(value: u8) -> Option<Self> {
        let exponent = value & 0x7F;
        if value & 0x80 != 0 {
            return Some(Self::PerSecondLog2(exponent));
        }
        let power = |exponent: u8| 10_u64.checked_pow(u32::from(exponent));
        match exponent {
            0..=9 => power(9 - exponent).map(Self::Nanoseconds),
            _ => power(exponent - 9).map(Self::PerNanosecond),
        }
    }

    /// Digits behind the second that say all there is, up to nanoseconds: 6, or 9.
    pub fn digits(self) -> u8 {
        match self {
            Self::Nanoseconds(ns) if ns % 1000 == 0 => 6,
            Self::PerSecondLog2(0) => 6,
            _ => 9,
        }
    }
}

impl Interface {
    /// An interface of which nothing is known but this.
    pub(super) fn new(id: u32, link: u16, snap_len: u32) -> Self {
        Self {
            id,
            name: String::new(),
            link: LinkType::from_number(link),
            snap_len,
            resolution: Resolution::MICROSECOND,
            offset_s: 0,
        }
    }

    /// Takes a name that anybody may have written: nothing in it moves a cursor or turns the direction of writing.
    pub(super) fn set_name(&mut self, name: &[u8]) {
        let text = String::from_utf8_lossy(name);
        let is_plain = |letter: char| letter == ' ' || letter.is_ascii_graphic();
        let plain = text
            .chars()
            .map(|letter| if is_plain(letter) { letter } else { '?' });
        self.name = plain.take(NAME_MAX).collect();
    }

    /// A time stamp in nanoseconds; `None` if 64 bits do not hold it.
    #[inline]
    pub(super) fn time_ns(&self, stamp: u64) -> Option<i64> {
        match self.resolution {
            Resolution::Nanoseconds(1) if self.offset_s == 0 => i64::try_from(stamp).ok(),
            _ => self.any_time_ns(stamp),
        }
    }

    fn any_time_ns(&self, stamp: u64) -> Option<i64> {
        let ns = match self.resolution {
            Resolution::Nanoseconds(ns) => i128::from(stamp) * i128::from(ns),
            Resolution::PerNanosecond(units) => i128::from(stamp / units),
            // Below 2 to the power of 94; a shift has 127 places at most.
            Resolution::PerSecondLog2(exponent) => (i128::from(stamp) * SECOND_NS) >> exponent,
        };
        i64::try_from(ns + i128::from(self.offset_s) * SECOND_NS).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(option: u8, offset_s: i64, stamp: u64) -> Option<i64> {
        let mut interface = Interface::new(0, 1, 0);
        interface.resolution = Resolution::from_option(option)?;
        interface.offset_s = offset_s;
        interface.time_ns(stamp)
    }

    #[test]
    fn every_resolution_becomes_nanoseconds() {
        assert_eq!(time(0, 0, 7), Some(7_000_000_000));
        assert_eq!(time(6, 0, 7), Some(7000));
        assert_eq!(time(6, -1, 1_000_007), Some(7000));
        assert_eq!(time(9, 0, 7), Some(7));
        assert_eq!(time(9, 2, 7), Some(2_000_000_007));
        assert_eq!(time(12, 0, 7999), Some(7));
        assert_eq!(time(0x8A, 0, 1536), Some(1_500_000_000));
        assert_eq!(time(0xFF, 0, u64::MAX), Some(0));
    }

    #[test]
    fn what_no_64_bits_hold_is_no_time() {
        assert_eq!(time(0, 0, u64::MAX), None);
        assert_eq!(time(9, 0, u64::MAX), None);
        assert_eq!(time(9, i64::MAX, 0), None);
        assert_eq!(time(29, 0, u64::MAX), None);
    }
}
