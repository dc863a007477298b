//! What a reflector did with the frames it got.

use measure::ReflectSummary;

use crate::number::{count, pps, time};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};

/// Received, returned, answered, and everything dropped by its reason.
pub fn render(summary: &ReflectSummary, style: &Style) -> String {
    let mut table = Table::section("Frames", &[]);
    let lasting = Cell::left(format!("for {}", time(summary.duration_s * 1e9))).paint(Paint::Dim);
    let number = |packets: u64| Cell::right(count(packets));
    let rate = |rate_pps| Cell::right(pps(rate_pps));
    table.item(
        "received",
        [number(summary.received), rate(summary.rate_rx_pps), lasting],
    );
    table.item("returned", [number(summary.returned), rate(summary.rate_tx_pps)]);
    table.item("answered", [number(summary.answered)]);
    if summary.told > 0 {
        let words = Cell::left("what was counted here");
        table.item("told senders", [number(summary.told), words]);
    }
    let dropped = summary.dropped.values();
    table.item(
        "dropped",
        [bad(dropped.fold(0, |sum, more| sum.saturating_add(*more)))],
    );
    for (reason, &packets) in summary.dropped.iter().filter(|(_, packets)| **packets > 0) {
        table.item(&format!("  {reason}"), [bad(packets)]);
    }
    for (fault, &packets) in &summary.faults {
        table.item(&format!("on purpose: {fault}"), [number(packets)]);
    }
    table.render(style)
}
