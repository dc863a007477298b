//! A `send` run in a page: where each packet went, queues and cores, streams.

use measure::{Ledger, StreamSummary, Summary};

use super::ledger::places;
use crate::html::element::{Cell, bad, section, table};
use crate::html::flow::{self, End, Flow, node};
use crate::html::sections::balance;
use crate::number::{count, pps, share, time};

/// Streams shown; `summary.json` has all.
const ROWS_MAX: usize = 64;

/// Its sections.
pub fn render(summary: &Summary, named: &str, id: &str) -> String {
    let drawn = flow::svg(&of_send(&summary.ledger), id);
    section(
        &format!("Where each packet went{named}"),
        &(drawn + &ledger(&summary.ledger)),
    ) + &section(
        &format!("Balance{named}"),
        &balance::tables(&summary.queues, &summary.workers),
    ) + &streams(summary, named)
}

fn of_send(ledger: &Ledger) -> Flow {
    let mut further = vec![node(
        "received",
        ledger.received,
        End::Good,
        "unique, intact and on time",
    )];
    for (place, packets, words) in places(ledger) {
        let kind = if place == measure::ledger::NOT_AWAITED {
            End::Plain
        } else {
            End::Lost
        };
        further.push(node(place, packets, kind, words));
    }
    further.push(node(
        "unexplained",
        ledger.unexplained,
        End::Unknown,
        "lost, but no counter accounts for them",
    ));
    Flow {
        source: node("intended", ledger.intended, End::Plain, "scheduled"),
        ends: vec![
            node("accepted", ledger.accepted, End::Good, "accepted by the driver"),
            node("unsent", ledger.unsent, End::Lost, "scheduled but never sent"),
        ],
        further,
    }
}

fn ledger(ledger: &Ledger) -> String {
    let line = |name: &str, packets: u64, is_bad: bool, words: &str| {
        let number = if is_bad && packets > 0 {
            Cell::Bad(count(packets))
        } else {
            Cell::Number(count(packets))
        };
        let part = Cell::Number(share(packets, ledger.intended));
        vec![
            Cell::Name(name.to_owned()),
            number,
            part,
            Cell::Text(words.to_owned()),
        ]
    };
    let mut rows = vec![
        line("intended", ledger.intended, false, "scheduled"),
        line("unsent", ledger.unsent, true, "scheduled but never sent"),
        line("accepted", ledger.accepted, false, "accepted by the driver"),
        line("received", ledger.received, false, "unique, intact and on time"),
    ];
    rows.extend(
        places(ledger).into_iter().map(|(place, packets, words)| {
            line(place, packets, place != measure::ledger::NOT_AWAITED, words)
        }),
    );
    rows.push(line(
        "unexplained",
        ledger.unexplained,
        true,
        "lost, but no counter accounts for them",
    ));
    rows.push(line(
        "duplicate",
        ledger.arrived.duplicate,
        true,
        "arrived: copies of packets received",
    ));
    rows.push(line(
        "foreign",
        ledger.arrived.foreign_total(),
        false,
        "arrived: not our probes",
    ));
    let caption = match ledger.check(&[]).first() {
        None => "The ledger balances: every packet is accounted for".to_owned(),
        Some(broken) => format!("The ledger DOES NOT BALANCE: {broken}"),
    };
    table(&caption, &["", "packets", "of intended", ""], &rows)
}

fn streams(summary: &Summary, named: &str) -> String {
    if summary.streams.len() < 2 {
        return String::new();
    }
    let mut shown: Vec<&StreamSummary> = summary.streams.iter().collect();
    shown.sort_by_key(|stream| std::cmp::Reverse(stream.lost));
    let latency = |value: Option<u64>| Cell::Number(value.map_or("-".to_owned(), |ns| time(ns as f64)));
    let rows: Vec<Vec<Cell>> = shown
        .iter()
        .take(ROWS_MAX)
        .map(|stream| {
            let percentiles = &stream.latency_ns;
            vec![
                Cell::Name(stream.name.clone()),
                Cell::Number(count(stream.sent)),
                bad(stream.lost),
                Cell::Number(share(stream.lost, stream.sent)),
                bad(stream.duplicate),
                bad(stream.reordered),
                Cell::Number(pps(stream.rate_tx_pps)),
                latency(percentiles.p50),
                latency(percentiles.p99),
                latency(percentiles.max),
            ]
        })
        .collect();
    let caption = if summary.streams.len() > ROWS_MAX {
        format!(
            "The {ROWS_MAX} streams with the most loss of {}",
            summary.streams.len()
        )
    } else {
        "Streams, those with the most loss first".to_owned()
    };
    let head = [
        "stream",
        "sent",
        "lost",
        "loss",
        "duplicate",
        "reordered",
        "rate",
        "p50",
        "p99",
        "max",
    ];
    section(&format!("Streams{named}"), &table(&caption, &head, &rows))
}
