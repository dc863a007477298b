//! The streams, when there is more than one.

use measure::StreamSummary;

use crate::number::{count, pps, time};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};

/// Streams shown; `summary.json` has them all.
const SHOWN_MAX: usize = 16;
/// From this width on there is room for the columns that matter less.
const WIDE: usize = 100;

/// What every stream lost, and how fast it was: those with the most loss when there are too many.
pub fn render(streams: &[StreamSummary], style: &Style) -> String {
    if streams.len() < 2 {
        return String::new();
    }
    let mut shown: Vec<&StreamSummary> = streams.iter().collect();
    if shown.len() > SHOWN_MAX {
        shown.sort_by_key(|stream| std::cmp::Reverse(stream.lost)); // stable: equals stay in order
        shown.truncate(SHOWN_MAX);
    }
    let more = match streams.len() {
        all if all > SHOWN_MAX => {
            format!("  the {SHOWN_MAX} with the most loss of {all}; all are in summary.json\n")
        }
        _ => String::new(),
    };
    let more = style.paint(Paint::Dim, &more);
    counts(&shown, style) + &more + "\n" + &times(&shown, style)
}

fn counts(streams: &[&StreamSummary], style: &Style) -> String {
    let titles = [
        ">sent",
        ">received",
        ">lost",
        ">dup",
        ">reord",
        ">extent",
        ">late",
    ];
    let mut table = Table::section("Streams", &titles);
    for stream in streams {
        table.item(
            &stream.name,
            [
                Cell::right(count(stream.sent)),
                Cell::right(count(stream.received)),
                bad(stream.lost),
                bad(stream.duplicate),
                bad(stream.reordered),
                Cell::right(count(stream.reorder_extent_max)),
                bad(stream.late),
            ],
        );
    }
    table.render(style)
}

fn times(streams: &[&StreamSummary], style: &Style) -> String {
    let wide = style.width >= WIDE;
    let mut titles = vec![">rate", ">p50", ">p90", ">p99", ">p99.9", ">max"];
    if wide {
        titles.extend([">jitter", ">flows"]);
    }
    let mut table = Table::section("Stream latency", &titles);
    for stream in streams {
        let values = &stream.latency_ns;
        let values = [values.p50, values.p90, values.p99, values.p999, values.max];
        let mut cells = vec![Cell::right(pps(stream.rate_tx_pps))];
        cells.extend(values.map(|value| optional_time(value.map(|ns| ns as f64))));
        if wide {
            cells.extend([optional_time(stream.jitter_ns), flows(stream)]);
        }
        table.item(&stream.name, cells);
    }
    table.render(style)
}

fn optional_time(value: Option<f64>) -> Cell {
    Cell::right(value.map_or_else(|| "-".to_owned(), time))
}

/// Every flow asked for is really sent; where that is not so, it shows.
fn flows(stream: &StreamSummary) -> Cell {
    match (stream.flows_sent, stream.flows_asked) {
        (sent, asked) if sent == asked => Cell::right(count(sent)),
        (sent, asked) => Cell::right(format!("{} of {}", count(sent), count(asked))).paint(Paint::Warn),
    }
}
