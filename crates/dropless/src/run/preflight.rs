//! What can be refused before anything starts: ports, frame sizes, cores, memory.

use std::num::NonZeroU16;

use anyhow::{Result, bail, ensure};
use host::cores;
use host::{Medium, PortKind, PortUri, Prepared, Sys, Warning, quoted};
use measure::Note;

use crate::about::{About as _, bail_about};
use crate::plan::MachinePlan;
use crate::run::eal::Memory;
use crate::run::pools::{Holds, OVERHEAD, PAGE, PoolPlan, PoolsPlan, workers_at_most};
use crate::run::{Needs, cut_in_file};

/// What EAL needs besides packet buffers, MiB.
const EAL_MIB: u64 = 64;
/// Hugepages that EAL needs besides packet buffers, bytes.
const SPARE: u64 = 16 << 20;

/// What was checked, and what follows for the start.
pub struct Preflight {
    /// Ports, checked; `mac:` has become the device it names.
    pub ports: Vec<PortUri>,
    pub descriptors: u16,
    pub pools: PoolsPlan,
    /// Room of one buffer, bytes.
    pub room: usize,
    pub memory: Memory,
    /// NUMA node of the first port that has one.
    pub numa_node: Option<u32>,
    pub notes: Vec<Note>,
    /// Ports in whose way a dead server's socket is.
    pub abandoned: Vec<Prepared>,
}

/// Checks everything that can be checked before EAL starts.
pub fn check(plan: &MachinePlan, needs: &Needs) -> Result<Preflight> {
    let queues = (needs.rx_queues, needs.tx_queues);
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
    // A run that only looks into another one has none.
    let prepared: Vec<Prepared> = if ports.is_empty() {
        Vec::new()
    } else {
        host::check_all(&ports, &sys).about("--port")?
    };
    for port in &prepared {
        check_mtu(&sys, port, needs)?;
    }
    if !plan.cores.is_empty() {
        cores::check(&sys, &plan.cores).about("--cores")?;
    }
    let each = prepared.iter();
    let mut notes: Vec<Note> = each.flat_map(|port| notes_of(&sys, port, needs)).collect();
    let held = |port: &Prepared| {
        let holds = Holds::of_port(&port.uri, queues, plan.descriptors, needs.held_per_queue);
        (port.numa_node, holds)
    };
    let holds: Vec<_> = prepared.iter().map(held).collect();
    // Each worker uses every pool.
    let workers = match plan.cores.len() {
        0 => {
            let uris = prepared.iter().map(|port| &port.uri);
            cores::allowed(&sys).len().min(workers_at_most(uris, queues))
        }
        chosen => chosen,
    };
    let mut pools = PoolsPlan::new(&holds, workers, plan.buffers)?;
    let room = buffer_room(&sys, &prepared, needs)?;
    let bytes = pools.bytes(room, false);
    let mut each = prepared.iter();
    let hungry = each.find(|port| port.memory == host::Memory::HugePages);
    let needs_huge = hungry.is_some();
    if let (Some(port), true) = (hungry, plan.no_huge) {
        return refuse_no_huge(port);
    }
    let free = host::hugepages::free_bytes(&sys, None);
    let wanted = |pool: &PoolPlan| pool.bytes(room, false) + SPARE;
    let fits = |pool: &PoolPlan| host::hugepages::free_bytes(&sys, pool.node) >= wanted(pool);
    let huge_fits = free >= bytes + SPARE && pools.pools.iter().all(fits);
    if needs_huge && !huge_fits {
        for pool in &pools.pools {
            let what = format!("{} packet buffers", pool.buffers);
            host::hugepages::check(&sys, &what, wanted(pool), pool.node)?;
        }
    }
    if plan.dpdk_tools {
        host::hugepages::check(&sys, "--dpdk-tools", bytes + SPARE, None).about("--dpdk-tools")?;
    }
    let memory = if needs_huge || (huge_fits && !plan.no_huge) {
        if plan.dpdk_tools {
            Memory::Shared
        } else {
            Memory::Huge
        }
    } else {
        let dense = plan.eal.is_none() && prepared.iter().all(may_cross_pages);
        pools = PoolsPlan::on_pages(&holds, workers, plan.buffers, dense)?;
        let bytes = pools.bytes(room, !dense);
        let wants = format!("{} packet buffers need", pools.buffers());
        let advice = "use fewer --buffers, queues or --descriptors";
        memory_for(&wants, bytes + (EAL_MIB << 20), advice)?;
        Memory::Ordinary {
            mib: (bytes >> 20) + EAL_MIB,
        }
    };
    if matches!(memory, Memory::Ordinary { .. }) && !plan.no_huge {
        let wanted = pools.bytes(room, false) + SPARE;
        notes.push(ordinary_pages(&sys, free, wanted));
    }
    Ok(Preflight {
        ports: prepared.iter().map(|port| port.uri.clone()).collect(),
        descriptors: plan.descriptors,
        pools,
        room,
        memory,
        numa_node: prepared.iter().find_map(|port| port.numa_node),
        notes,
        abandoned: prepared
            .into_iter()
            .filter(|port| port.abandoned.is_some())
            .collect(),
    })
}

