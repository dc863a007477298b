//! `intervals.csv` and `streams.csv`: what happened in each interval, streamed while the run goes.

use std::fmt::{self, Write};
use std::sync::Arc;

use measure::{IntervalRow, IntervalTotals};

use crate::csv::{field, optional};
use crate::rows::{Row, RowWriter};
use crate::rundir::{RunDir, WriteError, file};

/// Columns of `intervals.csv`, version 1. The first five are those of the older dpdk-project: `time` (the end of the
/// interval) and `avg_latency` in ms, `drop_rate` in percent. Empty where there was nothing to measure, and the two rates
/// of a rest ([`IntervalRow::is_rest`]).
pub const COLUMNS: &str = "time,tx_packets,rx_packets,drop_rate,avg_latency,duration,lost,duplicate,reordered,\
corrupt,unsent,tx_pps,rx_pps,latency_min_ns,latency_p50_ns,latency_p90_ns,latency_p99_ns,latency_p999_ns,latency_max_ns";

/// Columns of `streams.csv`, version 1; units as in [`COLUMNS`]. A stream has no row for an interval in which it
/// sent nothing.
pub const STREAM_COLUMNS: &str = "time,stream,tx_packets,rx_packets,drop_rate,avg_latency,lost,duplicate,reordered,\
latency_min_ns,latency_max_ns";

/// Intervals waiting for the disk at most: half a minute of them at 1 ms.
const WAITING_MAX: usize = 32_768;
/// Streams of all waiting intervals together: some 40 MB.
const WAITING_STREAMS_MAX: usize = 1 << 19;

/// Writes both files. It never fails while the run goes: what the disk does not take is told at the end.
#[derive(Debug)]
pub struct IntervalWriter {
    run: RunDir,
    is_awaited: bool,
    intervals: Option<RowWriter<String>>,
    streams: Option<RowWriter<StreamRows>>,
    names: Arc<[String]>,
}

impl IntervalWriter {
    /// Begins `intervals.csv`, and `streams.csv` when `streams` names more than one. Where nothing `is_awaited`, nothing is
    /// lost by not coming back.
    /// A file that cannot be made is a note of `run`, and the run goes on without it.
    pub fn create(run: &RunDir, streams: &[String], is_awaited: bool) -> Self {
        let intervals = RowWriter::create(&run.file(file::INTERVALS), &format!("{COLUMNS}\n"), WAITING_MAX);
        let several = streams.len() > 1;
        let room = (WAITING_STREAMS_MAX / streams.len().max(1)).clamp(16, WAITING_MAX);
        let streamed = several
            .then(|| RowWriter::create(&run.file(file::STREAMS), &format!("{STREAM_COLUMNS}\n"), room));
        Self {
            intervals: run.keep(intervals).ok(),
            streams: streamed.and_then(|writer| run.keep(writer).ok()),
            names: streams.iter().map(|name| field(name)).collect(),
            run: run.clone(),
            is_awaited,
        }
    }

    /// Hands over one finished interval, and never waits for the disk.
    pub fn push(&mut self, row: &IntervalRow) {
        if let Some(intervals) = &mut self.intervals {
            intervals.push(line(row, self.is_awaited));
        }
        if let Some(streams) = &mut self.streams {
            let (time, totals, names) = (
                milliseconds(row.end_ns),
                row.streams.clone(),
                Arc::clone(&self.names),
            );
            streams.push(StreamRows {
                time,
                totals,
                names,
                is_awaited: self.is_awaited,
            });
        }
    }

    /// Waits until all is in the files. What is missing is a note of the run, and the first of it returned.
    pub fn finish(self) -> Result<(), WriteError> {
        let intervals = self.run.keep(self.intervals.map_or(Ok(()), RowWriter::finish));
        let streams = self.run.keep(self.streams.map_or(Ok(()), RowWriter::finish));
        intervals.and(streams)
    }
}

/// One line of `intervals.csv`.
fn line(row: &IntervalRow, is_awaited: bool) -> String {
    let mut text = String::with_capacity(160);
    // A `String` takes everything.
    let _ = write_line(&mut text, row, is_awaited);
    text
}

fn write_line(text: &mut String, row: &IntervalRow, is_awaited: bool) -> fmt::Result {
    let total = row.total();
    let (end, length) = (row.end_ns, row.end_ns.saturating_sub(row.start_ns));
    let (end, length) = (milliseconds(end), milliseconds(length));
    write_totals(text, &end, &total, is_awaited)?;
    write!(
        text,
        "{length},{},{},{},",
        lost(&total, is_awaited),
        total.duplicate,
        total.reordered
    )?;
    let rate = |packets: u64| {
        let has_rate = row.seconds() > 0.0 && !row.is_rest();
        let rate = has_rate.then(|| format!("{:.3}", packets as f64 / row.seconds()));
        optional(rate)
    };
    let (tx, rx) = (rate(total.sent), rate(total.received));
    write!(text, "{},{},{tx},{rx},", row.corrupt, row.unsent)?;
    let of = row.percentiles();
    let [min, p50, p90, p99, p999, max] = [of.min, of.p50, of.p90, of.p99, of.p999, of.max].map(optional);
    writeln!(text, "{min},{p50},{p90},{p99},{p999},{max}")
}

/// The fields that both files begin with, behind what names the row.
fn write_totals(text: &mut String, named: &str, total: &IntervalTotals, is_awaited: bool) -> fmt::Result {
    // All digits of it: one packet lost in a thousand million must not read 0.
    let drop_rate = optional(total.drop_rate_percent().filter(|_| is_awaited));
    let mean = mean_ms(total);
    write!(
        text,
        "{named},{},{},{drop_rate},{mean},",
        total.sent, total.received
    )
}

/// The streams of one interval, made into text by the thread that writes.
#[derive(Debug)]
struct StreamRows {
    time: String,
    totals: Vec<IntervalTotals>,
    names: Arc<[String]>,
    is_awaited: bool,
}

impl Row for StreamRows {
    fn write(&self, text: &mut String) -> fmt::Result {
        let all = self.names.iter().zip(&self.totals);
        for (name, total) in all.filter(|(_, total)| **total != IntervalTotals::default()) {
            write_totals(text, &format!("{},{name}", self.time), total, self.is_awaited)?;
            let (min, max) = (optional(total.latency_min_ns), optional(total.latency_max_ns));
            let (duplicate, reordered) = (total.duplicate, total.reordered);
            let lost = lost(total, self.is_awaited);
            writeln!(text, "{lost},{duplicate},{reordered},{min},{max}")?;
        }
        Ok(())
    }
}

fn lost(total: &IntervalTotals, is_awaited: bool) -> u64 {
    if is_awaited { total.lost() } else { 0 }
}

fn mean_ms(total: &IntervalTotals) -> String {
    optional(total.latency_mean_ns().map(|ns| format!("{:.6}", ns / 1e6)))
}

fn milliseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns / 1000 % 1000)
}
