//! A comparison of ways in a page: the tables that its recommendation was worked out of.

use maud::{Markup, html};
use measure::comparison::Comparison;

use super::tables::{firewall, latencies, losses, missing, processors, rates};
use crate::number::pps;
use crate::sheet::Sheet;

/// The tables.
pub fn render(comparison: &Comparison, named: &str) -> Markup {
    let (at, latencies) = latencies(comparison);
    let latency = at.map_or_else(
        || "Latency".to_owned(),
        |rate| format!("Latency there and back at {}", pps(rate)),
    );
    let firewall = firewall(comparison).map(|(rules, table)| {
        table.html(&format!(
            "What {rules} firewall rules cost at both ends: floods in turns, with the rules and without them"
        ))
    });
    let missing = Sheet::of(missing(comparison))
        .name("way", |(method, _)| method.name.clone())
        .words("", |(method, _)| method.words.clone())
        .words("because", |(_, why)| (*why).to_owned());
    html! {
        section {
            h2 { "Ways compared" (named) }
            p.note { (comparison.setting()) }
            (rates(comparison).html(
                "The highest rate that came back whole, and what came back when nobody held back; \u{2265}: there the sender could offer no more, and the path may carry more",
            ))
            (losses(comparison).html("Lost at each rate offered; unsent is what was scheduled but never sent, and what was sent at a lower rate took too long"))
            (latencies.html(&latency))
            (processors(comparison).html(
                "Processor time at the highest rate without loss; soft interrupts are mostly counted in it already",
            ))
            @if let Some(firewall) = firewall { (firewall) }
            (missing.html("Not compared"))
        }
    }
}
