//! Reading the table beside its writer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::fence;

use measure::Ticks;
use rules::Count;

use super::key::{FlowKey, Words};
use super::table::{Shared, Sum};

/// How often an entry is looked at again that got another flow meanwhile. A writer that does nothing else gives away an
/// entry far more rarely than this reads it.
const LOOKS: usize = 8;

/// A flow, and what was counted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Which.
    pub key: FlowKey,
    /// How much, without FCS.
    pub count: Count,
    /// When it was seen first, since it has its place in the table.
    pub first: Ticks,
    /// And last.
    pub last: Ticks,
}

/// All that was counted. While its worker counts, one part may be newer than another; at its end
/// `seen = flows + evicted + other`, to the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSums {
    /// Every packet that was noted.
    pub seen: Count,
    /// Of flows that were forgotten for want of room.
    pub evicted: Count,
    /// How often one was: a flow that came again may count again.
    pub evictions: u64,
    /// What is no flow: not IP, or malformed.
    pub other: Count,
}

/// The flows with most bytes, and those with most packets, the largest first; a part of all flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Talkers {
    /// By bytes.
    pub by_bytes: Vec<Flow>,
    /// By packets.
    pub by_packets: Vec<Flow>,
    /// How many flows there are in the table.
    pub flows: usize,
}

/// Reads a [`super::FlowTable`], from any thread.
#[derive(Clone, Debug)]
pub struct FlowReader(Arc<Shared>);

impl FlowReader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// The sums.
    pub fn sums(&self) -> FlowSums {
        let shared = &self.0;
        FlowSums {
            seen: shared.seen.get(),
            evicted: shared.evicted.get(),
            evictions: shared.evictions.get(),
            other: shared.other.get(),
        }
    }

    /// The flows in the table. What is told of one may be a moment old, and is never of two.
    pub fn flows(&self) -> impl Iterator<Item = Flow> {
        (0..self.0.entries.len()).filter_map(|at| self.read(at))
    }

    /// The `most` flows with most bytes, and with most packets, in one walk over the table. Allocates no more than these.
    pub fn talkers(&self, most: usize) -> Talkers {
        let (mut by_bytes, mut by_packets) = (Largest::new(most), Largest::new(most));
        let mut flows = 0;
        for flow in self.flows() {
            flows += 1;
            by_bytes.offer(flow, (flow.count.bytes, flow.count.packets));
            by_packets.offer(flow, (flow.count.packets, flow.count.bytes));
        }
        Talkers {
            by_bytes: by_bytes.finish(),
            by_packets: by_packets.finish(),
            flows,
        }
    }

    /// What lies in this entry; `None` if that is nothing, or one flow after another.
    fn read(&self, at: usize) -> Option<Flow> {
        let (entry, birth) = (&self.0.entries[at], &self.0.births[at]);
        for _ in 0..LOOKS {
            let generation = birth.generation.load(Acquire);
            if generation == 0 {
                return None;
            }
            let key: Words = std::array::from_fn(|word| entry.key[word].load(Relaxed));
            let flow = Flow {
                key: FlowKey::from_words(&key),
                count: Count {
                    packets: entry.packets.get(),
                    bytes: entry.bytes.get(),
                },
                first: Ticks(birth.first.get()),
                last: Ticks(entry.last.get()),
            };
            // What was read before was read before this.
            fence(Acquire);
            if generation % 2 == 0 && birth.generation.load(Relaxed) == generation {
                // Its first packet is being counted.
                return (flow.count.packets > 0).then_some(flow);
            }
            std::hint::spin_loop();
        }
        None
    }
}

impl Sum {
    fn get(&self) -> Count {
        Count {
            packets: self.packets.get(),
            bytes: self.bytes.get(),
        }
    }
}

/// What flows are compared by: two numbers, and then the flow itself, so that the order is that of no table.
type Rank = ((u64, u64), Reverse<FlowKey>);

/// The largest of all that was offered.
struct Largest {
    most: usize,
    /// The smallest on top.
    heap: BinaryHeap<Reverse<Ranked>>,
}

struct Ranked(Rank, Flow);

impl Largest {
    fn new(most: usize) -> Self {
        Self {
            most,
            heap: BinaryHeap::with_capacity(most + 1),
        }
    }

    fn offer(&mut self, flow: Flow, by: (u64, u64)) {
        let rank = (by, Reverse(flow.key));
        if self.heap.len() == self.most && self.heap.peek().is_none_or(|Reverse(least)| rank <= least.0) {
            return;
        }
        self.heap.push(Reverse(Ranked(rank, flow)));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    fn finish(self) -> Vec<Flow> {
        let sorted = self.heap.into_sorted_vec();
        sorted.into_iter().map(|Reverse(ranked)| ranked.1).collect()
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
