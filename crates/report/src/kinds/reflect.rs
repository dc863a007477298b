//! `reflect`: frames received, and what was done with each.

mod frames;
mod page;

use std::fmt::Write as _;
use std::path::Path;

use maud::Markup;
use measure::place::{Owner, RX_ERROR, RX_MISSED, RX_NO_BUFFER};
use measure::{Balance, Place, PortSummary, ReflectSummary, WorkerSummary};

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
        match name {
            "rate_tx" => Some(self.rate_tx_pps),
            "rate_rx" => Some(self.rate_rx_pps),
            "sent" => Some(self.balance().left as f64),
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
            ("returned", value("rate_tx").map(pps)),
            ("received", value("rate_rx").map(pps)),
            ("probes lost", value("loss").map(loss)),
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
        let paint = match lost(&self.balance()) {
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

    fn workers(&self) -> &[WorkerSummary] {
        &self.workers
    }

    /// What a reflector drops need not have been a probe, and the intervals do not tell.
    fn about_loss(&self) -> Option<String> {
        let others = self.dropped.iter().filter(|(reason, _)| !may_be_probe(reason));
        match others.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count)) {
            0 => None,
            _ if self.lost() == 0 && self.faults.get("drop").is_none_or(|drop| *drop == 0) => {
                Some("None of these frames was a probe, so no probe was lost here.".to_owned())
            }
            others => Some(format!("{} of these frames were no probes.", count(others))),
        }
    }
}

/// Whether what went to this place may have been a probe that was to go back.
fn may_be_probe(place: &str) -> bool {
    Place::named(place).owner != Owner::Purpose
}

/// What was not returned and not dropped by rule, as far as it was counted: results of before there was a ledger did not all
/// add up.
fn lost(balance: &Balance) -> u64 {
    let places = balance.places.iter();
    let lost = places.filter(|charge| charge.owner != Owner::Purpose);
    lost.fold(balance.unexplained, |sum, charge| {
        sum.saturating_add(charge.charged)
    })
}

/// The one sentence about a reflector that ran.
fn outcome(summary: &ReflectSummary) -> String {
    let balance = summary.balance();
    // What was never received could not be returned; copies that the injector made do not make up for others.
    let is_received = |place: &str| ![RX_MISSED, RX_NO_BUFFER, RX_ERROR].contains(&place);
    let mut places = balance.places.iter().filter(|charge| is_received(&charge.place));
    let are_all_back = balance.unexplained == 0 && places.all(|charge| charge.charged == 0);
    let received = counted(summary.received, "frame");
    let mut what = if are_all_back && balance.left >= summary.received && summary.received > 0 {
        format!("{received} received, every one returned")
    } else {
        format!("{received} received, {} returned", count(balance.left))
    };
    let missed = balance.charged(RX_MISSED);
    for (packets, how) in [
        (lost(&balance).saturating_sub(missed), "lost"),
        (missed, "missed by its ports"),
    ] {
        if packets > 0 {
            let _ = write!(what, ", {} {how}", count(packets));
        }
    }
    what
}
