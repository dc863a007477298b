//! What carried the packets: ports, queues, workers, the buffer pool, the clock.

use measure::{ClockSummary, LinkState, PoolSummary, PortSummary, QueueSummary, WorkerSummary};

use crate::number::{bps, count, counted, time};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};
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

/// A row per port with its number and its own counters.
pub fn ports(ports: &[PortSummary], style: &Style) -> String {
    if ports.is_empty() {
        return String::new();
    }
    let wide = style.width >= WIDE;
    let mut titles = vec!["link", ">tx", ">rx", ">missed", ">nombuf", ">errors"];
    if wide {
        titles.insert(0, "driver");
    }
    let mut table = Table::section("Ports", &titles);
    for (number, port) in ports.iter().enumerate() {
        let driver = wide.then(|| Cell::left(&port.driver));
        let counters = [
            link(port.link),
            Cell::right(count(port.tx_packets)),
            Cell::right(count(port.rx_packets)),
            bad(port.rx_missed),
            bad(port.rx_nombuf),
            bad(port.rx_errors.saturating_add(port.tx_errors)),
        ];
        table.item(
            &format!("{number} {}", port.uri),
            driver.into_iter().chain(counters),
        );
    }
    table.render(style)
}

fn link(link: LinkState) -> Cell {
    match (link.up, link.speed_mbps) {
        (false, _) => Cell::left("down").paint(Paint::Bad),
        (true, None) => Cell::left("up"),
        (true, Some(mbps)) => {
            let speed = bps(f64::from(mbps) * 1e6);
            let (digits, unit) = speed.split_once(' ').unwrap_or((&speed, ""));
            let whole = digits.trim_end_matches('0').trim_end_matches('.');
            Cell::left(format!(
                "{} {unit}",
                if digits.contains('.') { whole } else { digits }
            ))
        }
    }
}

/// A row per queue, and a word when the load is uneven.
pub fn queues(queues: &[QueueSummary], style: &Style) -> String {
    if queues.is_empty() {
        return String::new();
    }
    let mut table = Table::section("Queues", &[">core", ">packets", ">share"]);
    for queue in queues {
        let QueueSummary {
            port,
            queue: number,
            direction,
            core,
            packets,
            share,
        } = queue;
        table.item(
            &format!("port {port} {direction} {number}"),
            [
                Cell::right(core.to_string()),
                Cell::right(count(*packets)),
                Cell::right(format!("{:.1} %", share * 100.0)),
            ],
        );
    }
    table.render(style) + &balance(queues, style)
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
            let name = format!("port {} {} {}", queue.port, queue.direction, queue.queue);
            let words = format!("uneven: {name} has {has:.0} % of the packets, {even:.0} % would be even");
            wrapped(&mut text, &words, 2, Paint::Warn, style);
        }
    }
    text
}

/// A row per worker: how busy it was, and for how long it was away.
pub fn workers(workers: &[WorkerSummary], style: &Style) -> String {
    if workers.is_empty() {
        return String::new();
    }
    let titles = ["does", ">polls", ">busy", ">stall p99.9", ">stall max"];
    let mut table = Table::section("Workers", &titles);
    for worker in workers {
        table.item(
            &format!("core {}", worker.core),
            [
                Cell::left(worker.roles.join(", ")),
                Cell::right(count(worker.polls)),
                Cell::right(format!("{:.1} %", worker.busy_share * 100.0)),
                Cell::right(time(worker.poll_gap_ns_p999 as f64)),
                Cell::right(time(worker.poll_gap_ns_max as f64)),
            ],
        );
    }
    table.render(style)
}

/// Whether every buffer is back, and how good the clock was.
pub fn pool_and_clock(pool: &PoolSummary, clock: &ClockSummary, style: &Style) -> String {
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
    table.render(style)
}
