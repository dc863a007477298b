//! What was measured: rates, loss, latency.

use measure::{Percentiles, Summary};

use crate::number::{bps, count, pps, share, time};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};

/// The rates asked for, sent and received.
pub fn rates(summary: &Summary, style: &Style) -> String {
    let mut table = Table::section("Rate", &[">packets", ">layer 1", ">layer 2"]);
    let asked = summary.rate_asked_pps.map_or_else(|| "max".to_owned(), pps);
    table.item("asked", [Cell::right(asked)]);
    let sent = [summary.rate_tx_bps_l1, summary.rate_tx_bps_l2].map(|rate| Cell::right(bps(rate)));
    let [layer_1, layer_2] = sent;
    let lasting = Cell::left(format!("for {}", time(summary.duration_s * 1e9))).paint(Paint::Dim);
    table.item(
        "sent",
        [Cell::right(pps(summary.rate_tx_pps)), layer_1, layer_2, lasting],
    );
    if summary.received > 0 {
        table.item("received", [Cell::right(pps(summary.rate_rx_pps))]);
    }
    table.render(style)
}

/// What did not come back as it was sent.
pub fn loss(summary: &Summary, style: &Style) -> String {
    if summary.received == 0 && summary.lost == 0 {
        return String::new();
    }
    let titles = [
        ">packets",
        ">share",
        ">duplicate",
        ">reordered",
        ">extent",
        ">corrupt",
        ">late",
    ];
    let mut table = Table::section("Loss", &titles);
    table.row([
        Cell::left(""),
        bad(summary.lost),
        Cell::right(share(summary.lost, summary.sent)),
        bad(summary.duplicate),
        bad(summary.reordered),
        Cell::right(count(summary.reorder_extent_max)),
        bad(summary.corrupt),
        bad(summary.late),
    ]);
    table.render(style)
}

/// Latency, jitter, and the gaps at which packets left.
pub fn latency(summary: &Summary, style: &Style) -> String {
    let (sent, scheduled, gaps) = (summary.latency_ns, summary.latency_scheduled_ns, summary.gap_ns);
    let gaps = Percentiles::from(gaps);
    let rows = [
        ("from send", sent),
        ("from schedule", scheduled),
        ("departure gap", gaps),
    ];
    let rows: Vec<_> = rows
        .into_iter()
        .filter(|(_, values)| values.max.is_some())
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::section("Latency", &[">min", ">p50", ">p90", ">p99", ">p99.9", ">max"]);
    for (name, values) in rows {
        let Percentiles {
            min,
            p50,
            p90,
            p99,
            p999,
            max,
            mean: _,
        } = values;
        table.item(
            name,
            [min, p50, p90, p99, p999, max].map(|value| match value {
                Some(ns) => Cell::right(time(ns as f64)),
                None => Cell::left(""),
            }),
        );
    }
    table.render(style) + &remarks(summary, style)
}

/// The single figures that go with the table.
fn remarks(summary: &Summary, style: &Style) -> String {
    let figures: Vec<String> = [
        ("mean", summary.latency_ns.mean),
        ("jitter", summary.jitter_ns),
        ("delay variation", summary.pdv_ns.map(|ns| ns as f64)),
        ("gap asked", summary.gap_ns.asked),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.map(|ns| format!("{} {}", style.paint(Paint::Dim, name), time(ns))))
    .collect();
    if figures.is_empty() {
        String::new()
    } else {
        format!("  {}\n", figures.join("   "))
    }
}
