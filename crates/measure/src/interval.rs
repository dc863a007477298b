//! What happened in each interval, attributed to the time a packet was SENT: the cells workers write.

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

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
        "intervals of {interval} need too much memory for so long a drain (streams: {streams}); use --interval {smallest_ms}ms or longer, or a shorter --drain",
        interval = crate::units::format_duration(*interval_ns), smallest_ms = smallest_ns.div_ceil(1_000_000)
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

/// What came back of one stream in one interval; a cache line of one writer.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Cell {
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
    /// By slots, then by streams; of a sender.
    sent: Box<[Counter]>,
    /// The same, of a receiver.
    cells: Box<[Cell]>,
    commons: Box<[Common]>,
    latencies: Box<[CompactHistogram]>,
    released: Line<AtomicU64>,
    progress_ns: Line<AtomicU64>,
    overrun: Counter,
    stale: Counter,
}

impl IntervalRing {
    /// A ring for a receiver. All memory is allocated and touched.
    pub fn new(
        streams: usize,
        interval_ns: u64,
        slots: usize,
        start: Nanos,
    ) -> Result<IntervalRing, IntervalError> {
        let mut ring = IntervalRing::empty(streams, interval_ns, slots, start)?;
        ring.cells = (0..streams * slots).map(|_| Cell::default()).collect();
        let latencies = (0..slots).map(|_| CompactHistogram::new(LATENCY_SUB_BITS));
        ring.latencies = latencies.collect();
        Ok(ring)
    }

    /// A ring for a sender, of an eighth of the memory: a thousand streams stay in the nearest caches.
    pub fn for_sender(
        streams: usize,
        interval_ns: u64,
        slots: usize,
        start: Nanos,
    ) -> Result<IntervalRing, IntervalError> {
        let mut ring = IntervalRing::empty(streams, interval_ns, slots, start)?;
        ring.sent = (0..streams * slots).map(|_| Counter::new()).collect();
        Ok(ring)
    }

    fn empty(
        streams: usize,
        interval_ns: u64,
        slots: usize,
        start: Nanos,
    ) -> Result<IntervalRing, IntervalError> {
        if streams == 0 || interval_ns == 0 || slots == 0 {
            return Err(IntervalError::Empty);
        }
        let fitting = slots_fitting(streams);
        if slots > fitting {
            return Err(IntervalError::TooManySlots {
                slots,
                streams,
                fitting,
            });
        }
        Ok(IntervalRing {
            start,
            interval_ns,
            streams,
            slots,
            sent: Box::default(),
            cells: Box::default(),
            commons: (0..slots).map(|_| Common::default()).collect(),
            latencies: Box::default(),
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

    /// The slot of an interval.
    pub(crate) fn slot_of(&self, index: u64) -> usize {
        (index % self.slots as u64) as usize
    }

    /// What was sent of each stream in a slot; nothing in a receiver's ring.
    #[inline]
    pub(crate) fn sent_at(&self, slot: usize) -> &[Counter] {
        self.row_of(&self.sent, slot)
    }

    /// What came back of each stream in a slot; nothing in a sender's ring.
    #[inline]
    pub(crate) fn cells_at(&self, slot: usize) -> &[Cell] {
        self.row_of(&self.cells, slot)
    }

    #[inline]
    fn row_of<'r, T>(&self, all: &'r [T], slot: usize) -> &'r [T] {
        let first = slot * self.streams;
        all.get(first..first + self.streams).unwrap_or_default()
    }

    /// What a slot has beside its streams.
    #[inline]
    pub(crate) fn common_at(&self, slot: usize) -> Option<&Common> {
        self.commons.get(slot)
    }

    /// The latencies of a slot; `None` in a sender's ring.
    #[inline]
    pub(crate) fn latency_at(&self, slot: usize) -> Option<&CompactHistogram> {
        self.latencies.get(slot)
    }

    /// The first interval that is still open.
    #[inline]
    pub(crate) fn released(&self) -> u64 {
        self.released.0.load(Acquire)
    }

    /// Everything up to `at` is recorded; for the worker.
    #[inline]
    pub(crate) fn set_progress(&self, at: Nanos) {
        self.progress_ns.0.store(at.0, Release);
    }

    /// Counts packets without a free slot; for the worker.
    #[cold]
    pub(crate) fn count_overrun(&self, n: u64) {
        self.overrun.add(n);
    }

    /// Counts packets whose interval is closed; for the worker.
    #[cold]
    pub(crate) fn count_stale(&self, n: u64) {
        self.stale.add(n);
    }

    /// Clears the slot of an interval that control has collected and gives it back to the worker.
    ///
    /// Intervals are released in order; releasing one releases all before it.
    pub fn release(&self, index: u64) {
        let slot = self.slot_of(index);
        self.sent_at(slot).iter().for_each(|sent| sent.set(0));
        self.cells_at(slot).iter().for_each(Cell::clear);
        if let Some(common) = self.common_at(slot) {
            common.corrupt.set(0);
            common.unsent.set(0);
        }
        if let Some(latency) = self.latency_at(slot) {
            latency.clear();
        }
        self.released.0.store(index + 1, Release);
    }
}
