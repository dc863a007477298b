//! The stalls one by one, as CSV.

use std::fmt::Write as _;

use doctor::noise::summary::Seen;
use report::csv;

/// Every stall as a row of CSV.
pub fn rows(seen: &Seen) -> String {
    let mut text = format!("{}\n", report::GAP_COLUMNS);
    for on in &seen.cores {
        for named in &on.named {
            let start = named.stall.from.saturating_sub(on.stalls.span.from) as f64 / seen.hz;
            let parts: Vec<String> = named
                .parts
                .iter()
                .map(|(cause, ticks)| format!("{cause}: {:.0} ns", *ticks as f64 / seen.hz * 1e9))
                .collect();
            let cause = if seen.untraced.is_none() {
                named.cause().to_string()
            } else {
                "unknown".into()
            };
            let _ = writeln!(
                text,
                "{},{start:.9},{:.0},{},{}",
                on.core,
                named.stall.ticks() as f64 / seen.hz * 1e9,
                csv::field(&cause),
                csv::field(&parts.join("; "))
            );
        }
    }
    text
}
