//! The charts' places in the page: a title, a sentence that says what is to be seen, and the numbers as a table.

use maud::{Markup, html};

use super::element::{details, figure};
use crate::load::series::{Origin, Point};
use crate::load::thin::merged;
use crate::load::{Channel, Loaded, Series};
use crate::number::{count, counted, loss, pps, time};
use crate::sheet::Sheet;
use crate::table::{Cell, bad};

/// Rows of a table behind a chart: it is read out, not skimmed.
const ROWS_MAX: usize = 24;

/// A figure with a chart that the script draws.
pub fn chart(kind: &str, title: &str, sentences: &[String], below: &Markup) -> Markup {
    let spoken = format!("{title}. {}", sentences.join(" "));
    let plot = html! {
        div.plot data-chart=(kind) tabindex="0" role="application" aria-roledescription="chart" aria-label=(spoken) {}
        (below)
    };
    figure(title, sentences, &plot)
}

/// What one column of a table over time shows.
#[derive(Clone, Copy)]
pub enum Column {
    /// The mean of a channel.
    Mean(Channel),
    /// The largest of a channel.
    Largest(Channel),
    /// Packets lost.
    Lost,
}

impl Column {
    fn title(self, origin: Origin) -> &'static str {
        let drops = origin.is_of_arrivals();
        match self {
            Self::Mean(Channel::Loss) if drops => "dropped",
            Self::Largest(Channel::Loss) if drops => "most dropped",
            Self::Lost if drops => "frames dropped",
            Self::Mean(Channel::Sent) => origin.out(),
            Self::Mean(Channel::Received) => "received",
            Self::Mean(Channel::Loss) => "loss",
            Self::Largest(Channel::Loss) => "largest loss",
            Self::Mean(Channel::Mean) => "mean latency",
            Self::Largest(Channel::Mean) => "largest mean",
            Self::Largest(Channel::P50) => "largest p50",
            Self::Largest(Channel::P99) => "largest p99",
            Self::Largest(_) => "largest",
            Self::Mean(_) => "mean",
            Self::Lost => "lost",
        }
    }

    fn cell(self, point: &Point) -> Cell {
        let (channel, value) = match self {
            Self::Mean(channel) => (channel, point.span(channel).mean()),
            Self::Largest(channel) => (channel, largest(point, channel)),
            Self::Lost => return bad(point.counts.lost.max(0.0) as u64),
        };
        Cell::right(value.map_or_else(|| "-".to_owned(), |value| show(channel, value)))
    }
}

fn largest(point: &Point, channel: Channel) -> Option<f64> {
    let span = point.span(channel);
    span.mean().map(|_| span.max)
}

/// A value of a channel as people write it.
pub fn show(channel: Channel, value: f64) -> String {
    match channel {
        Channel::Sent | Channel::Received => pps(value),
        Channel::Loss => loss(value / 100.0),
        _ => time(value),
    }
}

/// `columns` of all runs over time, folded away; each run is brought to a few rows.
pub fn over_time(runs: &[Loaded], columns: &[Column]) -> Markup {
    let tables = runs
        .iter()
        .filter_map(|run| Some((run, run.series.as_ref()?)))
        .map(|(run, series)| {
            let points = condensed(series);
            let of = format!(
                "{}: {} in {}",
                run.name,
                counted(series.rows, "interval"),
                counted(points.len() as u64, "row")
            );
            let mut sheet = Sheet::of(&points)
                .always()
                .number("from", |point| moment(point.end_ms - point.length_ms))
                .number("to", |point| moment(point.end_ms));
            for column in columns {
                sheet = sheet.cell(column.title(series.origin), |point| column.cell(point));
            }
            sheet.html(&of)
        });
    details("The same as a table", &html! { @for table in tables { (table) } })
}

/// When something was, since the start.
pub fn moment(ms: f64) -> String {
    time(ms.max(0.0) * 1e6)
}

fn condensed(series: &Series) -> Vec<Point> {
    let points = series.points();
    let each = points.len().div_ceil(ROWS_MAX).max(1);
    points.chunks(each).filter_map(merged).collect()
}

/// When the interval ended that had the largest value of a channel, in ms since the start, and how large that was.
pub fn peak(series: &Series, channel: Channel) -> Option<(f64, f64)> {
    let largest = largest(&series.whole, channel)?;
    Some((series.whole.span(channel).max_ms, largest))
}

/// How many intervals a point is made of, where it is more than one.
pub fn thinned(series: &Series) -> Option<String> {
    (series.rows_a_point() > 1).then(|| {
        format!(
            "{} are drawn as {} points: each line is the mean of {} intervals, and the band behind it reaches from the smallest to the largest of them.",
            counted(series.rows, "interval"),
            count(series.points().len() as u64),
            count(series.rows_a_point()),
        )
    })
}
