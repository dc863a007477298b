//! Facts about this machine: which ports can carry packets, what stands in their way, and what mends it.
//!
//! Everything is read below [`Sys::root`], so that a directory tree can stand in for a machine in tests.
//! Nothing here changes the machine, with two exceptions: [`check`] removes a socket file that nobody serves, and
//! [`tune`] is there to change it.
#![forbid(unsafe_code)]

mod ambient;
mod bind;
mod capability;
pub mod cores;
mod discover;
pub mod doctor;
mod facts;
pub mod hugepages;
pub mod interface;
mod modules;
mod nearest;
pub mod noise;
mod pci;
pub mod pmd;
mod preflight;
mod problem;
mod roles;
mod sys;
pub mod tune;
mod uri;
mod vmbus;
pub mod xdp;

pub use ambient::ambient;
pub use bind::{pci_bind, pci_unbind, vmbus_bind};
pub use capability::Capability;
pub use discover::{Carrier, CarrierKind, Queues, Usable, discover};
pub use facts::{CoreFacts, Facts, facts};
pub use interface::Link;
pub use pci::{PciDevice, network_functions};
pub use pmd::Pmd;
pub use preflight::{Memory, Prepared, check, check_all};
pub use problem::{Fix, Problem, Warning};
pub use roles::Role;
pub use sys::Sys;
pub use uri::{
    KernelIo, MacAddress, Medium, MissedCount, PciAddress, PortKind, PortTraits, PortUri, UriError, VmbusId,
    XdpMode,
};
pub use vmbus::{VmbusDevice, network_channels};
