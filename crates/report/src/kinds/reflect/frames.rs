//! What a reflector did with the frames it got.

use measure::ReflectSummary;
use measure::place::FAULT_DROP;

use crate::number::{count, pps, time};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};

/// Received, returned, answered, everything dropped by its reason, and what was lost besides.
pub fn render(summary: &ReflectSummary, style: &Style) -> String {
    let balance = summary.balance();
    let mut table = Table::section("Frames", &[]);
    let lasting = Cell::left(format!("for {}", time(summary.duration_s * 1e9))).paint(Paint::Dim);
    let number = |packets: u64| Cell::right(count(packets));
    let rate = |rate_pps| Cell::right(pps(rate_pps));
    table.item(
        "received",
        [number(summary.received), rate(summary.rate_rx_pps), lasting],
    );
    table.item("returned", [number(balance.left), rate(summary.rate_tx_pps)]);
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
    // What the injector dropped stands among the faults.
    let is_told = |place: &str| place == FAULT_DROP || summary.dropped.contains_key(place);
    for charge in balance.places.iter().filter(|charge| !is_told(&charge.place)) {
        table.item(&charge.place, [bad(charge.charged)]);
    }
    if balance.unexplained > 0 {
        table.item("unexplained", [bad(balance.unexplained)]);
    }
    for (fault, &packets) in &summary.faults {
        table.item(&format!("on purpose: {fault}"), [number(packets)]);
    }
    table.render(style)
}
