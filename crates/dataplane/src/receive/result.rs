//! What a receiving task leaves when it has ended.

use measure::{Histogram, Hole, Jitter};

/// What one queue saw of one lane.
#[derive(Debug)]
pub struct LaneResult {
    /// First copies in time.
    pub received: u64,
    /// Further copies.
    pub duplicate: u64,
    /// RFC 4737.
    pub reordered: u64,
    /// The largest distance, in packets, by which one was overtaken.
    pub extent_max: u64,
    /// First copies that came after the drain time.
    pub late: u64,
    /// Too far behind to be told apart.
    pub too_old: u64,
    /// RFC 3550 jitter of what this queue saw.
    pub jitter: Jitter,
    /// One more than the highest sequence number seen, modulo 2^48.
    pub beyond: u64,
}

impl LaneResult {
    /// All probes of the lane that came.
    pub fn probes(&self) -> u64 {
        self.received + self.duplicate + self.late + self.too_old
    }
}

/// What a receiving task leaves when it has ended.
#[derive(Debug)]
pub struct ReceiveResult {
    /// By lane.
    pub lanes: Vec<LaneResult>,
    /// Latency from the actual send, by stream, ns.
    pub latency: Vec<Histogram>,
    /// Latency from the scheduled send, all streams, ns.
    pub latency_scheduled: Histogram,
    /// Probes whose stamp lay in the future: the clocks of two cores disagree. They are in no histogram.
    pub clock_backwards: u64,
    /// How often a lane's sequence number and its stamp contradicted those before: they are not of one sender.
    pub contradictions: u64,
    /// Probes that came from the MAC address of one of our own ports and were sent to none of them: on a link that several
    /// of them share.
    pub as_sent: u64,
    /// Sequence numbers that were skipped, in the order in which that was seen; the first of them only.
    pub holes: Vec<Hole>,
}
