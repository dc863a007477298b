//! `noise`: who took the cores of a loop that only looks at the clock, and what that would cost in packets.

mod page;
mod terminal;

use std::path::Path;

use maud::Markup;
use measure::noise::{CauseNoise, CoreNoise, InterruptLine, NoiseSummary};

use crate::compare::metrics::{Metric, Unit, higher, lower};
use crate::kind::{Entry, Kind, Part, Standing, Tile, Verdict};
use crate::number::{count, counted, loss, pps, ratio, time};
use crate::read::{self, ReadError};
use crate::rundir::file;
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::Cell;

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "noise",
    file: file::SUMMARY,
    required: &[
        "threshold_ns",
        "ring",
        "cores.*.core",
        "cores.*.watched_s",
        "cores.*.gaps",
        "cores.*.taken_share",
        "cores.*.max_ns",
        "cores.*.causes",
        "notes",
    ],
    read: |run| Ok(Box::new(read(run)?)),
    unfinished: |_| Ok(None),
    metrics: &METRICS,
};

/// Of the worst core of each run.
const METRICS: [Metric; 3] = [
    higher("stall_share", Unit::Ratio),
    lower("stall_lossless", Unit::Rate),
    higher("stall_lost", Unit::Packets),
];

/// The result in the run directory `run`.
pub fn read(run: &Path) -> Result<NoiseSummary, ReadError> {
    let mut noise = read::result(run, &KIND, |noise: &NoiseSummary| match noise.cores.as_slice() {
        [] => Err("it has no core".to_owned()),
        _ => Ok(()),
    })?;
    // Up to November 2026 that was a note.
    if noise.reasons.is_empty() {
        noise.reasons = noise.cores.iter().filter_map(CoreNoise::dropped).collect();
    }
    Ok(noise)
}

impl Kind for NoiseSummary {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        // Without a rate nothing says what a stall costs, and so none is good or bad; and of one that was not watched to the
        // end nobody knows what would have come.
        let standing = match (self.rate_pps, Standing::of_exit(self.exit_code())) {
            (Some(_), Standing::Clean) if self.interrupted => Standing::Plain,
            (Some(_), standing) => standing,
            (None, _) => Standing::Plain,
        };
        let early = if self.interrupted { "ended early; " } else { "" };
        let words = match self.cores.as_slice() {
            [] => "no core was watched".to_owned(),
            [only] => headline(only),
            several => format!(
                "{} watched, {} taken from the worst of them, the longest stall {}",
                counted(several.len() as u64, "core"),
                ratio(worst(self, |core| Some(core.taken_share)).unwrap_or(0.0)),
                time(worst(self, |core| Some(core.max_ns)).unwrap_or(0.0)),
            ),
        };
        let words = format!("{early}{words}");
        if !self.reasons.is_empty() {
            return Verdict::judged(self.validity(), standing, &words, &self.reasons);
        }
        let causes = self.causes_missing.iter();
        Verdict {
            standing,
            mark: None,
            outcome: words,
            reasons: causes.map(|why| format!("no causes: {why}")).collect(),
        }
    }

    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            // They grow with the time: who ended early would have the better ones.
            "pauses" | "pause_max" | "stall_lossless" | "stall_lost" if self.interrupted => None,
            _ => measured(self, name),
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let value = |name| measured(self, name);
        let cores: Vec<String> = self.cores.iter().map(|core| core.core.to_string()).collect();
        let watched = worst(self, |core| Some(core.watched_s));
        Tile::known([
            ("cores", Some(cores.join(", "))),
            ("taken", value("stall_share").map(ratio)),
            ("longest stall", value("pause_max").map(time)),
            ("no loss up to", value("stall_lossless").map(pps)),
            ("lasted", watched.map(|seconds| time(seconds * 1e9))),
        ])
    }

    fn terminal(&self, style: &Style) -> String {
        terminal::render(self, style)
    }

    fn page(&self, named: &str, _id: &str) -> Markup {
        page::render(self, named)
    }

    fn parts(&self) -> Vec<Part> {
        vec![Part {
            file: file::GAPS,
            shows: "each stall",
            is_expected: true,
        }]
    }

    fn notes(&self) -> &[measure::Note] {
        &self.notes
    }
}

