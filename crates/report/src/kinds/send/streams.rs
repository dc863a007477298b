//! The streams, when there is more than one.

use maud::Markup;
use measure::StreamSummary;

use crate::number::{count, ns, pps, share, time};
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::{Cell, bad};

/// Streams shown in a terminal, and in a page; `summary.json` has them all.
const SHOWN_MAX: usize = 16;
const PAGE_MAX: usize = 64;
/// From this width on there is room for the columns that matter less.
const WIDE: usize = 100;

/// What every stream lost, and how fast it was: those with the most loss when there are too many.
pub fn render(streams: &[StreamSummary], style: &Style) -> String {
    if streams.len() < 2 {
        return String::new();
    }
    let mut shown: Vec<&StreamSummary> = streams.iter().collect();
    let mut more = String::new();
    if streams.len() > SHOWN_MAX {
        shown = most_loss(streams, SHOWN_MAX);
        let all = streams.len();
        more = format!("  the {SHOWN_MAX} with the most loss of {all}; all are in summary.json\n");
    }
    let counts = Sheet::of(shown.iter().copied())
        .name("", |stream| stream.name.clone())
        .number("sent", |stream| count(stream.sent))
        .number("received", |stream| count(stream.received))
        .cell("lost", |stream| bad(stream.lost))
        .cell("dup", |stream| bad(stream.duplicate))
        .cell("reord", |stream| bad(stream.reordered))
        .number("extent", |stream| count(stream.reorder_extent_max))
        .cell("late", |stream| bad(stream.late));
    let times = Sheet::of(shown.iter().copied())
        .name("", |stream| stream.name.clone())
        .number("rate", |stream| pps(stream.rate_tx_pps))
        .optional("p50", |stream| ns(stream.latency_ns.p50))
        .optional("p90", |stream| ns(stream.latency_ns.p90))
        .optional("p99", |stream| ns(stream.latency_ns.p99))
        .optional("p99.9", |stream| ns(stream.latency_ns.p999))
        .optional("max", |stream| ns(stream.latency_ns.max))
        .optional("jitter", |stream| stream.jitter_ns.map(time))
        .at_width(WIDE)
        .cell("flows", |stream| flows(stream))
        .at_width(WIDE);
    let more = style.paint(Paint::Dim, &more);
    counts.terminal("Streams", style) + &more + "\n" + &times.terminal("Stream latency", style)
}

/// The same in a page, those with the most loss first.
pub fn html(streams: &[StreamSummary]) -> Markup {
    if streams.len() < 2 {
        return Markup::default();
    }
    let caption = match streams.len() {
        all if all > PAGE_MAX => format!("The {PAGE_MAX} streams with the most loss of {all}"),
        _ => "Streams, those with the most loss first".to_owned(),
    };
    Sheet::of(most_loss(streams, PAGE_MAX))
        .name("stream", |stream| stream.name.clone())
        .number("sent", |stream| count(stream.sent))
        .cell("lost", |stream| bad(stream.lost))
        .number("loss", |stream| share(stream.lost, stream.sent))
        .cell("duplicate", |stream| bad(stream.duplicate))
        .cell("reordered", |stream| bad(stream.reordered))
        .number("rate", |stream| pps(stream.rate_tx_pps))
        .optional("p50", |stream| ns(stream.latency_ns.p50))
        .optional("p99", |stream| ns(stream.latency_ns.p99))
        .optional("max", |stream| ns(stream.latency_ns.max))
        .html(&caption)
}

/// The `most` streams that lost most; those that lost as much stay in order.
fn most_loss(streams: &[StreamSummary], most: usize) -> Vec<&StreamSummary> {
    let mut shown: Vec<&StreamSummary> = streams.iter().collect();
    shown.sort_by_key(|stream| std::cmp::Reverse(stream.lost));
    shown.truncate(most);
    shown
}

/// Every flow asked for is really sent; where that is not so, it shows.
fn flows(stream: &StreamSummary) -> Cell {
    match (stream.flows_sent, stream.flows_asked) {
        (sent, asked) if sent == asked => Cell::right(count(sent)),
        (sent, asked) => Cell::right(format!("{} of {}", count(sent), count(asked))).paint(Paint::Warn),
    }
}
