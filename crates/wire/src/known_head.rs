//! The headers of a plain IPv4/UDP frame that was judged in full, to be recognised in the frames that follow.

use crate::bytes::{be16, le64};

/// Ethernet 14, IPv4 20, UDP 8, and the 18 bytes that every Ethernet frame has room for behind them.
pub(crate) const PLAIN_LEN: usize = 60;

/// The bytes of the fifth word that are not the ports: the end of the IPv4 header and the UDP length.
const NOT_PORTS: u64 = 0xFFFF_0000_0000_FFFF;

/// Ethernet and IPv4 header, UDP length and frame length: all but ports, checksum and payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownHead {
    frame_len: usize,
    /// The first 40 bytes, ports zeroed.
    pub(crate) words: [u64; 5],
}

impl KnownHead {
    /// Equal to no frame.
    pub(crate) const NONE: Self = Self {
        frame_len: usize::MAX,
        words: [0; 5],
    };

    /// What to recognise `frame` by; `None` unless it is IPv4 without tags and options.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        let head = frame.first_chunk::<PLAIN_LEN>()?;
        (be16(head, 12) == 0x0800 && head[14] == 0x45).then(|| Self {
            frame_len: frame.len(),
            words: words(head),
        })
    }

    /// Whether a frame of `frame_len` bytes that begins with `head` has these very headers.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "per packet: must vanish into the caller")]
    pub(crate) fn is_in(&self, head: &[u8; PLAIN_LEN], frame_len: usize) -> bool {
        let here = words(head);
        let differs = (0..5).fold(0, |differs, index| differs | (here[index] ^ self.words[index]));
        differs | (frame_len ^ self.frame_len) as u64 == 0
    }
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "per packet: must vanish into the caller")]
fn words(head: &[u8; PLAIN_LEN]) -> [u64; 5] {
    [
        le64(head, 0),
        le64(head, 8),
        le64(head, 16),
        le64(head, 24),
        le64(head, 32) & NOT_PORTS,
    ]
}
