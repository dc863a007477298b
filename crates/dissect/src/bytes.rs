//! Numbers out of bytes of unknown length.

/// How long a packet was behind its first `at` bytes.
pub fn behind(original_len: u32, at: usize) -> usize {
    (original_len as usize).saturating_sub(at)
}

/// The first `N` bytes at `at`, if they are there.
#[inline]
pub fn array<const N: usize>(data: &[u8], at: usize) -> Option<&[u8; N]> {
    data.get(at..)?.first_chunk()
}

#[inline]
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    array(bytes, at).map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

#[inline]
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    array(bytes, at).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
