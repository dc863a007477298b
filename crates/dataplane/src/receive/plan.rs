//! What a receiving task needs to know, besides its queue.

use std::sync::Arc;

use measure::{Clock, IntervalRing, LaneUnion, Nanos, Ticks};
use wire::{Addresses, Ends, Verify};

use super::ReceiveCounters;
use super::books::Run;
use crate::reflector_counters::Answers;
use crate::reply::ReplyQueue;
use crate::send::SendCounters;

/// A sender has told of all but the burst under way; more than that, for readers on other cores.
const AHEAD_MAX: u64 = 1 << 12;

/// What a receiving task needs to know, besides its queue.
pub struct ReceivePlan {
    /// Lanes of the whole run: streams x transmit queues x ports.
    pub lanes: usize,
    /// Streams: lane modulo this is the stream.
    pub streams: usize,
    /// Sequence numbers that each lane's window remembers; a power of two.
    pub window: usize,
    /// Of each lane what all receive queues saw together; empty where there is one queue.
    pub unions: Arc<[Arc<LaneUnion>]>,
    /// Relative resolution of the whole-run latency histograms: 2^-bits.
    pub latency_bits: u32,
    /// The run id in the probe.
    pub run: u8,
    /// The number of the first lane in the probe: the others follow it, round 2^16.
    pub first_lane: u16,
    /// Probes sent before this belong to an earlier run.
    pub start: Nanos,
    /// Probes older than this are late, ns.
    pub drain_ns: u64,
    /// How much of a frame is checked.
    pub verify: Verify,
    /// The ends of all streams: what is damaged and shows none of them is a stranger's.
    pub ends: Arc<[Ends]>,
    /// Packets a burst.
    pub burst: usize,
    /// Converts ticks into time.
    pub clock: Clock,
    /// Reads the time stamp counter: a frame's time of arrival is taken right after the queue gave it.
    pub tsc: fn() -> Ticks,
    /// Where this queue's per-interval counts go.
    pub intervals: Arc<IntervalRing>,
    /// What it publishes.
    pub counters: Arc<ReceiveCounters>,
    /// Whose ARP, NDP and echo requests are answered, and the way out for the answers.
    pub me: Addresses,
    /// See `me`.
    pub replies: Arc<ReplyQueue>,
    /// Where the far side's answers go.
    pub answers: Arc<Answers>,
    /// MAC addresses of the run's ports, where they may share a link; else empty. A probe that comes from one of them was
    /// heard as it was sent.
    pub own_macs: Arc<[[u8; 6]]>,
    /// How many holes are kept; 0 where the queue sees only some packets of a lane, and every burst would have one.
    pub holes_max: usize,
    /// The senders of the run, in the order of their lanes: what they have not sent yet cannot come back.
    pub senders: Vec<Arc<SendCounters>>,
}

impl ReceivePlan {
    /// Which lane it is that a probe names.
    #[inline]
    pub(super) fn lane(&self, in_probe: u16) -> usize {
        usize::from(in_probe.wrapping_sub(self.first_lane))
    }

    /// Whether the sender of its lane has come so far.
    #[cold]
    pub(super) fn was_sent(&self, run: &Run) -> bool {
        self.senders
            .get(self.lane(run.lane()) / self.streams)
            .is_none_or(|sender| run.sequence() + run.count <= sender.intended.get() + AHEAD_MAX)
    }
}
