//! What carried the packets: ports, queues, workers, the buffer pool, the clock.

use maud::{Markup, html};
use measure::{LinkState, PortSummary, QueueSummary, RunResult, WorkerSummary};

use crate::html::element::section;
use crate::number::{count, counted, link_speed, time};
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};
use crate::terminal::join;
use crate::wrap::wrapped;

/// From this width on there is room for the drivers.
const WIDE: usize = 100;
/// A queue with this many times its fair share is worth a word.
const UNEVEN: f64 = 1.5;

/// Packets that the ports missed.
pub fn missed(ports: &[PortSummary]) -> u64 {
    ports
        .iter()
        .fold(0, |sum, port| sum.saturating_add(port.rx_missed))
}

/// All of it in a terminal.
pub fn terminal(run: &impl RunResult, style: &Style) -> String {
    join(&[
        ports(run.ports()).terminal("Ports", style),
        queues(run.queues()).terminal("Queues", style) + &balance(run.queues(), style),
        workers(run.workers()).terminal("Workers", style),
        environment(run, style),
    ])
}

/// The section of a page about how even the load was: packets by queue, and workers by core.
pub fn balance_html(run: &impl RunResult, named: &str) -> Markup {
    let tables = html! {
        (queues(run.queues()).html("Packets by queue, as a share of its port and direction"))
        (workers(run.workers())
            .html("Workers: rounds of their loop that moved packets, and how long they were away"))
    };
    section(&format!("Balance{named}"), &tables)
}

/// The ports and their own counters.
pub fn ports(ports: &[PortSummary]) -> Sheet<(usize, &PortSummary)> {
    Sheet::of(ports.iter().enumerate())
        .name("", |(number, port)| format!("{number} {}", port.uri))
        .in_terminal()
        .name("port", |(_, port)| port.uri.clone())
        .on_page()
        .words("driver", |(_, port)| port.driver.clone())
        .at_width(WIDE)
        .cell("link", |(_, port)| link(port.link))
        .in_terminal()
        .number("sent", |(_, port)| count(port.tx_packets))
        .short("tx")
        .number("received", |(_, port)| count(port.rx_packets))
        .short("rx")
        .cell("missed", |(_, port)| bad(port.rx_missed))
        .cell("no buffer", |(_, port)| bad(port.rx_nombuf))
        .short("nombuf")
        .cell("errors", |(_, port)| {
            let sent = port.tx_errors.saturating_add(port.tx_dropped);
            bad(port.rx_errors.saturating_add(sent))
        })
        .in_terminal()
        .cell("rx errors", |(_, port)| bad(port.rx_errors))
        .on_page()
        .cell("tx errors", |(_, port)| bad(port.tx_errors))
        .on_page()
        .cell("tx dropped", |(_, port)| bad(port.tx_dropped))
        .on_page()
}

fn link(link: LinkState) -> Cell {
    match (link.up, link.speed_mbps) {
        (false, _) => Cell::left("down").paint(Paint::Bad),
        (true, None) => Cell::left("up"),
        (true, Some(mbps)) => Cell::left(link_speed(mbps)),
    }
}

fn queues(queues: &[QueueSummary]) -> Sheet<&QueueSummary> {
    Sheet::of(queues)
        .name("queue", |queue| name(queue))
        .number("core", |queue| queue.core.to_string())
        .number("packets", |queue| count(queue.packets))
        .cell("share", |queue| Cell::share(queue.share))
}

fn name(queue: &QueueSummary) -> String {
    format!("port {} {} {}", queue.port, queue.direction, queue.queue)
}

/// Says which queues carry much more than their part of a port's direction; nothing where there is one queue.
fn balance(queues: &[QueueSummary], style: &Style) -> String {
    let side = |queue: &QueueSummary| (queue.port, queue.direction.clone());
    let mut text = String::new();
    for queue in queues {
        let beside = queues.iter().filter(|other| side(other) == side(queue)).count();
        let fair = 1.0 / beside as f64;
        if queue.share > UNEVEN * fair {
            let (has, even) = (queue.share * 100.0, fair * 100.0);
            let name = name(queue);
            let words = format!("uneven: {name} has {has:.0} % of the packets, {even:.0} % would be even");
            wrapped(&mut text, &words, 2, Paint::Warn, style);
        }
    }
    text
}

/// How busy each worker was, and for how long it was away.
fn workers(workers: &[WorkerSummary]) -> Sheet<&WorkerSummary> {
    Sheet::of(workers)
        .name("core", |worker| format!("core {}", worker.core))
        .words("does", |worker| worker.roles.join(", "))
        .number("polls", |worker| count(worker.polls))
        .cell("busy", |worker| Cell::share(worker.busy_share))
        .number("stall p99.9", |worker| time(worker.poll_gap_ns_p999 as f64))
        .number("stall max", |worker| time(worker.poll_gap_ns_max as f64))
}

/// Whether every buffer is back, how good the clock was, and how soon the first packet was moved.
fn environment(run: &impl RunResult, style: &Style) -> String {
    let (pool, clock) = (run.pool(), run.clock());
    let mut table = Table::indented(0);
    if pool.size > 0 {
        let buffers = counted(pool.size, "buffer");
        let words = match pool.leaked {
            0 if pool.in_use_at_start > 0 => Cell::left(format!(
                "{buffers}, {} in the driver's own rings, every other one is back",
                count(pool.in_use_at_start)
            )),
            0 => Cell::left(format!("{buffers}, every one is back")),
            leaked => Cell::left(format!("LEAK: {} of {buffers} did not come back", count(leaked)))
                .paint(Paint::Bad),
        };
        table.row([Cell::left("Pool").paint(Paint::Head), words]);
    }
    if !clock.source.is_empty() {
        let (giga, uncertainty) = (clock.hz / 1e9, clock.uncertainty_ppm);
        let (checked, paint) = if clock.checked {
            ("checked on every core in use", Paint::None)
        } else {
            ("NOT checked", Paint::Warn)
        };
        let words = format!(
            "{} at {giga:.6} GHz, +/- {uncertainty:.3} ppm, {checked}",
            clock.source
        );
        table.row([
            Cell::left("Clock").paint(Paint::Head),
            Cell::left(words).paint(paint),
        ]);
    }
    let first = run.workers().iter().filter_map(|worker| worker.first_packet_ms);
    if let Some(first) = first.reduce(f64::min) {
        let words =
            format!("first packet {first:.0} ms after the process was started, or up to 10 ms sooner");
        table.row([Cell::left("Start").paint(Paint::Head), Cell::left(words)]);
    }
    table.render(style)
}
