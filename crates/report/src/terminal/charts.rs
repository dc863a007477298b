//! Charts of blocks: a line of eighths for each figure over time, shades for the heat map, bars for percentiles.

use unicode_width::UnicodeWidthStr;

use crate::load::heat::{BANDS_A_DOUBLING, Heat, LEVEL_MAX};
use crate::load::series::Point;
use crate::load::thin::merged;
use crate::load::{Channel, Loaded, Series, Stalls};
use crate::number::{counted, loss, pps, time};
use crate::style::{Paint, Style};

const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['.', ':', '-', '=', '+', 'x', 'X', '#'];
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
const ASCII_SHADES: [char; 5] = [' ', '.', ':', '+', '#'];
/// Columns of the names before the charts, and of the words behind them.
const NAME: usize = 16;
const WORDS: usize = 28;
/// Lines of a heat map.
const HEAT_LINES: usize = 8;

/// Everything that has a course over time, and the distribution of latency.
pub fn render(run: &Loaded, style: &Style) -> String {
    let mut text = String::new();
    if let Some(series) = run.series.as_ref().filter(|series| series.rows > 0) {
        text += &over_time(series, run.stalls.as_ref(), style);
        text += &series
            .heat
            .as_ref()
            .map(|heat| heat_map(heat, style))
            .unwrap_or_default();
    }
    if !run.latency.is_empty() {
        text += &percentiles(run, style);
    }
    text
}

fn columns(style: &Style) -> usize {
    style.width.saturating_sub(2 + NAME + 2 + WORDS + 2).clamp(8, 80)
}

/// One line of a chart, its name before it and words behind it.
fn line(name: &str, drawn: &str, words: &str, paint: Paint, style: &Style) -> String {
    let space = " ".repeat(NAME.saturating_sub(name.width()));
    let line = format!("  {name}{space}  {}  {words}", style.paint(paint, drawn));
    line.trim_end().to_owned() + "\n"
}

/// A block for each of `columns` stretches, as high as the largest of its intervals: no width hides a peak.
fn over_time(series: &Series, stalls: Option<&Stalls>, style: &Style) -> String {
    let columns = columns(style).min(series.points().len().max(1));
    let stretches = stretches(series, columns);
    let end = time(series.whole.end_ms * 1e6);
    let title = format!("Over {end}, {}", counted(series.rows, "interval"));
    let mut text = style.paint(Paint::Head, &title) + "\n";
    let largest = |point: &Point, channel| {
        let span = point.span(channel);
        span.mean().map(|_| span.max)
    };
    let lost = if series.origin.is_of_arrivals() {
        "dropped, largest"
    } else {
        "loss, largest"
    };
    let rows: [(Channel, &str, Paint); 6] = [
        (Channel::Sent, series.origin.out(), Paint::None),
        (Channel::Received, "received", Paint::None),
        (Channel::Loss, lost, Paint::Warn),
        (Channel::Mean, "latency, mean", Paint::None),
        (Channel::P99, "latency, p99", Paint::None),
        (Channel::Max, "slowest", Paint::Warn),
    ];
    for (channel, name, paint) in rows {
        let Some(most) = largest(&series.whole, channel) else {
            continue;
        };
        let values: Vec<Option<f64>> = stretches.iter().map(|point| largest(point, channel)).collect();
        let words = match channel {
            Channel::Sent | Channel::Received => format!("up to {}", pps(most)),
            Channel::Loss if most == 0.0 => "none".to_owned(),
            Channel::Loss => format!("up to {}", loss(most / 100.0)),
            _ => format!("up to {}", time(most)),
        };
        text += &line(name, &spark(&values, most, style), &words, paint, style);
    }
    text + &stalls
        .map(|stalls| longest_stalls(stalls, series, columns, style))
        .unwrap_or_default()
}

fn stretches(series: &Series, columns: usize) -> Vec<Point> {
    let points = series.points();
    let edge = |at: usize| at * points.len() / columns;
    (0..columns)
        .filter_map(|at| merged(&points[edge(at)..edge(at + 1)]))
        .collect()
}

