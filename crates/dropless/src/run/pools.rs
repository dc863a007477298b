//! Packet buffers: who may hold how many of them back, what pools that makes, and which port takes from which.

use std::num::NonZeroU16;
use std::ops::Add;

use anyhow::Result;
use dataplane::dpdk_io::DpdkBuffers;
use dpdk::{Eal, Pool};
use host::{PortKind, PortUri, XDP_FILL};

use crate::about::ensure_about;
use crate::run::eal::RING_SLOTS;
use crate::run::open::Dpdk;

/// Buffers that keep a burst loop at its full rate: a pool of 2 k halves it. One more would be a pool of twice the size, and where
/// two cores share a pool all of it goes round: of frames of 1518 bytes 16 k no longer fit into a cache of 32 MiB.
const BUFFERS_MIN: u64 = 8191;
/// Cached buffers a worker; with bursts of 64 the pool's ring is touched every eighth burst.
const CACHE: usize = 512;
/// A worker's cache holds half as many again before it gives some back.
const CACHE_HELD: u64 = CACHE as u64 * 3 / 2;
/// What drivers keep under way besides their descriptors, and a little for all that is rare, such as the cache of control, which
/// takes the senders' first bursts. That of rings keeps nothing, and a ring is counted from both ends, though a buffer is in it once.
const DRIVER_HELD: u64 = 4096;
/// An `AF_XDP` socket besides what it sends: what it receives into, and the ring, as large, in which what was sent comes back.
const XDP_SOCKET_HELD: u64 = 2 * XDP_FILL as u64;
/// Slots of a memif ring as a power of two, unless told otherwise.
pub const MEMIF_RING_LOG2: u32 = 10;
/// The header of a buffer and of its place in the pool, and the room before a frame, bytes.
pub const OVERHEAD: u64 = 384;
/// Bytes of an ordinary page.
pub const PAGE: u64 = 4096;

/// Buffers that are held back at once, at most, by who holds them. A pool is as large as the sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// The descriptors and rings of the queues.
    pub rings: u64,
    /// What drivers keep besides.
    pub drivers: u64,
    /// The tasks: bursts, and probes that the injector holds back.
    pub tasks: u64,
    /// Free ones that the workers keep to themselves.
    pub caches: u64,
}

impl Add for Holds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            rings: self.rings + other.rings,
            drivers: self.drivers + other.drivers,
            tasks: self.tasks + other.tasks,
            caches: self.caches + other.caches,
        }
    }
}

impl Holds {
    pub fn total(&self) -> u64 {
        self.rings + self.drivers + self.tasks + self.caches
    }

    /// What a port of `queues` (received from and sent to) holds, where the tasks of a pair of them hold `by_tasks`.
    pub fn of_port(port: &PortUri, queues: (u16, u16), descriptors: u16, by_tasks: usize) -> Self {
        let queues = queues_of(port, queues);
        let pairs = u64::from(queues.0.max(queues.1));
        let descriptors = u64::from(descriptors);
        let in_slots = |slots: u64| (u64::from(queues.0) + u64::from(queues.1)) * slots.max(descriptors);
        let (rings, drivers) = match port.kind {
            PortKind::Kernel { .. } => return Self::default(),
            // Both ends of it are ours.
            PortKind::Ring { size, .. } => (2 * in_slots(u64::from(size.unwrap_or(RING_SLOTS))), 0),
            PortKind::Memif { size_log2, .. } => {
                let slots = 1 << size_log2.map_or(MEMIF_RING_LOG2, u32::from);
                (in_slots(slots), DRIVER_HELD)
            }
            PortKind::Xdp { .. } => (pairs * (descriptors + XDP_SOCKET_HELD), DRIVER_HELD),
            // Of its arguments only the driver knows what they make it hold.
            PortKind::Vdev { .. } => (in_slots(0), 3 * DRIVER_HELD),
            _ => {
                // Drivers raise what is too few for them.
                let raised = in_slots(u64::from(port.kind.traits().descriptors_default));
                (in_slots(0), raised - in_slots(0) + DRIVER_HELD)
            }
        };
        Self {
            rings,
            drivers,
            tasks: pairs * by_tasks as u64,
            caches: 0,
        }
    }
}

