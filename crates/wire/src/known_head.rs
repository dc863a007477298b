//! The headers of a plain IPv4/UDP frame that was judged in full, to be recognised in the frames that follow.

use crate::bytes::le64;
use crate::headers::TYPE_AT;
use crate::plain;

/// Ethernet 14, IPv4 20, UDP 8, and the 18 bytes that every Ethernet frame has room for behind them.
pub(crate) const PLAIN_LEN: usize = 60;

/// The end of the IPv4 header and the UDP length, around the ports.
const NOT_PORTS: u64 = 0xFFFF_0000_0000_FFFF;

/// Ethernet and IPv4 header, UDP length and frame length: all but ports, checksum and payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownHead {
    frame_len: usize,
    /// Ethernet header, and the IPv4 header up to half of the destination.
    pub(crate) front: [u8; 32],
    /// The eight bytes behind, with the ports zeroed.
    pub(crate) back: u64,
}

impl KnownHead {
    /// Equal to no frame.
    pub(crate) const NONE: Self = Self {
        frame_len: usize::MAX,
        front: [0; 32],
        back: 0,
    };

    /// What to recognise `frame` by; `None` unless it is UDP over IPv4 without tags and options.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        let head = frame.first_chunk::<PLAIN_LEN>()?;
        let is_plain = plain::is_v4_udp(head[TYPE_AT..].first_chunk::<{ PLAIN_LEN - TYPE_AT }>()?);
        is_plain.then(|| Self {
            frame_len: frame.len(),
            front: std::array::from_fn(|at| head[at]),
            back: le64(head, 32) & NOT_PORTS,
        })
    }

    /// Whether a frame of `frame_len` bytes that begins with `head` has these very headers.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "per packet: must vanish into the caller")]
    pub(crate) fn is_in(&self, head: &[u8; PLAIN_LEN], frame_len: usize) -> bool {
        // Two arrays are compared as vectors; a chain of words would be a chain of branches.
        head[..32] == self.front && le64(head, 32) & NOT_PORTS == self.back && frame_len == self.frame_len
    }
}
