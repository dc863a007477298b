//! Control's side of the intervals: sums the workers' cells into finished rows.

use std::sync::Arc;

use crate::histogram::Histogram;
use crate::interval::{Cell, IntervalRing, LATENCY_SUB_BITS};
use crate::result::Percentiles;
use crate::time::Nanos;

/// No row is shorter, ns: files tell times this finely, and time must grow from row to row.
const ROW_NS_MIN: u64 = 1000;
/// A last row of which more than so many would fit into an interval is a rest.
pub const REST_PARTS: u64 = 10;

/// What one stream (or all of them) did in one interval, by the time of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IntervalTotals {
    /// Packets the driver accepted.
    pub sent: u64,
    /// Distinct packets of these that came back in time.
    pub received: u64,
    /// Further copies.
    pub duplicate: u64,
    /// Packets out of order.
    pub reordered: u64,
    /// Sum of the latencies in ns.
    pub latency_sum_ns: u64,
    /// Smallest latency in ns; `None` when nothing came back.
    pub latency_min_ns: Option<u64>,
    /// Largest latency in ns; `None` when nothing came back.
    pub latency_max_ns: Option<u64>,
}

impl IntervalTotals {
    /// Adds a worker's cell.
    fn add_cell(&mut self, cell: &Cell) {
        let received = cell.received.get();
        let min_plus_1 = cell.latency_min_plus_1.get();
        self.add(&IntervalTotals {
            sent: 0,
            received,
            duplicate: cell.duplicate.get(),
            reordered: cell.reordered.get(),
            latency_sum_ns: cell.latency_sum_ns.get(),
            latency_min_ns: min_plus_1.checked_sub(1),
            latency_max_ns: (received > 0).then(|| cell.latency_max_ns.get()),
        });
    }

    /// Adds another's figures.
    pub fn add(&mut self, other: &IntervalTotals) {
        self.sent += other.sent;
        self.received += other.received;
        self.duplicate += other.duplicate;
        self.reordered += other.reordered;
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(other.latency_sum_ns);
        self.latency_min_ns = match (self.latency_min_ns, other.latency_min_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
    }

    /// Packets sent in the interval that did not come back in time.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Lost packets in percent of those sent; `None` when nothing was sent.
    pub fn drop_rate_percent(&self) -> Option<f64> {
        (self.sent > 0).then(|| 100.0 * self.lost() as f64 / self.sent as f64)
    }

    /// Mean latency in ns; `None` when nothing came back.
    pub fn latency_mean_ns(&self) -> Option<f64> {
        (self.received > 0).then(|| self.latency_sum_ns as f64 / self.received as f64)
    }
}

/// One finished interval over all workers.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalRow {
    /// Its number from 0 on.
    pub index: u64,
    /// Its start in ns since the start of the run.
    pub start_ns: u64,
    /// Its end in ns since the start of the run; the last one ends with the sending.
    pub end_ns: u64,
    /// Every stream.
    pub streams: Vec<IntervalTotals>,
    /// Damaged frames that arrived in it (in the last row: and after it).
    pub corrupt: u64,
    /// Packets that were due in it and given up.
    pub unsent: u64,
    /// The latencies of the packets sent in it.
    pub latency: Histogram,
}

impl IntervalRow {
    /// Adds a later one's figures.
    fn add(&mut self, later: &Self) {
        for (stream, more) in self.streams.iter_mut().zip(&later.streams) {
            stream.add(more);
        }
        self.corrupt += later.corrupt;
        self.unsent += later.unsent;
        self.latency.merge(&later.latency);
    }

    /// All streams together.
    pub fn total(&self) -> IntervalTotals {
        let mut total = IntervalTotals::default();
        self.streams.iter().for_each(|stream| total.add(stream));
        total
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    /// Whether it is less than a tenth of an interval ([`REST_PARTS`]), what a run left behind its last whole one: packets that
    /// were late leave in no time, and would look like a rate that nobody sent at.
    pub fn is_rest(&self) -> bool {
        let length_ns = self.end_ns.saturating_sub(self.start_ns);
        // All intervals before it are of one length.
        length_ns.saturating_mul(REST_PARTS).saturating_mul(self.index) < self.start_ns
    }

    /// Latency percentiles (3 % resolution, minimum and maximum exact).
    pub fn percentiles(&self) -> Percentiles {
        Percentiles::from(&self.latency)
    }
}

/// Collects the rows of all workers in order.
#[derive(Debug)]
pub struct IntervalCollector {
    rings: Vec<Arc<IntervalRing>>,
    start: Nanos,
    interval_ns: u64,
    drain_ns: u64,
    next: u64,
    /// When sending ended, ns since the start, if it has.
    sent_ns: Option<u64>,
    /// The last row, as far as it is final: with all that came after the end of sending.
    last: Option<IntervalRow>,
}

impl IntervalCollector {
    /// A collector over the rings of all workers, all made with the same start, interval and streams.
    pub fn new(rings: Vec<Arc<IntervalRing>>, drain_ns: u64) -> IntervalCollector {
        let (start, interval_ns) = rings
            .first()
            .map_or((Nanos(0), 1), |ring| (ring.start(), ring.interval_ns()));
        IntervalCollector {
            rings,
            start,
            interval_ns,
            drain_ns,
            next: 0,
            sent_ns: None,
            last: None,
        }
    }

