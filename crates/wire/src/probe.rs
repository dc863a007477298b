//! The probe: the 18 bytes at the start of the UDP payload by which a packet is known again.
//!
//! Big-endian: magic and version (2 bytes), run (1), lag code (1, see [`crate::lag`]), lane (2), sequence
//! (6), time (6).

use crate::bytes::{be16, be64, put_be16, put_be64};

/// Bytes of a probe.
pub const PROBE_LEN: usize = 18;
/// First two bytes of every probe: the mark 0xD7 and version 1.
pub const MAGIC: u16 = 0xD701;

pub(crate) const LOW_48: u64 = 0xFFFF_FFFF_FFFF;

/// What a probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Random per run, so that stragglers of another run are not counted as ours.
    pub run: u8,
    /// Lag code, see [`crate::lag::decode`].
    pub lag: u8,
    /// One sequence space: (port, transmit queue, stream).
    pub lane: u16,
    /// Counts up from 0 within the lane, modulo 2^48.
    pub sequence: u64,
    /// Instant of sending, `CLOCK_MONOTONIC` nanoseconds modulo 2^48.
    pub time_ns: u64,
}

impl Probe {
    /// Reads a probe; `None` without the magic.
    #[inline]
    #[must_use]
    pub fn read(bytes: &[u8; PROBE_LEN]) -> Option<Self> {
        (be16(bytes, 0) == MAGIC).then(|| Self::read_unchecked(bytes))
    }

    /// Reads a probe whose magic is known to be there.
    #[inline]
    pub(crate) fn read_unchecked(bytes: &[u8; PROBE_LEN]) -> Self {
        Self {
            run: bytes[2],
            lag: bytes[3],
            lane: be16(bytes, 4),
            sequence: be64(bytes, 4) & LOW_48,
            time_ns: be64(bytes, 10) & LOW_48,
        }
    }

    /// Writes the probe; sequence and time modulo 2^48.
    #[inline]
    pub fn write(&self, bytes: &mut [u8; PROBE_LEN]) {
        // The time's upper two bytes are zeros that the sequence then overwrites.
        put_be64(bytes, 10, self.time_ns & LOW_48);
        put_be64(bytes, 4, u64::from(self.lane) << 48 | (self.sequence & LOW_48));
        put_be16(bytes, 0, MAGIC);
        bytes[2] = self.run;
        bytes[3] = self.lag;
    }
}

/// What all packets of one burst have in common, with its share of the checksum worked out once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstStamp {
    pub(crate) time_ns: u64,
    /// Sum of the time's and the lag's words, unfolded, below 2^49.
    pub(crate) sum: u64,
    pub(crate) lag: u8,
}

impl BurstStamp {
    /// `time_ns` is the instant of sending (only its low 48 bits travel), `lag` a code made by
    /// [`crate::lag::encode`].
    #[inline]
    #[must_use]
    pub const fn new(time_ns: u64, lag: u8) -> Self {
        let time_ns = time_ns & LOW_48;
        Self {
            time_ns,
            sum: time_ns + lag as u64,
            lag,
        }
    }

    /// The time that receivers will read, modulo 2^48.
    #[inline]
    #[must_use]
    pub const fn time_ns(&self) -> u64 {
        self.time_ns
    }
}
