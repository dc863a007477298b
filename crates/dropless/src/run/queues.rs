//! Every queue and its share of the packets of its port and direction.

use measure::QueueSummary;

/// What a queue moved.
pub struct QueueCount {
    /// `rx` or `tx`.
    pub direction: &'static str,
    /// Index of its port.
    pub port: usize,
    pub queue: usize,
    pub core: usize,
    pub packets: u64,
}

pub fn shares(queues: &[QueueCount]) -> Vec<QueueSummary> {
    let share = |queue: &QueueCount| {
        let same = |other: &&QueueCount| other.direction == queue.direction && other.port == queue.port;
        let of_port: u64 = queues.iter().filter(same).map(|other| other.packets).sum();
        QueueSummary {
            port: queue.port as u16,
            queue: queue.queue as u16,
            direction: queue.direction.into(),
            core: queue.core as u32,
            packets: queue.packets,
            share: queue.packets as f64 / of_port.max(1) as f64,
        }
    };
    queues.iter().map(share).collect()
}
