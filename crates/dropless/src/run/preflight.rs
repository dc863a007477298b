//! What can be refused before anything starts: ports, frame sizes, cores, memory.

use std::num::NonZeroU16;

use anyhow::{Result, bail, ensure};
use host::cores;
use host::{Medium, PortUri, Prepared, Sys};

use crate::plan::MachinePlan;
use crate::run::Needs;
use crate::run::eal::Memory;

/// Buffers that keep a burst loop at its full rate: a pool of 2 k halves it.
const BUFFERS_MIN: u32 = 16384;
/// Cached buffers a worker; with bursts of 64 the pool's ring is touched every eighth burst.
pub(super) const CACHE: usize = 512;
/// What EAL needs besides packet buffers, MiB.
const EAL_MIB: u64 = 64;

/// What was checked, and what follows for the start.
pub struct Preflight {
    /// Ports, checked; `mac:` has become the device it names.
    pub ports: Vec<PortUri>,
    /// Descriptors a queue.
    pub descriptors: u16,
    /// Buffers of the pool.
    pub buffers: u32,
    /// Room of one buffer, bytes.
    pub room: usize,
    /// Pages.
    pub memory: Memory,
    /// NUMA node of the first port that has one.
    pub numa_node: Option<u32>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Checks everything that can be checked before EAL starts.
pub fn check(plan: &MachinePlan, needs: &Needs) -> Result<Preflight> {
    let (queues, largest_frame) = ((needs.rx_queues, needs.tx_queues), needs.largest_frame);
    let mut sys = Sys::live();
    sys.force = plan.force;
    let mut ports = plan.ports.clone();
    for port in &mut ports {
        // Each is a socket on a queue of the interface, which must have as many.
        let asked = queues.0.max(queues.1);
        if port.kind.traits().is_socket_per_queue && asked > 1 && port.queues.is_none() {
            port.queues = NonZeroU16::new(asked);
        }
    }
    let prepared: Vec<Prepared> = host::check_all(&ports, &sys)?;
    for port in &prepared {
        check_mtu(&sys, port, largest_frame)?;
    }
    if !plan.cores.is_empty() {
        cores::check(&sys, &plan.cores)?;
    }
    let mut notes: Vec<String> = prepared
        .iter()
        .flat_map(|port| &port.notes)
        .map(ToString::to_string)
        .collect();
    let ports = plan.ports.len() as u32 * 2;
    let own = plan
        .ports
        .iter()
        .filter_map(|port| port.queues)
        .map(NonZeroU16::get)
        .max()
        .unwrap_or(0);
    let queues = (queues.0.max(own), queues.1.max(own));
    let descriptors = u32::from(plan.descriptors) * (u32::from(queues.0) + u32::from(queues.1)) * ports;
    let needed = descriptors + (CACHE as u32 + 1024) * 4 * ports;
    // One below a power of two is the best size of a DPDK pool, whose ring holds that many.
    let buffers = plan
        .buffers
        .unwrap_or_else(|| (needed.max(BUFFERS_MIN) + 1).next_power_of_two() - 1);
    ensure!(
        buffers >= descriptors + 1024,
        "--buffers {buffers} is less than the queues alone hold ({descriptors}); use --buffers {} or fewer descriptors",
        (descriptors + 1025).next_power_of_two() - 1
    );
    let room = largest_frame.next_multiple_of(64).max(2048);
    let bytes = u64::from(buffers) * (room as u64 + 384);
    let hungry = prepared
        .iter()
        .find(|port| port.memory == host::Memory::HugePages);
    let needs_huge = hungry.is_some();
    if let (Some(port), true) = (hungry, plan.no_huge) {
        bail!(
            "--no-huge does not go with port {}, which needs hugepages; leave --no-huge out, or {}",
            port.uri,
            if port.uri.kind.traits().medium == Medium::Peer {
                "zero-copy"
            } else {
                "use another port"
            }
        );
    }
    let free = host::hugepages::free_bytes(&sys, None);
    let huge_fits = free >= bytes + (16 << 20);
    if needs_huge && !huge_fits {
        host::hugepages::check(
            &sys,
            &format!("{buffers} packet buffers"),
            bytes + (16 << 20),
            None,
        )?;
    }
    let memory = if needs_huge || (huge_fits && !plan.no_huge) {
        Memory::Huge
    } else {
        check_memory(buffers, bytes + (EAL_MIB << 20))?;
        Memory::Ordinary {
            mib: (bytes >> 20) + EAL_MIB,
        }
    };
    if memory != Memory::Huge && !plan.no_huge {
        notes.push(format!(
            "ordinary pages: {} MiB of hugepages free, {} needed; faster with: echo {} > /proc/sys/vm/nr_hugepages",
            free >> 20, (bytes >> 20) + 16, (bytes >> 21) + 32
        ));
    }
    Ok(Preflight {
        ports: prepared.iter().map(|port| port.uri.clone()).collect(),
        descriptors: plan.descriptors,
        buffers,
        room,
        memory,
        numa_node: prepared.iter().find_map(|port| port.numa_node),
        notes,
    })
}

/// A frame that the interface below a port will not carry is refused here, not packet by packet.
fn check_mtu(sys: &Sys, port: &Prepared, largest_frame: usize) -> Result<()> {
    let Some(name) = &port.interface else {
        return Ok(());
    };
    let shares = port.uri.kind.traits().medium == Medium::SharedInterface;
    let mtu = host::interface::interface(sys, name)
        .and_then(|interface| interface.mtu)
        .filter(|_| shares);
    let Some(mtu) = mtu else { return Ok(()) };
    // Two VLAN tags are not part of what the kernel calls the MTU.
    let carries = mtu as usize + 18 + 8;
    ensure!(
        largest_frame <= carries,
        "frame size {largest_frame} is above what {} carries with its MTU of {mtu}; use --size {} or less, or: ip link set {name} mtu {}",
        port.uri,
        mtu + 18,
        largest_frame - 18
    );
    Ok(())
}

/// Ordinary pages are taken at start: more than there are would fail in DPDK's words, or wake the OOM killer.
fn check_memory(buffers: u32, bytes: u64) -> Result<()> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| {
        line.strip_prefix("MemAvailable:")?
            .trim()
            .strip_suffix(" kB")?
            .parse::<u64>()
            .ok()
    });
    let Some(available) = available else { return Ok(()) };
    ensure!(
        bytes >> 10 <= available,
        "{buffers} packet buffers need {} MiB, and {} MiB of memory are available; use fewer --buffers, queues or --descriptors",
        bytes >> 20,
        available >> 10
    );
    Ok(())
}

/// What `host.json` says.
pub fn host_facts() -> host::Facts {
    host::facts(
        &Sys::live(),
        serde_json::json!({ "name": "dropless", "version": env!("CARGO_PKG_VERSION") }),
    )
}
