//! What the tasks of a capture publish.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crossbeam_utils::CachePadded;
use measure::Counter;

/// What is published of a queue.
#[derive(Debug, Default)]
pub struct CaptureCounters {
    /// By the worker that receives.
    pub received: CachePadded<ReceivedCounters>,
    /// By the worker that writes to the ring, which may be another one.
    pub written: CachePadded<WrittenCounters>,
}

/// What was received from a queue. One writer: the worker that polls it.
#[derive(Debug, Default)]
pub struct ReceivedCounters {
    /// Frames taken from the queue since the run began.
    pub frames: Counter,
    /// Frames thrown out before the run began.
    pub flushed: Counter,
    /// Frames that the filter refused.
    pub filtered: Counter,
    /// Frames of flows that are not in the sample.
    pub sampled_out: Counter,
    /// Polls that were left out, since all bursts were still held.
    pub full: Counter,
}

/// What became of a queue's frames. One writer: the worker that merges.
#[derive(Debug, Default)]
pub struct WrittenCounters {
    /// Bytes of all frames, without FCS.
    pub bytes: Counter,
    /// Frames for which the ring had no place.
    pub refused: Counter,
    /// Frames that the port had cut, and did not say so.
    pub cut: Counter,
    /// Frames that came after as many as were wanted.
    pub unwanted: Counter,
}

/// What the merge publishes. One writer: its worker.
#[derive(Debug, Default)]
pub struct MergeCounters {
    /// Frames written to the ring.
    pub written: Counter,
    /// Frames among `written` that came after one with a later stamp had gone.
    pub late: Counter,
}

/// Packets of an interface that were lost, and how many of them the packets that followed have told of.
#[derive(Debug, Default)]
pub struct InterfaceDrops {
    /// What the port missed, as control read it last.
    missed: AtomicU64,
    /// What the ring had no place for; by the merge.
    refused: Counter,
    /// What has been told; by the merge.
    told: Counter,
}

impl InterfaceDrops {
    /// The port has missed so many since the run began.
    pub fn set_missed(&self, missed: u64) {
        self.missed.fetch_max(missed, Relaxed);
    }

    /// What the port has missed, as it was read last.
    pub fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }

    /// What was lost and is told of by no packet yet.
    #[inline]
    pub fn untold(&self) -> u64 {
        let lost = self.missed() + self.refused.get();
        lost.saturating_sub(self.told.get())
    }

    /// The ring had no place for one more.
    pub(super) fn refuse(&self) {
        self.refused.add(1);
    }

    /// A packet tells of so many.
    pub(super) fn tell(&self, dropped: u64) {
        self.told.add(dropped);
    }
}
