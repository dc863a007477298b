//! What was measured: rates, loss, latency.

use measure::{Percentiles, Summary};

use crate::number::{bps, count, ns, pps, share, time};
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};

/// The rates asked for, sent and received.
pub fn rates(summary: &Summary, style: &Style) -> String {
    let mut table = Table::section("Rate", &[">packets", ">layer 1", ">layer 2"]);
    let asked = summary.rate_asked_pps.map_or_else(|| "max".to_owned(), pps);
    table.item("asked", [Cell::right(asked)]);
    let sent = [summary.rate_tx_bps_l1, summary.rate_tx_bps_l2].map(|rate| Cell::right(bps(rate)));
    let [layer_1, layer_2] = sent;
    let lasting = Cell::left(lasting(summary)).paint(Paint::Dim);
    table.item(
        "sent",
        [Cell::right(pps(summary.rate_tx_pps)), layer_1, layer_2, lasting],
    );
    if summary.received > 0 {
        table.item("received", [Cell::right(pps(summary.rate_rx_pps))]);
    }
    table.render(style)
}

/// How long it sent, and the time that the rates are of where that is another: a burst alone has none of its own.
fn lasting(summary: &Summary) -> String {
    let lasted = format!("for {}", time(summary.duration_s * 1e9));
    let rated_s = summary.sent as f64 / summary.rate_tx_pps;
    if rated_s.is_finite() && rated_s > summary.duration_s * 1.01 {
        format!("{lasted}; rates are of {}", time(rated_s * 1e9))
    } else {
        lasted
    }
}

/// What did not come back as it was sent.
pub fn loss(summary: &Summary, style: &Style) -> String {
    if summary.received == 0 && summary.lost == 0 {
        return String::new();
    }
    Sheet::of([summary])
        .name("", |_| String::new())
        .cell("packets", |summary| bad(summary.lost))
        .number("share", |summary| share(summary.lost, summary.sent))
        .cell("duplicate", |summary| bad(summary.duplicate))
        .cell("reordered", |summary| bad(summary.reordered))
        .number("extent", |summary| count(summary.reorder_extent_max))
        .cell("corrupt", |summary| bad(summary.corrupt))
        .cell("late", |summary| bad(summary.late))
        .terminal("Loss", style)
}

/// Latency, jitter, and the gaps at which packets left.
pub fn latency(summary: &Summary, style: &Style) -> String {
    let rows = [
        ("from send", summary.latency_ns),
        ("from schedule", summary.latency_scheduled_ns),
        ("departure gap", Percentiles::from(summary.gap_ns)),
    ];
    let shown = |value: Option<u64>| ns(value).unwrap_or_default();
    let table = Sheet::of(rows.iter().filter(|(_, values)| values.max.is_some()))
        .name("", |(name, _)| (*name).to_owned())
        .number("min", |(_, values)| shown(values.min))
        .number("p50", |(_, values)| shown(values.p50))
        .number("p90", |(_, values)| shown(values.p90))
        .number("p99", |(_, values)| shown(values.p99))
        .number("p99.9", |(_, values)| shown(values.p999))
        .number("max", |(_, values)| shown(values.max))
        .terminal("Latency", style);
    if table.is_empty() {
        return table;
    }
    table + &remarks(summary, style)
}

/// The single figures that go with the table.
fn remarks(summary: &Summary, style: &Style) -> String {
    let figures: Vec<String> = [
        ("mean", summary.latency_ns.mean.map(time)),
        ("jitter", summary.jitter_ns.map(time)),
        ("delay variation", summary.pdv_ns.map(|ns| time(ns as f64))),
        ("gap asked", summary.gap_ns.asked.map(gap)),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.map(|value| format!("{} {value}", style.paint(Paint::Dim, name))))
    .collect();
    if figures.is_empty() {
        String::new()
    } else {
        format!("  {}\n", figures.join("   "))
    }
}

/// A gap of few nanoseconds has a part of one, which is what tells fast rates from each other.
fn gap(ns: f64) -> String {
    if ns < 100.0 {
        format!("{ns:.2} ns")
    } else {
        time(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::gap;

    #[test]
    fn gaps_of_fast_rates_differ() {
        // 32.2, 161 and 2000 Mpps.
        assert_eq!([31.056, 6.211, 0.5].map(gap), ["31.06 ns", "6.21 ns", "0.50 ns"]);
        assert_eq!(gap(286.0), "286 ns");
    }
}
