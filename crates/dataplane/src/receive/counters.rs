//! What a receiving task tells the control thread while it runs.

use std::sync::Arc;

use measure::Counter;
use wire::Foreign;

/// What a receiving task publishes while it runs. One writer: its worker.
#[derive(Debug)]
pub struct ReceiveCounters {
    /// Frames taken from the queue since the run began.
    pub frames: Counter,
    /// Bytes of these, without FCS.
    pub bytes: Counter,
    /// First copies of probes that came in time.
    pub received: Counter,
    /// Further copies.
    pub duplicate: Counter,
    /// Probes overtaken by a later one of their lane (RFC 4737).
    pub reordered: Counter,
    /// Frames whose checksum, length or (with `--verify payload`) pattern is wrong.
    pub corrupt: Counter,
    /// Probes that came later than the drain time after they were sent.
    pub late: Counter,
    /// Probes further behind than the window remembers: fresh or duplicate cannot be told.
    pub too_old: Counter,
    /// Frames that are none of ours, by kind.
    pub foreign: [Counter; Foreign::COUNT],
    /// Chained frames, longer than any probe: not looked at.
    pub oversized: Counter,
    /// Probes of an earlier run that were still in some queue.
    pub stale: Counter,
    /// Probes with a sequence number that had not been sent yet.
    pub never_sent: Counter,
    /// ARP, NDP and echo requests answered (part of `foreign`).
    pub answered: Counter,
    /// Frames thrown out before the run began.
    pub flushed: Counter,
}

impl ReceiveCounters {
    /// Zeroed counters.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            frames: Counter::default(),
            bytes: Counter::default(),
            received: Counter::default(),
            duplicate: Counter::default(),
            reordered: Counter::default(),
            corrupt: Counter::default(),
            late: Counter::default(),
            too_old: Counter::default(),
            foreign: std::array::from_fn(|_| Counter::default()),
            oversized: Counter::default(),
            stale: Counter::default(),
            never_sent: Counter::default(),
            answered: Counter::default(),
            flushed: Counter::default(),
        })
    }
}
