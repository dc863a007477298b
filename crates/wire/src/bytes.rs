//! Fixed-width loads and stores; with constant offsets into arrays each compiles to one instruction without a
//! check.
//!
//! The `le` loads keep the wire's byte order within the register, which is what wide checksum sums want.

macro_rules! access {
    ($word:ty, $len:literal, $le:ident, $be:ident, $put_le:ident, $put_be:ident) => {
        #[inline(always)]
        #[allow(
            dead_code,
            clippy::inline_always,
            reason = "one set for all widths; must vanish into the caller"
        )]
        pub(crate) fn $le<const N: usize>(bytes: &[u8; N], at: usize) -> $word {
            let mut word = [0; $len];
            word.copy_from_slice(&bytes[at..at + $len]);
            <$word>::from_le_bytes(word)
        }
        #[inline(always)]
        #[allow(
            dead_code,
            clippy::inline_always,
            reason = "one set for all widths; must vanish into the caller"
        )]
        pub(crate) fn $be<const N: usize>(bytes: &[u8; N], at: usize) -> $word {
            $le(bytes, at).swap_bytes()
        }
        #[inline(always)]
        #[allow(
            dead_code,
            clippy::inline_always,
            reason = "one set for all widths; must vanish into the caller"
        )]
        pub(crate) fn $put_le<const N: usize>(bytes: &mut [u8; N], at: usize, value: $word) {
            bytes[at..at + $len].copy_from_slice(&value.to_le_bytes());
        }
        #[inline(always)]
        #[allow(
            dead_code,
            clippy::inline_always,
            reason = "one set for all widths; must vanish into the caller"
        )]
        pub(crate) fn $put_be<const N: usize>(bytes: &mut [u8; N], at: usize, value: $word) {
            bytes[at..at + $len].copy_from_slice(&value.to_be_bytes());
        }
    };
}

access!(u16, 2, le16, be16, put_le16, put_be16);
access!(u32, 4, le32, be32, put_le32, put_be32);
access!(u64, 8, le64, be64, put_le64, put_be64);
access!(u128, 16, le128, be128, put_le128, put_be128);

/// Big-endian 16 bits of a slice of unknown length, for the paths that may meet anything.
#[inline]
pub(crate) fn try_be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk::<2>()
        .map(|word| u16::from_be_bytes(*word))
}

/// `N` bytes at `at` of a slice of unknown length.
#[inline]
pub(crate) fn try_array<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>()
}
