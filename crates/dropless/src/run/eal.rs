//! Ports into DPDK's terms: EAL arguments and device names.

use anyhow::{Result, bail};
use dpdk::PacketRing;
use host::{Medium, PortKind, PortUri, Sys, TAKEN_APART, XdpMode, cores};
use report::published::own_id;

/// What DPDK will call a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// A device that EAL makes or probes; its ethdev name.
    Named(String),
    /// A device for each queue, made by EAL; their ethdev names.
    Queues(Vec<String>),
    /// Rings of this process, made after EAL is up.
    Ring {
        /// Name, unique in the process.
        name: String,
        /// Slots a ring.
        size: u32,
        /// Without the in-process reflector.
        direct: bool,
    },
    /// None: sockets of the kernel.
    Sockets,
}

/// The page kind that packet memory lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Ordinary pages, `mib` MiB of them, nothing needed.
    Ordinary {
        /// How much EAL takes at start.
        mib: u64,
    },
    /// Hugepages, taken as needed and given back by the kernel when the process ends, however it ends.
    Huge,
    /// Hugepages in files, which other processes of DPDK map, too.
    Shared,
}

/// EAL arguments and the devices of the ports, in their order.
#[derive(Debug)]
pub struct EalPlan {
    /// The arguments, without the program's name.
    pub arguments: Vec<String>,
    /// One for each port.
    pub devices: Vec<Device>,
    /// The network drivers that these ports need; `None`: all that are installed.
    pub drivers: Option<Vec<&'static str>>,
}

/// Slots of an embedded ring: small enough to stay in the cache.
pub const RING_SLOTS: u32 = 1024;

/// Plans EAL for `ports`, each with `queues` queue pairs of `descriptors` and buffers with `room` for a frame, and the user's own
/// `extra` arguments.
pub fn plan(
    ports: &[PortUri],
    (queues, descriptors, room): (u16, u16, usize),
    memory: Memory,
    extra: Option<&str>,
    verbose: bool,
) -> Result<EalPlan> {
    let mut arguments: Vec<String> = Vec::new();
    let mut add = |text: String| arguments.push(text);
    // One EAL thread over all CPUs that are ours: otherwise rte_eal_init shrinks this process, and each later thread, to one CPU.
    add(format!("--lcores=0@({})", all_cpus()));
    add(format!("--file-prefix={}{}", super::sweep::PREFIX, own_id()));
    add("--no-telemetry".into());
    match memory {
        Memory::Ordinary { mib } => {
            add("--no-huge".into());
            add("--no-shconf".into());
            add(format!("-m{mib}"));
        }
        Memory::Huge => {
            // No file and no configuration is left behind, also after kill -9; memif and vhost share whole segments.
            add("--in-memory".into());
            add("--single-file-segments".into());
        }
        Memory::Shared => add("--single-file-segments".into()),
    }
    if !verbose {
        add("--log-level=*:warning".into());
    }
    let mut devices = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let queues = port.queues.map_or(queues, std::num::NonZeroU16::get);
        let (device, made_by) = device(port, index, (queues, descriptors, room))?;
        devices.push(device);
        made_by.into_iter().for_each(&mut add);
    }
    let extra: Vec<String> = extra.unwrap_or("").split_whitespace().map(Into::into).collect();
    let scans_pci = extra
        .iter()
        .any(|word| word.starts_with("-a") || word.starts_with("--allow"));
    if !scans_pci && !ports.iter().any(|port| port.kind.traits().takes_pci) {
        add("--no-pci".into());
    }
    // What the user adds may be any device. Processes that share buffers must have loaded the same drivers: each finds the way in which
    // they are kept by its number.
    let knows_all = extra.is_empty() && memory != Memory::Shared;
    arguments.extend(extra);
    Ok(EalPlan {
        arguments,
        devices,
        drivers: knows_all.then(|| drivers(ports)).flatten(),
    })
}

/// The network drivers of these ports, if no driver is found by a device.
fn drivers(ports: &[PortUri]) -> Option<Vec<&'static str>> {
    let traits = ports.iter().map(|port| port.kind.traits());
    traits
        .filter(|traits| traits.medium != Medium::Sockets)
        .map(|traits| traits.driver.filter(|_| traits.medium != Medium::Nic))
        .collect()
}

