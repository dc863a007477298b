//! `guard`: floods that were found, and the rules that stopped them.

use std::path::Path;

use maud::{Markup, html};
use measure::{ExpectationResult, GuardRule, GuardSummary, PortSummary, WorkerSummary};

use crate::compare::metrics::{Metric, Unit, higher};
use crate::html::element::section;
use crate::html::flow;
use crate::judged;
use crate::kind::{Entry, Kind, Part, Standing, Tile, Verdict};
use crate::number::{count, counted, loss, pps, time};
use crate::read::{self, ReadError};
use crate::rundir::file;
use crate::sheet::Sheet;
use crate::style::Style;
use crate::table::Cell;
use crate::terminal::{self, ending, join};

use super::forward;

/// Characters of a rule that are shown in a table: one may name a thousand sources.
const RULE_SHOWN: usize = 100;

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "guard",
    file: file::SUMMARY,
    required: &[
        "verdict",
        "reasons",
        "source",
        "mode",
        "dry_run",
        "judged.allowed",
        "judged.denied",
        "blocks.*.rule",
        "blocks.*.made_s",
        "refusals.*.why",
        "duration_s",
        "notes",
    ],
    read: |run| Ok(Box::new(read(run)?)),
    unfinished: |_| Ok(None),
    metrics: &METRICS,
};

const METRICS: [Metric; 1] = [higher("stopped_after", Unit::Nanoseconds)];

/// The result in the run directory `run`.
pub fn read(run: &Path) -> Result<GuardSummary, ReadError> {
    read::result(run, &KIND, |_| Ok(()))
}

impl Kind for GuardSummary {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        let standing = Standing::of_exit(self.exit_code());
        Verdict::judged(self.verdict, standing, &outcome(self), &self.reasons)
    }

    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "rate_rx" => Some(self.rate_pps),
            "received" => Some(self.judged.packets() as f64),
            "blocks" => Some(self.blocks.len() as f64),
            "stopped_after" => slowest(self),
            _ => self.forward.as_ref()?.figure(name),
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let value = |name| self.figure(name);
        Tile::known([
            ("seen", value("rate_rx").map(pps)),
            (
                "rules made",
                Some(count(self.blocks.len() as u64 + self.further_blocks)),
            ),
            ("denied", Some(count(self.judged.denied))),
            ("stopped after", slowest(self).map(time)),
            (
                "lost",
                self.forward.as_ref().and_then(|forward| forward.loss()).map(loss),
            ),
        ])
    }

    fn terminal(&self, style: &Style) -> String {
        let carried = self.forward.as_deref();
        join(&[
            match carried {
                Some(_) => terminal::carried(self, style),
                None => ending(&self.notes, &self.run, style),
            },
            about(self).terminal("Guard", style),
            carried.map_or_else(String::new, |forward| forward::flows_and_stalls(forward, style)),
            judged::terminal(&self.judged, style),
            carried.map_or_else(String::new, |forward| forward::ways_of_frames(forward, style)),
            refusals(self).terminal("Not blocked", style),
            blocks(self).terminal("Rules made", style),
            self.headline(style),
        ])
    }

    fn headline(&self, style: &Style) -> String {
        let paint = Standing::of_exit(self.exit_code()).paint();
        terminal::headline(self, &outcome(self), paint, style)
    }

    fn page(&self, named: &str, id: &str) -> Markup {
        let went = || flow::svg(&judged::flow(&self.judged), id);
        html! {
            // Between ports not all that is allowed arrives: that picture has both.
            @if let Some(forward) = &self.forward {
                (forward::page_of_frames(forward, named, id))
            } @else {
                (section(&format!("Where each packet went{named}"), &went()))
            }
            (section(&format!("Rules made{named}"), &blocks(self).html("What was blocked, and why")))
            (section(&format!("Not blocked{named}"), &refusals(self).html("Floods that no rule was made against")))
            (section(&format!("Rules{named}"), &judged::html(&self.judged)))
            (section(&format!("Guard{named}"), &about(self).html("Of this guard")))
            @if let Some(forward) = &self.forward { (forward::page_of_carriers(forward, named)) }
        }
    }

    fn parts(&self) -> Vec<Part> {
        self.forward
            .as_ref()
            .map_or_else(Vec::new, |forward| forward.parts())
    }

    fn expectations(&self) -> &[ExpectationResult] {
        self.forward.as_ref().map_or(&[], |forward| &forward.expectations)
    }

    fn ports(&self) -> &[PortSummary] {
        self.forward.as_ref().map_or(&[], |forward| &forward.ports)
    }

    fn workers(&self) -> &[WorkerSummary] {
        self.forward.as_ref().map_or(&[], |forward| &forward.workers)
    }

    fn notes(&self) -> &[measure::Note] {
        &self.notes
    }
}

