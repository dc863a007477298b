//! `replay`: packets of a capture that were sent again, and when.

use std::path::Path;

use maud::{Markup, html};
use measure::place::CUT_OFF;
use measure::{ExpectationResult, Percentiles, PortSummary, ReplaySummary, WorkerSummary, metric};

use crate::balance;
use crate::compare::metrics::{Metric, Unit, higher};
use crate::html::element::section;
use crate::html::flow::{self, End, Flow, node};
use crate::kind::{Entry, Kind, Part, Standing, Tile, Verdict};
use crate::machine;
use crate::number::{count, counted, loss, pps, time};
use crate::read::{self, ReadError};
use crate::rundir::file;
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::terminal::{self, explanation, join};

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "replay",
    file: file::SUMMARY,
    required: &[
        "verdict",
        "reasons",
        "file",
        "rate",
        "read",
        "sent",
        "ledger",
        "times",
        "starved",
        "gap_error_ns",
        "late_ns",
        "duration_s",
        "ports.*.uri",
        "workers.*.core",
        "notes",
    ],
    read: |run| Ok(Box::new(read(run)?)),
    unfinished: |_| Ok(None),
    metrics: &METRICS,
};

/// How well the times of the capture were kept.
const METRICS: [Metric; 4] = [
    higher("gap_error_p50", Unit::Nanoseconds),
    higher("gap_error_p99", Unit::Nanoseconds),
    higher("gap_error_max", Unit::Nanoseconds),
    higher("lateness_p99", Unit::Nanoseconds),
];

/// The result in the run directory `run`.
pub fn read(run: &Path) -> Result<ReplaySummary, ReadError> {
    read::result(run, &KIND, |_| Ok(()))
}

impl Kind for ReplaySummary {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        Verdict::of_run(self, &outcome(self))
    }

    fn figure(&self, name: &str) -> Option<f64> {
        metric::figure(self, name)
    }

    fn tiles(&self) -> Vec<Tile> {
        let value = |name| self.figure(name);
        Tile::known([
            ("sent", value("rate_tx").map(pps)),
            ("packets", Some(count(self.ledger.left))),
            ("not sent", value("loss").map(loss)),
            ("gap error p99", value("gap_error_p99").map(time)),
            ("lasted", Some(time(self.duration_s * 1e9))),
        ])
    }

    fn terminal(&self, style: &Style) -> String {
        join(&[
            terminal::carried(self, style),
            explanation::render(self.explanation.as_ref(), style),
            times(self).map_or_else(String::new, |sheet| sheet.terminal("Times", style)),
            packets(self, style),
            self.headline(style),
        ])
    }

    fn headline(&self, style: &Style) -> String {
        let paint = Standing::of_exit(self.exit_code()).paint();
        terminal::headline(self, &outcome(self), paint, style)
    }

    fn page(&self, named: &str, id: &str) -> Markup {
        html! {
            (section(&format!("Where each packet went{named}"), &flow::svg(&of_replay(self), id)))
            @if let Some(times) = times(self) {
                (section(&format!("Times kept{named}"), &times.html("Times")))
            }
            (machine::balance_html(self, named))
        }
    }

    fn parts(&self) -> Vec<Part> {
        Part::of_workers(&self.workers)
    }

    fn notes(&self) -> &[measure::Note] {
        &self.notes
    }

    fn expectations(&self) -> &[ExpectationResult] {
        &self.expectations
    }

    fn ports(&self) -> &[PortSummary] {
        &self.ports
    }

    fn workers(&self) -> &[WorkerSummary] {
        &self.workers
    }
}

/// The one sentence about a replay.
fn outcome(summary: &ReplaySummary) -> String {
    let read = counted(summary.read, "packet");
    let sent = match summary.lost() {
        0 => format!("{read} read, {} sent", count(summary.ledger.left)),
        lost => format!(
            "{read} read, {} sent, {} not sent",
            count(summary.ledger.left),
            count(lost)
        ),
    };
    let sent = match summary.ledger.charged(CUT_OFF) {
        0 => sent,
        cut_off => format!("{sent}, {} cut off by the end", count(cut_off)),
    };
    // After a hold-up most gaps are right, or as wrong as they are long, and all packets late.
    match (summary.gap_error_ns.p99, summary.late_ns.p99) {
        (Some(gap), Some(late)) => {
            let [gap, late] = [gap, late].map(|ns| time(ns as f64));
            format!("{sent}; gaps kept within {gap}, times within {late} (p99)")
        }
        _ => sent,
    }
}

fn packets(summary: &ReplaySummary, style: &Style) -> String {
    let mut table = Table::section("Packets", &[]);
    let number = |packets: u64| Cell::right(count(packets));
    let lasting = Cell::left(format!("for {}", time(summary.duration_s * 1e9))).paint(Paint::Dim);
    let loops = Cell::left(match summary.loops {
        0 | 1 => String::new(),
        loops => format!("in {loops} loops"),
    });
    table.item("read", [number(summary.ledger.entered), loops.paint(Paint::Dim)]);
    let rate = Cell::right(pps(summary.rate_tx_pps));
    let mut sent = vec![number(summary.ledger.left)];
    // One packet has no rate.
    if summary.duration_s > 0.0 {
        sent.extend([rate, lasting]);
    }
    table.item("sent", sent);
    balance::charges(&summary.ledger, &mut table);
    table.render(style)
}

/// How well the times were kept; none where there were none to keep.
fn times(summary: &ReplaySummary) -> Option<Sheet<(&'static str, Percentiles)>> {
    summary.late_ns.max?;
    let shown = |value: Option<u64>| value.map(|ns| time(ns as f64));
    let rows = [("gap error", summary.gap_error_ns), ("lateness", summary.late_ns)];
    let sheet = Sheet::of(rows)
        .name("", |(name, _)| (*name).to_owned())
        .optional("p50", move |(_, found)| shown(found.p50))
        .optional("p99", move |(_, found)| shown(found.p99))
        .optional("p99.9", move |(_, found)| shown(found.p999))
        .optional("max", move |(_, found)| shown(found.max));
    Some(sheet)
}

fn of_replay(summary: &ReplaySummary) -> Flow {
    let source = node("read", summary.ledger.entered, End::Plain, "packets");
    let left = node("sent", summary.ledger.left, End::Good, "by the port");
    balance::flow(&summary.ledger, source, left, "not sent")
}
