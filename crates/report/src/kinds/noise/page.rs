//! A `noise` run in a page: for each core what took it, when, and whether that is all.

use maud::{Markup, html};
use measure::noise::{CoreNoise, InterruptLine, NoiseSummary};

use super::{explained, headline};
use crate::html::element::{WIDTH, details, figure, section, tenths};
use crate::number::{count, ratio, time};
use crate::sheet::Sheet;
use crate::style::Paint;
use crate::table::Cell;

/// Causes that are not folded away.
const CAUSES_SHOWN: usize = 12;
/// Of the drawing, in its own units.
const HEIGHT: f64 = 72.0;
/// Whatever is not nothing is seen.
const LOWEST: f64 = 1.5;

/// Its sections.
pub fn render(noise: &NoiseSummary, named: &str) -> Markup {
    html! { @for core in &noise.cores { (of_core(noise, core, named)) } }
}

fn of_core(noise: &NoiseSummary, core: &CoreNoise, named: &str) -> Markup {
    let inner = html! {
        p { (headline(core)) }
        ul { @for line in explained(noise, core) { li { (line) } } }
        (causes(core))
        (timeline(core))
        (interrupts(&core.interrupts))
    };
    section(&format!("Who took core {}{named}", core.core), &inner)
}

fn causes(core: &CoreNoise) -> Markup {
    let (most, rest) = core.causes.split_at(core.causes.len().min(CAUSES_SHOWN));
    html! {
        (super::causes(core, most).html("What took the core, the most of its time first"))
        @if !rest.is_empty() {
            (details("Further causes", &super::causes(core, rest).html("What took less")))
        }
    }
}

/// The share of each part of the run that stalls took; the worst part is as high as the drawing.
fn timeline(core: &CoreNoise) -> Markup {
    let worst = core.timeline.iter().copied().fold(0.0, f64::max);
    if worst <= 0.0 {
        return Markup::default();
    }
    let width = WIDTH / core.timeline.len() as f64;
    let part_s = core.watched_s / core.timeline.len() as f64;
    let bar = |at: usize, share: f64| {
        let height = (share / worst * HEIGHT).max(LOWEST);
        let (left, top) = (tenths(at as f64 * width), tenths(HEIGHT - height));
        html! {
            rect.node.plain x=(left) y=(top) width=(tenths(width - 1.0)) height=(tenths(height)) {
                title { "from " (time(at as f64 * part_s * 1e9)) ": " (ratio(share)) }
            }
        }
    };
    let words = format!(
        "From the start to the end, {:.1} s: the share of each {} that stalls took; at worst {}.",
        core.watched_s,
        time(part_s * 1e9),
        ratio(worst)
    );
    let drawn = html! {
        div.scroll.drawing {
            svg.flow role="img" aria-label=(words) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } {
                @for (at, share) in core.timeline.iter().enumerate() {
                    @if *share > 0.0 { (bar(at, *share)) }
                }
            }
        }
    };
    figure("When", &[words], &drawn)
}

/// What the kernel counted, and what was recorded.
fn interrupts(lines: &[InterruptLine]) -> Markup {
    if lines.is_empty() {
        return Markup::default();
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
