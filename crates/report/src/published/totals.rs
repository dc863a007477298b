//! What a run has counted.

use serde::{Deserialize, Serialize};

use crate::number::count;

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Packets that were scheduled.
    pub intended: u64,
    /// Packets that the driver accepted; of a reflector: of what it returned.
    pub sent: u64,
    /// Of a forwarder: those of `sent` that its host sent, and no port received.
    pub sent_own: u64,
    /// Distinct packets that came back in time; of a reflector: frames received.
    pub received: u64,
    /// Of a capture: frames put into its ring, less than `received` where there is a filter, a sample, or no room.
    pub captured: u64,
    /// Packets missing from the intervals that are old enough to be judged; of what is no sender: lost at any of the places, those of
    /// its ports among them, but what was asked for (of a capture before its ring; of a reflector not what never was a probe).
    pub lost: u64,
    /// Packets that are awaited: neither back nor missing for long enough to be judged. As many may be lost, too.
    pub under_way: u64,
    /// Packets that were scheduled and never sent.
    pub unsent: u64,
    /// Further copies.
    pub duplicate: u64,
    /// Packets out of order.
    pub reordered: u64,
    /// Damaged packets.
    pub corrupt: u64,
    /// Packets that came too late.
    pub late: u64,
    /// Bytes sent, without FCS; nothing where they are not counted, as of what a reflector or a forwarder sends on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Bytes received, without FCS.
    pub received_bytes: u64,
}

impl Totals {
    /// The packets that are known to be lost, and behind that how many may be at most.
    pub fn loss(&self) -> (String, Option<String>) {
        let further = (self.under_way > 0).then(|| format!("up to {} under way", count(self.under_way)));
        (count(self.lost), further)
    }
}

impl std::ops::Add for Totals {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            intended: self.intended + more.intended,
            sent: self.sent + more.sent,
            sent_own: self.sent_own + more.sent_own,
            received: self.received + more.received,
            captured: self.captured + more.captured,
            lost: self.lost + more.lost,
            under_way: self.under_way + more.under_way,
            unsent: self.unsent + more.unsent,
            duplicate: self.duplicate + more.duplicate,
            reordered: self.reordered + more.reordered,
            corrupt: self.corrupt + more.corrupt,
            late: self.late + more.late,
            sent_bytes: self.sent_bytes.map_or(more.sent_bytes, |bytes| {
                Some(bytes + more.sent_bytes.unwrap_or(0))
            }),
            received_bytes: self.received_bytes + more.received_bytes,
        }
    }
}