/// A block for each value, as high as it is of `most`; whatever is above 0 is seen, and nothing where there is none.
fn spark(values: &[Option<f64>], most: f64, style: &Style) -> String {
    let blocks = if style.unicode { EIGHTHS } else { ASCII };
    let block = |value: &Option<f64>| match value {
        None => ' ',
        Some(value) if *value <= 0.0 || most <= 0.0 => {
            if style.unicode {
                '▁'
            } else {
                '_'
            }
        }
        Some(value) => blocks[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    values.iter().map(block).collect()
}

/// The longest stall that ended in each stretch of time.
fn longest_stalls(stalls: &Stalls, series: &Series, columns: usize, style: &Style) -> String {
    if stalls.all.count == 0 {
        return String::new();
    }
    let mut longest = vec![None; columns];
    let end_ms = series.whole.end_ms.max(f64::MIN_POSITIVE);
    for stall in &stalls.kept {
        let column = ((stall.end_ms / end_ms * columns as f64) as usize).min(columns - 1);
        let value: &mut Option<f64> = &mut longest[column];
        *value = Some(value.unwrap_or(0.0).max(stall.length_ns as f64));
    }
    let most = stalls.all.max_ns as f64;
    let words = format!("{} up to {}", counted(stalls.all.count, "stall"), time(most));
    let drawn = spark(&longest, most, style);
    line("stalls", &drawn, &words, Paint::Warn, style)
}

/// Bands of latency from the slowest down; in each place the strongest level of its stretch.
fn heat_map(heat: &Heat, style: &Style) -> String {
    let slices = heat.edges_ms.len().saturating_sub(1);
    let columns = columns(style).min(slices.max(1));
    let lines = HEAT_LINES.min(heat.bands);
    let shades = if style.unicode { SHADES } else { ASCII_SHADES };
    let edge = |at: usize, of: usize, all: usize| at * all / of;
    let mut text = style.paint(Paint::Head, "Latency heat map") + "\n";
    for row in (0..lines).rev() {
        let bands = edge(row, lines, heat.bands)..edge(row + 1, lines, heat.bands);
        let drawn: String = (0..columns)
            .map(|column| {
                let slices = edge(column, columns, slices)..edge(column + 1, columns, slices);
                let levels = slices.flat_map(|slice| {
                    bands
                        .clone()
                        .map(move |band| heat.levels[slice * heat.bands + band])
                });
                match levels.max().unwrap_or(0) {
                    0 => shades[0],
                    level => shades[1 + usize::from(level - 1) * 4 / usize::from(LEVEL_MAX)],
                }
            })
            .collect();
        let doublings = bands.start as f64 / f64::from(BANDS_A_DOUBLING);
        let from = heat.lowest_ns * doublings.exp2();
        let from = format!("from {}", time(from));
        text += &line(&from, drawn.trim_end(), "", Paint::None, style);
    }
    text
}

/// A bar a percentile, on a logarithmic scale from the fastest to the slowest.
fn percentiles(run: &Loaded, style: &Style) -> String {
    let curve = &run.latency;
    let log = |value: f64| value.max(1.0).log2();
    let (low, high) = (
        curve.first().map_or(1.0, |row| row.value_ns),
        curve.last().map_or(1.0, |row| row.value_ns),
    );
    let room = columns(style) as f64;
    let full = if style.unicode { "█" } else { "#" };
    let mut text = style.paint(Paint::Head, "Latency percentiles")
        + style.paint(Paint::Dim, " (bars are logarithmic)").as_str()
        + "\n";
    for (share, name) in [
        (0.5, "50 %"),
        (0.9, "90 %"),
        (0.99, "99 %"),
        (0.999, "99.9 %"),
        (0.9999, "99.99 %"),
        (1.0, "100 %"),
    ] {
        let Some(value_ns) = run.latency_within(share) else {
            continue;
        };
        let part = (log(value_ns) - log(low) + 1.0) / (log(high) - log(low) + 1.0);
        let bar = full.repeat(((part * room) as usize).clamp(1, room as usize));
        let name = format!("{name} within");
        text += &line(&name, &bar, &time(value_ns), Paint::None, style);
    }
    text
}
