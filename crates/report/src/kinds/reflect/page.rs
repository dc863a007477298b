//! A `reflect` run in a page: where each frame went, queues and cores.

use maud::{Markup, html};
use measure::ReflectSummary;

use super::NOT_PROBES;
use crate::html::element::section;
use crate::html::flow::{self, End, Flow, node};
use crate::machine;
use crate::machine::missed;

/// Its sections.
pub fn render(summary: &ReflectSummary, named: &str, id: &str) -> Markup {
    html! {
        (section(&format!("Where each frame went{named}"), &flow::svg(&of_reflect(summary), id)))
        (machine::balance_html(summary, named))
    }
}

fn of_reflect(summary: &ReflectSummary) -> Flow {
    let missed = missed(&summary.ports);
    let plain = summary
        .returned
        .saturating_sub(summary.answered.saturating_add(summary.told));
    let mut ends = vec![
        node("returned", summary.returned, End::Good, "frames sent back"),
        node("missed", missed, End::Lost, "our receive ring was full"),
    ];
    ends.extend(summary.dropped.iter().map(|(reason, packets)| {
        if NOT_PROBES.contains(&reason.as_str()) {
            node(reason, *packets, End::Plain, "dropped, and no probe")
        } else {
            node(reason, *packets, End::Lost, "dropped")
        }
    }));
    let further = vec![
        node("probes", plain, End::Good, "reflected"),
        node("answered", summary.answered, End::Plain, "ARP, NDP and echo"),
        node(
            "told",
            summary.told,
            End::Plain,
            "senders that asked for the counts",
        ),
    ];
    Flow {
        source: node(
            "arrived",
            summary.received.saturating_add(missed),
            End::Plain,
            "frames",
        ),
        ends,
        // Probes alone are all that was returned.
        further: if plain == summary.returned {
            Vec::new()
        } else {
            further
        },
    }
}
