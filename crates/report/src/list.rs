//! The list of runs: a row each, the newest last, whatever they are of and whether they can be read.

use std::fs;

use measure::units::format_rate;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::input::clean;
use crate::kind::Standing;
use crate::load::Loaded;
use crate::number::{loss, time};
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::{Cell, bad};
use crate::terminal::join;
use crate::utc;
use crate::wrap::{marked, wrapped};

/// Terminals of this width have room for the year, the seconds and the path.
const WIDE: usize = 120;

/// Columns that all but the path take there, with a name of a word.
const OTHERS: usize = 90;

/// A run in a list.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// When it began (of what does not say so, when it was last written to), in UTC: `2025-11-20T23:30:45Z`.
    pub when: Option<String>,
    /// The command that made it.
    pub command: Option<String>,
    /// What the user called it.
    pub label: Option<String>,
    /// `VALID`, `INVALID`, `DID NOT END`, ...
    pub verdict: &'static str,
    /// How many `--expect` failed.
    pub expectations_failed: usize,
    /// What was received, or else sent, or else the best that was found, or that stalls let through.
    pub rate_pps: Option<f64>,
    /// The part that was lost, 0 to 1.
    pub loss: Option<f64>,
    /// Latency that 99 % of the packets did not exceed.
    pub latency_p99_ns: Option<f64>,
    #[serde(skip)]
    stamp: Option<String>,
}

impl Row {
    /// Of a run.
    pub fn of(run: &Loaded) -> Self {
        let value = run.result.value().unwrap_or_default();
        let named = value["run"].as_str().and_then(|path| path.rsplit('/').next());
        let stamped = [Some(run.folder.as_str()), named];
        let stamped = stamped.into_iter().flatten().find_map(utc::stamped);
        let written = || fs::metadata(&run.path).and_then(|facts| facts.modified()).ok();
        let stamp = match stamped {
            Some((stamp, _)) => Some(stamp.to_owned()),
            None => written().map(utc::stamp),
        };
        let begun_by = stamped.and_then(|(_, rest)| rest.split('-').next());
        let command = run.result.entry().map(|entry| entry.command).or(begun_by);
        Self {
            when: stamp.as_deref().map(|stamp| utc::spoken(stamp, "T") + "Z"),
            command: command.filter(|word| !word.is_empty()).map(str::to_owned),
            label: run.label.clone(),
            verdict: run.result.verdict().word(),
            expectations_failed: run.failed(),
            rate_pps: ["rate_rx", "rate_tx"]
                .into_iter()
                .find_map(|name| run.figure(name))
                .or_else(|| run.result.best_pps())
                .or_else(|| run.figure("stall_lossless")),
            loss: run.figure("loss"),
            latency_p99_ns: run.figure("latency_p99"),
            stamp,
        }
    }

    fn time(&self, is_wide: bool) -> String {
        let spoken = self.stamp.as_deref().map(|stamp| utc::spoken(stamp, " "));
        match spoken {
            Some(whole) if is_wide => whole,
            // Month to minute.
            Some(whole) => whole.get(5..16).unwrap_or_default().to_owned(),
            None => "-".to_owned(),
        }
    }
}

/// All `runs` for a terminal.
pub fn render(runs: &[Loaded], style: &Style) -> String {
    let is_wide = style.width >= WIDE;
    let mut rows: Vec<(&Loaded, Row)> = runs.iter().map(|run| (run, Row::of(run))).collect();
    rows.sort_by(|(_, one), (_, other)| one.stamp.cmp(&other.stamp));
    let path = |run: &Loaded| clean(&run.path.display().to_string());
    let widest = runs.iter().map(|run| path(run).width()).max().unwrap_or(0);
    let known = |value: Option<f64>, show: fn(f64) -> String| value.map(show);
    let has_failed = rows.iter().any(|(_, row)| row.expectations_failed > 0);
    let table = Sheet::of(&rows)
        // A number is not shortened; of what is, the name is the longest.
        .number("when (UTC)", |(_, row)| row.time(is_wide))
        .set_left()
        .words("command", |(_, row)| {
            row.command.clone().unwrap_or_else(|| "-".to_owned())
        })
        .words("name", |(run, _)| run.called())
        .cell("verdict", |(run, row)| {
            let standing = run.result.verdict().standing;
            Cell::left(row.verdict).paint(standing.paint())
        })
        .cell("FAILED", |(_, row)| bad(row.expectations_failed as u64))
        .when(has_failed)
        .optional("rate", |(_, row)| known(row.rate_pps, format_rate))
        .optional("loss", |(_, row)| known(row.loss, loss))
        .optional("p99", |(_, row)| known(row.latency_p99_ns, time))
        // A path is there to be copied: whole or not at all.
        .number("path", |(run, _)| path(run))
        .set_left()
        .at_width(WIDE)
        .when(widest + OTHERS <= style.width);
    let unread = rows.iter().filter(|(run, _)| run.is_unreadable());
    let unread = unread.map(|(run, _)| {
        let words = format!("{}: {}", run.called(), run.result.verdict().words());
        marked("note:", Paint::Warn, &words, style)
    });
    let ended = runs
        .iter()
        .filter(|run| run.result.verdict().standing != Standing::Invalid);
    let mut more = String::new();
    let words = "Name one of them to see it in full, or two to four of one kind to see them side by side. Every figure of all: --html, --csv or --json.";
    wrapped(&mut more, words, 0, Paint::Dim, style);
    join(&[
        table.terminal_rows(style),
        unread.collect(),
        if ended.count() > 1 { more } else { String::new() },
    ])
}
