//! Recognises the packets that have everything at fixed offsets from their ether type.

use crate::bytes::le32;
use crate::checksum::UDP;

/// Ether type IPv4, no options, not a fragment ("don't fragment" does not matter), UDP.
#[inline]
pub(crate) fn is_v4_udp<const N: usize>(head: &[u8; N]) -> bool {
    let (shape, flags_and_protocol) = (le32(head, 0) << 8, le32(head, 8) & 0xFF00_FF3F);
    shape == 0x4500_0800 && flags_and_protocol == u32::from(UDP) << 24
}

/// Ether type IPv6, UDP right after the header.
#[inline]
pub(crate) fn is_v6_udp<const N: usize>(head: &[u8; N]) -> bool {
    (le32(head, 0) & 0x00F0_FFFF) == 0x0060_DD86 && head[8] == UDP
}