/// The queues of a port (received from and sent to) of a run that has so many of each, unless the port has its own number.
fn queues_of(port: &PortUri, queues: (u16, u16)) -> (u16, u16) {
    let own = port.queues.map(NonZeroU16::get);
    (own.unwrap_or(queues.0), own.unwrap_or(queues.1))
}

/// Workers that a run on these ports has at most where nobody says on which cores: one a pair of queues, and as many of its own
/// reflector.
pub fn workers_at_most<'a>(ports: impl Iterator<Item = &'a PortUri>, queues: (u16, u16)) -> usize {
    let pairs = ports.map(|port| queues_of(port, queues));
    2 * pairs.map(|(rx, tx)| usize::from(rx.max(tx))).sum::<usize>()
}

/// A pool to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolPlan {
    /// Its NUMA node; `None` is any.
    pub node: Option<u32>,
    /// What may be held back of it.
    pub holds: Holds,
    pub buffers: u32,
}

impl PoolPlan {
    /// Bytes that it takes, with a room of `room` bytes in each buffer; `whole`: of ordinary pages, and no buffer lies across two
    /// of them if it can help it.
    pub fn bytes(&self, room: usize, whole: bool) -> u64 {
        let (buffers, each) = (u64::from(self.buffers), room as u64 + OVERHEAD);
        match PAGE / each {
            _ if !whole => buffers * each,
            0 => buffers * each.next_multiple_of(PAGE),
            a_page => buffers.div_ceil(a_page) * PAGE,
        }
    }
}

/// The pools of a run, one a NUMA node, and the pool of each port by the port's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolsPlan {
    pub pools: Vec<PoolPlan>,
    /// Indices into `pools`.
    pub of_port: Vec<usize>,
    /// On ordinary pages buffers lie across two of them.
    pub dense: bool,
}

impl PoolsPlan {
    /// Pools for ports with these nodes and holds, and `workers` that use every pool. `asked` is how many buffers the user
    /// wants in each. A port of no node goes with the others.
    pub fn new(ports: &[(Option<u32>, Holds)], workers: usize, asked: Option<u32>) -> Result<Self> {
        let ours = |(_, holds): &&(_, Holds)| *holds != Holds::default();
        let first = ports.iter().filter(ours).find_map(|(node, _)| *node);
        let caches = Holds {
            caches: workers as u64 * CACHE_HELD,
            ..Holds::default()
        };
        let (mut pools, mut of_port): (Vec<PoolPlan>, _) = (Vec::new(), Vec::new());
        for (node, holds) in ports {
            if *holds == Holds::default() {
                // Not of DPDK.
                of_port.push(0);
                continue;
            }
            let node = node.or(first);
            let known = pools.iter().position(|pool| pool.node == node);
            let index = known.unwrap_or_else(|| {
                pools.push(PoolPlan {
                    node,
                    holds: caches,
                    buffers: 0,
                });
                pools.len() - 1
            });
            pools[index].holds = pools[index].holds + *holds;
            of_port.push(index);
        }
        for pool in &mut pools {
            pool.buffers = size(&pool.holds, asked)?;
        }
        Ok(Self {
            pools,
            of_port,
            dense: false,
        })
    }

    /// The same for ordinary pages, which are of no node: all on one, whichever.
    pub fn on_pages(
        ports: &[(Option<u32>, Holds)],
        workers: usize,
        asked: Option<u32>,
        dense: bool,
    ) -> Result<Self> {
        let anywhere: Vec<_> = ports.iter().map(|(_, holds)| (None, *holds)).collect();
        let plan = Self::new(&anywhere, workers, asked)?;
        Ok(Self { dense, ..plan })
    }

