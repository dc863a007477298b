//! The files of a run directory that are written whole, at the end.

use std::fmt::Write;

use measure::Histogram;
use measure::result::Stall;
use serde::Serialize;

use crate::csv::field;
use crate::hgrm;
use crate::kind::Kind;
use crate::rundir::{RunDir, WriteError, file};

/// Columns of `stalls.csv`, version 1: `time` (the end of the stall) in ms since the start of the run.
pub const STALL_COLUMNS: &str = "time,core,role,gap_ns,ring_holds_ns,cause,lost,sequences,moved,next";

/// Columns of `gaps.csv`, version 1: `start_s` since the loop began.
pub const GAP_COLUMNS: &str = "core,start_s,duration_ns,cause,parts";

impl RunDir {
    /// Writes the file of a result. The note of the directory so far belongs into the result before.
    pub fn write_result<T: Kind + Serialize>(&self, result: &T) -> Result<(), WriteError> {
        let name = result.entry().map_or(file::SUMMARY, |entry| entry.file);
        self.write_labelled(name, result)
    }

    /// Writes `latency.hgrm`, in ns from the real departure.
    pub fn write_latency(&self, latency: &Histogram) -> Result<(), WriteError> {
        self.write_text(file::LATENCY, &hgrm::render(latency))
    }

    /// Writes `pacing.hgrm`: gaps between departures, counted in something of which one is `unit_ns`.
    pub fn write_pacing(&self, gaps: &Histogram, unit_ns: f64) -> Result<(), WriteError> {
        self.write_text(file::PACING, &hgrm::render_scaled(gaps, unit_ns))
    }

    /// Writes the two distributions of a replay, counted in something of which one is `unit_ns`.
    pub fn write_kept_times(
        &self,
        gap_error: &Histogram,
        lateness: &Histogram,
        unit_ns: f64,
    ) -> Result<(), WriteError> {
        let write = |name, seen| self.write_text(name, &hgrm::render_scaled(seen, unit_ns));
        write(file::GAP_ERROR, gap_error).and(write(file::LATENESS, lateness))
    }

    /// Writes `stalls.csv`, one row per stall; with no stall the file says so by having no row.
    pub fn write_stalls(&self, stalls: &[Stall]) -> Result<(), WriteError> {
        let mut text = format!("{STALL_COLUMNS}\n");
        for Stall {
            core,
            role,
            at_ns,
            gap_ns,
            ring_holds_ns,
            cause,
            moved,
            next,
            lost,
            sequences,
        } in stalls
        {
            let time = *at_ns as f64 / 1e6;
            // A `String` takes everything.
            let cause = cause.as_deref().unwrap_or_default();
            let (role, cause) = (field(role), field(cause));
            let _ = writeln!(
                text,
                "{time:.3},{core},{role},{gap_ns},{ring_holds_ns},{cause},{lost},{sequences},{moved},{next}"
            );
        }
        self.write_text(file::STALLS, &text)
    }
}
