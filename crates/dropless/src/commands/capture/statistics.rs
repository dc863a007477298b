//! What the files and streams of a capture end with: what each interface has counted.

use std::sync::{Arc, OnceLock};

use capture::pcapng::Statistics;
use dataplane::capture::{CaptureCounters, InterfaceDrops};

use super::active::CaptureSide;
use crate::run::clock::unix_ns;

/// The counters of all interfaces, to be told at any time, by any thread.
#[derive(Clone, Default)]
pub struct Interfaces {
    interfaces: Vec<Counted>,
    /// When the capture began, ns since the epoch of Unix.
    begun_ns: Arc<OnceLock<u64>>,
}

/// An interface, and its queues.
#[derive(Clone)]
struct Counted {
    queues: Vec<Arc<CaptureCounters>>,
    drops: Arc<InterfaceDrops>,
}

impl Interfaces {
    /// Those of the ports that lost `drops`, by their queues.
    pub fn new(drops: &[Arc<InterfaceDrops>], sides: &[CaptureSide]) -> Self {
        let queues = |port| sides.iter().filter(move |side| side.place.port == port);
        let interfaces = drops.iter().enumerate().map(|(port, drops)| Counted {
            queues: queues(port).map(|side| Arc::clone(&side.counters)).collect(),
            drops: Arc::clone(drops),
        });
        Self {
            interfaces: interfaces.collect(),
            begun_ns: Arc::default(),
        }
    }

    /// The capture began then, ns since the epoch of Unix.
    pub fn begin(&self, begun_ns: u64) {
        let _ = self.begun_ns.set(begun_ns);
    }

    /// The blocks that say what was counted since the capture began. What was missed is what was read of the ports last.
    pub fn so_far(&self) -> Vec<u8> {
        let now_ns = unix_ns();
        let begun_ns = self.begun_ns.get().map_or(now_ns, |begun| (*begun).min(now_ns));
        self.blocks((begun_ns, now_ns), |port| self.interfaces[port].drops.missed())
    }

    /// The same of a time in ns since the epoch of Unix, and what `missed` says of each port.
    pub fn blocks(&self, times_ns: (u64, u64), missed: impl Fn(usize) -> u64) -> Vec<u8> {
        let blocks = self.interfaces.iter().enumerate().map(|(port, counted)| {
            let statistics = counted.statistics(times_ns, missed(port));
            statistics.block(port as u32)
        });
        blocks.flatten().collect()
    }
}

impl Counted {
    fn statistics(&self, (from_ns, to_ns): (u64, u64), missed: u64) -> Statistics {
        let sum = |of: fn(&CaptureCounters) -> u64| self.queues.iter().map(|queue| of(queue)).sum::<u64>();
        // Workers go on counting: each number is read before the one that it is a part of.
        let unwanted = sum(|counters| counters.written.unwanted.get());
        let dropped = sum(|counters| counters.written.refused.get());
        let left_out = sum(|counters| counters.received.filtered.get() + counters.received.sampled_out.get());
        let received = sum(|counters| counters.received.frames.get());
        let accepted = received.saturating_sub(left_out);
        Statistics {
            from_ns,
            to_ns,
            received: received + missed,
            interface_dropped: missed,
            accepted,
            dropped,
            delivered: accepted.saturating_sub(dropped + unwanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::queues::QueuePlace;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
    }

    /// The option `code` of a block of statistics, a number of 64 bits.
    fn option(block: &[u8], code: u32) -> u64 {
        let mut at = 20;
        while word(block, at) & 0xFFFF != code {
            at += 4 + (word(block, at) >> 16) as usize;
        }
        u64::from(word(block, at + 4)) | u64::from(word(block, at + 8)) << 32
    }

    #[test]
    fn what_was_counted_is_told_of_each_port() {
        let drops = [Arc::<InterfaceDrops>::default(), Arc::default()];
        let side = |port| CaptureSide {
            place: QueuePlace {
                port,
                queue: 0,
                core: 0,
            },
            direction: "rx",
            counters: Arc::default(),
        };
        let sides = [side(0), side(1), side(1)];
        for (number, side) in (1..).zip(&sides) {
            let (received, written) = (&side.counters.received, &side.counters.written);
            received.frames.add(100 * number);
            received.filtered.add(10);
            received.sampled_out.add(5);
            written.refused.add(3);
            written.unwanted.add(2);
        }
        drops[1].set_missed(40);
        let interfaces = Interfaces::new(&drops, &sides);
        let before = interfaces.so_far();
        interfaces.begin(7);
        let blocks = interfaces.so_far();
        assert_eq!(blocks.len(), before.len(), "a file knows how long its end is");
        let (first, second) = blocks.split_at(word(&blocks, 4) as usize);
        let told = |block: &[u8]| (4..9).map(|code| option(block, code)).collect::<Vec<_>>();
        assert_eq!((word(first, 0), word(first, 8), word(second, 8)), (5, 0, 1));
        assert_eq!(told(first), [100, 0, 85, 3, 80]);
        assert_eq!(told(second), [540, 40, 470, 6, 460]);
        // The halves of a time are each a word, the upper one first.
        assert_eq!(option(first, 2), 7 << 32);
    }
}
