//! The queues of a run as control sees them, and the share that each has of the packets of its port and direction.

use std::sync::Arc;

use dataplane::slot::Slot;
use measure::QueueSummary;

/// A queue of a port, and the core that polls it.
#[derive(Clone, Copy)]
pub struct QueuePlace {
    /// Index of its port.
    pub port: usize,
    pub queue: usize,
    pub core: usize,
}

/// A queue and what its task tells.
pub struct QueueSide<C, T> {
    pub place: QueuePlace,
    /// What the task publishes while it runs.
    pub counters: Arc<C>,
    /// What the task leaves when it has ended.
    pub totals: Slot<T>,
}

impl QueuePlace {
    /// What the queue moved in `direction`, `rx` or `tx`; [`shares`] adds its share.
    pub fn moved(self, direction: &str, packets: u64) -> QueueSummary {
        QueueSummary {
            port: self.port as u16,
            queue: self.queue as u16,
            direction: direction.into(),
            core: self.core as u32,
            packets,
            ..QueueSummary::default()
        }
    }
}

/// The queues with their shares of the packets of their port and direction.
pub fn shares(queues: impl Iterator<Item = QueueSummary>) -> Vec<QueueSummary> {
    let mut queues: Vec<QueueSummary> = queues.collect();
    for index in 0..queues.len() {
        let (port, direction) = (queues[index].port, &queues[index].direction);
        let same = |other: &&QueueSummary| other.direction == *direction && other.port == port;
        let of_port: u64 = queues.iter().filter(same).map(|other| other.packets).sum();
        queues[index].share = queues[index].packets as f64 / of_port.max(1) as f64;
    }
    queues
}
