//! `capture`: frames received, and who took them.

use std::collections::BTreeSet;
use std::path::Path;

use measure::{CaptureSummary, ExpectationResult, PortSummary};

use crate::balance;
use crate::html::element::section;
use crate::html::flow::{self, End, Flow, node};
use crate::kind::{Entry, Kind, Part, Standing, Tile, Verdict};
use crate::machine;
use crate::number::{count, counted, loss, pps, time};
use crate::read::{self, ReadError};
use crate::rundir::file;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};
use crate::terminal::{self, explanation, join};

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "capture",
    file: file::SUMMARY,
    required: &[
        "verdict",
        "reasons",
        "received",
        "captured",
        "ledger",
        "consumers",
        "duration_s",
        "ports.*.uri",
        "workers.*.core",
        "notes",
    ],
    read: |run| Ok(Box::new(read(run)?)),
    unfinished: |_| Ok(None),
    metrics: &[],
};

/// The result in the run directory `run`.
pub fn read(run: &Path) -> Result<CaptureSummary, ReadError> {
    read::result(run, &KIND, |_| Ok(()))
}

impl Kind for CaptureSummary {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        Verdict::of_run(self, &outcome(self))
    }

    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "rate_rx" => Some(self.rate_rx_pps),
            "received" => Some(self.received as f64),
            "loss" => self.loss(),
            "lost" => Some(self.lost() as f64),
            "rx_missed" => Some(machine::missed(&self.ports) as f64),
            _ => None,
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let value = |name| self.figure(name);
        Tile::known([
            ("received", value("rate_rx").map(pps)),
            ("captured", Some(count(self.captured))),
            ("lost", value("loss").map(loss)),
            ("lasted", Some(time(self.duration_s * 1e9))),
        ])
    }

    fn terminal(&self, style: &Style) -> String {
        join(&[
            self.headline(style),
            frames(self, style),
            consumers(self, style),
            explanation::render(self.explanation.as_ref(), style),
            terminal::carried(self, style),
        ])
    }

    fn headline(&self, style: &Style) -> String {
        let paint = Standing::of_exit(self.exit_code()).paint();
        terminal::headline(self, &outcome(self), paint, style)
    }

    fn page(&self, named: &str, id: &str) -> String {
        let drawn = flow::svg(&of_capture(self), id);
        section(&format!("Where each frame went{named}"), &drawn) + &machine::balance_html(self, named)
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
}

/// The one sentence about a capture.
fn outcome(summary: &CaptureSummary) -> String {
    let came = counted(summary.ledger.entered, "frame");
    match summary.lost() {
        0 => format!("{came} came, {} captured, none lost", count(summary.captured)),
        lost => format!(
            "{came} came, {} captured, {} lost",
            count(summary.captured),
            count(lost)
        ),
    }
}

fn frames(summary: &CaptureSummary, style: &Style) -> String {
    let mut table = Table::section("Frames", &[]);
    let lasting = Cell::left(format!("for {}", time(summary.duration_s * 1e9))).paint(Paint::Dim);
    let number = |packets: u64| Cell::right(count(packets));
    let rate = Cell::right(pps(summary.rate_rx_pps));
    table.item("came", [number(summary.ledger.entered)]);
    table.item("received", [number(summary.received), rate, lasting]);
    table.item("captured", [number(summary.captured)]);
    let told = |text: &str| Cell::left(text).paint(Paint::Dim);
    let clocks: BTreeSet<&str> = summary.stamped_by.values().map(String::as_str).collect();
    if !clocks.is_empty() {
        let clocks: Vec<&str> = clocks.into_iter().collect();
        table.item("  stamped by", [told(""), told(&clocks.join(", "))]);
    }
    if let Some(filter) = &summary.filter {
        table.item("  filter", [told(""), told(filter)]);
    }
    if let Some(flows) = summary.sampled_one_in {
        table.item(
            "  sample",
            [told(""), told(&format!("1 of {} flows", count(flows)))],
        );
    }
    if summary.late > 0 {
        table.item("  out of order", [bad(summary.late)]);
    }
    balance::charges(&summary.ledger, &mut table);
    table.render(style)
}

fn consumers(summary: &CaptureSummary, style: &Style) -> String {
    if summary.consumers.is_empty() {
        return String::new();
    }
    let titles = ["offered", "taken", "lost", "left", "most segments behind"];
    let mut table = Table::section("Consumers", &titles);
    for consumer in &summary.consumers {
        let kind = if consumer.lossless { "lossless" } else { "lossy" };
        let number = |packets: u64| Cell::right(count(packets));
        table.item(
            &format!("{} ({kind})", consumer.name),
            [
                number(consumer.offered),
                number(consumer.taken),
                bad(consumer.lost),
                number(consumer.left),
                number(consumer.behind_max),
            ],
        );
    }
    let mut text = table.render(style);
    if let Some(files) = &summary.files {
        let last = format!(
            "  {} in {}, {}\n",
            counted(files.packets, "packet"),
            counted(files.files, "file"),
            files.path
        );
        text.push_str(&last);
        if files.compressed > 0 {
            let packed = format!(
                "  {} compressed: {} of {} bytes\n",
                counted(files.compressed, "file"),
                count(files.compressed_bytes),
                count(files.bytes)
            );
            text.push_str(&packed);
        }
    }
    text
}

fn of_capture(summary: &CaptureSummary) -> Flow {
    let source = node("came", summary.ledger.entered, End::Plain, "frames");
    let left = node("captured", summary.captured, End::Good, "in the ring");
    balance::flow(&summary.ledger, source, left, "lost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::Validity;

    use crate::terminal::painted;

    #[test]
    fn what_failed_an_expectation_is_not_painted_as_good() {
        let style = Style {
            color: true,
            ..Style::plain()
        };
        let with = |met: bool| CaptureSummary {
            verdict: Validity::Valid,
            expectations: vec![ExpectationResult {
                met,
                ..ExpectationResult::default()
            }],
            ..CaptureSummary::default()
        };
        let is_painted = |summary: &CaptureSummary, paint: Paint| {
            let line = painted(&format!("VALID: {}", outcome(summary)), paint, &style);
            summary.headline(&style).starts_with(&line)
        };
        assert!(is_painted(&with(true), Paint::Good));
        assert!(is_painted(&with(false), Paint::Warn));
    }
}
