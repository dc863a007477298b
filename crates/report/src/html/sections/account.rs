//! Where each packet went: the flow, the ledger, streams, queues and cores, and who took the cores.

use measure::{Ledger, QueueSummary, ReflectSummary, StreamSummary, Summary, WorkerSummary};

use super::super::element::{Cell, details, table};
use super::super::flow::{self, Flow, Kind, Node};
use super::{comparison, search};
use crate::compare::metrics::NOT_PROBES;
use crate::load::stalls::Cause;
use crate::load::{Loaded, Outcome};
use crate::number::{count, pps, share, time};
use crate::terminal::ledger::places;

/// Streams and causes shown; `summary.json` and `stalls.csv` have all.
const ROWS_MAX: usize = 64;
/// Causes that are not folded away.
const CAUSES_SHOWN: usize = 8;

/// All of a run but its machine.
pub fn sections(run: &Loaded, named: &str, at: usize) -> String {
    let mut page = String::new();
    let id = format!("flow-{at}");
    match &run.outcome {
        Outcome::Send(summary) => {
            page += &section(
                &format!("Where each packet went{named}"),
                &(flow::svg(&of_send(&summary.ledger), &id) + &ledger(&summary.ledger)),
            );
            page += &section(
                &format!("Balance{named}"),
                &balance(&summary.queues, &summary.workers),
            );
            page += &streams(summary, named);
        }
        Outcome::Reflect(summary) => {
            page += &section(
                &format!("Where each frame went{named}"),
                &flow::svg(&of_reflect(summary), &id),
            );
            page += &section(
                &format!("Balance{named}"),
                &balance(&summary.queues, &summary.workers),
            );
        }
        Outcome::Search(searched) => page += &search::sections(searched, named, &id),
        Outcome::Compare(comparison) => page += &comparison::sections(comparison, named),
        Outcome::Intervals => {}
    }
    page + &pauses(run, named)
}

fn section(title: &str, inner: &str) -> String {
    if inner.is_empty() {
        return String::new();
    }
    let title = super::super::element::escape(title);
    format!("<section><h2>{title}</h2>\n{inner}</section>\n")
}

fn node(name: &str, packets: u64, kind: Kind, words: &str) -> Node {
    Node {
        name: name.to_owned(),
        packets,
        kind,
        words: words.to_owned(),
    }
}

fn of_send(ledger: &Ledger) -> Flow {
    let mut further = vec![node(
        "received",
        ledger.received,
        Kind::Good,
        "distinct, whole and in time",
    )];
    for (place, packets, words) in places(ledger) {
        let kind = if place == measure::ledger::NOT_AWAITED {
            Kind::Plain
        } else {
            Kind::Lost
        };
        further.push(node(place, packets, kind, words));
    }
    further.push(node(
        "unexplained",
        ledger.unexplained,
        Kind::Unknown,
        "lost, and no counter says where",
    ));
    Flow {
        source: node("intended", ledger.intended, Kind::Plain, "due by the schedule"),
        ends: vec![
            node("accepted", ledger.accepted, Kind::Good, "taken by the driver"),
            node(
                "unsent",
                ledger.unsent,
                Kind::Lost,
                "due, and our sender could not",
            ),
        ],
        further,
    }
}