#[allow(clippy::too_many_lines, reason = "one arm for each kind of port")]
fn device(
    port: &PortUri,
    index: usize,
    (queues, descriptors, room): (u16, u16, usize),
) -> Result<(Device, Vec<String>)> {
    let vdev = |kind: &str, rest: String| {
        let name = format!("net_{kind}{index}");
        (Device::Named(name.clone()), vec![format!("--vdev={name}{rest}")])
    };
    Ok(match &port.kind {
        PortKind::Ring { name, direct, size } => {
            let name = name.clone().unwrap_or_else(|| format!("ring{index}"));
            (
                Device::Ring {
                    name,
                    size: size.unwrap_or(RING_SLOTS),
                    direct: *direct,
                },
                Vec::new(),
            )
        }
        PortKind::Null { size, .. } => vdev("null", format!(",size={},copy=0", size.unwrap_or(60))),
        PortKind::Pci { address } => (Device::Named(address.to_string()), vec![format!("-a{address}")]),
        PortKind::Vmbus { id } => (Device::Named(id.to_string()), vec![format!("-a{id}")]),
        PortKind::Mac { address } => bail!("port mac:{address} was not resolved to a device"),
        PortKind::Xdp {
            interface,
            start,
            mode,
        } => {
            let start = start.unwrap_or(0);
            let mode = if *mode == XdpMode::Copy {
                ",force_copy=1"
            } else {
                ""
            };
            // One device with all the queues would be refused where the kernel does not call them combined (veth).
            let name = |queue: u16| format!("net_af_xdp{index}_{queue}");
            let queues = start..start.saturating_add(queues);
            let argument = |queue| {
                let name = name(queue);
                format!("--vdev={name},iface={interface},start_queue={queue},queue_count=1{mode}")
            };
            let made_by = queues.clone().map(argument).collect();
            (Device::Queues(queues.map(name).collect()), made_by)
        }
        PortKind::Packet {
            interface,
            qdisc_bypass,
        } => {
            let bypass = u8::from(*qdisc_bypass);
            let PacketRing {
                frames,
                frame_size,
                block_size,
            } = packet_ring(descriptors, room);
            let rest = format!(
                ",iface={interface},qpairs={queues},framecnt={frames},framesz={frame_size},blocksz={block_size},qdisc_bypass={bypass}"
            );
            vdev("af_packet", rest)
        }
        PortKind::Tap { name, mac } => {
            let mac = mac.map(|mac| format!(",mac={mac}")).unwrap_or_default();
            vdev("tap", format!(",iface={name}{mac}"))
        }
        PortKind::Memif {
            path,
            server,
            id,
            zero_copy,
            size_log2,
        } => {
            let (path, space) = match path.display().to_string().strip_prefix('@') {
                Some(name) => (name.to_owned(), "yes"),
                // memif takes no path without a directory.
                None => (std::path::absolute(path)?.display().to_string(), "no"),
            };
            if path.contains(TAKEN_APART) {
                bail!(
                    "port {port}: DPDK takes '{path}' apart at one of , = [ ]; run it in another directory, or write a whole path"
                );
            }
            let role = if *server { "server" } else { "client" };
            let size = size_log2.map(|size| format!(",rsize={size}")).unwrap_or_default();
            let zero_copy = if *zero_copy { ",zero-copy=yes" } else { "" };
            let bytes = memif_buffer(memif_slow_is_right(&dpdk::version()), *server, room);
            let rest = format!(
                ",socket={path},socket-abstract={space},role={role},id={id},bsize={bytes}{size}{zero_copy}"
            );
            vdev("memif", rest)
        }
        PortKind::Vhost { path, client } => {
            let (path, client) = (path.display(), u8::from(*client));
            vdev("vhost", format!(",iface={path},queues={queues},client={client}"))
        }
        PortKind::VirtioUser { path, server } => {
            let (path, server) = (path.display(), u8::from(*server));
            let queue_size = port.kind.traits().rx_room_max;
            let rest = format!(",path={path},queues={queues},server={server},queue_size={queue_size}");
            vdev("virtio_user", rest)
        }
        PortKind::Pcap { input, output } => {
            let rx = input
                .as_ref()
                .map(|path| format!(",rx_pcap={}", path.display()))
                .unwrap_or_default();
            let tx = output
                .as_ref()
                .map(|path| format!(",tx_pcap={}", path.display()))
                .unwrap_or_default();
            vdev("pcap", format!("{rx}{tx}"))
        }
        PortKind::Vdev { arguments } => {
            let name = arguments.split(',').next().unwrap_or(arguments).to_owned();
            (Device::Named(name), vec![format!("--vdev={arguments}")])
        }
        PortKind::Kernel { .. } => (Device::Sockets, Vec::new()),
    })
}

