//! The result for people: a sentence, a table and a time line for every core.

use std::fmt::Write as _;

use report::Style;
use report::number;
use report::style::Paint;
use report::table::{Cell, Table};

use super::result::{CoreNoise, Noise};

/// Causes shown of a core; the rest is in the run directory.
const CAUSES_MAX: usize = 12;
/// From nothing to all of the time.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const BLOCKS_ASCII: [char; 9] = [' ', '.', '.', ':', ':', 'o', 'o', '#', '#'];

/// The whole text.
pub fn render(noise: &Noise, style: &Style) -> String {
    let mut text = String::new();
    for core in &noise.cores {
        text.push_str(&of_core(noise, core, style));
        text.push('\n');
    }
    if let Some(why) = &noise.causes_missing {
        let _ = writeln!(text, "{}: {why}\n", style.paint(Paint::Warn, "No causes"));
    }
    if noise.interrupted {
        text.push_str("Ended early, on request.\n");
    }
    text.push_str(&report::terminal::ending(&noise.notes, &noise.run, style));
    text
}

fn of_core(noise: &Noise, core: &CoreNoise, style: &Style) -> String {
    let mut text = String::new();
    let headline = format!(
        "Core {}: {} in {:.1} s, {:.4} % of the time; the longest {}",
        core.core,
        number::counted(core.gaps, "gap"),
        core.watched_s,
        core.taken_share * 100.0,
        number::time(core.max_ns)
    );
    let _ = writeln!(text, "{}", style.paint(Paint::Head, &headline));
    for line in explained(noise, core) {
        let _ = writeln!(text, "  {line}");
    }
    text.push('\n');
    text.push_str(&causes(core, style));
    let _ = writeln!(text, "\n{}", timeline(core, style));
    text
}

/// What is to be known besides the table.
fn explained(noise: &Noise, core: &CoreNoise) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(named) = core.named_share {
        lines.push(format!(
            "{:.1} % of that time is named by the kernel's events",
            named * 100.0
        ));
    }
    match core.complete {
        Some(true) => lines.push("every interrupt that the kernel counted was recorded".into()),
        Some(false) => {
            let open: Vec<String> = core
                .interrupts
                .iter()
                .filter(|line| !line.proven)
                .map(|line| {
                    format!(
                        "{} ({}): counted {}, recorded {} to {}",
                        line.line, line.name, line.counted, line.traced_min, line.traced_max
                    )
                })
                .collect();
            lines.push(format!(
                "not every interrupt was recorded, so \"outside\" may be the kernel's, too: {}",
                if open.is_empty() {
                    "events were lost".into()
                } else {
                    open.join("; ")
                }
            ));
        }
        None => {}
    }
    if core.steal_ns > 0.0 {
        lines.push(format!(
            "the hypervisor admits to {} of steal (in steps of 10 ms)",
            number::time(core.steal_ns)
        ));
    }
    if let Some(pps) = core.lossless_pps {
        lines.push(format!(
            "the longest gap alone overflows an empty ring of {} descriptors above {}",
            noise.ring,
            number::pps(pps)
        ));
    }
    if let (Some(lost), Some(rate)) = (core.lost, noise.rate_pps) {
        lines.push(format!(
            "at {} all gaps together cost {}",
            number::pps(rate),
            number::counted(lost.round() as u64, "packet")
        ));
    }
    lines
}

fn causes(core: &CoreNoise, style: &Style) -> String {
    let costs = core.lost.is_some();
    let mut titles = vec![">gaps", ">every", ">total", ">share", ">p99", ">max"];
    if costs {
        titles.push(">packets");
    }
    let mut table = Table::section("  cause", &titles);
    for cause in core.causes.iter().take(CAUSES_MAX) {
        let share = if core.taken_ns > 0.0 {
            cause.total_ns / core.taken_ns
        } else {
            0.0
        };
        let length = |ns: f64| {
            if cause.gaps == 0 {
                "-".into()
            } else {
                number::time(ns)
            }
        };
        let mut cells = vec![
            Cell::right(number::count(cause.gaps)),
            Cell::right(cause.period_ns.map_or_else(String::new, number::time)),
            Cell::right(number::time(cause.total_ns)),
            Cell::right(format!("{:.1} %", share * 100.0)),
            Cell::right(length(cause.p99_ns)),
            Cell::right(length(cause.max_ns)),
        ];
        if costs {
            let lost = cause.lost.unwrap_or(0.0);
            let paint = if lost >= 1.0 { Paint::Bad } else { Paint::None };
            cells.push(Cell::right(number::count(lost.round() as u64)).paint(paint));
        }
        table.item(&format!("  {}", cause.cause), cells);
    }
    let mut text = table.render(style);
    if core.causes.len() > CAUSES_MAX {
        let _ = writeln!(
            text,
            "    and {} more, in summary.json",
            core.causes.len() - CAUSES_MAX
        );
    }
    text
}

/// The share of the time that was taken, from the beginning to the end; the worst moment is a full block.
fn timeline(core: &CoreNoise, style: &Style) -> String {
    const AROUND: usize = 20;
    // Of neighbours that a narrow terminal puts together, the worst is shown.
    let room = style.width.saturating_sub(AROUND).max(10);
    let together = core.timeline.len().div_ceil(room).max(1);
    let shares: Vec<f64> = core
        .timeline
        .chunks(together)
        .map(|shares| shares.iter().copied().fold(0.0, f64::max))
        .collect();
    let worst = shares.iter().copied().fold(0.0, f64::max);
    let blocks = if style.unicode { BLOCKS } else { BLOCKS_ASCII };
    let line: String = shares
        .iter()
        .map(|share| {
            // Whatever is not nothing is seen.
            let step = if worst > 0.0 {
                (share / worst * 8.0).ceil() as usize
            } else {
                0
            };
            blocks[step.min(8)]
        })
        .collect();
    format!(
        "  0 s |{}| {:.1} s\n      at worst {:.2} % of {}",
        style.paint(Paint::Dim, &line),
        core.watched_s,
        worst * 100.0,
        number::time(core.watched_s / core.timeline.len().max(1) as f64 * 1e9)
    )
}
