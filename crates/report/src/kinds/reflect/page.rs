//! A `reflect` run in a page: where each frame went, queues and cores.

use maud::{Markup, html};
use measure::{Place, ReflectSummary};

use super::may_be_probe;
use crate::html::element::section;
use crate::html::flow::{self, End, Flow, node};
use crate::machine;

/// Its sections.
pub fn render(summary: &ReflectSummary, named: &str, id: &str) -> Markup {
    html! {
        (section(&format!("Where each frame went{named}"), &flow::svg(&of_reflect(summary), id)))
        (machine::balance_html(summary, named))
    }
}

fn of_reflect(summary: &ReflectSummary) -> Flow {
    let balance = summary.balance();
    let plain = balance
        .left
        .saturating_sub(summary.answered.saturating_add(summary.told));
    let mut ends = vec![node("returned", balance.left, End::Good, "frames sent back")];
    ends.extend(balance.places.iter().map(|charge| {
        let words = match Place::named(&charge.place).meaning {
            "" => "dropped",
            meaning => meaning,
        };
        let end = if may_be_probe(&charge.place) {
            End::Lost
        } else {
            End::Plain
        };
        node(&charge.place, charge.charged, end, words)
    }));
    let unexplained = balance.unexplained;
    ends.push(node(
        "unexplained",
        unexplained,
        End::Unknown,
        "nobody counted it",
    ));
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
        source: node("arrived", balance.entered, End::Plain, "frames"),
        ends,
        // Probes alone are all that was returned.
        further: if plain == balance.left {
            Vec::new()
        } else {
            further
        },
    }
}
