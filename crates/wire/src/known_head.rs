//! The headers of a plain IPv4/UDP frame that was judged in full, to be recognised in the frames that follow.

use crate::bytes::{be16, le16, le64};

/// Ethernet 14, IPv4 20, UDP 8, and the 18 bytes that every Ethernet frame has room for behind them.
pub(crate) const PLAIN_LEN: usize = 60;

/// Ethernet and IPv4 header, UDP length and frame length: all but ports, checksum and payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownHead {
    frame_len: usize,
    pub(crate) words: [u64; 4],
    pub(crate) last: u16,
    pub(crate) udp_len: u16,
}

impl KnownHead {
    /// Equal to no frame.
    pub(crate) const NONE: Self = Self {
        frame_len: usize::MAX,
        words: [0; 4],
        last: 0,
        udp_len: 0,
    };

    /// What to recognise `frame` by; `None` unless it is IPv4 without tags and options.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        let head = frame.first_chunk::<PLAIN_LEN>()?;
        (be16(head, 12) == 0x0800 && head[14] == 0x45).then(|| Self {
            frame_len: frame.len(),
            words: [le64(head, 0), le64(head, 8), le64(head, 16), le64(head, 24)],
            last: le16(head, 32),
            udp_len: le16(head, 38),
        })
    }

    /// Whether a frame of `frame_len` bytes that begins with `head` has these very headers.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "per packet: must vanish into the caller")]
    pub(crate) fn is_in(&self, head: &[u8; PLAIN_LEN], frame_len: usize) -> bool {
        let [a, b, c, d] = self.words;
        let differs = (le64(head, 0) ^ a) | (le64(head, 8) ^ b) | (le64(head, 16) ^ c) | (le64(head, 24) ^ d);
        let ends = (le16(head, 32) ^ self.last) | (le16(head, 38) ^ self.udp_len);
        differs | u64::from(ends) | (frame_len ^ self.frame_len) as u64 == 0
    }
}
