//! Facts about this machine: which ports can carry packets, what stands in their way, and what mends it.
//!
//! Everything is read below [`Sys::root`], so that a directory tree can stand in for a machine in tests.
//! Nothing here changes the machine, with one exception: [`check`] removes a socket file that nobody serves.
#![forbid(unsafe_code)]

mod as_text;
pub mod awake;
pub mod bifurcated;
pub mod bind;
mod capability;
mod cgroups;
mod core_set;
pub mod cores;
pub mod cpu;
mod discover;
mod drivers;
pub mod facts;
pub mod hugepages;
pub mod interface;
pub mod interrupts;
pub mod link;
pub mod memory;
pub mod modules;
pub mod nearest;
mod netlink;
pub mod offloads;
pub mod partition;
pub mod pci;
pub mod pmd;
mod preflight;
pub mod problem;
pub mod qdisc;
pub mod roles;
mod sys;
pub mod threads;
mod uri;
pub mod vmbus;
pub mod watch;
pub mod xdp;

pub use capability::Capability;
pub use cgroups::{Cpuset, Room, cgroup_folders, cgroups, cpuset};
pub use discover::{Carrier, CarrierKind, Queues, Usable, discover};
pub use drivers::drivers;
pub use facts::{CoreFacts, Facts, facts};
pub use interface::Link;
pub use pci::{PciDevice, network_functions};
pub use pmd::Pmd;
pub use preflight::{Memory, Prepared, check, check_all, check_sys, device, is_same_file, takeover};
pub use problem::{Fix, Problem, Warning, quoted};
pub use roles::Role;
pub use sys::Sys;
pub use uri::{
    DriverStamps, KeptRights, KernelIo, MacAddress, Medium, PciAddress, PortKind, PortTraits, PortUri,
    TAKEN_APART, UriError, VmbusId, XDP_FILL, XdpMode, beginnings,
};
pub use vmbus::{VmbusDevice, network_channels};