fn of_reflect(summary: &ReflectSummary) -> Flow {
    let missed: u64 = summary
        .ports
        .iter()
        .fold(0, |sum, port| sum.saturating_add(port.rx_missed));
    let plain = summary
        .returned
        .saturating_sub(summary.answered.saturating_add(summary.told));
    let mut ends = vec![
        node("returned", summary.returned, Kind::Good, "frames sent back"),
        node("missed", missed, Kind::Lost, "our receive ring was full"),
    ];
    ends.extend(summary.dropped.iter().map(|(reason, packets)| {
        if NOT_PROBES.contains(&reason.as_str()) {
            node(reason, *packets, Kind::Plain, "dropped, and no probe")
        } else {
            node(reason, *packets, Kind::Lost, "dropped")
        }
    }));
    let further = vec![
        node("probes", plain, Kind::Good, "reflected"),
        node("answered", summary.answered, Kind::Plain, "ARP, NDP and echo"),
        node(
            "told",
            summary.told,
            Kind::Plain,
            "senders that asked for the counts",
        ),
    ];
    Flow {
        source: node(
            "arrived",
            summary.received.saturating_add(missed),
            Kind::Plain,
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
        line("intended", ledger.intended, false, "due by the schedule"),
        line("unsent", ledger.unsent, true, "due, and our sender could not"),
        line("accepted", ledger.accepted, false, "taken by the driver"),
        line("received", ledger.received, false, "distinct, whole and in time"),
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
        "lost, and no counter says where",
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
        None => "The ledger balances: every packet is in one of these lines".to_owned(),
        Some(broken) => format!("The ledger DOES NOT BALANCE: {broken}"),
    };
    table(&caption, &["", "packets", "of intended", ""], &rows)
}

fn balance(queues: &[QueueSummary], workers: &[WorkerSummary]) -> String {
    let queue = |queue: &QueueSummary| {
        vec![
            Cell::Name(format!("port {} {} {}", queue.port, queue.direction, queue.queue)),
            Cell::Number(queue.core.to_string()),
            Cell::Number(count(queue.packets)),
            Cell::Bar(queue.share, format!("{:.1} %", queue.share * 100.0)),
        ]
    };
    let worker = |worker: &WorkerSummary| {
        vec![
            Cell::Name(format!("core {}", worker.core)),
            Cell::Text(worker.roles.join(", ")),
            Cell::Number(count(worker.polls)),
            Cell::Bar(worker.busy_share, format!("{:.1} %", worker.busy_share * 100.0)),
            Cell::Number(time(worker.poll_gap_ns_p999 as f64)),
            Cell::Number(time(worker.poll_gap_ns_max as f64)),
        ]
    };
    let mut page = String::new();
    if !queues.is_empty() {
        let rows: Vec<_> = queues.iter().map(queue).collect();
        page += &table(
            "Packets by queue, as a share of its port and direction",
            &["queue", "core", "packets", "share"],
            &rows,
        );
    }
    if !workers.is_empty() {
        let rows: Vec<_> = workers.iter().map(worker).collect();
        let head = ["core", "does", "polls", "busy", "pause p99.9", "pause max"];
        page += &table(
            "Workers: rounds of their loop that moved packets, and how long they were away",
            &head,
            &rows,
        );
    }
    page
}

fn streams(summary: &Summary, named: &str) -> String {
    if summary.streams.len() < 2 {
        return String::new();
    }
    let mut shown: Vec<&StreamSummary> = summary.streams.iter().collect();
    shown.sort_by_key(|stream| std::cmp::Reverse(stream.lost));
    let bad = |number: u64| {
        if number > 0 {
            Cell::Bad(count(number))
        } else {
            Cell::Number("0".to_owned())
        }
    };
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

fn pauses(run: &Loaded, named: &str) -> String {
    let Some(stalls) = run.stalls.as_ref().filter(|stalls| stalls.all.pauses > 0) else {
        return String::new();
    };
    let row = |name: &str, cause: &Cause| {
        let lost = if cause.lost > 0 {
            Cell::Bad(count(cause.lost))
        } else {
            Cell::Number("0".to_owned())
        };
        vec![
            Cell::Name(name.to_owned()),
            Cell::Number(count(cause.pauses)),
            Cell::Number(time(cause.total_ns as f64)),
            Cell::Number(time(cause.max_ns as f64)),
            lost,
        ]
    };
    let causes = stalls.ranked();
    let name = |name: &str| {
        if name.is_empty() {
            "not asked for (--explain names causes)".to_owned()
        } else {
            name.to_owned()
        }
    };
    let mut rows: Vec<Vec<Cell>> = causes
        .iter()
        .take(ROWS_MAX)
        .map(|(cause, sums)| row(&name(cause), sums))
        .collect();
    let rest = rows.split_off(rows.len().min(CAUSES_SHOWN));
    rows.push(row("all", &stalls.all));
    let head = ["cause", "pauses", "total", "longest", "missed"];
    let mut inner = table("Pauses by cause, what cost most first", &head, &rows);
    if !rest.is_empty() {
        inner += &details("Further causes", &table("What cost less", &head, &rest));
    }
    section(&format!("Who took the cores{named}"), &inner)
}
