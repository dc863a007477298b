//! The general ledger of a job ([`Balance`]), in a terminal and in a page.

use measure::Balance;
use measure::place::Owner;

use crate::html::flow::{End, Flow, Node, node};
use crate::number::count;
use crate::table::{Cell, Table, bad};

/// A line for each place that counted any, and one for what no place accounts for.
pub fn charges(ledger: &Balance, table: &mut Table) {
    for charge in &ledger.places {
        let charged = match charge.owner {
            Owner::Purpose => Cell::right(count(charge.charged)),
            _ => bad(charge.charged),
        };
        table.item(&format!("  {}", charge.place), [charged]);
    }
    table.item("unexplained", [bad(ledger.unexplained)]);
}

/// What entered (`source`), and where it ended: `left` is what came through, and what did not was `lost`.
pub fn flow(ledger: &Balance, source: Node, left: Node, lost: &str) -> Flow {
    let mut ends = vec![left];
    ends.extend(ledger.places.iter().map(|charge| match charge.owner {
        Owner::Purpose => node(&charge.place, charge.charged, End::Plain, "on purpose"),
        _ => node(&charge.place, charge.charged, End::Lost, lost),
    }));
    Flow {
        source,
        ends,
        further: Vec::new(),
    }
}