/// Every CPU that this process may use, as EAL's list: `taskset` holds for its control thread, too.
fn all_cpus() -> String {
    let allowed = cores::allowed(&Sys::live());
    if allowed.is_empty() {
        "0".into()
    } else {
        allowed.to_string()
    }
}

/// The rings of a `packet:` port: they are made with it and not by descriptors.
pub fn packet_ring(descriptors: u16, room: usize) -> PacketRing {
    let frame_size = room.max(2048);
    // In blocks of two frames, or of one that is long.
    let block_size = frame_size.max(4096);
    PacketRing {
        frames: usize::from(descriptors.next_multiple_of(2)),
        frame_size,
        block_size,
    }
}

/// How long a memif's buffers are unless somebody says otherwise (`ETH_MEMIF_DEFAULT_PKT_BUFFER_SIZE`).
const MEMIF_BUFFER: usize = 2048;

/// The length that a memif's driver is told of its buffers in shared memory (decision 0042).
///
/// A driver that has a quick way to receive takes it unless our buffers are shorter than this: it then copies whatever the peer
/// says, past their end, too. `slow_is_right` if its slow way, which looks at lengths, can be used instead.
const fn memif_buffer(slow_is_right: bool, server: bool, room: usize) -> usize {
    // Of a server the ring is the peer's: told more than our buffers hold, the driver would write long frames past the peer's.
    if !slow_is_right || (server && room > MEMIF_BUFFER + dpdk::HEADROOM) {
        MEMIF_BUFFER
    } else {
        // Room also for a later part of a frame, which has bytes where the first has headroom.
        room + dpdk::HEADROOM
    }
}