/// Why a run with so many free bytes of hugepages, and a wish for so many, has none, and what would change that.
fn ordinary_pages(sys: &Sys, free: u64, wanted: u64) -> Note {
    let needed = format!("{} needed", wanted >> 20);
    let free = free >> 20;
    let text = if let Some(limit) = host::hugepages::forbidden(sys, wanted, None) {
        format!(
            "ordinary pages: this process's cgroup may take {free} MiB of hugepages ({}), {needed}; {}",
            limit.file,
            host::hugepages::RAISE
        )
    } else {
        let more = host::hugepages::reservation(&host::hugepages::pools(sys), wanted, None);
        let faster = more.map_or_else(String::new, |more| {
            format!("; faster with: echo {} > {}", more.pages, more.file)
        });
        format!("ordinary pages: {free} MiB of hugepages free, {needed}{faster}")
    };
    Note::new("ordinary_pages", text)
}

/// What does not stop a port: of one that takes all frames, also that it does not see the tags of some, or their lengths.
fn notes_of(sys: &Sys, port: &Prepared, needs: &Needs) -> Vec<Note> {
    let interface = match &port.uri.kind {
        PortKind::Xdp { interface, .. } if needs.takes_all => host::interface::interface(sys, interface),
        _ => None,
    };
    let tags = interface.and_then(|interface| host::offloads::tags_warning(sys, &interface));
    let note = |warning: &Warning| Note::new(warning.code, warning.to_string());
    let cut = needs.takes_all.then(|| cut_in_file::note(&port.uri)).flatten();
    port.notes.iter().chain(&tags).map(note).chain(cut).collect()
}

/// Of a port whose driver wants what the user keeps from it.
fn refuse_no_huge<T>(port: &Prepared) -> Result<T> {
    bail_about!(
        "--no-huge",
        "--no-huge does not go with port {}, which needs hugepages; leave --no-huge out, or {}",
        port.uri,
        match port.uri.kind.traits().medium {
            Medium::Peer => "zero-copy",
            _ => "use another port",
        }
    )
}

/// What `AF_PACKET` puts before a frame in its ring (net/packet/af_packet.c, `tpacket_rcv`, with a `tpacket2_hdr`).
const PACKET_HEAD: usize = 66;
/// The length at which the ring of a `packet:` port cuts frames, where buffers have this room.
pub const fn packet_cuts_at(room: usize) -> usize {
    room - PACKET_HEAD
}

/// What an `AF_XDP` socket leaves free before a frame (`XDP_PACKET_HEADROOM` of linux/bpf.h), in the room of its buffer.
const XDP_HEADROOM: usize = 256;
/// The most room that leaves a buffer in one page with all that is around it: the kernel takes no larger ones
/// (net/xdp/xdp_umem.c, `xdp_umem_reg`).
const XDP_ROOM_MAX: usize = (PAGE - OVERHEAD) as usize;

/// What of a frame the MTU does not count: the header, the FCS, and two VLAN tags.
const BESIDE_MTU: usize = 18 + 8;
/// Above this an MTU is no network's: a loopback has 64 KiB.
const JUMBO_MAX: usize = 16 << 10;

/// Whether the port's driver copies, or at least hands no buffer to a device, to which two ordinary pages are not one piece: `xdp:` may,
/// and who knows of a driver that the user names.
fn may_cross_pages(port: &Prepared) -> bool {
    let kind = &port.uri.kind;
    !matches!(kind, PortKind::Xdp { .. }) && kind.traits().driver.is_some()
}

/// The room that buffers need for what is sent, and for the ports.
fn buffer_room(sys: &Sys, ports: &[Prepared], needs: &Needs) -> Result<usize> {
    let rooms = ports.iter().filter_map(|port| port_room(sys, port, needs));
    let mut room = rooms.fold(needs.largest_frame.next_multiple_of(64).max(2048), usize::max);
    let is_packet = |port: &Prepared| matches!(port.uri.kind, PortKind::Packet { .. });
    if room > 2048 && ports.iter().any(is_packet) {
        // The kernel lays frames in blocks of whole pages, and the driver expects them without a gap.
        room = room.next_multiple_of(4096);
    }
    let xdp = ports
        .iter()
        .find(|port| matches!(port.uri.kind, PortKind::Xdp { .. }));
    if let Some(port) = xdp.filter(|_| room > XDP_ROOM_MAX) {
        let longest = XDP_ROOM_MAX - XDP_HEADROOM;
        bail!(
            "port {} takes frames of up to {longest} bytes, for each lies in one page, and the buffers of this run are to be of {room}; use frames of {longest} bytes or less, or: ip link set {} mtu {}",
            port.uri,
            port.interface.as_deref().unwrap_or("INTERFACE"),
            longest - BESIDE_MTU
        );
    }
    Ok(room)
}

