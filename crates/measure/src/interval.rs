//! What happened in each interval, attributed to the time a packet was SENT: the cells workers write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use thiserror::Error;

use crate::counter::Counter;
use crate::shared_histogram::CompactHistogram;
use crate::time::Nanos;

/// Most (slot, stream) cells of one ring: 16 MiB.
pub const CELLS_MAX: usize = 1 << 18;

/// Most slots of one ring: 64 MiB of histograms.
pub const SLOTS_MAX: usize = 1 << 14;

/// Resolution of an interval's latencies: 3 %.
pub const LATENCY_SUB_BITS: u32 = 5;

/// How much longer than the drain control may take to collect an interval.
pub const COLLECT_MARGIN_NS: u64 = 1_000_000_000;

/// Why the intervals cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IntervalError {
    /// The memory of the ring is bounded.
    #[error(
        "an interval of {interval_us} us with {streams} streams and this drain time needs too much memory: the smallest interval possible is {smallest_us} us",
        interval_us = interval_ns / 1_000, smallest_us = smallest_ns.div_ceil(1_000)
    )]
    TooSmall {
        /// The interval asked for.
        interval_ns: u64,
        /// The streams.
        streams: usize,
        /// The smallest interval that fits.
        smallest_ns: u64,
    },
    /// More slots than a ring can have.
    #[error("{slots} intervals of {streams} streams are more than fit in memory: at most {fitting} do")]
    TooManySlots {
        /// The slots asked for.
        slots: usize,
        /// The streams.
        streams: usize,
        /// The slots that fit.
        fitting: usize,
    },
    /// An interval of no length, or no stream.
    #[error("intervals need a length and at least one stream")]
    Empty,
}

/// The slots that fit for so many streams.
fn slots_fitting(streams: usize) -> usize {
    (CELLS_MAX / streams.max(1)).min(SLOTS_MAX)
}

/// How many slots a ring needs so that an interval can stay open for the drain and then wait for control.
pub fn slots_for(streams: usize, interval_ns: u64, drain_ns: u64) -> Result<usize, IntervalError> {
    if streams == 0 || interval_ns == 0 {
        return Err(IntervalError::Empty);
    }
    // Two more: the interval being written and the one just beginning.
    let open_ns = drain_ns.saturating_add(COLLECT_MARGIN_NS);
    let needed = open_ns.div_ceil(interval_ns).saturating_add(2);
    let fitting = slots_fitting(streams) as u64;
    if needed <= fitting {
        return Ok(needed as usize);
    }
    let smallest_ns = if fitting > 2 {
        open_ns.div_ceil(fitting - 2)
    } else {
        u64::MAX
    };
    Err(IntervalError::TooSmall {
        interval_ns,
        streams,
        smallest_ns,
    })
}

/// One stream in one interval; a cache line of one writer.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Cell {
    pub sent: Counter,
    pub received: Counter,
    pub duplicate: Counter,
    pub reordered: Counter,
    pub latency_sum_ns: Counter,
    /// The smallest latency plus 1, and 0 for none: so that a cleared cell is all zeros.
    pub latency_min_plus_1: Counter,
    pub latency_max_ns: Counter,
}

impl Cell {
    /// Forgets everything.
    fn clear(&self) {
        for counter in [
            &self.sent,
            &self.received,
            &self.duplicate,
            &self.reordered,
            &self.latency_sum_ns,
            &self.latency_min_plus_1,
            &self.latency_max_ns,
        ] {
            counter.set(0);
        }
    }
}

/// What belongs to an interval and to no stream.
#[derive(Debug, Default)]
pub(crate) struct Common {
    pub corrupt: Counter,
    pub unsent: Counter,
}

/// A line of its own, so that what control writes does not disturb what the worker writes.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

/// The intervals of one worker: a ring of slots, slot = interval index mod slots.
///
/// The worker writes only intervals from `released` on and less than `slots` ahead; control collects an interval,
/// clears its slot and raises `released`. What does not fit is counted, never written over an open interval.
#[derive(Debug)]
pub struct IntervalRing {
    start: Nanos,
    interval_ns: u64,
    streams: usize,
    slots: usize,
    cells: Box<[Cell]>,
    commons: Box<[Common]>,
    latencies: Box<[CompactHistogram]>,
    released: Line<AtomicU64>,
    progress_ns: Line<AtomicU64>,
    overrun: Counter,
    stale: Counter,
}

