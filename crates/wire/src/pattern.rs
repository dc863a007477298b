//! The fixed payload pattern after the probe: a slice of one constant table, chosen by run and lane.
//!
//! The receiver needs nothing but the probe to know what must follow, and comparing is one `memcmp`. Prefix
//! sums over the table make the checksum of a payload that compared equal a subtraction.

use crate::checksum::halves;

/// Longest payload after the probe that there is a pattern for.
pub const MAX_LEN: usize = 16_384;
/// Different starting points; even, so that the words of the checksum stay aligned.
const STARTS: usize = 256;
const STRIDE: usize = 2;
const TABLE_LEN: usize = MAX_LEN + STARTS * STRIDE;

static TABLE: [u8; TABLE_LEN] = table();
/// `SUMS[k]`: unfolded sum of the first k 16-bit words of the table, little-endian.
static SUMS: [u32; TABLE_LEN / 2 + 1] = sums();

/// 32-bit xorshift (Marsaglia 2003), its top byte: no short period, no long run of one value.
#[allow(clippy::large_stack_arrays, reason = "runs in the compiler only")]
const fn table() -> [u8; TABLE_LEN] {
    let mut table = [0; TABLE_LEN];
    let mut state = 0x2545_F491_u32;
    let mut at = 0;
    while at < TABLE_LEN {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        table[at] = (state >> 24) as u8;
        at += 1;
    }
    table
}

#[allow(clippy::large_stack_arrays, reason = "runs in the compiler only")]
const fn sums() -> [u32; TABLE_LEN / 2 + 1] {
    let table = table();
    let mut sums = [0; TABLE_LEN / 2 + 1];
    let mut word = 0;
    while word < TABLE_LEN / 2 {
        sums[word + 1] = sums[word] + u16::from_le_bytes([table[2 * word], table[2 * word + 1]]) as u32;
        word += 1;
    }
    sums
}

#[inline]
fn start(run: u8, lane: u16) -> usize {
    let mixed = u32::from(run) << 16 | u32::from(lane);
    // Multiplicative hashing (Knuth): neighbouring lanes start far apart.
    (mixed.wrapping_mul(0x9E37_79B1) >> 24) as usize * STRIDE
}

/// The `len` bytes that follow the probe in packets of this run and lane; `None` beyond [`MAX_LEN`].
#[inline]
#[must_use]
pub fn expected(run: u8, lane: u16, len: usize) -> Option<&'static [u8]> {
    TABLE[start(run, lane)..].get(..len)
}

/// Unfolded checksum sum of [`expected`] with the same arguments.
#[inline]
#[must_use]
pub fn expected_sum(run: u8, lane: u16, len: usize) -> Option<u64> {
    let first = start(run, lane);
    let words = SUMS.get(first / 2 + len / 2)? - SUMS[first / 2];
    let odd = if len % 2 == 1 {
        *TABLE.get(first + len - 1)?
    } else {
        0
    };
    Some(halves(u64::from(words)) + u64::from(odd))
}