/// The room that a port's driver, or its peer's, needs in buffers whatever is sent.
fn port_room(sys: &Sys, port: &Prepared, needs: &Needs) -> Option<usize> {
    match port.uri.kind {
        // What fills its place in the ring to the last byte may have been longer, and nobody would say that it was cut.
        PortKind::Packet { .. } => longest_frame(sys, port, needs).map(|longest| longest + PACKET_HEAD + 1),
        // The kernel drops what is longer.
        PortKind::Xdp { .. } => {
            longest_frame(sys, port, needs).map(|longest| (longest + XDP_HEADROOM).next_multiple_of(64))
        }
        // Its driver says that a frame is so long, and does not look at the buffer.
        PortKind::Null { size, .. } => size.map(|size| size as usize),
        // The peer's driver writes there, some without a look at our lengths: a whole buffer of its own, and for a later part of
        // a frame also what is headroom before the first.
        PortKind::Memif { zero_copy: true, .. } => Some(2048 + dpdk::HEADROOM),
        _ => None,
    }
}

/// The longest frame that comes to a port on an interface of the kernel.
fn longest_frame(sys: &Sys, port: &Prepared, needs: &Needs) -> Option<usize> {
    let name = port.interface.as_deref()?;
    let mtu = host::interface::interface(sys, name).and_then(|interface| interface.mtu);
    let longest = mtu
        .filter(|_| needs.takes_all)
        .map(|mtu| mtu as usize + BESIDE_MTU);
    let longest = longest.filter(|longest| *longest <= JUMBO_MAX);
    Some(longest.unwrap_or(0).max(needs.largest_frame))
}

/// A frame that the interface below a port will not carry is refused here, not packet by packet.
fn check_mtu(sys: &Sys, port: &Prepared, needs: &Needs) -> Result<()> {
    let Some(name) = &port.interface else {
        return Ok(());
    };
    let shares = port.uri.kind.traits().medium == Medium::SharedInterface;
    let mtu = host::interface::interface(sys, name)
        .and_then(|interface| interface.mtu)
        .filter(|_| shares);
    let Some(mtu) = mtu else { return Ok(()) };
    let largest_frame = needs.largest_frame;
    let wanted = needs.mtu.unwrap_or(largest_frame.saturating_sub(BESIDE_MTU));
    ensure!(
        wanted <= mtu as usize,
        "frame size {largest_frame} is above what {} carries with its MTU of {mtu}; use frames of {} bytes or less, or: ip link set {name} mtu {}",
        port.uri,
        mtu + 18,
        largest_frame - 18
    );
    Ok(())
}

/// Memory is taken at the start, as a whole: more than there is would fail in DPDK's words, or wake the OOM killer. `wants` says
/// who needs it ("the ring needs").
pub fn memory_for(wants: &str, bytes: u64, advice: &str) -> Result<()> {
    let refusal = host::memory::available(&Sys::live()).refuses(wants, bytes, advice);
    refusal.map_or(Ok(()), |why| bail!(why))
}

/// What `host.json` says.
pub fn host_facts() -> host::Facts {
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|argument| quoted(argument.to_string_lossy()));
    let command_line: Vec<String> = std::iter::once("dropless".to_owned()).chain(arguments).collect();
    host::facts(
        &Sys::live(),
        serde_json::json!({
            "name": "dropless",
            "version": env!("CARGO_PKG_VERSION"),
            "dpdk": dpdk::version().trim_start_matches("DPDK "),
            "command_line": command_line.join(" "),
        }),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn who_lacks_hugepages_is_told_how_to_reserve_them() {
        let tree = tempfile::tempdir().unwrap();
        let pages = tree.path().join("sys/kernel/mm/hugepages/hugepages-2048kB");
        fs::create_dir_all(&pages).unwrap();
        for (file, count) in [("nr_hugepages", "3"), ("free_hugepages", "1")] {
            fs::write(pages.join(file), count).unwrap();
        }
        let note = ordinary_pages(&Sys::at(tree.path()), 2 << 20, 5 << 20);
        assert_eq!(note.code, "ordinary_pages");
        let words = "2 MiB of hugepages free, 5 needed; faster with: echo 5 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
        assert!(note.text.contains(words), "{}", note.text);
    }
}
