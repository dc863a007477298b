//! The result of a comparison for people: tables of what was found, and the recommendation.

use measure::comparison::Comparison;

use super::tables::{asked_rates, firewall, latencies, losses, missing, rates, tried};
use crate::number::pps;
use crate::style::{Paint, Style};
use crate::terminal::{ending, join};
use crate::wrap::{marked, wrapped};

/// A recommendation is read, not scanned: its lines are no longer than this.
const COLUMNS: usize = 100;

/// The whole result.
pub fn render(comparison: &Comparison, style: &Style) -> String {
    let mut setting = String::new();
    wrapped(&mut setting, &comparison.setting(), 0, Paint::None, style);
    let mut sections = vec![setting, not_compared(comparison, style)];
    sections.push(ending(&comparison.notes, &comparison.run, style));
    // Headings over nothing would look like an answer.
    if tried(comparison).next().is_some() {
        let (at, latencies) = latencies(comparison);
        let latency = at.map_or("Latency".into(), |rate| format!("Latency at {}", pps(rate)));
        let firewall = firewall(comparison);
        sections.extend(firewall.map(|(rules, table)| table.terminal(&format!("{rules} rules"), style)));
        sections.push(latencies.terminal(&latency, style));
        if !asked_rates(comparison).is_empty() {
            sections.push(losses(comparison).terminal("Lost at", style));
        }
        sections.push(rates(comparison).terminal("Rate", style));
    }
    sections.push(recommendation(comparison, style));
    join(&sections)
}

fn not_compared(comparison: &Comparison, style: &Style) -> String {
    let lines: String = missing(comparison)
        .map(|(method, why)| marked(&format!("  {}:", method.name), Paint::None, why, style))
        .collect();
    if lines.is_empty() {
        return lines;
    }
    style.paint(Paint::Head, "Not compared") + "\n" + &lines
}

fn recommendation(comparison: &Comparison, style: &Style) -> String {
    let mut text = style.paint(Paint::Head, "Which one to take") + "\n";
    let read = Style {
        width: style.width.min(COLUMNS),
        ..*style
    };
    for sentence in &comparison.recommendation.sentences {
        wrapped(&mut text, sentence, 2, Paint::None, &read);
    }
    text
}