    pub fn bytes(&self, room: usize, whole: bool) -> u64 {
        self.pools.iter().map(|pool| pool.bytes(room, whole)).sum()
    }

    pub fn buffers(&self) -> u32 {
        self.pools.iter().map(|pool| pool.buffers).sum()
    }

    pub fn make<'e>(&self, eal: &'e Eal, room: usize) -> Result<Pools<'e>> {
        let make = |plan: &PoolPlan| {
            let name = match plan.node {
                Some(node) if self.pools.len() > 1 => format!("dropless-{node}"),
                _ => "dropless".into(),
            };
            let pool = if self.dense { Pool::dense } else { Pool::new };
            pool(eal, &name, plan.buffers as usize, CACHE, room, plan.node)
        };
        Ok(Pools {
            eal,
            all: self.pools.iter().map(make).collect::<Result<_, _>>()?,
            of_port: self.of_port.clone(),
        })
    }
}

/// Buffers that are under way besides those in the queues, at least.
const UNDER_WAY: u64 = 1024;

fn size(holds: &Holds, asked: Option<u32>) -> Result<u32> {
    let least = holds.rings + UNDER_WAY;
    // One below a power of two is the best size of a DPDK pool, whose ring holds that many.
    let good = |buffers: u64| (buffers + 1).next_power_of_two() - 1;
    let buffers = asked.map_or_else(|| good(holds.total().max(BUFFERS_MIN)), u64::from);
    ensure_about!(
        "--buffers",
        buffers >= least,
        "--buffers {buffers} is too few where the queues alone hold {}, and {UNDER_WAY} are under way; use --buffers {} or fewer descriptors",
        holds.rings,
        good(least)
    );
    u32::try_from(buffers).map_err(|_| {
        anyhow::anyhow!("{buffers} packet buffers are too many; use fewer queues or --descriptors")
    })
}

/// The pools of a run.
pub struct Pools<'e> {
    eal: &'e Eal,
    all: Vec<Pool<'e>>,
    of_port: Vec<usize>,
}

impl<'e> Pools<'e> {
    /// What a port needs of DPDK: its pool, and the environment.
    pub fn of_port(&self, port: usize) -> Dpdk<'_, 'e> {
        Dpdk {
            eal: self.eal,
            pool: &self.all[self.index_of(port)],
        }
    }

    pub fn eal(&self) -> &'e Eal {
        self.eal
    }

    /// Which of the pools port `port` takes its buffers from.
    pub fn index_of(&self, port: usize) -> usize {
        self.of_port.get(port).copied().unwrap_or(0)
    }

    pub fn all(&self) -> &[Pool<'e>] {
        &self.all
    }

    pub fn all_mut(&mut self) -> &mut [Pool<'e>] {
        &mut self.all
    }
}

impl<'p, 'e> Dpdk<'p, 'e> {
    /// Where a task of this port takes fresh buffers from; `is_far`: what it writes another core reads.
    pub fn buffers(self, is_far: bool) -> DpdkBuffers<'p, 'e> {
        DpdkBuffers::new(self.eal, self.pool, is_far)
    }
}

/// A null port makes frames from whatever its buffers hold: so that there is something to look at, they hold a probe.
pub fn prefill(pool: &Pool<'_>, ports: &[PortUri]) -> Result<()> {
    let size = ports.iter().find_map(|port| match port.kind {
        PortKind::Null { size, .. } => Some(size.unwrap_or(60)),
        _ => None,
    });
    let Some(size) = size else { return Ok(()) };
    // A longer frame ends in zeros.
    let size = (size as usize + wire::FCS_LEN).min(wire::MAX_FRAME_SIZE);
    let template = wire::Template::new(&wire::TemplateSpec::plain(size))?;
    pool.prefill(template.bytes());
    Ok(())
}

#[cfg(test)]
mod tests;