/// The figure `name` of the time that was watched; nothing where some of what happened then is not known.
fn measured(noise: &NoiseSummary, name: &str) -> Option<f64> {
    if !noise.reasons.is_empty() {
        return None;
    }
    match name {
        "pauses" => Some(noise.cores.iter().map(|core| core.gaps as f64).sum()),
        "pause_max" => worst(noise, |core| Some(core.max_ns)),
        "stall_share" => worst(noise, |core| Some(core.taken_share)),
        "stall_lossless" => worst(noise, |core| core.lossless_pps.map(|rate| -rate)).map(|rate| -rate),
        "stall_lost" => worst(noise, |core| core.lost),
        _ => None,
    }
}

/// The largest value of all cores.
fn worst(noise: &NoiseSummary, of: impl Fn(&CoreNoise) -> Option<f64>) -> Option<f64> {
    noise.cores.iter().filter_map(of).reduce(f64::max)
}

/// What was taken from a core, in one sentence.
fn headline(core: &CoreNoise) -> String {
    format!(
        "Core {}: {} in {:.1} s, {} of the time; the longest {}",
        core.core,
        counted(core.gaps, "stall"),
        core.watched_s,
        loss(core.taken_share),
        time(core.max_ns)
    )
}

fn not_recorded(line: &InterruptLine) -> String {
    let InterruptLine {
        line,
        name,
        counted,
        traced_min,
        traced_max,
        ..
    } = line;
    format!("{line} ({name}): counted {counted}, recorded {traced_min} to {traced_max}")
}

/// What is to be known besides the table.
fn explained(noise: &NoiseSummary, core: &CoreNoise) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(named) = core.named_share {
        lines.push(format!(
            "{} of that time is named by the kernel's events",
            loss(named)
        ));
    }
    match core.complete {
        Some(true) => lines.push("every interrupt that the kernel counted was recorded".into()),
        Some(false) => {
            let open: Vec<String> = core
                .interrupts
                .iter()
                .filter(|line| !line.proven)
                .map(not_recorded)
                .collect();
            let open = match open.as_slice() {
                [] => "events were lost".to_owned(),
                open => open.join("; "),
            };
            lines.push(format!(
                "not every interrupt was recorded, so \"outside\" may be the kernel's, too: {open}"
            ));
        }
        None => {}
    }
    if core.steal_ns > 0.0 {
        lines.push(format!(
            "the hypervisor admits to {} of steal (in steps of 10 ms)",
            time(core.steal_ns)
        ));
    }
    if let Some(rate) = core.lossless_pps {
        lines.push(format!(
            "an empty ring of {} descriptors loses nothing up to {}",
            noise.ring,
            pps(rate)
        ));
    }
    if let (Some(lost), Some(rate)) = (core.lost, noise.rate_pps) {
        lines.push(format!(
            "at {} all stalls together cost {}",
            pps(rate),
            counted(lost.round() as u64, "packet")
        ));
    }
    lines
}

/// Its share of the time that was taken.
fn share(core: &CoreNoise, cause: &CauseNoise) -> f64 {
    if core.taken_ns > 0.0 {
        cause.total_ns / core.taken_ns
    } else {
        0.0
    }
}

/// Narrower terminals have no room for the columns that say least.
fn causes<'n>(core: &'n CoreNoise, causes: &'n [CauseNoise]) -> Sheet<&'n CauseNoise> {
    let length = |cause: &CauseNoise, ns: f64| (cause.gaps > 0).then(|| time(ns));
    Sheet::of(causes)
        .name("", |cause| format!("  {}", cause.cause))
        .in_terminal()
        .name("cause", |cause| cause.cause.clone())
        .on_page()
        .number("stalls", |cause| count(cause.gaps))
        .number("every", |cause| cause.period_ns.map_or_else(String::new, time))
        .at_width(80)
        .in_terminal()
        .optional("every", |cause| cause.period_ns.map(time))
        .on_page()
        .number("total", |cause| time(cause.total_ns))
        .cell("share", |cause| Cell::share(share(core, cause)))
        .at_width(60)
        .optional("p99", |cause| length(cause, cause.p99_ns))
        .at_width(70)
        .optional("max", |cause| length(cause, cause.max_ns))
        .cell("packets", |cause| {
            match cause.lost.unwrap_or(0.0).round() as u64 {
                0 => Cell::right("0"),
                lost => Cell::right(count(lost)).paint(Paint::Bad),
            }
        })
        .when(core.lost.is_some())
}
