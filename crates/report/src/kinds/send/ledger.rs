//! The ledger: where every packet went, each place by its name.

use maud::{Markup, html};
use measure::place::{NOT_AWAITED, PLACES, Place};
use measure::{Arrived, Ledger};

use crate::html::element::details;
use crate::html::flow::{End, Flow, Node, node};
use crate::number::{count, share};
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::wrap::wrapped;

/// What was intended, and where it ended.
pub fn flow(ledger: &Ledger) -> Flow {
    let places = places(ledger).into_iter().map(|(place, packets, words)| {
        let is_by_plan = place == NOT_AWAITED;
        node(
            place,
            packets,
            if is_by_plan { End::Plain } else { End::Lost },
            words,
        )
    });
    let mut further = vec![node(
        "received",
        ledger.received,
        End::Good,
        "unique, intact and on time",
    )];
    further.extend(places);
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

/// The lines of the ledger, each with how far it is set in.
fn lines(flow: &Flow) -> impl Iterator<Item = (usize, &Node)> {
    // What was not sent stands right below what was intended.
    let ends = flow.ends.iter().rev().map(|node| (1, node));
    let further = flow.further.iter().map(|node| (2, node));
    std::iter::once((0, &flow.source)).chain(ends).chain(further)
}

/// What is best empty, and is: such places share a line.
fn is_none(node: &Node) -> bool {
    node.packets == 0 && node.kind != End::Good
}

/// Both sides of the ledger, and whether it balances.
pub fn render(ledger: &Ledger, style: &Style) -> String {
    let mut table = Table::section("Ledger", &[]);
    let mut empty = Vec::new();
    let flow = flow(ledger);
    for (depth, node) in lines(&flow) {
        if depth > 0 && is_none(node) {
            empty.push(&*node.name);
            continue;
        }
        let paint = match node.kind {
            End::Lost if node.packets > 0 => Paint::Warn,
            End::Unknown if node.packets > 0 => Paint::Bad,
            _ => Paint::None,
        };
        table.row(line(depth, &node.name, node.packets, paint, &node.words));
    }
    arrivals(&ledger.arrived, &mut table, &mut empty);
    let mut text = table.render(style);
    if !empty.is_empty() {
        wrapped(&mut text, &none_in(&empty), 2, Paint::Dim, style);
    }
    text + &balance(ledger, style) + &raw(ledger, style)
}

/// The same in a page.
pub fn html(ledger: &Ledger) -> Markup {
    let flow = flow(ledger);
    let (copies, foreign) = (ledger.arrived.duplicate, ledger.arrived.foreign_total());
    let arrived = [
        node(
            "duplicate",
            copies,
            End::Lost,
            "arrived: copies of packets received",
        ),
        node("foreign", foreign, End::Plain, "arrived: not our probes"),
    ];
    let caption = match ledger.check(&[]).first() {
        None => format!("The ledger balances: {}", accounted(ledger)),
        Some(broken) => format!("The ledger DOES NOT BALANCE: {broken}"),
    };
    let rows = lines(&flow).skip(1).map(|(_, node)| node).chain(&arrived);
    let (none, some): (Vec<&Node>, Vec<&Node>) = rows.partition(|node| is_none(node));
    let table = Sheet::of(std::iter::once(&flow.source).chain(some))
        .name("", |node| node.name.clone())
        .cell("packets", |node| {
            let is_bad = node.packets > 0 && matches!(node.kind, End::Lost | End::Unknown);
            Cell::right(count(node.packets)).paint(if is_bad { Paint::Bad } else { Paint::None })
        })
        .number("of intended", |node| share(node.packets, ledger.intended))
        .words("", |node| node.words.clone())
        .html(&caption);
    let names: Vec<&str> = none.iter().map(|node| &*node.name).collect();
    let meanings = Sheet::of(none)
        .name("", |node| node.name.clone())
        .words("", |node| node.words.clone())
        .html("What would be counted there");
    html! {
        (table)
        @if !names.is_empty() { (details(&none_in(&names), &meanings)) }
    }
}

fn line(depth: usize, name: &str, number: u64, paint: Paint, words: &str) -> [Cell; 3] {
    [
        Cell::left(format!("{}{name}", "  ".repeat(depth + 1))),
        Cell::right(count(number)).paint(paint),
        Cell::left(words).paint(Paint::Dim),
    ]
}

/// The places every run has, also with 0, and whatever else lost a packet.
fn places(ledger: &Ledger) -> Vec<(&str, u64, &'static str)> {
    let lost = |place: &str| ledger.lost_at.get(place).copied().unwrap_or(0);
    let known = PLACES
        .iter()
        .map(|place| (&*place.name, lost(&place.name), place))
        .filter(|(_, number, place)| *number > 0 || place.always)
        .map(|(name, number, place)| (name, number, place.meaning));
    let others = ledger
        .lost_at
        .iter()
        .filter(|(name, _)| PLACES.iter().all(|place| place.name != **name))
        .map(|(name, &number)| (name.as_str(), number, Place::named(name).meaning));
    known.chain(others).collect()
}

/// Names in one line what nothing is in.
fn none_in(names: &[&str]) -> String {
    format!("0 each: {}", names.join(", "))
}

fn arrivals(arrived: &Arrived, table: &mut Table, empty: &mut Vec<&str>) {
    let mut plain =
        |depth, name: &str, number, words: &str| table.row(line(depth, name, number, Paint::None, words));
    plain(0, "arrived", arrived.frames, "every frame our receivers saw");
    plain(1, "received", arrived.received, "");
    if arrived.duplicate == 0 {
        empty.push("duplicate");
    }
    let others = [
        ("duplicate", arrived.duplicate, "copies of packets received"),
        ("corrupt", arrived.corrupt, ""),
        ("late", arrived.late, ""),
        ("too_old", arrived.too_old, ""),
    ];
    for (name, number, words) in others.into_iter().filter(|(_, number, _)| *number > 0) {
        plain(1, name, number, words);
    }
    if arrived.foreign_total() == 0 && arrived.answered == 0 {
        empty.push("foreign");
        return;
    }
    let answered = match arrived.answered {
        0 => "not our probes".to_owned(),
        answered => format!("not our probes; {} answered", count(answered)),
    };
    plain(1, "foreign", arrived.foreign_total(), &answered);
    for (kind, &number) in arrived.foreign.iter().filter(|(_, number)| **number > 0) {
        plain(2, kind, number, "");
    }
}

/// How far a ledger that balances tells where packets went.
fn accounted(ledger: &Ledger) -> String {
    match ledger.unexplained {
        0 => "every packet is accounted for".to_owned(),
        unexplained => format!("every packet but {} is accounted for", count(unexplained)),
    }
}

/// Computed from the very numbers above it. (The lanes, which `measure` checks too, are not shown here.)
fn balance(ledger: &Ledger, style: &Style) -> String {
    match ledger.check(&[]).first() {
        None => {
            style.paint(Paint::Good, "  balances")
                + &style.paint(Paint::Dim, &format!(": {}", accounted(ledger)))
                + "\n"
        }
        Some(broken) => {
            let mut text = String::new();
            wrapped(
                &mut text,
                &format!("DOES NOT BALANCE: {broken}"),
                2,
                Paint::Bad,
                style,
            );
            text
        }
    }
}

/// The counters behind the places, as read; zeros say nothing here.
fn raw(ledger: &Ledger, style: &Style) -> String {
    let read: Vec<String> = ledger
        .raw
        .iter()
        .filter(|(_, number)| **number > 0)
        .map(|(name, &number)| format!("{name} {}", count(number)))
        .collect();
    if read.is_empty() {
        return String::new();
    }
    let mut lines = vec![String::from("  counters as read: ")];
    for (at, counter) in read.iter().enumerate() {
        let comma = if at + 1 < read.len() { ", " } else { "" };
        if lines
            .last()
            .is_some_and(|line| line.len() + counter.len() + 1 > style.width)
        {
            lines.push(String::from("    "));
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(counter);
            line.push_str(comma);
        }
    }
    lines
        .iter()
        .map(|line| style.paint(Paint::Dim, line.trim_end()) + "\n")
        .collect()
}
