//! Damages a frame on purpose, for the fault injector.

use crate::checksum::UDP;
use crate::headers::{self, Parsed};

/// Flips exactly one bit of the UDP header or payload, the one that `selector` names modulo their number.
///
/// [`crate::classify`] with checksums on then says `Corrupt` of any frame it accepted before. Returns
/// `false`, and leaves the frame alone, if it carries no UDP.
#[inline]
#[must_use]
pub fn corrupt_one_bit(frame: &mut [u8], selector: u64) -> bool {
    let Parsed::Ip(ip) = headers::parse(frame) else {
        return false;
    };
    if ip.fragment || ip.protocol != UDP {
        return false;
    }
    let end = ip.end.min(frame.len());
    let Some(datagram) = frame.get_mut(ip.transport..end) else {
        return false;
    };
    let Some(bit) = selector.checked_rem(datagram.len() as u64 * 8) else {
        return false;
    };
    let Some(byte) = datagram.get_mut((bit / 8) as usize) else {
        return false;
    };
    *byte ^= 1 << (bit % 8);
    true
}
