//! A packet that stands for several.

use rules::Looked;

/// What was seen of a packet, and how many it stands for.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// What it is.
    pub packet: Looked,
    /// Its length in bytes, without FCS.
    pub len: u32,
    /// How many packets it stands for; 1 where every one is seen.
    pub weight: u32,
    /// When; ns on any clock that does not go back.
    pub time_ns: u64,
}

impl Sample {
    /// Bits that it stands for.
    pub fn bits(&self) -> u64 {
        u64::from(self.len) * 8 * u64::from(self.weight)
    }
}
