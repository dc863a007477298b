//! A `send` run in a page: where each packet went, queues and cores, streams.

use measure::Summary;

use super::{ledger, streams};
use crate::html::element::section;
use crate::html::flow;
use crate::machine;

/// Its sections.
pub fn render(summary: &Summary, named: &str, id: &str) -> String {
    let drawn = flow::svg(&ledger::flow(&summary.ledger), id) + &ledger::html(&summary.ledger);
    section(&format!("Where each packet went{named}"), &drawn)
        + &machine::balance_html(summary, named)
        + &section(&format!("Streams{named}"), &streams::html(&summary.streams))
}