impl IntervalRing {
    /// A ring with latencies, for a receiver.
    pub fn new(
        streams: usize,
        interval_ns: u64,
        slots: usize,
        start: Nanos,
    ) -> Result<IntervalRing, IntervalError> {
        IntervalRing::build(streams, interval_ns, slots, start, slots)
    }

    /// A ring without latencies, for a worker that only sends.
    pub fn for_sender(
        streams: usize,
        interval_ns: u64,
        slots: usize,
        start: Nanos,
    ) -> Result<IntervalRing, IntervalError> {
        IntervalRing::build(streams, interval_ns, slots, start, 0)
    }

    /// Allocates and touches all memory.
    fn build(
        streams: usize,
        interval_ns: u64,
        slots: usize,
        start: Nanos,
        histograms: usize,
    ) -> Result<IntervalRing, IntervalError> {
        if streams == 0 || interval_ns == 0 || slots == 0 {
            return Err(IntervalError::Empty);
        }
        if slots > slots_fitting(streams) {
            return Err(IntervalError::TooManySlots {
                slots,
                streams,
                fitting: slots_fitting(streams),
            });
        }
        Ok(IntervalRing {
            start,
            interval_ns,
            streams,
            slots,
            cells: (0..streams * slots).map(|_| Cell::default()).collect(),
            commons: (0..slots).map(|_| Common::default()).collect(),
            latencies: (0..histograms)
                .map(|_| CompactHistogram::new(LATENCY_SUB_BITS))
                .collect(),
            released: Line::default(),
            progress_ns: Line::default(),
            overrun: Counter::new(),
            stale: Counter::new(),
        })
    }

    /// The length of an interval in ns.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// The start of interval 0.
    pub fn start(&self) -> Nanos {
        self.start
    }

    /// Streams per interval.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// Slots of the ring.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Packets that found no free slot because control was late.
    pub fn overrun(&self) -> u64 {
        self.overrun.get()
    }

    /// Packets of an interval already handed over (or from before the start).
    pub fn stale(&self) -> u64 {
        self.stale.get()
    }

    /// Up to when the worker has recorded everything.
    pub fn progress(&self) -> Nanos {
        Nanos(self.progress_ns.0.load(Acquire))
    }

    /// The cell of a stream in an interval.
    pub(crate) fn cell(&self, index: u64, stream: usize) -> Option<&Cell> {
        let slot = (index % self.slots as u64) as usize;
        if stream >= self.streams {
            None
        } else {
            self.cells.get(slot * self.streams + stream)
        }
    }

    /// What an interval has beside its streams.
    pub(crate) fn common(&self, index: u64) -> Option<&Common> {
        self.commons.get((index % self.slots as u64) as usize)
    }

    /// The latencies of an interval; `None` in a sender's ring.
    pub(crate) fn latency(&self, index: u64) -> Option<&CompactHistogram> {
        self.latencies.get((index % self.slots as u64) as usize)
    }

    /// Clears the slot of an interval that control has collected and gives it back to the worker.
    ///
    /// Intervals are released in order; releasing one releases all before it.
    pub fn release(&self, index: u64) {
        (0..self.streams)
            .filter_map(|stream| self.cell(index, stream))
            .for_each(Cell::clear);
        if let Some(common) = self.common(index) {
            common.corrupt.set(0);
            common.unsent.set(0);
        }
        if let Some(latency) = self.latency(index) {
            latency.clear();
        }
        self.released.0.store(index + 1, Release);
    }
}

/// The worker's side of an [`IntervalRing`]; there is one for each ring.
#[derive(Debug)]
pub struct IntervalWriter {
    ring: Arc<IntervalRing>,
    /// The interval of the last packet: consecutive packets nearly always share it, which saves a division.
    index: u64,
    begin_ns: u64,
    end_ns: u64,
    slot: usize,
}

impl IntervalWriter {
    /// The writer of `ring`. The caller makes one only: two would lose counts (never memory safety).
    pub fn new(ring: Arc<IntervalRing>) -> IntervalWriter {
        let begin_ns = ring.start.0;
        let end_ns = begin_ns.saturating_add(ring.interval_ns);
        IntervalWriter {
            ring,
            index: 0,
            begin_ns,
            end_ns,
            slot: 0,
        }
    }

