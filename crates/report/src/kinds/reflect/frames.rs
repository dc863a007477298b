//! What a reflector did with the frames it got.

use measure::ReflectSummary;

use crate::number::{count, pps, time};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};

/// Received, returned, answered, and everything dropped by its reason.
pub fn render(summary: &ReflectSummary, style: &Style) -> String {
    let mut table = Table::section("Frames", &[]);
    let lasting = Cell::left(format!("for {}", time(summary.duration_s * 1e9))).paint(Paint::Dim);
    let rate = |rate_pps| Cell::right(pps(rate_pps));
    table.item(
        "received",
        [
            Cell::right(count(summary.received)),
            rate(summary.rate_rx_pps),
            lasting,
        ],
    );
    table.item(
        "returned",
        [Cell::right(count(summary.returned)), rate(summary.rate_tx_pps)],
    );
    table.item("answered", [Cell::right(count(summary.answered))]);
    if summary.told > 0 {
        table.item(
            "told senders",
            [
                Cell::right(count(summary.told)),
                Cell::left("what was counted here"),
            ],
        );
    }
    table.item(
        "dropped",
        [bad(summary
            .dropped
            .values()
            .fold(0, |sum, number| sum.saturating_add(*number)))],
    );
    for (reason, &number) in summary.dropped.iter().filter(|(_, number)| **number > 0) {
        table.item(&format!("  {reason}"), [bad(number)]);
    }
    for (fault, &number) in &summary.faults {
        table.item(&format!("on purpose: {fault}"), [Cell::right(count(number))]);
    }
    table.render(style)
}
