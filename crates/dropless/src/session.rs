//! What `send` and `reflect` need before a packet moves: checked ports, EAL, memory, clock, cores.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use dpdk::{Calibration, Eal, Pool, Port, PortConfig, RxQueue, TxQueue};
use host::cores::{self, CoreSet};
use host::{PortKind, PortUri, Prepared, Sys};
use measure::{Clock, ClockSummary, LinkState, Ticks};

use crate::eal::{self, Device, EalPlan, Memory};
use crate::peer::{self, Patience, Tending};
use crate::plan::MachinePlan;
use crate::signals::Interrupt;

/// Buffers that keep a burst loop at its full rate: a pool of 2 k halves it.
const BUFFERS_MIN: u32 = 16384;
/// Cached buffers a worker; with bursts of 64 the pool's ring is touched every eighth burst.
const CACHE: usize = 512;
/// What EAL needs besides packet buffers, MiB.
const EAL_MIB: u64 = 64;

/// The checked ground that a run stands on.
pub struct Ground {
    /// Ports, checked; `mac:` has become the device it names.
    pub ports: Vec<PortUri>,
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
pub fn check(plan: &MachinePlan, queues: (u16, u16), largest_frame: usize) -> Result<Ground> {
    let mut sys = Sys::live();
    sys.force = plan.force;
    let prepared: Vec<Prepared> = host::check_all(&plan.ports, &sys)?;
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
        .map(std::num::NonZeroU16::get)
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
            match port.uri.kind {
                PortKind::Memif { .. } => "zero-copy",
                _ => "use another port",
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
    Ok(Ground {
        ports: prepared.iter().map(|port| port.uri.clone()).collect(),
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
    let shares = matches!(port.uri.kind, PortKind::Xdp { .. } | PortKind::Packet { .. });
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

/// Starts DPDK.
pub fn start_eal(
    plan: &MachinePlan,
    ground: &Ground,
    queues: u16,
    verbose: bool,
    wait: (Patience, &Interrupt),
) -> Result<(Eal, Vec<Device>)> {
    let EalPlan { arguments, devices } = eal::plan(
        &ground.ports,
        (queues, plan.descriptors),
        ground.memory,
        plan.eal.as_deref(),
        verbose,
    )?;
    let eal = peer::start_with(&ground.ports, wait.0, wait.1, || {
        if verbose {
            Eal::init_verbose(&arguments)
        } else {
            Eal::init(&arguments)
        }
    })?;
    match (eal, &plan.eal) {
        (Ok(eal), _) => Ok((eal, devices)),
        (Err(dpdk::EalError::Init { log, .. }), Some(extra)) => {
            let words = log.first().map_or("no reason given", |line| line.trim());
            bail!(
                "DPDK does not start with --eal '{extra}': {words}; fix --eal (`man dpdk-testpmd` lists what EAL takes), or see more with --verbose"
            )
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// The packet pool.
pub fn make_pool<'e>(eal: &'e Eal, ground: &Ground) -> Result<Pool<'e>> {
    Ok(Pool::new(
        eal,
        "dropless",
        ground.buffers as usize,
        CACHE,
        ground.room,
        None,
    )?)
}

/// A started port and its queues.
pub struct OpenPort<'e> {
    /// As the user named it.
    pub uri: PortUri,
    /// The port.
    pub port: Port<'e>,
    /// Its receive queues.
    pub rx: Vec<RxQueue<'e>>,
    /// Its transmit queues.
    pub tx: Vec<TxQueue<'e>>,
    /// The other end of an embedded ring, for the in-process reflector.
    pub far: Option<Box<OpenPort<'e>>>,
    /// Its address.
    pub mac: [u8; 6],
    /// Buffers that its driver took when it started and never gives back.
    pub kept: u64,
    /// What the kernel had counted as missed before.
    missed_before: u64,
    /// What became of its link.
    pub tending: Tending,
}

impl OpenPort<'_> {
    /// The link. On an interface of the kernel it is the kernel's word: the drivers there always say yes.
    pub fn link(&self) -> LinkState {
        if let Some(interface) = self.interface() {
            let link = host::interface::link_of(&Sys::at("/"), interface);
            return LinkState {
                up: link.is_some_and(|link| link.up),
                speed_mbps: link.and_then(|link| link.speed_mbps),
            };
        }
        let link = self.port.link().ok();
        LinkState {
            up: link.is_some_and(|link| link.up),
            speed_mbps: link.and_then(|link| link.speed_mbps),
        }
    }

    /// The link, and what it takes to have one again.
    pub fn tend(&mut self) -> LinkState {
        let link = self.link();
        self.tending.look(link.up, &mut self.port, &self.uri);
        link
    }

    /// Whether the interface below it has been removed.
    pub fn is_gone(&self) -> bool {
        self.interface()
            .is_some_and(|name| host::interface::link_of(&Sys::at("/"), name).is_none())
    }

    /// Frames that the kernel had no room for in our sockets since the port was opened; asked once, at the end.
    pub fn kernel_missed(&self) -> u64 {
        match &self.uri.kind {
            PortKind::Xdp { .. } => kernel_missed(&self.uri).saturating_sub(self.missed_before),
            _ => kernel_missed(&self.uri),
        }
    }

    fn interface(&self) -> Option<&str> {
        match &self.uri.kind {
            PortKind::Xdp { interface, .. } | PortKind::Packet { interface, .. } => Some(interface),
            _ => None,
        }
    }
}

/// Configures and starts the port behind `device`.
pub fn open<'e>(
    eal: &'e Eal,
    pool: &Pool<'e>,
    uri: &PortUri,
    device: &Device,
    config: &PortConfig,
    wait: (Patience, &Interrupt),
) -> Result<OpenPort<'e>> {
    // A port's own number of queues goes before the run's.
    let own = uri.queues.map(std::num::NonZeroU16::get);
    let config = &PortConfig {
        rx_queues: own.unwrap_or(config.rx_queues),
        tx_queues: own.unwrap_or(config.tx_queues),
        ..config.clone()
    };
    match device {
        Device::Named(name) => open_one(eal, pool, uri, name, config, wait),
        Device::Ring {
            name,
            size,
            direct: true,
        } => {
            let queues = config.rx_queues.max(config.tx_queues);
            let name = eal.ring_loop_queues(name, *size as usize, queues)?;
            open_one(eal, pool, uri, &name, &both_ways(config, queues), wait)
        }
        Device::Ring {
            name,
            size,
            direct: false,
        } => {
            let queues = config.rx_queues.max(config.tx_queues);
            let (near, far) = eal.ring_pair_queues(name, *size as usize, queues)?;
            let config = both_ways(config, queues);
            let mut near = open_one(eal, pool, uri, &near, &config, wait)?;
            near.far = Some(Box::new(open_one(eal, pool, uri, &far, &config, wait)?));
            Ok(near)
        }
    }
}

fn both_ways(config: &PortConfig, queues: u16) -> PortConfig {
    PortConfig {
        rx_queues: queues,
        tx_queues: queues,
        ..config.clone()
    }
}

fn open_one<'e>(
    eal: &'e Eal,
    pool: &Pool<'e>,
    uri: &PortUri,
    name: &str,
    config: &PortConfig,
    wait: (Patience, &Interrupt),
) -> Result<OpenPort<'e>> {
    let opening = || match (&uri.kind, config.rx_queues.max(config.tx_queues)) {
        (PortKind::Xdp { interface, .. }, queues @ 2..) => format!(
            "cannot open port {uri} with {queues} queues (AF_XDP takes an interface's combined channels, see ethtool -l {interface}; use one queue where it has none)"
        ),
        (PortKind::Xdp { .. }, _) => format!(
            "cannot open port {uri} (the other end of a veth must not have more transmit queues than this one has receive queues; --verbose shows what the kernel says)"
        ),
        _ => format!("cannot open port {uri} (--verbose shows what DPDK says)"),
    };
    let free = pool.available();
    let device = Port::by_name(eal, name).with_context(opening)?;
    let (mut port, rx, tx) = device.configure(config, pool).with_context(opening)?;
    let carries = port.granted().max_frame_size;
    ensure!(
        config.max_frame_size <= carries,
        "port {uri} carries frames of up to {carries} bytes; use --size {carries} or less"
    );
    peer::start(&mut port, uri, wait.0, wait.1).with_context(opening)?;
    let kept = if port.keeps_buffers() {
        free.saturating_sub(pool.available()) as u64
    } else {
        0
    };
    let mac = port.mac().unwrap_or([2, 0, 0, 0, 0, 0]);
    let missed_before = kernel_missed(uri);
    Ok(OpenPort {
        uri: uri.clone(),
        port,
        rx,
        tx,
        far: None,
        mac,
        kept,
        missed_before,
        tending: Tending::new(),
    })
}

