//! Writes the frames of a queue's bursts into the ring.

use std::sync::Arc;

use capture::pcapng::{Direction, PacketHead};
use capture::ring::Producer;

use super::QueueCounters;
use super::counters::InterfaceDrops;
use super::source::Batch;
use crate::io::Frames;

/// What a queue's frames are told of in the ring.
pub struct PacketPlan {
    /// The port's number among the interfaces.
    pub interface: u32,
    /// The queue's number, where the port has several.
    pub queue: Option<u32>,
    /// Which way they went, where that is not plain.
    pub direction: Option<Direction>,
    /// Bytes kept of each frame, at most.
    pub snap_len: usize,
    /// The port cuts frames at this length, and does not say which.
    pub cut_at: Option<usize>,
    /// From the run's clock to nanoseconds since the epoch of Unix.
    pub epoch_ns: u64,
    /// Nanoseconds in a unit of the stamps that the driver gives, which count from the epoch of Unix: they are told in the
    /// place of the run's clock. Only for a queue that is merged with no other, since the merge goes by the run's clock.
    pub driver_unit_ns: Option<u64>,
    /// What the port lost: all its queues share it.
    pub drops: Arc<InterfaceDrops>,
}

/// What became of a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Frames written to the ring.
    pub written: u64,
    /// Frames for which there was no place.
    pub refused: u64,
    /// Frames that came after all that were wanted.
    pub unwanted: u64,
    /// Those of `written` whose driver stamped them earlier than one before them.
    pub late: u64,
}

pub(super) struct Writer {
    plan: PacketPlan,
    counters: QueueCounters,
    /// The latest of the driver's stamps so far, ns.
    latest_ns: u64,
}

impl Writer {
    pub fn new(plan: PacketPlan, counters: QueueCounters) -> Self {
        Self {
            plan,
            counters,
            latest_ns: 0,
        }
    }

    /// Writes the wanted frames of a burst, `wanted` at most, and frees all.
    pub fn write<F: Frames>(&mut self, batch: &mut Batch<F>, wanted: u64, ring: &mut Producer) -> Taken {
        if let Some(cut_at) = self.plan.cut_at {
            let cut =
                |index: &usize| batch.unwanted >> index & 1 == 0 && batch.frames.whole_len(*index) >= cut_at;
            let cut = (0..batch.frames.len()).filter(cut).count();
            self.counters.written.cut.add(cut as u64);
        }
        // Which clock is told is asked once a burst, not of every frame.
        match self.plan.driver_unit_ns {
            None => self.write_by(batch, wanted, ring, |_, _| None),
            Some(unit_ns) => self.write_by(batch, wanted, ring, |frames, index| {
                let stamp = frames.stamp(index)?;
                Some(stamp.0.saturating_mul(unit_ns))
            }),
        }
    }

    /// The same where `by_driver` says when a frame came by the driver's own clock, if that is told.
    #[inline]
    fn write_by<F: Frames>(
        &mut self,
        batch: &mut Batch<F>,
        wanted: u64,
        ring: &mut Producer,
        by_driver: impl Fn(&F, usize) -> Option<u64>,
    ) -> Taken {
        let (frames, unwanted) = (&batch.frames, batch.unwanted);
        let time_ns = self.plan.epoch_ns.wrapping_add(batch.stamp);
        let (mut taken, mut bytes) = (Taken::default(), 0);
        let mut dropped = self.plan.drops.untold();
        for index in 0..frames.len() {
            bytes += frames.whole_len(index) as u64;
            if unwanted >> index & 1 == 1 {
                continue;
            }
            let by_driver = by_driver(frames, index);
            if taken.written == wanted {
                taken.unwanted += 1;
            } else if self.push(frames, index, (by_driver.unwrap_or(time_ns), dropped), ring) {
                taken.written += 1;
                if let Some(stamp) = by_driver {
                    taken.late += u64::from(stamp < self.latest_ns);
                    self.latest_ns = self.latest_ns.max(stamp);
                }
                if dropped > 0 {
                    self.plan.drops.tell(dropped);
                    dropped = 0;
                }
            } else {
                taken.refused += 1;
                self.plan.drops.refuse();
                dropped += 1;
            }
        }
        batch.frames.clear();
        batch.unwanted = 0;
        self.counters.written.bytes.add(bytes);
        if taken.refused > 0 {
            self.counters.written.refused.add(taken.refused);
        }
        if taken.unwanted > 0 {
            self.counters.written.unwanted.add(taken.unwanted);
        }
        taken
    }

    /// Writes frame `index`; false if there is no place.
    #[inline]
    fn push<F: Frames>(
        &self,
        frames: &F,
        index: usize,
        (time_ns, dropped): (u64, u64),
        ring: &mut Producer,
    ) -> bool {
        let whole = frames.whole_len(index);
        let captured = whole.min(self.plan.snap_len);
        let head = PacketHead {
            interface: self.plan.interface,
            time_ns,
            original_len: whole as u32,
            queue: self.plan.queue,
            direction: self.plan.direction,
            dropped,
        };
        let first = frames.bytes(index);
        let written = if first.len() >= captured {
            ring.push(&head, captured, [&first[..captured]])
        } else {
            let mut left = captured;
            let parts = frames.segments(index).map(move |part| {
                let kept = part.len().min(left);
                left -= kept;
                &part[..kept]
            });
            ring.push(&head, captured, parts)
        };
        written.is_ok()
    }
}
