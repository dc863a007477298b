//! A `noise` run in a page: for each core what took it, when, and whether that is all.

use measure::noise::{CauseNoise, CoreNoise, InterruptLine, NoiseSummary};

use super::{explained, headline, share};
use crate::html::element::{Cell, details, escape, section, table};
use crate::number::{count, ratio, time};

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
    let length =
        |cause: &CauseNoise, ns: f64| Cell::Number(if cause.gaps == 0 { "-".to_owned() } else { time(ns) });
    let row = |cause: &CauseNoise| {
        let part = share(core, cause);
        let mut cells = vec![
            Cell::Name(cause.cause.clone()),
            Cell::Number(count(cause.gaps)),
            Cell::Number(cause.period_ns.map_or_else(|| "-".to_owned(), time)),
            Cell::Number(time(cause.total_ns)),
            Cell::Bar(part, format!("{:.1} %", part * 100.0)),
            length(cause, cause.p99_ns),
            length(cause, cause.max_ns),
        ];
        cells.extend(cause.lost.map(|lost| match lost.round() as u64 {
            0 => Cell::Number("0".to_owned()),
            some => Cell::Bad(count(some)),
        }));
        cells
    };
    let mut rows: Vec<Vec<Cell>> = core.causes.iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let rest = rows.split_off(rows.len().min(CAUSES_SHOWN));
    let all = [
        "cause", "stalls", "every", "total", "share", "p99", "max", "packets",
    ];
    let head = &all[..all.len() - usize::from(core.lost.is_none())];
    let shown = table("What took the core, the most of its time first", head, &rows);
    if rest.is_empty() {
        return shown;
    }
    shown + &details("Further causes", &table("What took less", head, &rest))
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
    format!(
        "<figure><figcaption><h3>When</h3><p>{spoken}</p></figcaption>\n\
         <div class=\"scroll drawing\"><svg class=flow role=img aria-label=\"{spoken}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">{bars}</svg></div></figure>\n"
    )
}

/// What the kernel counted, and what was recorded.
fn interrupts(lines: &[InterruptLine]) -> String {
    let row = |line: &InterruptLine| {
        let recorded = match (line.traced_min, line.traced_max) {
            (least, most) if least == most => count(least),
            (least, most) => format!("{} to {}", count(least), count(most)),
        };
        vec![
            Cell::Name(line.line.clone()),
            Cell::Text(line.name.clone()),
            Cell::Number(count(line.counted)),
            if line.proven {
                Cell::Number(recorded)
            } else {
                Cell::Bad(recorded)
            },
        ]
    };
    if lines.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<Cell>> = lines.iter().map(row).collect();
    let head = ["line", "what it is", "counted", "recorded"];
    let caption = "Interrupts that the kernel counted on this core, and how many of them were recorded";
    details("Was every interrupt recorded?", &table(caption, &head, &rows))
}
