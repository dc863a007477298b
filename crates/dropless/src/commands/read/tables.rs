//! Statistics as tables for people.

use std::net::IpAddr;

use dissect::flow::{Connection, Count, End, Evicted, Talker};
use dissect::{Clock, Text};
use report::number::{count, counted};
use report::style::{Stream, Style};
use report::table::{Cell, Table};

/// Connections that are printed at most; scripts get all.
const SHOWN_MAX: usize = 1000;
/// No table is wider, and none is shortened: addresses are copied from it.
const WIDTH: usize = 1000;

/// A time of a connection.
pub fn time(clock: &mut Clock, time_ns: i64, digits: u8) -> String {
    let mut text = Text::default();
    clock.write(&mut text, Some(time_ns), digits);
    String::from_utf8_lossy(text.as_bytes()).into_owned()
}

/// Connections, and how many are left out.
pub fn of_connections(connections: &[Connection], clock: &mut Clock) -> String {
    let titles = [
        "from", "to", ">packets", ">bytes", ">back", ">bytes", "first", "last", "flags", "back",
    ];
    let mut table = Table::section("connections", &titles);
    for connection in connections.iter().take(SHOWN_MAX) {
        let protocol = connection.protocol_name();
        let protocol = protocol.map_or_else(|| connection.protocol.to_string(), str::to_owned);
        table.item(&protocol, row(connection, clock));
    }
    let more = connections.len().saturating_sub(SHOWN_MAX);
    let more = match more {
        0 => String::new(),
        more => format!("  and {} more (all with --json)\n", count(more as u64)),
    };
    table.render(&style()) + &more
}

fn row(connection: &Connection, clock: &mut Clock) -> [Cell; 10] {
    let has_ports = connection.from.port > 0 || connection.to.port > 0;
    let (there, back) = connection.flag_letters().unwrap_or_default();
    let (first, last) = connection.times_ns.unzip();
    let mut time = |at: Option<i64>| at.map(|at| time(clock, at, 6)).unwrap_or_default();
    [
        Cell::left(end(connection.from, has_ports)),
        Cell::left(end(connection.to, has_ports)),
        Cell::right(count(connection.sent.packets)),
        Cell::right(count(connection.sent.bytes)),
        Cell::right(count(connection.returned.packets)),
        Cell::right(count(connection.returned.bytes)),
        Cell::left(time(first)),
        Cell::left(time(last)),
        Cell::left(there),
        Cell::left(back),
    ]
}

/// Addresses, and how many are left out.
pub fn of_talkers(talkers: &[Talker], more: usize) -> String {
    let titles = [">packets sent", ">bytes", ">packets received", ">bytes"];
    let mut table = Table::section("addresses", &titles);
    for talker in talkers {
        let counts = [talker.sent, talker.received];
        let cells = counts.iter().flat_map(|sum| [sum.packets, sum.bytes]);
        table.item(
            &talker.address.to_string(),
            cells.map(|number| Cell::right(count(number))),
        );
    }
    let more = match more {
        0 => String::new(),
        more => format!("  and {} more (a larger --top shows them)\n", count(more as u64)),
    };
    table.render(&style()) + &more
}

fn style() -> Style {
    Style {
        width: WIDTH,
        ..Style::detect(Stream::Stdout)
    }
}

/// An address and port, written as in the lines of packets.
fn end(end: End, has_port: bool) -> String {
    match (end.address, has_port) {
        (address, false) => address.to_string(),
        (IpAddr::V4(address), true) => format!("{address}.{}", end.port),
        (IpAddr::V6(address), true) => format!("{address}.{}", end.port),
    }
}

/// What was read in all, and what the tables leave out.
pub fn sentence(all: &Count, not_ip: &Count, forgotten: [(&Evicted, &str); 2]) -> String {
    let told = |sum: &Count| {
        format!(
            "{} of {}",
            counted(sum.packets, "packet"),
            counted(sum.bytes, "byte")
        )
    };
    let mut parts = vec![told(all)];
    if not_ip.packets > 0 {
        parts.push(format!("no IP: {}", told(not_ip)));
    }
    for (evicted, what) in forgotten {
        if evicted.entries > 0 {
            parts.push(format!(
                "forgotten {what}: {} with {} (--flows-max holds more)",
                count(evicted.entries),
                told(&evicted.count)
            ));
        }
    }
    parts.join("; ") + "\n"
}
