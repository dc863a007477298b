//! What is counted of flows.

use serde::Serialize;

/// Packets, and the bytes of their frames before they were cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// How many packets.
    pub packets: u64,
    /// How many bytes they had.
    pub bytes: u64,
}

impl Count {
    /// Counts one packet.
    #[inline]
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Counts what another one did.
    pub fn add_all(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// What was forgotten for want of memory, the longest unseen first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evicted {
    /// How many times one was forgotten; one that came again counts again.
    pub entries: u64,
    /// What it had counted.
    #[serde(flatten)]
    pub count: Count,
}