/// The memif driver of this DPDK (`DPDK 24.11.8`, `DPDK 23.11.7`) has a quick way to receive, and a slow one that is right. 22.11 has the slow one
/// alone; between them the slow one laid one part of a frame over another ("net/memif: fix multi-segment Rx corruption").
fn memif_slow_is_right(version: &str) -> bool {
    let numbers = version.trim_start_matches("DPDK ").split(['.', '-']);
    let numbers: Vec<u32> = numbers.map_while(|number| number.parse().ok()).collect();
    match numbers[..] {
        [23, 11, patch, ..] => patch >= 7,
        [24, 11, patch, ..] => patch >= 5,
        [25, 11, patch, ..] => patch >= 1,
        [year, ..] => year >= 26,
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(port: &str) -> String {
        let port = port.parse().unwrap();
        plan(&[port], (2, 1024, 2048), Memory::Huge, None, false)
            .unwrap()
            .arguments
            .join(" ")
    }

    #[test]
    fn every_kind_becomes_the_device_that_dpdk_knows() {
        for (port, wanted) in [
            ("null", "--vdev=net_null0,size=60,copy=0"),
            (
                "xdp:eth1,start=3",
                "--vdev=net_af_xdp0_3,iface=eth1,start_queue=3,queue_count=1 --vdev=net_af_xdp0_4,iface=eth1,start_queue=4,queue_count=1",
            ),
            (
                "packet:eth1",
                "--vdev=net_af_packet0,iface=eth1,qpairs=2,framecnt=1024,framesz=2048,blocksz=4096,qdisc_bypass=0",
            ),
            ("tap:dl0", "--vdev=net_tap0,iface=dl0"),
            (
                "memif:/run/x.sock,server",
                "--vdev=net_memif0,socket=/run/x.sock,socket-abstract=no,role=server,id=0,bsize=",
            ),
            (
                "vhost:/run/x.sock",
                "--vdev=net_vhost0,iface=/run/x.sock,queues=2,client=0",
            ),
            (
                "virtio-user:/run/x.sock",
                "--vdev=net_virtio_user0,path=/run/x.sock,queues=2",
            ),
            (
                "pcap:in.pcap,out.pcap",
                "--vdev=net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap",
            ),
            ("pci:0000:3b:00.0", "-a0000:3b:00.0"),
        ] {
            let found = arguments(port);
            assert!(found.contains(wanted), "{port}: {found}");
        }
    }

    #[test]
    fn drivers_are_left_out_where_none_is_found_by_a_device_or_a_number() {
        let drivers = |ports: &[&str], memory, extra| {
            let ports: Vec<_> = ports.iter().map(|port| port.parse().unwrap()).collect();
            let plan = plan(&ports, (1, 1024, 2048), memory, extra, false).unwrap();
            plan.drivers
        };
        let some = drivers(
            &["virtio-user:/run/x.sock", "kernel:127.0.0.1"],
            Memory::Huge,
            None,
        );
        assert_eq!(some.unwrap(), ["virtio"]);
        for (port, memory, extra) in [
            ("pci:0000:3b:00.0", Memory::Huge, None),
            ("vmbus:6e9d4e4b-8b0b-4c3c-9d3b-0b3b3b3b3b3b", Memory::Huge, None),
            ("vdev:net_bonding0", Memory::Huge, None),
            ("null", Memory::Shared, None),
            ("null", Memory::Huge, Some("--vdev=net_tap0")),
        ] {
            assert_eq!(drivers(&["ring", port], memory, extra), None, "{port} {extra:?}");
        }
    }

    #[test]
    fn a_memif_that_receives_two_ways_is_told_a_length_that_our_buffers_do_not_reach() {
        for (server, room, told) in [
            (false, 2048, 2176),
            (true, 2048, 2176),
            (true, 2176, 2304),
            (false, 9088, 9216),
            // It would send past a client's.
            (true, 9088, 2048),
        ] {
            assert_eq!(memif_buffer(true, server, room), told, "{server} {room}");
            assert_eq!(memif_buffer(false, server, room), 2048);
        }
        let right = [
            "DPDK 23.11.7",
            "DPDK 24.11.5",
            "DPDK 24.11.8",
            "DPDK 25.11.1",
            "DPDK 26.03.0",
        ];
        let wrong = [
            "DPDK 22.11.11",
            "DPDK 23.11.0",
            "DPDK 23.11.6",
            "DPDK 24.11.4",
            "DPDK 25.07.0",
            "DPDK 25.11.0-rc1",
            "?",
        ];
        assert!(right.into_iter().all(memif_slow_is_right));
        assert!(!wrong.into_iter().any(memif_slow_is_right));
    }

    #[test]
    fn a_memif_socket_may_lie_in_the_working_directory() {
        let here = std::env::current_dir().unwrap().join("m.sock");
        assert!(arguments("memif:m.sock").contains(&format!("socket={},", here.display())));
        assert!(arguments("memif:@m").contains("socket=m,socket-abstract=yes"));
        let mut port: PortUri = "memif:m.sock".parse().unwrap();
        if let PortKind::Memif { path, .. } = &mut port.kind {
            *path = "/run=1/m.sock".into();
        }
        let plan = plan(&[port], (1, 1024, 2048), Memory::Huge, None, false);
        let refusal = plan.unwrap_err().to_string();
        assert!(refusal.contains("run it in another directory"), "{refusal}");
    }

    #[test]
    fn the_pci_bus_is_scanned_only_for_pci_ports() {
        assert!(arguments("null").contains("--no-pci"));
        assert!(!arguments("pci:0000:3b:00.0").contains("--no-pci"));
    }
}
