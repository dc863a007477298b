//! The packet buffers at the end of a run: back, kept by a driver that is known for it, or leaked.

use dpdk::Pool;
use host::PortKind;
use measure::{Note, PoolSummary};

use crate::run::open::OpenPort;
use crate::run::pools::{MEMIF_RING_LOG2, Pools};

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
    /// Of each pool, by the drivers of the ports that take from it.
    pub fn by(ports: &[OpenPort<'_>], pools: Option<&Pools<'_>>) -> Vec<Self> {
        let Some(pools) = pools else { return Vec::new() };
        let mut kept = vec![Self::default(); pools.all().len()];
        for (index, open) in ports.iter().enumerate() {
            kept[pools.index_of(index)].add(open);
        }
        kept
    }

    fn add(&mut self, open: &OpenPort<'_>) {
        for port in open.devices().iter().filter(|port| port.keeps_buffers()) {
            let granted = port.granted();
            self.under_way += u64::from(granted.tx_queues) * u64::from(granted.tx_descriptors);
        }
        self.at_start += open.kept;
        let Some(granted) = open.granted() else { return };
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
            self.posted += u64::from(granted.rx_queues) * ring * (losses + 1);
            self.with_peers += u64::from(granted.tx_queues) * ring * losses;
        }
    }
}

/// The pool once everything that held a buffer is gone.
struct PoolCount {
    summary: PoolSummary,
    /// Where lost buffers were last seen: a leak is a reason to distrust the run.
    leak: Option<String>,
    /// Buffers that are not back and no leak: sent, and not yet taken back from the kernel.
    held: u64,
    /// What to tell of buffers that are not back and no leak.
    note: Option<Note>,
}

/// All pools, each counted by itself.
#[derive(Default)]
pub struct PoolCounts(Vec<PoolCount>);

impl PoolCounts {
    /// Counts the pools, where there are any. The ports are closed.
    pub fn count(pools: Option<&mut Pools<'_>>, kept: Vec<Kept>) -> Self {
        let pools = pools.map_or(&mut [][..], Pools::all_mut);
        let counts = pools.iter_mut().zip(kept).map(|(pool, kept)| count(pool, kept));
        Self(counts.collect())
    }

    /// Each pool, and where its lost buffers were last seen.
    pub fn evidence(&self) -> Vec<(PoolSummary, Option<String>)> {
        let pools = self.0.iter();
        pools
            .map(|pool| (pool.summary.clone(), pool.leak.clone()))
            .collect()
    }

    /// All of them in one.
    pub fn summary(&self) -> PoolSummary {
        let names: Vec<&str> = self.0.iter().map(|pool| &*pool.summary.name).collect();
        let mut all = PoolSummary {
            name: names.join(", "),
            ..PoolSummary::default()
        };
        for PoolCount { summary, .. } in &self.0 {
            all.size += summary.size;
            all.in_use_at_start += summary.in_use_at_start;
            all.in_use_at_end += summary.in_use_at_end;
            all.leaked += summary.leaked;
        }
        all
    }

    /// Buffers that are not back and no leak.
    pub fn held(&self) -> u64 {
        self.0.iter().map(|pool| pool.held).sum()
    }

    /// What to tell of those.
    pub fn notes(&self) -> impl Iterator<Item = Note> + '_ {
        self.0.iter().filter_map(|pool| pool.note.clone())
    }
}

fn count(pool: &mut Pool<'_>, kept: Kept) -> PoolCount {
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
        let text = format!("{memif} buffers were in the rings of a zero-copy memif when its link ended: DPDK's driver does not give them back");
        Note::new("buffers_in_memif", text)
    });
    let held = over - leaked;
    let note = (held > 0)
        .then(|| Note::new("buffers_with_kernel", format!("{held} sent buffers were not back when the driver was closed, which does not wait for those that are still with the kernel; a leak of so few would look the same")));
    PoolCount {
        summary,
        leak,
        held,
        note: note.or(in_rings),
    }
}

/// How many of the missing buffers a zero-copy memif kept: empty ones in its receiving rings, and what it had sent to
/// peers that went away.
fn in_memif_rings(pool: &mut Pool<'_>, kept: Kept) -> u64 {
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
