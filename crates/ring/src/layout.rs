//! The bytes of a ring in shared memory, version 1. All numbers are in the byte order of the machine.
//!
//! | at | what |
//! |---|---|
//! | 0 | [`MAGIC`], version (u32), segments (u32), bytes of a segment (u32), bytes of the preamble (u32), producer (u32, process id) |
//! | 64 | the newest segment that was begun, plus one (u64) |
//! | 128 | 1 when the producer has ended (u64) |
//! | 192 | eight numbers that the producer tells besides packets (u64 each): their meaning is its own |
//! | 4096 | the slots, 64 bytes each, filled up to a multiple of 4096 |
//! | then | the preamble: a pcapng section header and the interfaces |
//! | then | the segments |
//!
//! Segment *n* (from 0) lies in slot *n* modulo their number. A slot is: *n* plus one, or 0 while that changes (u64); what
//! is committed of it, packets in the upper and bytes in the lower half (u64); its length once it is closed, else 0 (u64);
//! the packets of all segments before it (u64).
//!
//! A segment grows from its beginning by blocks of packets, and from its end downwards by the entries of its worklist, 8
//! bytes each: where a packet's data begin in the segment, and how many bytes (u32 each). The first entry ends 4 bytes
//! before the segment does. When the next packet does not fit, the gap becomes a block of padding, and the worklist a
//! block: type and length (u32 each), [`crate::pcapng::WORKLIST`] (u32), the number of entries (u32), the entries, the
//! last one first, and the length again. So a closed segment is pcapng from end to end.

/// The first bytes of a ring.
pub const MAGIC: [u8; 8] = *b"DRPLRING";
/// The first bytes of a consumer's page.
pub const CONSUMER_MAGIC: [u8; 8] = *b"DRPLCONS";
/// The version of this layout.
pub const VERSION: u32 = 1;

/// Where fields of the header are.
pub mod header {
    /// See [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// How many segments there are.
    pub const SEGMENTS: usize = 12;
    /// How long each is.
    pub const SEGMENT_LEN: usize = 16;
    /// How long the preamble is.
    pub const PREAMBLE_LEN: usize = 20;
    /// The producer's process id.
    pub const PRODUCER: usize = 24;
    /// The newest segment that was begun, plus one.
    pub const BEGUN: usize = 64;
    /// 1 when the producer has ended.
    pub const ENDED: usize = 128;
    /// Numbers that the producer tells besides packets.
    pub const TOLD: usize = 192;
    /// How many of them.
    pub const TOLD_COUNT: usize = 8;
    /// Where the slots begin.
    pub const LEN: usize = 4096;
}

/// Where fields of a slot are.
pub mod slot {
    /// The number of its segment plus one; 0 while that changes.
    pub const NUMBER: usize = 0;
    /// Packets (upper half) and bytes (lower half) that may be read.
    pub const COMMITTED: usize = 8;
    /// Its length once it is closed.
    pub const CLOSED: usize = 16;
    /// Packets of all segments before it.
    pub const FIRST: usize = 24;
    /// From one slot to the next.
    pub const LEN: usize = 64;
}

/// Where fields of a consumer's page are.
pub mod consumer {
    /// See [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// 1 if nothing may be overwritten before it has been released.
    pub const LOSSLESS: usize = 12;
    /// Segments below this number are not needed any more.
    pub const RELEASED: usize = 64;
    /// Packets taken.
    pub const TAKEN: usize = 72;
    /// Packets that were overwritten before they were taken.
    pub const LOST: usize = 80;
    /// The number of the first packet that it may take, among all of the ring.
    pub const FIRST: usize = 88;
    /// How long the page is.
    pub const LEN: usize = 4096;
}

/// The sizes of a ring, from which all places follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// How many segments.
    pub segments: u32,
    /// How long each is, bytes.
    pub segment_len: u32,
    /// How long the preamble is, bytes.
    pub preamble_len: u32,
}

/// The shortest segment: a frame of any size fits, with its worklist.
pub const SEGMENT_MIN: u32 = 1 << 17;
/// The longest one.
pub const SEGMENT_MAX: u32 = 1 << 28;
/// Most segments.
const SEGMENTS_MAX: u32 = 1 << 20;

const PAGE: u64 = 4096;

impl Geometry {
    /// Whether the numbers can be those of a ring.
    pub fn is_sound(&self) -> bool {
        let page = PAGE as u32;
        (2..=SEGMENTS_MAX).contains(&self.segments)
            && (SEGMENT_MIN..=SEGMENT_MAX).contains(&self.segment_len)
            && self.segment_len % page == 0
            && self.preamble_len % page == 0
            && self.preamble_len <= SEGMENT_MAX
    }

    /// Where the slot of segment `number` begins.
    #[inline]
    pub fn slot_at(&self, number: u64) -> usize {
        header::LEN + (number % u64::from(self.segments)) as usize * slot::LEN
    }

    /// Where the preamble begins.
    pub fn preamble_at(&self) -> usize {
        (header::LEN + self.segments as usize * slot::LEN).next_multiple_of(PAGE as usize)
    }

    /// Where segment `number` begins.
    #[inline]
    pub fn segment_at(&self, number: u64) -> usize {
        let place = (number % u64::from(self.segments)) as usize;
        self.preamble_at() + self.preamble_len as usize + place * self.segment_len as usize
    }

    /// How many segments lie back to back from segment `number` on, before the ring begins anew.
    pub fn back_to_back(&self, number: u64) -> u64 {
        u64::from(self.segments) - number % u64::from(self.segments)
    }

    /// How long all of it is.
    pub fn len(&self) -> usize {
        self.segment_at(u64::from(self.segments) - 1) + self.segment_len as usize
    }

    /// Never: a sound ring has segments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