    /// The ring it writes.
    pub fn ring(&self) -> &Arc<IntervalRing> {
        &self.ring
    }

    /// The slot for packets sent at `at`, or a count of those that have none.
    #[inline]
    fn slot(&mut self, at: Nanos, n: u64) -> Option<usize> {
        if at.0 < self.begin_ns || at.0 >= self.end_ns {
            self.move_to(at);
        }
        let released = self.ring.released.0.load(Acquire);
        if self.index < released || at.0 < self.begin_ns {
            self.ring.stale.add(n);
            return None;
        }
        if self.index - released >= self.ring.slots as u64 {
            self.ring.overrun.add(n);
            return None;
        }
        Some(self.slot)
    }

    /// Makes the interval of `at` the present one.
    #[inline(never)]
    fn move_to(&mut self, at: Nanos) {
        let ring = &*self.ring;
        self.index = at.since(ring.start) / ring.interval_ns;
        self.slot = (self.index % ring.slots as u64) as usize;
        self.begin_ns = ring
            .start
            .0
            .saturating_add(self.index.saturating_mul(ring.interval_ns));
        self.end_ns = self.begin_ns.saturating_add(ring.interval_ns);
    }

    /// The cell for packets of `stream` sent at `at`.
    #[inline]
    fn cell(&mut self, at: Nanos, stream: usize, n: u64) -> Option<&Cell> {
        let slot = self.slot(at, n)?;
        if stream >= self.ring.streams {
            return None;
        }
        self.ring.cells.get(slot * self.ring.streams + stream)
    }

    /// `n` packets of `stream` were accepted by the driver, stamped `at`.
    #[inline]
    pub fn sent(&mut self, at: Nanos, stream: usize, n: u64) {
        if let Some(cell) = self.cell(at, stream, n) {
            cell.sent.add(n);
        }
    }

    /// `n` new packets of `stream`, stamped `sent_at`, came back after `latency_ns`.
    #[inline]
    pub fn received(&mut self, sent_at: Nanos, stream: usize, latency_ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        let Some(cell) = self.cell(sent_at, stream, n) else {
            return;
        };
        cell.received.add(n);
        cell.latency_sum_ns.add(latency_ns.saturating_mul(n));
        cell.latency_max_ns.raise(latency_ns);
        let plus_1 = latency_ns.saturating_add(1);
        let min = cell.latency_min_plus_1.get();
        if min == 0 || plus_1 < min {
            cell.latency_min_plus_1.set(plus_1);
        }
        if let Some(latency) = self.ring.latencies.get(self.slot) {
            latency.record(latency_ns, n);
        }
    }

    /// `n` further copies of packets of `stream` came back.
    #[inline]
    pub fn duplicate(&mut self, sent_at: Nanos, stream: usize, n: u64) {
        if let Some(cell) = self.cell(sent_at, stream, n) {
            cell.duplicate.add(n);
        }
    }

    /// `n` of the received packets of `stream` were out of order.
    #[inline]
    pub fn reordered(&mut self, sent_at: Nanos, stream: usize, n: u64) {
        if let Some(cell) = self.cell(sent_at, stream, n) {
            cell.reordered.add(n);
        }
    }

    /// `n` damaged frames came at `arrived_at`; when they were sent nobody knows.
    #[inline]
    pub fn corrupt(&mut self, arrived_at: Nanos, n: u64) {
        if let Some(slot) = self.slot(arrived_at, n) {
            self.ring.commons[slot].corrupt.add(n);
        }
    }

    /// `n` packets that were due about `at` were given up.
    #[inline]
    pub fn unsent(&mut self, at: Nanos, n: u64) {
        if let Some(slot) = self.slot(at, n) {
            self.ring.commons[slot].unsent.add(n);
        }
    }

    /// Says that everything up to `now` is recorded: at the top of the loop, also when nothing came.
    #[inline]
    pub fn publish(&self, now: Nanos) {
        self.ring.progress_ns.0.store(now.0, Release);
    }

    /// Says that nothing more will come.
    pub fn finish(&self) {
        self.ring.progress_ns.0.store(u64::MAX, Release);
    }
}

// Relaxed is what `Counter` uses; the hand-over of a slot is ordered by `released` and `progress_ns` alone.
const _: std::sync::atomic::Ordering = Relaxed;
