//! What of a plain packet's headers rules can ask, as two words: packets that have them in common meet the same rule.

#![allow(clippy::inline_always, reason = "per packet: must vanish into the loops")]

use crate::Malformed;

#[cfg(test)]
mod tests;

const HEADERS_LEN: usize = 54;
const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The ether type of IPv4 and a header of 20 bytes, as they stand in a frame; what follows is not looked at.
const PLAIN: u32 = u32::from_le_bytes([0x08, 0x00, 0x45, 0]);
const PLAIN_MASK: u32 = u32::from_le_bytes([0xFF, 0xFF, 0xFF, 0]);
/// More fragments, and the offset.
const FRAGMENT: u16 = 0x3FFF;
/// Addresses; ports, protocol, flags or type. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header(pub(super) u64, pub(super) u64);

impl Header {
    /// That of a well-formed packet of TCP, UDP or ICMP over IPv4 without tags, options and fragments, in one piece; `None` of
    /// any other. Reasons that only the header's words decide are not looked for: each header has been judged once.
    #[inline(always)]
    pub(super) fn of(frame: &[u8], reasons: u16) -> Option<Self> {
        let head: &[u8; HEADERS_LEN] = frame.first_chunk()?;
        let be16 = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let is_plain = word(12) & PLAIN_MASK == PLAIN && be16(20) & FRAGMENT == 0;
        let total = usize::from(be16(16));
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
        let protocol = head[23];
        let rest = match protocol {
            UDP if usize::from(be16(38)) == payload => word(34).into(),
            TCP => {
                let len = usize::from(head[46] >> 4) * 4;
                if len < 20 || len > payload {
                    return None;
                }
                u64::from(word(34)) | u64::from(head[47]) << 32
            }
            ICMP => u64::from(head[34]) << 32,
            _ => return None,
        };
        let addresses = u64::from(word(26)) << 32 | u64::from(word(30));
        Some(Self(addresses, rest | u64::from(protocol) << 40))
    }

    /// A number each of whose bits depends on all of it.
    #[inline(always)]
    pub(super) const fn mixed(self) -> usize {
        let mixed = (self.0 ^ 0x9E37_79B9_7F4A_7C15) as u128 * (self.1 ^ 0xBF58_476D_1CE4_E5B9) as u128;
        let folded = mixed as u64 ^ (mixed >> 64) as u64;
        (folded.wrapping_mul(0x94D0_49BB_1331_11EB) >> 40) as usize
    }
}
