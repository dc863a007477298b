//! Internet checksum (RFC 1071) by wide additions.
//!
//! Sums are kept unfolded in a `u64` over 16-bit words in wire order read as little-endian; a checksum made
//! of them is stored with `to_le_bytes`. All arithmetic is modulo 65535, where 2^16, 2^32 and 2^64 are all 1,
//! so that any width may be added.

use crate::bytes::{le16, le32, le64};

/// IP protocol number of ICMP.
pub const ICMP: u8 = 1;
/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;
/// IP protocol number of SCTP.
pub const SCTP: u8 = 132;
/// IP protocol number of `ICMPv6`.
pub const ICMPV6: u8 = 58;

/// A 64-bit group of four words as the sum of its halves: below 2^33, so that thousands fit a `u64`.
#[inline]
#[must_use]
pub const fn halves(word: u64) -> u64 {
    (word >> 32) + (word & 0xFFFF_FFFF)
}

/// Unfolded sum of `bytes` as 16-bit words; an odd last byte counts as if a zero followed (RFC 1071 section
/// 4.1).
///
/// Good for 2^34 bytes without overflow.
#[inline]
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    // Three vector operations for 16 bytes: sum the upper halves alone, and all words modulo 2^64. What is
    // missing, the sum of the lower halves, is the difference, and it is exact because it fits.
    let (mut upper, mut all) = (0_u64, 0_u64);
    let words = bytes.chunks_exact(8);
    let tail = words.remainder();
    for word in words {
        let word = word.first_chunk::<8>().map_or(0, |word| le64(word, 0));
        upper += word >> 32;
        all = all.wrapping_add(word);
    }
    upper + all.wrapping_sub(upper << 32) + sum_tail(tail)
}

/// Sum of up to seven bytes.
#[inline]
fn sum_tail(mut tail: &[u8]) -> u64 {
    let mut total = 0;
    if let Some((word, rest)) = tail.split_first_chunk::<4>() {
        total += u64::from(le32(word, 0));
        tail = rest;
    }
    if let Some((word, rest)) = tail.split_first_chunk::<2>() {
        total += u64::from(le16(word, 0));
        tail = rest;
    }
    total + tail.first().copied().map_or(0, u64::from)
}

/// A sum of whole 64-bit words, two instructions each; for the few fixed words of a header.
#[derive(Clone, Copy)]
pub(crate) struct WideSum(u128);

impl WideSum {
    #[inline]
    pub(crate) const fn new(word: u64) -> Self {
        Self(word as u128)
    }

    #[inline]
    pub(crate) const fn add(self, word: u64) -> Self {
        Self(self.0 + word as u128)
    }

    /// The sum so far in 64 bits, modulo 65535 the same.
    #[inline]
    pub(crate) const fn narrow(self) -> u64 {
        let (sum, carry) = (self.0 as u64).overflowing_add((self.0 >> 64) as u64);
        sum + carry as u64
    }

    /// Whether what was summed is undamaged, as [`is_valid`]; something other than zero must have been
    /// summed.
    #[inline]
    pub(crate) const fn is_valid(self) -> bool {
        self.narrow() % 65535 == 0
    }
}

/// Folds a sum to 16 bits with end-around carry; only a sum of zero gives zero.
#[inline]
#[must_use]
pub const fn fold(sum: u64) -> u16 {
    let half = (sum.wrapping_add(sum.rotate_right(32)) >> 32) as u32;
    (half.wrapping_add(half.rotate_right(16)) >> 16) as u16
}

/// Whether a sum that includes the checksum field says "undamaged": all ones after folding.
///
/// A sum of nothing but zeros is not valid, as RFC 1071 would have it.
#[inline]
#[must_use]
pub const fn is_valid(sum: u64) -> bool {
    // One multiplication instead of the folding: a fold is all ones exactly when 65535 divides a sum other
    // than zero.
    sum % 65535 == 0 && sum != 0
}

/// Sum of the IPv4 pseudo header (RFC 768) of `source ++ destination`, next protocol and length in bytes.
#[inline]
#[must_use]
pub fn pseudo_v4(addresses: &[u8; 8], protocol: u8, len: u16) -> u64 {
    halves(le64(addresses, 0)) + (u64::from(protocol) << 8) + u64::from(len.swap_bytes())
}

/// Sum of the IPv6 pseudo header (RFC 8200 section 8.1) of `source ++ destination`, next header and length in
/// bytes.
#[inline]
#[must_use]
pub fn pseudo_v6(addresses: &[u8; 32], protocol: u8, len: u16) -> u64 {
    (0..4)
        .map(|index| halves(le64(addresses, index * 8)))
        .sum::<u64>()
        + (u64::from(protocol) << 8)
        + u64::from(len.swap_bytes())
}

/// The checksum field, as bytes, for a sum that was made with the field zero.
#[inline]
#[must_use]
pub const fn field(sum: u64) -> [u8; 2] {
    (!fold(sum)).to_le_bytes()
}

/// As [`field`], for UDP: zero means "no checksum" there and is sent as its other form, all ones (RFC 768).
#[inline]
#[must_use]
pub const fn udp_field(sum: u64) -> [u8; 2] {
    match !fold(sum) {
        0 => [0xFF, 0xFF],
        value => value.to_le_bytes(),
    }
}
