//! What another process's taps copied ([`crate::tap`]), as queues of a capture. Their bursts keep the stamps that they came
//! with.

use std::sync::Arc;
use std::time::Duration;

use capture::ring::{Consumer, Producer, RingError};
use measure::{Clock, Counter, Ticks};

use super::{QueuePlan, QueueSource, Source, Taken};
use crate::io::{Frames, NicStamp, Receive};
use crate::tap::{NO_ROOM, NO_TIME, SEEN};
use crate::{Phase, Task};

/// Between a burst's stamp and its place in the ring passes less than this, ns, where its worker is not stopped meanwhile.
/// What comes later is late, and counted.
const SETTLED_NS: u64 = 1_000_000;
/// How long a worker rests that found nothing: it may share its core with the one that it looks into.
const REST: Duration = Duration::from_millis(1);

/// What is known of a tap. One writer: the worker that reads it; but for `gone`.
#[derive(Debug, Default)]
pub struct TapCounters {
    /// Frames that went by.
    pub seen: Counter,
    /// Frames that the tapped worker had no time to copy.
    pub no_time: Counter,
    /// Frames for which the tap's ring had no room.
    pub no_room: Counter,
    /// 1 once the tap has ended, and all that it copied has come.
    pub ended: Counter,
    /// 1 once the process that fills it is gone, for whoever sees that to set: nothing comes after what is there.
    pub gone: Counter,
    /// 1 once nothing was left in it after that.
    pub drained: Counter,
    /// 1 if its ring contradicts itself.
    pub damaged: Counter,
    /// When the burst that came last was stamped, ns; 0 if the last look found none.
    stamp: Counter,
}

impl TapCounters {
    /// Frames that went by and were not copied.
    pub fn lost(&self) -> u64 {
        self.no_time.get() + self.no_room.get()
    }

    /// Whether all that it copied has come, and nothing more will.
    pub fn is_empty(&self) -> bool {
        self.ended.get() == 1 || self.drained.get() == 1
    }
}

/// A tap's ring as a queue.
pub struct TapReceive {
    consumer: Consumer,
    /// The segment under way, and how many of its packets were taken.
    segment: u64,
    taken: usize,
    clock: Clock,
    counters: Arc<TapCounters>,
}

impl TapReceive {
    /// Reads `consumer`, whose stamps are ticks; `clock` makes times of them.
    pub fn new(consumer: Consumer, clock: Clock, counters: Arc<TapCounters>) -> Self {
        Self {
            segment: consumer.next_segment(),
            consumer,
            taken: 0,
            clock,
            counters,
        }
    }

    /// Takes packets of one stamp, out of no more segments than the ring has.
    fn take(&mut self, into: &mut TapFrames, max: usize) -> Result<usize, RingError> {
        let mut stamp = None;
        let (mut count, mut ended) = (0, 0);
        while count < max {
            let Some(segment) = self.consumer.segment(self.segment)? else {
                break;
            };
            if self.taken < segment.packets {
                let packet = segment.packet(self.taken)?;
                if *stamp.get_or_insert(packet.time_ns) != packet.time_ns {
                    break;
                }
                into.push(packet.data, packet.original_len as usize);
                self.taken += 1;
                count += 1;
            } else if segment.whole.is_some() && ended < self.consumer.geometry().segments {
                ended += 1;
                self.consumer.release(self.segment, segment.packets as u64);
                (self.segment, self.taken) = (self.segment + 1, 0);
            } else {
                break;
            }
        }
        let at = stamp.map_or(0, |ticks| self.clock.ns(Ticks(ticks)).0);
        self.counters.stamp.set(at);
        Ok(count)
    }
}

impl Receive for TapReceive {
    type Frames = TapFrames;

    fn batch(&self) -> TapFrames {
        TapFrames::default()
    }

    fn receive(&mut self, into: &mut TapFrames, max: usize) -> usize {
        // In this order: what is there when it has ended, or its process is gone, is all, and a process that ended its taps is
        // seen to have done so when it is gone.
        let is_gone = self.counters.gone.get() == 1;
        let is_ended = self.consumer.is_ended();
        let count = self.take(into, max).unwrap_or_else(|_| {
            self.counters.damaged.set(1);
            into.clear();
            0
        });
        for (counter, index) in [
            (&self.counters.seen, SEEN),
            (&self.counters.no_time, NO_TIME),
            (&self.counters.no_room, NO_ROOM),
        ] {
            counter.set(self.consumer.told(index));
        }
        if count == 0 && is_ended {
            self.counters.ended.set(1);
        }
        if count == 0 && is_gone {
            self.counters.drained.set(1);
        }
        count
    }
}

/// Frames out of a tap's ring.
#[derive(Debug, Default)]
pub struct TapFrames {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`, and how long it was before it was cut.
    ends: Vec<(usize, usize)>,
}

impl TapFrames {
    fn push(&mut self, bytes: &[u8], whole: usize) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push((self.bytes.len(), whole.max(bytes.len())));
    }
}

impl Frames for TapFrames {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self, index: usize) -> &[u8] {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before].0);
        &self.bytes[begin..self.ends[index].0]
    }

    fn each(&self) -> impl ExactSizeIterator<Item = (&[u8], usize)> {
        (0..self.len()).map(|index| (self.bytes(index), self.whole_len(index)))
    }

    fn is_segmented(&self, _index: usize) -> bool {
        false
    }

    fn segments(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.bytes(index))
    }

    fn whole_len(&self, index: usize) -> usize {
        self.ends[index].1
    }

    fn stamp(&self, _index: usize) -> Option<NicStamp> {
        None
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A tap as the merge sees it.
pub struct TapSource {
    queue: QueueSource<TapReceive>,
    counters: Arc<TapCounters>,
}

impl TapSource {
    /// The tap that `tap` reads.
    pub fn new(tap: TapReceive, plan: QueuePlan) -> Self {
        Self {
            counters: Arc::clone(&tap.counters),
            queue: QueueSource::new(tap, plan),
        }
    }
}

impl Source for TapSource {
    /// What came before the run belongs to it: the host has counted it.
    fn poll(&mut self, _flush: bool) -> usize {
        self.queue.poll(false)
    }

    fn stamp(&mut self, now: u64) {
        let stamp = match self.counters.stamp.get() {
            _ if self.counters.is_empty() => now,
            0 => now.saturating_sub(SETTLED_NS),
            stamp => stamp,
        };
        self.queue.stamp(stamp);
    }

    fn watermark(&self) -> Option<u64> {
        self.queue.watermark()
    }

    fn head(&self) -> Option<u64> {
        self.queue.head()
    }

    fn emit(&mut self, until: u64, wanted: u64, ring: &mut Producer) -> Option<(u64, Taken)> {
        self.queue.emit(until, wanted, ring)
    }

    fn settle(&mut self) -> bool {
        self.queue.settle()
    }

    fn held(&self) -> u64 {
        self.queue.held()
    }
}

/// A task whose worker rests where it has nothing to do. Not for queues of a port, which wait for nobody.
pub struct Resting<T>(pub T);

impl<T: Task> Task for Resting<T> {
    fn poll(&mut self, now: Ticks, phase: Phase) -> usize {
        let moved = self.0.poll(now, phase);
        if moved == 0 {
            std::thread::sleep(REST);
        }
        moved
    }

    fn finish(self: Box<Self>) {
        Box::new(self.0).finish();
    }
}
