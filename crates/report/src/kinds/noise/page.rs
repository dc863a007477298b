//! A `noise` run in a page: for each core what took it, when, and whether that is all.

use measure::noise::{CoreNoise, InterruptLine, NoiseSummary};

use super::{explained, headline};
use crate::html::element::{details, escape, figure, section};
use crate::number::{count, ratio, time};
use crate::sheet::Sheet;
use crate::style::Paint;
use crate::table::Cell;

/// Causes that are not folded away.
const CAUSES_SHOWN: usize = 12;
/// Of the drawing, in its own units.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 72.0;
/// Whatever is not nothing is seen.
const LOWEST: f64 = 1.5;

/// Its sections.
pub fn render(noise: &NoiseSummary, named: &str) -> String {
    let cores = noise.cores.iter();
    cores.map(|core| of_core(noise, core, named)).collect()
}

fn of_core(noise: &NoiseSummary, core: &CoreNoise, named: &str) -> String {
    let lines = explained(noise, core);
    let lines = lines.iter().map(|line| format!("<li>{}</li>", escape(line)));
    let inner = format!(
        "<p>{}</p>\n<ul>{}</ul>\n{}{}{}",
        escape(&headline(core)),
        lines.collect::<String>(),
        causes(core),
        timeline(core),
        interrupts(&core.interrupts),
    );
    section(&format!("Who took core {}{named}", core.core), &inner)
}

fn causes(core: &CoreNoise) -> String {
    let (most, rest) = core.causes.split_at(core.causes.len().min(CAUSES_SHOWN));
    let shown = super::causes(core, most).html("What took the core, the most of its time first");
    if rest.is_empty() {
        return shown;
    }
    let rest = super::causes(core, rest).html("What took less");
    shown + &details("Further causes", &rest)
}

/// The share of each part of the run that stalls took; the worst part is as high as the drawing.
fn timeline(core: &CoreNoise) -> String {
    let worst = core.timeline.iter().copied().fold(0.0, f64::max);
    if worst <= 0.0 {
        return String::new();
    }
    let width = WIDTH / core.timeline.len() as f64;
    let part_s = core.watched_s / core.timeline.len() as f64;
    let bar = |(at, share): (usize, &f64)| {
        let height = (share / worst * HEIGHT).max(LOWEST);
        let from = time(at as f64 * part_s * 1e9);
        format!(
            "<rect class=\"node plain\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>from {from}: {}</title></rect>",
            at as f64 * width,
            HEIGHT - height,
            width - 1.0,
            ratio(*share)
        )
    };
    let bars: String = core
        .timeline
        .iter()
        .enumerate()
        .filter(|(_, share)| **share > 0.0)
        .map(bar)
        .collect();
    let words = format!(
        "From the start to the end, {:.1} s: the share of each {} that stalls took; at worst {}.",
        core.watched_s,
        time(part_s * 1e9),
        ratio(worst)
    );
    let spoken = escape(&words);
    let drawn = format!(
        "<div class=\"scroll drawing\"><svg class=flow role=img aria-label=\"{spoken}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">{bars}</svg></div>"
    );
    figure("When", &[words], &drawn)
}

/// What the kernel counted, and what was recorded.
fn interrupts(lines: &[InterruptLine]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let recorded = |line: &&InterruptLine| {
        let recorded = match (line.traced_min, line.traced_max) {
            (least, most) if least == most => count(least),
            (least, most) => format!("{} to {}", count(least), count(most)),
        };
        Cell::right(recorded).paint(if line.proven { Paint::None } else { Paint::Bad })
    };
    let table = Sheet::of(lines)
        .name("line", |line| line.line.clone())
        .words("what it is", |line| line.name.clone())
        .number("counted", |line| count(line.counted))
        .cell("recorded", recorded)
        .html("Interrupts that the kernel counted on this core, and how many of them were recorded");
    details("Was every interrupt recorded?", &table)
}
