//! The result of a comparison for people: tables of what was found, and the recommendation.

use std::fmt::Write as _;

use measure::comparison::Comparison;

use super::tables::{asked_rates, firewall, latencies, losses, missing, rates, tried};
use crate::number::pps;
use crate::style::{Paint, Style};
use crate::terminal::ending;
use crate::wrap::{marked, wrapped};

/// A recommendation is read, not scanned: its lines are no longer than this.
const COLUMNS: usize = 100;

/// The whole result.
pub fn render(comparison: &Comparison, style: &Style) -> String {
    let mut text = String::new();
    wrapped(&mut text, &comparison.setting(), 0, Paint::None, style);
    text.push('\n');
    // Headings over nothing would look like an answer.
    if tried(comparison).next().is_some() {
        let (at, latencies) = latencies(comparison);
        let latency = at.map_or("Latency".into(), |rate| format!("Latency at {}", pps(rate)));
        let mut tables = vec![
            rates(comparison).terminal("Rate", style),
            latencies.terminal(&latency, style),
        ];
        if !asked_rates(comparison).is_empty() {
            tables.insert(1, losses(comparison).terminal("Lost at", style));
        }
        let firewall = firewall(comparison);
        tables.extend(firewall.map(|(rules, table)| table.terminal(&format!("{rules} rules"), style)));
        text.push_str(&tables.join("\n"));
    }
    let mut missing = missing(comparison).peekable();
    if missing.peek().is_some() {
        let _ = writeln!(text, "\n{}", style.paint(Paint::Head, "Not compared"));
    }
    for (method, why) in missing {
        text += &marked(&format!("  {}:", method.name), Paint::None, why, style);
    }
    let _ = writeln!(text, "\n{}", style.paint(Paint::Head, "Which one to take"));
    let read = Style {
        width: style.width.min(COLUMNS),
        ..*style
    };
    for sentence in &comparison.recommendation.sentences {
        wrapped(&mut text, sentence, 2, Paint::None, &read);
    }
    text.push('\n');
    text.push_str(&ending(&comparison.notes, &comparison.run, style));
    text
}
