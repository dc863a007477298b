//! How even the load was: packets by queue, and workers by core.

use measure::{QueueSummary, WorkerSummary};

use super::super::element::{Cell, table};
use crate::number::{count, time};

/// Both tables, where there is anything in them.
pub fn tables(queues: &[QueueSummary], workers: &[WorkerSummary]) -> String {
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
        let head = ["core", "does", "polls", "busy", "stall p99.9", "stall max"];
        page += &table(
            "Workers: rounds of their loop that moved packets, and how long they were away",
            &head,
            &rows,
        );
    }
    page
}
