//! Chance, the same in every run.

/// A small generator of numbers from 0 to 1 (xorshift64*): the tests need spread, not secrecy.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From 0 to 1.
    pub fn roll(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.bits() >> 33) % end
    }

    /// Evenly spread in relative terms.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.roll())
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.roll() * from.len() as f64) as usize]
    }
}