/// The longest time from a flood's first packet to its rule in force, ns; nothing where one was not stopped, or nobody knows
/// when: of what did not come to its end there is no longest time.
fn slowest(summary: &GuardSummary) -> Option<f64> {
    if !summary.refusals.is_empty() || summary.further_refusals > 0 || summary.further_blocks > 0 {
        return None;
    }
    let all = summary.blocks.iter().map(|block| block.stopped_after_s);
    let all = all.collect::<Option<Vec<f64>>>()?;
    all.into_iter().reduce(f64::max).map(|seconds| seconds * 1e9)
}

/// The one sentence about a guard.
fn outcome(summary: &GuardSummary) -> String {
    let made = counted(summary.blocks.len() as u64 + summary.further_blocks, "rule");
    let dry = if summary.dry_run {
        " (dry run: none in force)"
    } else {
        ""
    };
    let came = match &summary.forward {
        Some(forward) => forward::outcome(forward),
        None => format!("{} on {}", judged::outcome(&summary.judged), summary.source),
    };
    format!("{made} made{dry}; {came}")
}

fn short(rule: &str) -> String {
    match rule.char_indices().nth(RULE_SHOWN) {
        Some((at, _)) => format!("{}...", &rule[..at]),
        None => rule.to_owned(),
    }
}

fn blocks(summary: &GuardSummary) -> Sheet<&GuardRule> {
    let limit = |block: &GuardRule| match (block.made.limit_pps, block.made.limit_bps) {
        (Some(limit), _) => pps(limit as f64),
        (None, Some(bits)) => format!("{} bit/s", count(bits)),
        (None, None) => String::new(),
    };
    Sheet::of(&summary.blocks)
        .name("rule", |block| short(&block.made.rule))
        .words("class", |block| block.made.class.clone())
        .number("made at", |block| time(block.made_s * 1e9))
        .number("in force after", |block| {
            block
                .stopped_after_s
                .map_or_else(String::new, |seconds| time(seconds * 1e9))
        })
        .short("after")
        .number("rate", |block| pps(block.made.rate_pps as f64))
        .number("limit", move |block| limit(block))
        .at_width(100)
        .number("explains", |block| loss(block.made.explained))
        .at_width(100)
        .number("costs", |block| loss(block.made.cost))
        .number("met", |block| {
            let about = if block.counted { "" } else { "about " };
            about.to_owned() + &count(block.packets)
        })
        .number("of known ones, by samples", |block| count(block.known_packets))
        .short("known")
}

fn refusals(summary: &GuardSummary) -> Sheet<&measure::GuardRefusal> {
    Sheet::of(&summary.refusals)
        .name("class", |refusal| refusal.refused.class.clone())
        .number("at", |refusal| time(refusal.at_s * 1e9))
        .number("rate", |refusal| pps(refusal.refused.rate_pps as f64))
        .cell("flood", |refusal| {
            let refused = &refusal.refused;
            Cell::left(match (&refused.destination, &refused.source) {
                (Some(to), _) => format!("to {to}"),
                (None, Some(from)) => format!("from {from}"),
                (None, None) => String::new(),
            })
        })
        .cell("why", |refusal| Cell::left(&refusal.refused.why))
}

/// What else is to be said of it, a line each.
fn about(summary: &GuardSummary) -> Sheet<(&'static str, String)> {
    let mut lines = vec![
        ("source", format!("{}, {}", summary.source, summary.mode)),
        (
            "seen",
            format!("{} for {}", pps(summary.rate_pps), time(summary.duration_s * 1e9)),
        ),
        (
            "samples",
            format!(
                "{}, {} more were missed",
                count(summary.samples),
                count(summary.samples_missed)
            ),
        ),
    ];
    if !summary.rules.is_empty() {
        lines.push(("rules", summary.rules.clone()));
    }
    if summary.not_judged > 0 {
        let (what, why) = if summary.mode == "replay" {
            ("packet", "were cut off when they were captured")
        } else {
            ("sample", "go on behind its 256 bytes")
        };
        let cut = format!("{} with headers that {why}", counted(summary.not_judged, what));
        lines.push(("not judged", cut));
    }
    if summary.further_blocks > 0 {
        let further = count(summary.further_blocks);
        lines.push((
            "not listed",
            format!("{further} rules that were taken back first; they are in the log, guard.jsonl"),
        ));
    }
    if summary.further_refusals > 0 {
        lines.push((
            "not listed",
            format!(
                "{} more refusals; they are in the log, guard.jsonl",
                count(summary.further_refusals)
            ),
        ));
    }
    if summary.log_left_out > 0 {
        let events = counted(summary.log_left_out, "event");
        lines.push((
            "log",
            format!("the first {events} are no longer in guard.1.jsonl and guard.jsonl"),
        ));
    }
    Sheet::of(lines)
        .name("", |(name, _)| (*name).to_owned())
        .cell("", |(_, value)| Cell::left(value))
}
