//! The ledger: where every packet went, each place by its name.

use measure::place::{NOT_AWAITED, PLACES, Place};
use measure::{Arrived, Ledger};

use crate::number::count;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::wrap::wrapped;

/// Both sides of the ledger, and whether it balances.
pub fn render(ledger: &Ledger, style: &Style) -> String {
    let mut table = Table::section("Ledger", &[]);
    let warn = |number: u64| if number == 0 { Paint::None } else { Paint::Warn };
    table.row(line(0, "intended", ledger.intended, Paint::None, "scheduled"));
    table.row(line(
        1,
        "unsent",
        ledger.unsent,
        warn(ledger.unsent),
        "scheduled but never sent",
    ));
    table.row(line(
        1,
        "accepted",
        ledger.accepted,
        Paint::None,
        "accepted by the driver",
    ));
    table.row(line(
        2,
        "received",
        ledger.received,
        Paint::None,
        "unique, intact and on time",
    ));
    for (place, number, words) in places(ledger) {
        let paint = if place == NOT_AWAITED {
            Paint::None
        } else {
            warn(number)
        };
        table.row(line(2, place, number, paint, words));
    }
    let paint = if ledger.unexplained == 0 {
        Paint::None
    } else {
        Paint::Bad
    };
    table.row(line(
        2,
        "unexplained",
        ledger.unexplained,
        paint,
        "lost, but no counter accounts for them",
    ));
    arrivals(&ledger.arrived, &mut table);
    table.render(style) + &balance(ledger, style) + &raw(ledger, style)
}

fn line(depth: usize, name: &str, number: u64, paint: Paint, words: &str) -> [Cell; 3] {
    [
        Cell::left(format!("{}{name}", "  ".repeat(depth + 1))),
        Cell::right(count(number)).paint(paint),
        Cell::left(words).paint(Paint::Dim),
    ]
}

/// The places every run has, also with 0, and whatever else lost a packet.
pub fn places(ledger: &Ledger) -> Vec<(&str, u64, &'static str)> {
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

fn arrivals(arrived: &Arrived, table: &mut Table) {
    let mut plain =
        |depth, name: &str, number, words: &str| table.row(line(depth, name, number, Paint::None, words));
    plain(0, "arrived", arrived.frames, "every frame our receivers saw");
    plain(1, "received", arrived.received, "");
    plain(1, "duplicate", arrived.duplicate, "copies of packets received");
    let rarer = [
        ("corrupt", arrived.corrupt),
        ("late", arrived.late),
        ("too_old", arrived.too_old),
    ];
    for (name, number) in rarer.into_iter().filter(|(_, number)| *number > 0) {
        plain(1, name, number, "");
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

/// Computed from the very numbers above it. (The lanes, which `measure` checks too, are not shown here.)
fn balance(ledger: &Ledger, style: &Style) -> String {
    match ledger.check(&[]).first() {
        None => {
            style.paint(Paint::Good, "  balances")
                + &style.paint(Paint::Dim, ": every packet is accounted for")
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
