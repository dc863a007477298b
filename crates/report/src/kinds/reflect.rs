//! `reflect`: frames received, and what was done with each.

mod frames;
mod page;

use std::path::Path;

use maud::Markup;
use measure::{PortSummary, ReflectSummary};

use crate::kind::{Entry, Kind, Part, Tile, Verdict};
use crate::machine;
use crate::number::{count, counted, loss, pps, time};
use crate::read::{self, ReadError};
use crate::rundir::file;
use crate::style::{Paint, Style};
use crate::terminal::{self, explanation, join};

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "reflect",
    file: file::SUMMARY,
    required: &[
        "verdict",
        "reasons",
        "received",
        "returned",
        "dropped",
        "duration_s",
        "ports.*.uri",
        "workers.*.core",
        "notes",
    ],
    read: |run| Ok(Box::new(read(run)?)),
    unfinished: |_| Ok(None),
    metrics: &[],
};

/// Frames that are dropped for these reasons never were probes: neighbour discovery, ARP for others.
const NOT_PROBES: [&str; 3] = ["not_ip", "not_udp", "not_ours"];

/// The result in the run directory `run`.
pub fn read(run: &Path) -> Result<ReflectSummary, ReadError> {
    read::result(run, &KIND, |_| Ok(()))
}

impl Kind for ReflectSummary {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        Verdict::of_run(self, &outcome(self))
    }

    fn figure(&self, name: &str) -> Option<f64> {
        let (probes, dropped) = probes(self);
        match name {
            "rate_tx" => Some(self.rate_tx_pps),
            "rate_rx" => Some(self.rate_rx_pps),
            "sent" => Some(self.returned as f64),
            "received" => Some(self.received as f64),
            "loss" => (probes > 0).then(|| dropped as f64 / probes as f64),
            "lost" => Some(dropped as f64),
            "rx_missed" => Some(machine::missed(&self.ports) as f64),
            _ => None,
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let value = |name| self.figure(name);
        Tile::known([
            ("returned", value("rate_tx").map(pps)),
            ("received", value("rate_rx").map(pps)),
            ("probes dropped", value("loss").map(loss)),
            ("lasted", Some(time(self.duration_s * 1e9))),
        ])
    }

    fn terminal(&self, style: &Style) -> String {
        join(&[
            terminal::carried(self, style),
            explanation::render(self.explanation.as_ref(), style),
            frames::render(self, style),
            self.headline(style),
        ])
    }

    fn headline(&self, style: &Style) -> String {
        let paint = match machine::missed(&self.ports) {
            0 => Paint::Good,
            _ => Paint::Warn,
        };
        terminal::headline(self, &outcome(self), paint, style)
    }

    fn page(&self, named: &str, id: &str) -> Markup {
        page::render(self, named, id)
    }

    fn parts(&self) -> Vec<Part> {
        Part::of_workers(&self.workers)
    }

    fn notes(&self) -> &[measure::Note] {
        &self.notes
    }

    fn ports(&self) -> &[PortSummary] {
        &self.ports
    }

    /// What a reflector drops need not have been a probe, and the intervals do not tell.
    fn about_loss(&self) -> Option<String> {
        let all = self
            .dropped
            .values()
            .fold(0_u64, |sum, number| sum.saturating_add(*number));
        let (_, probes) = probes(self);
        match probes {
            _ if all == 0 => None,
            0 => Some("None of these frames was a probe, so no probe was lost here.".to_owned()),
            _ if probes == all => None,
            some => Some(format!("Of these frames {} were probes.", count(some))),
        }
    }
}

/// The one sentence about a reflector that ran.
fn outcome(summary: &ReflectSummary) -> String {
    let (received, returned) = (summary.received, summary.returned);
    let what = if received == returned && received > 0 {
        format!("{} received, every one returned", counted(received, "frame"))
    } else {
        format!(
            "{} received, {} returned",
            counted(received, "frame"),
            count(returned)
        )
    };
    match machine::missed(&summary.ports) {
        0 => what,
        missed => format!("{what}, {} missed by its ports", count(missed)),
    }
}

/// Probes that a reflector got, and those of them that it dropped.
fn probes(summary: &ReflectSummary) -> (u64, u64) {
    let (mut others, mut dropped) = (summary.answered.saturating_add(summary.told), 0_u64);
    for (reason, number) in &summary.dropped {
        let sum = if NOT_PROBES.contains(&reason.as_str()) {
            &mut others
        } else {
            &mut dropped
        };
        *sum = sum.saturating_add(*number);
    }
    (summary.received.saturating_sub(others), dropped)
}
