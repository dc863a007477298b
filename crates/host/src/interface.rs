//! Network interfaces as sysfs shows them.

use crate::link::{index, virtual_kind};
use crate::{MacAddress, PciAddress, Sys, VmbusId};
use serde::Serialize;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

const CLASS: &str = "/sys/class/net";
const IFF_UP: u32 = 1;
const ARPHRD_ETHER: u32 = 1;
const ARPHRD_LOOPBACK: u32 = 772;

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Whether there is a carrier.
    pub up: bool,
    /// Speed in Mbit/s, where the driver tells.
    pub speed_mbps: Option<u32>,
}

/// What an interface is, as far as sysfs tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Backed by a device on a bus.
    Device,
    /// The loopback.
    Loopback,
    /// One end of a pair (or stacked on another interface): veth, macvlan and the like.
    Paired,
    /// A TAP interface.
    Tap,
    /// A bridge.
    Bridge,
    /// A bond.
    Bond,
    /// A VLAN on another interface.
    Vlan,
    /// An intermediate functional block: a place for traffic shaping, not a carrier.
    Ifb,
    /// A software interface of another sort: dummy, vxlan, and so on.
    Virtual,
    /// Does not carry Ethernet frames: IP tunnels, TUN, InfiniBand, serial lines.
    NotEthernet,
}

/// A network interface of this network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Kernel name.
    pub name: String,
    /// What it is.
    pub sort: Sort,
    /// Set up by an administrator (`IFF_UP`).
    pub enabled: bool,
    /// Its link; `None` when it is not enabled.
    pub link: Option<Link>,
    /// Largest payload in bytes.
    pub mtu: Option<u32>,
    /// Its address.
    pub mac: Option<MacAddress>,
    /// Its IP addresses.
    pub addresses: Vec<IpAddr>,
    /// Kernel driver of the device behind it.
    pub driver: Option<String>,
    /// NUMA node of the device behind it.
    pub numa_node: Option<u32>,
    /// Receive queues.
    pub rx_queues: u16,
    /// Transmit queues.
    pub tx_queues: u16,
    /// The bridge, bond or netvsc interface that owns its traffic.
    pub master: Option<String>,
    /// Interfaces it is stacked on.
    pub lower: Vec<String>,
    /// The PCI function behind it.
    pub pci: Option<PciAddress>,
    /// The `VMBus` device behind it.
    pub vmbus: Option<VmbusId>,
}

/// Every interface of this network namespace, by name.
pub fn interfaces(sys: &Sys) -> Vec<Interface> {
    sys.names(CLASS)
        .into_iter()
        .filter_map(|name| interface(sys, &name))
        .collect()
}

/// One interface, if it exists.
pub fn interface(sys: &Sys, name: &str) -> Option<Interface> {
    let base = Path::new(CLASS).join(name);
    let flags = sys.hex(base.join("flags"))?;
    let enabled = flags & IFF_UP != 0;
    let (pci, vmbus) = device_behind(sys, &base);
    let lower = sys
        .names(&base)
        .into_iter()
        .filter_map(|n| n.strip_prefix("lower_").map(str::to_owned));
    Some(Interface {
        name: name.to_owned(),
        sort: sort(sys, name, &base),
        enabled,
        link: enabled.then(|| link(sys, &base)),
        mtu: mtu(sys, name),
        mac: sys.text(base.join("address")).and_then(|text| text.parse().ok()),
        addresses: sys
            .addresses
            .iter()
            .filter(|(n, _)| n == name)
            .map(|(_, ip)| *ip)
            .collect(),
        driver: sys.link_name(base.join("device/driver")),
        numa_node: numa_node(sys, &base.join("device")),
        rx_queues: queues(sys, &base, "rx-"),
        tx_queues: queues(sys, &base, "tx-"),
        master: sys.link_name(base.join("master")),
        lower: lower.collect(),
        pci,
        vmbus,
    })
}

/// The link of an interface, and nothing else of it: cheap enough to look again and again. `None` when it is gone.
pub fn link_of(sys: &Sys, name: &str) -> Option<Link> {
    let base = Path::new(CLASS).join(name);
    sys.exists(&base).then(|| link(sys, &base))
}

/// Over how many queues the interface spreads what it receives.
pub fn rx_queues(sys: &Sys, name: &str) -> u16 {
    queues(sys, &Path::new(CLASS).join(name), "rx-")
}

