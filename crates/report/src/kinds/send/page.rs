//! A `send` run in a page: where each packet went, queues and cores, streams.

use maud::{Markup, html};
use measure::Summary;

use super::{ledger, streams};
use crate::html::element::section;
use crate::html::flow;
use crate::machine;

/// Its sections.
pub fn render(summary: &Summary, named: &str, id: &str) -> Markup {
    let drawn = flow::svg(&ledger::flow(&summary.ledger), id);
    let told = html! { (drawn) (ledger::html(&summary.ledger)) };
    html! {
        (section(&format!("Where each packet went{named}"), &told))
        (machine::balance_html(summary, named))
        (section(&format!("Streams{named}"), &streams::html(&summary.streams)))
    }
}
