//! Who took the cores, and what that cost.

use std::fmt::Write as _;

use measure::Explanation;

use crate::number;
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::Cell;
use crate::wrap::{marked, wrapped};

/// Causes shown; the rest is in `summary.json`.
const CAUSES_MAX: usize = 10;

/// The section; empty where nobody asked.
pub fn render(explanation: Option<&Explanation>, style: &Style) -> String {
    let Some(explanation) = explanation else {
        return String::new();
    };
    let mut text = style.paint(Paint::Head, "Stalls") + "\n";
    let (first, parts) = sentence(explanation);
    wrapped(&mut text, &first, 2, Paint::None, style);
    for part in parts {
        wrapped(&mut text, &part, 4, Paint::None, style);
    }
    let about = format!(
        "(stalls are longer than {}; counters were read every {}: closer stalls share what was missed, as if it had come evenly)",
        number::time(explanation.threshold_ns as f64),
        number::time(explanation.granularity_ns as f64)
    );
    wrapped(&mut text, &about, 2, Paint::None, style);
    if let Some(why) = &explanation.untraced {
        let narrower = Style {
            width: style.width.saturating_sub(2),
            ..*style
        };
        let line = marked("no causes:", Paint::Warn, why, &narrower);
        text.extend(line.lines().map(|line| format!("  {line}\n")));
    }
    if explanation.dropped > 0 {
        let line = format!(
            "{} found no room, and are not counted: give a longer --pause",
            number::counted(explanation.dropped, "stall")
        );
        wrapped(&mut text, &line, 2, Paint::None, style);
    }
    text += &Sheet::of(explanation.causes.iter().take(CAUSES_MAX))
        .name("", |cause| format!("  {}", cause.cause))
        .words("core", |cause| cause.core.to_string())
        .number("stalls", |cause| number::count(cause.pauses))
        .number("total", |cause| number::time(cause.total_ns as f64))
        .number("max", |cause| number::time(cause.max_ns as f64))
        .cell("missed", |cause| {
            let paint = if cause.lost > 0 { Paint::Bad } else { Paint::None };
            Cell::right(number::count(cause.lost)).paint(paint)
        })
        .terminal("  cause", style);
    if explanation.causes.len() > CAUSES_MAX {
        let _ = writeln!(
            text,
            "    and {} more, in summary.json",
            explanation.causes.len() - CAUSES_MAX
        );
    }
    text
}

/// `2,112 packets missed by our ports:`, and below it `1,980 in 3 stalls on core 11: IRQ 57 mlx5_comp3, 132 unexplained`.
fn sentence(explanation: &Explanation) -> (String, Vec<String>) {
    if explanation.missed == 0 {
        return ("our ports missed no packet".into(), Vec::new());
    }
    let mut parts = Vec::new();
    let first = explanation.causes.first().filter(|cause| cause.lost > 0);
    if let Some(cause) = first {
        let (lost, stalls) = (number::count(cause.lost), number::counted(cause.costly, "stall"));
        parts.push(format!(
            "{lost} in {stalls} on core {}: {},",
            cause.core, cause.cause
        ));
    }
    let others = explanation.explained - first.map_or(0, |cause| cause.lost);
    if others > 0 {
        parts.push(format!("{} in other stalls,", number::count(others)));
    }
    let rest = explanation.missed.saturating_sub(explanation.explained);
    parts.push(format!("{} unexplained", number::count(rest)));
    let missed = number::counted(explanation.missed, "packet");
    (format!("{missed} missed by our ports:"), parts)
}
