//! What a format finds at the beginning of bytes, without I/O.

use std::ops::Range;

use crate::pcapng::Direction;

/// Bytes of a packet's record or block at most: what libpcap takes of pcapng. It bounds the memory of a reader.
pub const RECORD_MAX: usize = 16 << 20;

/// What lies at the beginning of the bytes that were not taken yet.
pub enum Step {
    /// A packet, and the length of all that belongs to it.
    Packet(Found, usize),
    /// Nothing to give; what comes next is behind so many bytes.
    Skip(u64),
    /// So many bytes are needed to say more.
    More(usize),
}

/// A packet's place in memory, and what was told of it.
pub struct Found {
    pub interface: usize,
    pub time_ns: Option<i64>,
    pub original_len: u32,
    pub data: Range<usize>,
    pub direction: Option<Direction>,
    pub dropped: Option<u64>,
    pub queue: Option<u32>,
    pub comment: Option<Range<usize>>,
}

impl Found {
    /// The same, where its record begins at `at`.
    #[inline]
    pub fn behind(mut self, at: usize) -> Self {
        for range in std::iter::once(&mut self.data).chain(&mut self.comment) {
            *range = at + range.start..at + range.end;
        }
        self
    }
}
