//! The classic format: a head of 24 bytes, then records.

use super::interface::{Interface, Resolution};
use super::step::{Found, RECORD_MAX, Step};

/// Bytes of the file's head.
pub const HEAD_LEN: usize = 24;
const MICROSECONDS: u32 = 0xA1B2_C3D4;
const NANOSECONDS: u32 = 0xA1B2_3C4D;
/// With 8 further bytes a record, as a patch to Linux 2.2 wrote them.
const EXTENDED: u32 = 0xA1B2_CD34;

/// How the records of a file are written.
pub struct Pcap {
    is_big_endian: bool,
    record_head: usize,
    fraction_ns: i64,
}

impl Pcap {
    /// Whether a file that begins so is one.
    pub fn is_begun_by(head: &[u8]) -> bool {
        magic(head).is_some()
    }

    /// By the head of a file; `None` if it is none of pcap, or not all of it is there.
    pub fn new(head: &[u8]) -> Result<Option<(Self, Interface)>, &'static str> {
        let (Some((magic, is_big_endian)), Some(head)) = (magic(head), head.first_chunk::<HEAD_LEN>()) else {
            return Ok(None);
        };
        let (record_head, resolution) = match magic {
            NANOSECONDS => (16, Resolution::NANOSECOND),
            EXTENDED => (24, Resolution::MICROSECOND),
            _ => (16, Resolution::MICROSECOND),
        };
        let versions = word(head, 4, is_big_endian);
        let major = if is_big_endian {
            versions >> 16
        } else {
            versions & 0xFFFF
        };
        if major != 2 {
            return Err("it is pcap of another version than 2");
        }
        // The upper half says how long a check sequence is.
        let link = word(head, 20, is_big_endian) as u16;
        let interface = Interface {
            resolution,
            ..Interface::new(0, link, word(head, 16, is_big_endian))
        };
        let pcap = Self {
            is_big_endian,
            record_head,
            fraction_ns: if magic == NANOSECONDS { 1 } else { 1000 },
        };
        Ok(Some((pcap, interface)))
    }

    /// What `bytes` begin with.
    #[inline]
    pub fn step(&self, bytes: &[u8]) -> Result<Step, &'static str> {
        let Some(head) = bytes.first_chunk::<16>() else {
            return Ok(Step::More(self.record_head));
        };
        let [seconds, fraction, captured, original_len] =
            [0, 4, 8, 12].map(|at| word(head, at, self.is_big_endian));
        let data = self.record_head..self.record_head + captured as usize;
        if data.end > RECORD_MAX {
            return Err("a packet claims more than 16 MiB");
        }
        if data.end > bytes.len() {
            return Ok(Step::More(data.end));
        }
        // Below 2 to the power of 62.
        let time_ns = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.fraction_ns;
        let len = data.end;
        let found = Found {
            interface: 0,
            time_ns: Some(time_ns),
            original_len: original_len.max(captured),
            data,
            direction: None,
            dropped: None,
            queue: None,
            comment: None,
        };
        Ok(Step::Packet(found, len))
    }
}

/// What a file begins with, and whether its numbers begin with their highest byte.
fn magic(head: &[u8]) -> Option<(u32, bool)> {
    let head = head.first_chunk::<4>()?;
    [false, true]
        .map(|is_big_endian| (word(head, 0, is_big_endian), is_big_endian))
        .into_iter()
        .find(|(magic, _)| matches!(*magic, MICROSECONDS | NANOSECONDS | EXTENDED))
}

#[inline]
fn word<const N: usize>(bytes: &[u8; N], at: usize, is_big_endian: bool) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    if is_big_endian {
        u32::from_be_bytes(word)
    } else {
        u32::from_le_bytes(word)
    }
}
