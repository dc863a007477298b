//! The lag code: how much later than its scheduled instant a packet left, in one byte on a logarithmic scale.

/// 2^(k/8) in units of 2^-60, rounded up.
const EIGHTHS: [u64; 8] = [
    1 << 60,
    1_257_269_815_929_830_109,
    1_371_062_456_318_104_878,
    1_495_154_210_581_915_422,
    1_630_477_228_166_597_777,
    1_778_048_025_250_290_524,
    1_938_975_120_585_633_119,
    2_114_467_362_444_183_334,
];

/// `DECODED[0]` is 0, `DECODED[c]` is `ceil(16 * 2^((c - 1) / 8))` ns.
static DECODED: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut code = 1;
    while code < 256 {
        let octave = (code - 1) / 8;
        let product = (16_u128 << octave) * EIGHTHS[(code - 1) % 8] as u128;
        table[code] = product.div_ceil(1 << 60) as u64;
        code += 1;
    }
    table
}

/// The smallest code that stands for at least `lag_ns`, so that a lag is never understated.
///
/// 0 stands for exactly no lag; 255 (58 s) for everything beyond the scale as well.
#[inline]
#[must_use]
pub fn encode(lag_ns: u64) -> u8 {
    if lag_ns <= 16 {
        return u8::from(lag_ns != 0);
    }
    // DECODED[first] = 16 << octave <= lag_ns: the answer is one of the nine codes from here.
    let first = 1 + 8 * (lag_ns.ilog2() as usize - 4);
    let Some(codes) = DECODED.get(first..) else {
        return 255;
    };
    let below = codes
        .iter()
        .take(8)
        .filter(|&&bound_ns| bound_ns < lag_ns)
        .count();
    (first + below).min(255) as u8
}

/// The lag in nanoseconds that a code stands for: an upper bound of what was encoded, at most 9.1 % (or 15
/// ns) above it.
#[inline]
#[must_use]
pub fn decode(code: u8) -> u64 {
    DECODED[usize::from(code)]
}