    /// Sending ended at `end`: the row that has this moment is the last one.
    pub fn ends_at(&mut self, end: Nanos) {
        self.sent_ns = Some(end.since(self.start));
    }

    /// The next row, once it is final: every worker has recorded everything up to its end plus the drain time. The last one
    /// never is, since it takes in what comes later.
    ///
    /// From then on a packet of it would be late, so no row changes after it is returned.
    pub fn next_final(&mut self) -> Option<IntervalRow> {
        loop {
            let end = self.start.after((self.next + 1).saturating_mul(self.interval_ns));
            let recorded = self.rings.iter().map(|ring| ring.progress()).min()?;
            // Once the workers have ended everything is recorded, and there is no end of rows.
            let is_all = self.last.is_some() && recorded == Nanos(u64::MAX);
            if is_all || recorded <= end.after(self.drain_ns) {
                return None;
            }
            let row = self.take_next();
            if !self.is_last(&row) {
                return Some(row);
            }
            self.keep_last(row);
        }
    }

    /// The next row of a run that has ended ([`IntervalCollector::ends_at`]); for after the workers have stopped. `None` once
    /// all intervals that began before the end are out. The last one is cut at the end and takes in what no row would show
    /// otherwise: what was damaged later, copies that came too late for the row of their original, and what would be a row
    /// of less than a microsecond.
    pub fn next_remaining(&mut self) -> Option<IntervalRow> {
        let sent_ns = self.sent_ns.filter(|sent_ns| *sent_ns > 0)?;
        if self.last.is_none() {
            if self.rings.is_empty() || self.next.saturating_mul(self.interval_ns) >= sent_ns {
                return None;
            }
            let row = self.take_next();
            if !self.is_last(&row) {
                return Some(row);
            }
            self.keep_last(row);
        }
        let mut row = self.last.take()?;
        self.sent_ns = None;
        row.end_ns = sent_ns.max(row.start_ns + ROW_NS_MIN);
        let slots = self.rings.iter().map(|ring| ring.slots()).max().unwrap_or(0);
        for later in self.next..(self.next + slots as u64).saturating_sub(1) {
            self.add(later, &mut row);
        }
        Some(row)
    }

    /// Whether a row reaches the end, or leaves less than a row before it.
    fn is_last(&self, row: &IntervalRow) -> bool {
        self.sent_ns
            .is_some_and(|sent_ns| row.end_ns.saturating_add(ROW_NS_MIN) > sent_ns)
    }

    fn keep_last(&mut self, row: IntervalRow) {
        match &mut self.last {
            Some(last) => last.add(&row),
            None => self.last = Some(row),
        }
    }

    /// Collects and releases the next interval.
    fn take_next(&mut self) -> IntervalRow {
        let row = self.collect(self.next);
        self.rings.iter().for_each(|ring| ring.release(self.next));
        self.next += 1;
        row
    }

    /// Sums an interval over all workers as it stands now, final or not.
    pub fn collect(&self, index: u64) -> IntervalRow {
        let streams = self.rings.iter().map(|ring| ring.streams()).max().unwrap_or(0);
        let mut row = IntervalRow {
            index,
            start_ns: index.saturating_mul(self.interval_ns),
            end_ns: (index + 1).saturating_mul(self.interval_ns),
            streams: vec![IntervalTotals::default(); streams],
            corrupt: 0,
            unsent: 0,
            latency: Histogram::new(LATENCY_SUB_BITS),
        };
        self.add(index, &mut row);
        row
    }

    /// Adds what the slot of interval `index` holds in all rings.
    fn add(&self, index: u64, row: &mut IntervalRow) {
        for ring in &self.rings {
            let slot = ring.slot_of(index);
            for (totals, sent) in row.streams.iter_mut().zip(ring.sent_at(slot)) {
                totals.sent += sent.get();
            }
            for (totals, cell) in row.streams.iter_mut().zip(ring.cells_at(slot)) {
                totals.add_cell(cell);
            }
            if let Some(common) = ring.common_at(slot) {
                row.corrupt += common.corrupt.get();
                row.unsent += common.unsent.get();
            }
            if let Some(latency) = ring.latency_at(slot) {
                row.latency.merge(&latency.snapshot());
            }
        }
    }

    /// The number of the next row.
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Packets that are in no row because control was too slow.
    pub fn overrun(&self) -> u64 {
        self.rings.iter().map(|ring| ring.overrun()).sum()
    }

    /// Packets that are in no row because their row was already out.
    pub fn stale(&self) -> u64 {
        self.rings.iter().map(|ring| ring.stale()).sum()
    }
}
