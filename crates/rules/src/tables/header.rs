//! What of a plain packet's headers rules can ask, as two words: packets that have them in common meet the same rule.

#![allow(clippy::inline_always, reason = "per packet: must vanish into the loops")]

use wire::checksum::{ICMP, TCP, UDP};

use crate::Malformed;

#[cfg(test)]
mod tests;

const HEADERS_LEN: usize = 54;
const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;
/// The ether type of IPv4 and a header of 20 bytes, as they stand in a frame; what follows is not looked at.
const PLAIN: u32 = u32::from_le_bytes([0x08, 0x00, 0x45, 0]);
const PLAIN_MASK: u32 = u32::from_le_bytes([0xFF, 0xFF, 0xFF, 0]);
/// More fragments, and the offset: in what begins with the length.
const FRAGMENT: u64 = (0x3FFF_u16.swap_bytes() as u64) << 32;
/// Addresses; ports, protocol, flags or type. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header(pub(super) u64, pub(super) u64);

impl Header {
    /// That of a well-formed packet of TCP, UDP or ICMP over IPv4 without tags, options and fragments, in one piece; `None` of
    /// any other. Reasons that only the header's words decide are not looked for: each header has been judged once.
    #[inline(always)]
    pub(super) fn of(frame: &[u8], reasons: u16) -> Option<Self> {
        let head: &[u8; HEADERS_LEN] = frame.first_chunk()?;
        let word = |at: usize| {
            head[at..]
                .first_chunk()
                .map_or(0, |word| u32::from_le_bytes(*word))
        };
        let long = |at: usize| {
            head[at..]
                .first_chunk()
                .map_or(0, |long| u64::from_le_bytes(*long))
        };
        // Length, number, flags and offset of a fragment, hops, protocol: few loads are what this costs.
        let middle = long(16);
        let is_plain = word(12) & PLAIN_MASK == PLAIN && middle & FRAGMENT == 0;
        let total = usize::from((middle as u16).swap_bytes());
        if !is_plain || total < IPV4_LEN + 8 || ETHERNET_LEN + total > frame.len() {
            return None;
        }
        if reasons & Malformed::IpChecksum.bit() != 0 {
            let sum: u64 = (14..34).step_by(4).map(|at| u64::from(word(at))).sum();
            if sum == 0 || sum % 0xFFFF != 0 {
                return None;
            }
        }
        let payload = total - IPV4_LEN;
        let protocol = (middle >> 56) as u8;
        let transport = long(34);
        let ports = transport & u64::from(u32::MAX);
        let rest = match protocol {
            UDP if usize::from(((transport >> 32) as u16).swap_bytes()) == payload => ports,
            TCP => {
                let len = usize::from(head[46] >> 4) * 4;
                if len < 20 || len > payload {
                    return None;
                }
                ports | u64::from(head[47]) << 32
            }
            ICMP => u64::from(head[34]) << 32,
            _ => return None,
        };
        Some(Self(long(26), rest | u64::from(protocol) << 40))
    }

    /// A number below 2^`BITS` that depends on all of it: the upper bits of a product depend on all bits of its factors.
    #[inline(always)]
    pub(super) const fn mixed<const BITS: u32>(self) -> usize {
        let first = self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let both = (first ^ self.1).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (both >> (u64::BITS - BITS)) as usize
    }
}
