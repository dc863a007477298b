//! `forward`: frames handed on between two ports, and by which rules.

use std::path::Path;

use maud::{Markup, html};
use measure::note::LOST_WITH_PEER;
use measure::place::DENIED;
use measure::{ExpectationResult, ForwardSummary, PortSummary, WaySummary, WorkerSummary, metric};

use crate::balance;
use crate::compare::metrics::{Metric, Unit, lower};
use crate::flows;
use crate::html::element::section;
use crate::html::flow::{self, End, node};
use crate::judged;
use crate::kind::{Entry, Kind, Part, Standing, Tile, Verdict};
use crate::machine;
use crate::number::{count, counted, loss, pps, time};
use crate::read::{self, ReadError};
use crate::rundir::file;
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};
use crate::terminal::{self, explanation, join};

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "forward",
    file: file::SUMMARY,
    required: &[
        "verdict",
        "reasons",
        "mode",
        "received",
        "forwarded",
        "ledger",
        "ways.*.from",
        "duration_s",
        "ports.*.uri",
        "workers.*.core",
        "notes",
    ],
    read: |run| Ok(Box::new(read(run)?)),
    unfinished: |_| Ok(None),
    metrics: &METRICS,
};

/// What went on, and what rules kept from that.
const METRICS: [Metric; 1] = [lower("forwarded", Unit::Packets)];

/// The result in the run directory `run`.
pub fn read(run: &Path) -> Result<ForwardSummary, ReadError> {
    read::result(run, &KIND, |_| Ok(()))
}

impl Kind for ForwardSummary {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        Verdict::of_run(self, &outcome(self))
    }

    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "sent" => Some(self.ledger.left as f64),
            "rx_missed" => Some(machine::missed(&self.ports) as f64),
            _ => metric::figure(self, name),
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let value = |name| self.figure(name);
        let denied = self.rules.as_ref().map(|rules| count(rules.judged.denied));
        Tile::known([
            ("received", value("rate_rx").map(pps)),
            ("forwarded", value("rate_tx").map(pps)),
            ("denied", denied),
            ("lost", value("loss").map(loss)),
            ("lasted", Some(time(self.duration_s * 1e9))),
        ])
    }

    fn terminal(&self, style: &Style) -> String {
        let rules = self.rules.as_ref();
        join(&[
            terminal::carried(self, style),
            flows_and_stalls(self, style),
            rules.map_or_else(String::new, |rules| judged::terminal(&rules.judged, style)),
            ways_of_frames(self, style),
            self.headline(style),
        ])
    }

    fn headline(&self, style: &Style) -> String {
        let paint = Standing::of_exit(self.exit_code()).paint();
        terminal::headline(self, &outcome(self), paint, style)
    }

    fn page(&self, named: &str, id: &str) -> Markup {
        html! {
            (page_of_frames(self, named, id))
            @if let Some(rules) = &self.rules {
                (section(&format!("Rules{named}"), &judged::html(&rules.judged)))
            }
            (page_of_carriers(self, named))
        }
    }

    fn parts(&self) -> Vec<Part> {
        Part::of_workers(&self.workers)
    }

    fn expectations(&self) -> &[ExpectationResult] {
        &self.expectations
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
}

/// Where frames went, and which way.
pub(super) fn ways_of_frames(summary: &ForwardSummary, style: &Style) -> String {
    join(&[frames(summary, style), ways(summary).terminal("Ways", style)])
}

/// Who talked to whom, and who took the cores.
pub(super) fn flows_and_stalls(summary: &ForwardSummary, style: &Style) -> String {
    let flows = summary.flows.as_ref();
    join(&[
        flows.map_or_else(String::new, |flows| flows::terminal(flows, style)),
        explanation::render(summary.explanation.as_ref(), style),
    ])
}

/// The beginning of its page: where frames went, and which way.
pub(super) fn page_of_frames(summary: &ForwardSummary, named: &str, id: &str) -> Markup {
    let source = node("came", summary.ledger.entered, End::Plain, "frames");
    let left = node("forwarded", summary.ledger.left, End::Good, "to the other port");
    let drawn = flow::svg(&balance::flow(&summary.ledger, source, left, "lost"), id);
    html! {
        (section(&format!("Where each frame went{named}"), &drawn))
        (section(&format!("Ways{named}"), &ways(summary).html("From port to port")))
    }
}

/// And its end: flows, and what carried them.
pub(super) fn page_of_carriers(summary: &ForwardSummary, named: &str) -> Markup {
    html! {
        @if let Some(flows) = &summary.flows {
            (section(&format!("Flows{named}"), &flows::html(flows)))
        }
        (machine::balance_html(summary, named))
    }
}

/// The one sentence about it.
pub(super) fn outcome(summary: &ForwardSummary) -> String {
    let ledger = &summary.ledger;
    let came = counted(ledger.entered, "frame");
    let lost = match summary.lost() {
        0 if summary.notes.iter().any(|note| note.code == LOST_WITH_PEER) => {
            "none lost but what went with a peer".to_owned()
        }
        0 => "none lost".to_owned(),
        lost => format!("{} lost", count(lost)),
    };
    let denied = summary.rules.as_ref().map_or_else(String::new, |rules| {
        format!("{} denied, ", count(rules.judged.denied))
    });
    format!("{came} came, {} forwarded, {denied}{lost}", count(ledger.left))
}

fn frames(summary: &ForwardSummary, style: &Style) -> String {
    let mut table = Table::section("Frames", &[]);
    let lasting = Cell::left(format!("for {}", time(summary.duration_s * 1e9))).paint(Paint::Dim);
    let number = |packets: u64| Cell::right(count(packets));
    let rate = |rate_pps| Cell::right(pps(rate_pps));
    table.item("came", [number(summary.ledger.entered)]);
    table.item(
        "received",
        [number(summary.received), rate(summary.rate_rx_pps), lasting],
    );
    let from_host: u64 = summary.ways.iter().map(|way| way.from_kernel).sum();
    if from_host > 0 {
        // Else more would be forwarded than was received.
        table.item("from host", [number(from_host)]);
    }
    table.item(
        "forwarded",
        [number(summary.ledger.left), rate(summary.rate_tx_pps)],
    );
    balance::charges(&summary.ledger, &mut table);
    table.render(style)
}

fn ways(summary: &ForwardSummary) -> Sheet<&WaySummary> {
    let denied = |way: &WaySummary| way.ledger.charged(DENIED);
    let of_host = |way: &WaySummary| way.to_kernel + way.from_kernel + way.copied + way.uncopied;
    let has_host = summary.ways.iter().any(|way| of_host(way) > 0);
    Sheet::of(&summary.ways)
        .name("way", |way| format!("{} to {}", way.from, way.to))
        .number("came", |way| count(way.ledger.entered))
        .number("forwarded", |way| count(way.ledger.left))
        .number("denied", move |way| count(denied(way)))
        .number("from host", |way| count(way.from_kernel))
        .when(has_host)
        .number("to host", |way| count(way.to_kernel))
        .when(has_host)
        .number("copied to host", |way| count(way.copied))
        .short("copied")
        .when(has_host)
        .cell("lost", |way| bad(way.ledger.lost()))
        .cell("unexplained", |way| bad(way.ledger.unexplained))
}
