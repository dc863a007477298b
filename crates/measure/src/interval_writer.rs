//! The worker's side of the intervals: where each run of packets is counted.

use std::sync::Arc;

use crate::counter::Counter;
use crate::interval::{Cell, IntervalRing};
use crate::shared_histogram::CompactHistogram;
use crate::time::Nanos;

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

/// Where packets of one time are counted; nowhere by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row<'r> {
    /// By streams, in a sender's ring.
    sent: &'r [Counter],
    /// By streams, in a receiver's.
    cells: &'r [Cell],
    latency: Option<&'r CompactHistogram>,
}

impl Row<'_> {
    /// `n` packets of `stream` were accepted by the driver.
    #[inline]
    pub fn accepted(&self, stream: usize, n: u64) {
        if let Some(sent) = self.sent.get(stream) {
            sent.add(n);
        }
    }

    /// `n` new packets of `stream` came back after `latency_ns`; they are also to be [`Row::timed`].
    #[inline]
    pub fn received(&self, stream: usize, latency_ns: u64, n: u64) {
        let Some(cell) = self.cells.get(stream).filter(|_| n > 0) else {
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
    }

    /// `n` new packets of `stream` came back, and nobody knows after which time: the clocks disagree.
    pub fn untimed(&self, stream: usize, n: u64) {
        if let Some(cell) = self.cells.get(stream) {
            cell.received.add(n);
        }
    }

    /// `n` further copies of packets of `stream` came back.
    pub fn duplicate(&self, stream: usize, n: u64) {
        if let Some(cell) = self.cells.get(stream) {
            cell.duplicate.add(n);
        }
    }

    /// `n` of the received packets of `stream` were out of order.
    pub fn reordered(&self, stream: usize, n: u64) {
        if let Some(cell) = self.cells.get(stream) {
            cell.reordered.add(n);
        }
    }

    /// `n` new packets, of whichever streams, came back after `latency_ns`.
    #[inline]
    pub fn timed(&self, latency_ns: u64, n: u64) {
        if let Some(latency) = self.latency {
            latency.record(latency_ns, n);
        }
    }
}

impl IntervalWriter {
    /// The writer of `ring`. The caller makes one only: two would lose counts (never memory safety).
    pub fn new(ring: Arc<IntervalRing>) -> IntervalWriter {
        let begin_ns = ring.start().0;
        let end_ns = begin_ns.saturating_add(ring.interval_ns());
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
        let released = self.ring.released();
        if at.0 >= self.begin_ns && (released..released + self.ring.slots() as u64).contains(&self.index) {
            return Some(self.slot);
        }
        self.outside(at, n);
        None
    }

    /// `n` packets sent at `at` found no room, even if there is room by now.
    #[cold]
    pub fn outside(&mut self, at: Nanos, n: u64) {
        if at.0 < self.begin_ns || at.0 >= self.end_ns {
            self.move_to(at);
        }
        if self.index < self.ring.released() || at.0 < self.begin_ns {
            self.ring.count_stale(n);
        } else {
            self.ring.count_overrun(n);
        }
    }

    /// Makes the interval of `at` the present one.
    #[inline(never)]
    fn move_to(&mut self, at: Nanos) {
        let ring = &*self.ring;
        self.index = at.since(ring.start()) / ring.interval_ns();
        self.slot = (self.index % ring.slots() as u64) as usize;
        self.begin_ns = ring
            .start()
            .0
            .saturating_add(self.index.saturating_mul(ring.interval_ns()));
        self.end_ns = self.begin_ns.saturating_add(ring.interval_ns());
    }

    /// Where `n` packets stamped `at` are counted; where the ring has no room for that time, it counts them as such.
    #[inline]
    pub fn row(&mut self, at: Nanos, n: u64) -> Option<Row<'_>> {
        let slot = self.slot(at, n)?;
        Some(Row {
            sent: self.ring.sent_at(slot),
            cells: self.ring.cells_at(slot),
            latency: self.ring.latency_at(slot),
        })
    }

    /// `n` damaged frames came at `arrived_at`; when they were sent nobody knows.
    #[inline]
    pub fn corrupt(&mut self, arrived_at: Nanos, n: u64) {
        if let Some(slot) = self.slot(arrived_at, n) {
            self.ring.common_at(slot).inspect(|common| common.corrupt.add(n));
        }
    }

    /// `n` packets that were due about `at` were given up.
    #[inline]
    pub fn unsent(&mut self, at: Nanos, n: u64) {
        if let Some(slot) = self.slot(at, n) {
            self.ring.common_at(slot).inspect(|common| common.unsent.add(n));
        }
    }

    /// Says that everything up to `now` is recorded: at the top of the loop, also when nothing came.
    #[inline]
    pub fn publish(&self, now: Nanos) {
        self.ring.set_progress(now);
    }

    /// Says that nothing more will come.
    pub fn finish(&self) {
        self.ring.set_progress(Nanos(u64::MAX));
    }
}