/// What the kernel counts as missed on the interface below a port: of `xdp:` ever, of `packet:` since last asked.
fn kernel_missed(uri: &PortUri) -> u64 {
    match &uri.kind {
        PortKind::Xdp { interface, .. } => host::interface::rx_dropped(&Sys::at("/"), interface).unwrap_or(0),
        PortKind::Packet { interface, .. } => dpdk::packet_socket_drops(interface),
        _ => 0,
    }
}

/// Waits until every link is up; says which one is not.
pub fn wait_for_links(ports: &mut [OpenPort<'_>], limit: Duration, interrupt: &Interrupt) -> Result<()> {
    let begun = Instant::now();
    for open in ports {
        // A memif server turns callers away while it starts: they must call again.
        while !open.tend().up {
            if interrupt.is_set() {
                bail!("interrupted while waiting for the link of port {}", open.uri);
            }
            ensure!(
                begun.elapsed() < limit,
                "port {} has no link after {:.1} s; fix: {}",
                open.uri,
                limit.as_secs_f64(),
                link_hint(&open.uri)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

fn link_hint(uri: &PortUri) -> String {
    match uri.kind_name() {
        "memif" | "vhost" | "virtio-user" => peer::hint(uri),
        _ => "check cable and peer, or give --wait more time".into(),
    }
}

/// The run's clock.
pub struct RunClock {
    /// Ticks to nanoseconds.
    pub clock: Clock,
    calibration: Calibration,
    invariant: bool,
    /// Whether the counters of the workers' cores agree; `None` where that could not be tried.
    synchronous: Option<bool>,
}

impl RunClock {
    /// Calibrates the time stamp counter against `CLOCK_MONOTONIC`, and compares those of `cores`, still idle.
    pub fn calibrate(cores: &[usize]) -> Self {
        let calibration = dpdk::calibrate(Duration::from_millis(100));
        let Calibration { tsc0, ns0, hz, .. } = calibration;
        Self {
            clock: Clock::from_calibration(tsc0, ns0, hz),
            calibration,
            invariant: dpdk::tsc_is_invariant(),
            synchronous: dpdk::tsc_synchronous(cores).ok(),
        }
    }

    /// Checks the clock against the kernel's once more, at the end: how far apart they are now, and the verdict.
    pub fn finish(&self) -> (ClockSummary, Option<String>) {
        let before = dpdk::tsc();
        let kernel = dpdk::monotonic_ns();
        let ours = self.clock.ns(Ticks(before)).0;
        let elapsed = kernel.saturating_sub(self.calibration.ns0).max(1);
        let drift_ppm = (ours as f64 - kernel as f64).abs() / elapsed as f64 * 1e6;
        // NTP slews CLOCK_MONOTONIC by at most 500 ppm (adjtimex(2)); more than twice that is a broken counter.
        let drifted = (drift_ppm > 1000.0 && elapsed > 1_000_000_000).then(|| {
            format!("the time stamp counter drifted {drift_ppm:.0} ppm from CLOCK_MONOTONIC during the run")
        });
        let apart = (self.synchronous == Some(false))
            .then(|| "the time stamp counters of the workers' cores disagree: choose one core, or cores of one socket, with --cores".into());
        let trouble = drifted.or(apart);
        let summary = ClockSummary {
            source: "tsc".into(),
            hz: self.calibration.hz,
            uncertainty_ppm: self.calibration.uncertainty_ppm,
            checked: self.invariant && self.synchronous == Some(true) && trouble.is_none(),
        };
        (summary, trouble)
    }
}

/// The time stamp counter, as the loops want it.
pub fn now() -> Ticks {
    Ticks(dpdk::tsc())
}

/// Cores for `wanted` workers: the user's, or chosen; and what to tell about the choice.
pub fn worker_cores(
    plan: &MachinePlan,
    wanted: usize,
    node: Option<u32>,
) -> Result<(Vec<usize>, Option<String>)> {
    let sys = Sys::live();
    if !plan.cores.is_empty() {
        return Ok((plan.cores.iter().map(|core| core.0 as usize).collect(), None));
    }
    let allowed = cores::allowed(&sys).len().max(1);
    let choice = cores::pick(&sys, wanted.min(allowed), node)?;
    let list: Vec<usize> = choice.workers.iter().map(|core| core.0 as usize).collect();
    let told = choice.shared.then(|| {
        format!(
            "workers use every core of this machine ({}): the kernel and this display take turns with them",
            list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        )
    });
    Ok((list, told))
}

/// Keeps the control thread off the workers' cores where there is another.
pub fn leave_to_workers(workers: &[usize]) {
    let allowed = cores::allowed(&Sys::live());
    let taken: CoreSet = workers.iter().map(|core| cores::Core(*core as u32)).collect();
    if let Some(core) = allowed.without(&taken).iter().next() {
        // Only comfort: where it is refused, the workers share their core with a thread that mostly sleeps.
        let _ = dpdk::pin_to_core(core.0 as usize);
    }
}

/// What `host.json` says.
pub fn host_facts() -> host::Facts {
    host::facts(
        &Sys::live(),
        serde_json::json!({ "name": "dropless", "version": env!("CARGO_PKG_VERSION") }),
    )
}