/// How often the interface lost its carrier since it was made: also for less time than lies between two looks.
pub fn carrier_losses(sys: &Sys, name: &str) -> Option<u64> {
    sys.number(Path::new(CLASS).join(name).join("carrier_down_count"))
}

/// The sum of these counters of the interface; `None` when it is gone.
pub fn counted(sys: &Sys, name: &str, counters: &[&str]) -> Option<u64> {
    let statistics = Path::new(CLASS).join(name).join("statistics");
    let each = counters
        .iter()
        .map(|counter| sys.number::<u64>(statistics.join(counter)));
    each.sum()
}

/// Frames that the queue of a core had no room for, of all cores and interfaces (the second number of each line of
/// `/proc/net/softnet_stat`, net/core/net-procfs.c).
pub fn softnet_dropped(sys: &Sys) -> Option<u64> {
    let text = sys.text("/proc/net/softnet_stat")?;
    let dropped = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().map(dropped).sum()
}

/// Its MTU, and nothing else of it.
pub fn mtu(sys: &Sys, name: &str) -> Option<u32> {
    sys.number(Path::new(CLASS).join(name).join("mtu"))
}

/// The name that the interface of this number has now: it may be renamed at any time.
pub fn name_of(sys: &Sys, number: u32) -> Option<String> {
    let mut names = sys.names(CLASS).into_iter();
    names.find(|name| index(sys, name) == Some(number))
}

/// The NUMA node of a device; machines with one node say -1.
pub fn numa_node(sys: &Sys, device: &Path) -> Option<u32> {
    sys.number(device.join("numa_node"))
}

fn link(sys: &Sys, base: &Path) -> Link {
    let up = sys.number::<u8>(base.join("carrier")) == Some(1);
    // Drivers that do not know say -1, as number or as u32.
    let speed_mbps = sys
        .number(base.join("speed"))
        .filter(|speed| *speed != 0 && *speed != u32::MAX);
    Link { up, speed_mbps }
}

fn queues(sys: &Sys, base: &Path, prefix: &str) -> u16 {
    let names = sys.names(base.join("queues"));
    names.iter().filter(|name| name.starts_with(prefix)).count() as u16
}

fn sort(sys: &Sys, name: &str, base: &Path) -> Sort {
    let arp_type: Option<u32> = sys.number(base.join("type"));
    let has = |file: &str| sys.exists(base.join(file));
    let uevent = sys.text(base.join("uevent")).unwrap_or_default();
    let device_type = uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE="));
    let stacked = || sys.number::<u32>(base.join("iflink")) != sys.number(base.join("ifindex"));
    match arp_type {
        Some(ARPHRD_LOOPBACK) => Sort::Loopback,
        // A TUN interface has IP packets without Ethernet (ARPHRD_NONE).
        Some(other) if other != ARPHRD_ETHER => Sort::NotEthernet,
        _ if has("tun_flags") => Sort::Tap,
        _ if has("device") => Sort::Device,
        _ if has("bridge") => Sort::Bridge,
        _ if has("bonding") => Sort::Bond,
        _ if device_type == Some("vlan") => Sort::Vlan,
        _ if name.starts_with("ifb") => Sort::Ifb,
        // The other end of a pair may have the same number, in another network namespace.
        _ if stacked() || virtual_kind(sys, name).as_deref() == Some("veth") => Sort::Paired,
        _ => Sort::Virtual,
    }
}

/// The bus device behind an interface. A virtio interface has a virtio device between it and the PCI function.
fn device_behind(sys: &Sys, base: &Path) -> (Option<PciAddress>, Option<VmbusId>) {
    let device = fs::canonicalize(sys.path(base.join("device")));
    let (Ok(device), Ok(root)) = (device, fs::canonicalize(&sys.root)) else {
        return (None, None);
    };
    for place in device.ancestors().take(3) {
        let Some(name) = place.file_name().and_then(|name| name.to_str()) else {
            break;
        };
        let below = place.strip_prefix(&root).unwrap_or(place);
        match sys.link_name(below.join("subsystem")).as_deref() {
            Some("pci") => return (name.parse().ok(), None),
            Some("vmbus") => return (None, name.parse().ok()),
            _ => {}
        }
    }
    (None, None)
}
