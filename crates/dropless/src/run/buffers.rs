//! The packet buffers at the end of a run: back, kept by a driver that is known for it, or leaked.

use dpdk::Pool;
use host::PortKind;
use measure::PoolSummary;

use crate::run::open::OpenPort;

/// A ring of the memif driver has this many slots, as a power of two, unless told otherwise.
const MEMIF_RING_LOG2: u32 = 10;

/// What drivers are known to keep of the pool when their ports are closed.
#[derive(Clone, Copy, Default)]
pub struct Kept {
    /// Buffers they took at the start.
    at_start: u64,
    /// Most that they may not have taken back from the kernel yet, after sending.
    under_way: u64,
    /// Most that a zero-copy memif had put into its rings, empty, for its peer to write to.
    posted: u64,
    /// Most that a zero-copy memif had given to a peer that went away.
    with_peers: u64,
}

impl Kept {
    /// By the drivers of these ports.
    pub fn by(ports: &[OpenPort<'_>]) -> Self {
        let mut kept = Self::default();
        for open in ports {
            for port in open.devices().iter().filter(|port| port.keeps_buffers()) {
                let granted = port.granted();
                kept.under_way += u64::from(granted.tx_queues) * u64::from(granted.tx_descriptors);
            }
            kept.at_start += open.kept;
            let Some(granted) = open.granted() else { continue };
            if let PortKind::Memif {
                zero_copy: true,
                server: false,
                size_log2,
                ..
            } = open.uri.kind
            {
                let (ring, losses) = (
                    1_u64 << size_log2.map_or(MEMIF_RING_LOG2, u32::from),
                    u64::from(open.tending.losses),
                );
                kept.posted += u64::from(granted.rx_queues) * ring * (losses + 1);
                kept.with_peers += u64::from(granted.tx_queues) * ring * losses;
            }
        }
        kept
    }
}

/// The pool once everything that held a buffer is gone.
#[derive(Default)]
pub struct PoolCount {
    /// The count.
    pub summary: PoolSummary,
    /// Where lost buffers were last seen: a leak is a reason to distrust the run.
    pub leak: Option<String>,
    /// Buffers that are not back and no leak: sent, and not yet taken back from the kernel.
    pub held: u64,
    /// What to tell of buffers that are not back and no leak.
    pub note: Option<String>,
}

/// Counts the pool, where there is one. The ports are closed.
pub fn count(pool: Option<&Pool<'_>>, kept: Kept) -> PoolCount {
    let Some(pool) = pool else {
        return PoolCount::default();
    };
    let in_use = pool.in_use() as u64;
    let memif = in_memif_rings(pool, kept);
    let over = in_use.saturating_sub(kept.at_start + memif);
    let leaked = if over > kept.under_way { over } else { 0 };
    let summary = PoolSummary {
        name: pool.name().into(),
        size: pool.size() as u64,
        in_use_at_start: kept.at_start,
        in_use_at_end: in_use,
        leaked,
    };
    let leak = (leaked > 0).then(|| {
        let traces = pool.audit();
        let seen: Vec<String> = traces
            .iter()
            .take(3)
            .map(|trace| match trace.port {
                Some(port) => format!("one received on port {port}, {} bytes", trace.len),
                None => format!("one made for sending, {} bytes", trace.len),
            })
            .collect();
        seen.join("; ")
    });
    let in_rings = (memif > 0).then(|| {
        format!("{memif} buffers were in the rings of a zero-copy memif when its link ended: DPDK's driver does not give them back")
    });
    let held = over - leaked;
    let note = (held > 0)
        .then(|| format!("{held} sent buffers were still with the kernel when the driver was closed, which does not wait for them"));
    PoolCount {
        summary,
        leak,
        held,
        note: note.or(in_rings),
    }
}

/// How many of the missing buffers a zero-copy memif kept: empty ones in its receiving rings, and what it had sent to
/// peers that went away.
fn in_memif_rings(pool: &Pool<'_>, kept: Kept) -> u64 {
    if kept.posted == 0 {
        return 0;
    }
    let traces = pool.audit();
    let empty = traces
        .iter()
        .filter(|trace| trace.len == 0 && trace.port.is_none())
        .count() as u64;
    let empty = empty.min(kept.posted);
    empty + (traces.len() as u64 - empty).min(kept.with_peers)
}
