//! `send`: packets sent on a schedule, and what came back of them.

mod headline;
pub(crate) mod ledger;
mod page;
mod streams;
mod traffic;

use std::path::Path;

use maud::Markup;
use measure::ledger::NOT_AWAITED;
use measure::{
    ExpectationResult, GapSummary, Percentiles, PortSummary, Summary, Validity, WorkerSummary, metric,
};

use crate::kind::{Entry, Kind, Part, Tile, Verdict};
use crate::machine;
use crate::number::{loss, pps, time};
use crate::read::{self, ReadError};
use crate::rundir::file;
use crate::style::Style;
use crate::terminal::{self, explanation, join};

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "send",
    file: file::SUMMARY,
    required: &[
        "verdict",
        "reasons",
        "sent",
        "received",
        "lost",
        "rate_tx_pps",
        "rate_rx_pps",
        "duration_s",
        "latency_ns",
        "ledger.accepted",
        "ledger.received",
        "ledger.lost_at",
        "streams.*.name",
        "ports.*.uri",
        "queues.*.packets",
        "workers.*.core",
        "notes",
    ],
    read: |run| Ok(Box::new(read(run)?)),
    unfinished: |_| Ok(None),
    metrics: &[],
};

/// The result in the run directory `run`.
pub fn read(run: &Path) -> Result<Summary, ReadError> {
    read::result(run, &KIND, judge)
}

/// Its sums.
fn judge(summary: &Summary) -> Result<(), String> {
    let Summary {
        sent, received, lost, ..
    } = summary;
    if lost > sent {
        return Err(format!("it has {lost} packets lost of {sent} sent"));
    }
    let not_awaited = summary.ledger.lost_at.get(NOT_AWAITED).unwrap_or(&0);
    let is_even = lost.saturating_add(*received).saturating_add(*not_awaited) == *sent;
    match summary.verdict {
        Validity::Valid if !is_even => Err(format!(
            "it says VALID, and its {received} packets received and {lost} lost are not the {sent} sent"
        )),
        Validity::Valid if !summary.reasons.is_empty() => {
            Err("it says VALID, and has reasons against it".to_owned())
        }
        Validity::Invalid if summary.reasons.is_empty() => {
            Err("it says INVALID, and has no reason for it".to_owned())
        }
        _ => Ok(()),
    }
}

impl Kind for Summary {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        Verdict::of_run(self, &headline::outcome(self))
    }

    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "rx_missed" => Some(machine::missed(&self.ports) as f64),
            _ => metric::figure(self, name),
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let value = |name| self.figure(name);
        Tile::known([
            ("sent", value("rate_tx").map(pps)),
            ("received", value("rate_rx").map(pps)),
            ("lost", value("loss").map(loss)),
            ("median latency", value("latency_p50").map(time)),
            ("99.9 % within", value("latency_p999").map(time)),
            ("slowest", value("latency_max").map(time)),
            ("lasted", Some(time(self.duration_s * 1e9))),
        ])
    }

    fn terminal(&self, style: &Style) -> String {
        join(&[
            ledger::render(&self.ledger, style),
            streams::render(&self.streams, style),
            terminal::carried(self, style),
            explanation::render(self.explanation.as_ref(), style),
            traffic::rates(self, style),
            traffic::loss(self, style),
            traffic::latency(self, style),
            headline::render(self, style),
        ])
    }

    fn headline(&self, style: &Style) -> String {
        headline::render(self, style)
    }

    fn page(&self, named: &str, id: &str) -> Markup {
        page::render(self, named, id)
    }

    fn parts(&self) -> Vec<Part> {
        let has_latency = self.latency_ns.max.is_some();
        let mut parts = Part::of_workers(&self.workers);
        parts.extend([
            Part {
                file: file::LATENCY,
                shows: "the curve of latency percentiles",
                is_expected: has_latency,
            },
            Part {
                file: file::PACING,
                shows: "the gaps between departures",
                is_expected: false,
            },
        ]);
        parts
    }

    fn notes(&self) -> &[measure::Note] {
        &self.notes
    }

    fn ports(&self) -> &[PortSummary] {
        &self.ports
    }

    fn workers(&self) -> &[WorkerSummary] {
        &self.workers
    }

    fn latency(&self) -> Percentiles {
        self.latency_ns
    }

    fn departures(&self) -> GapSummary {
        self.gap_ns
    }

    fn expectations(&self) -> &[ExpectationResult] {
        &self.expectations
    }
}
