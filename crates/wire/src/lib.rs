//! Bytes to headers and back: probe templates, verification, reflection, and the answers a host owes its
//! neighbours.
//!
//! No I/O, no clock, no allocation after start, no unsafe. A packet's way through this crate:
//! [`Template::write`] makes it, [`reflect()`] turns it round at the far side, [`classify`] judges it when it
//! is back. All of them, and whoever else asks what a frame is, find its headers by [`parse`]. [`answer()`] and [`neighbour`] keep ordinary hosts happy in between.
#![forbid(unsafe_code)]

mod answer;
mod bytes;
pub mod checksum;
mod classifier;
mod counted;
#[cfg(test)]
mod differential;
mod drop_reason;
mod ends;
pub mod envelope;
mod fault;
mod flow;
mod foreign;
pub mod headers;
mod known_head;
pub mod lag;
pub mod neighbour;
pub mod pattern;
mod plain;
mod probe;
mod receive;
mod receive_any;
mod reflect;
mod reflector;
mod reflector_counters;
mod template;
mod template_build;
mod template_flow;
mod template_spec;
mod vlan;

pub use answer::{Addresses, answer};
pub use classifier::Classifier;
pub use drop_reason::DropReason;
pub use ends::{Ends, whose_damage};
pub use fault::corrupt_one_bit;
pub use flow::flow_hash;
pub use foreign::Foreign;
pub use headers::{Ip, Parsed, parse};
pub use probe::{BurstStamp, MAGIC, PROBE_LEN, Probe};
pub use receive::{Class, Verify, classify, peek};
pub use reflect::reflect;
pub use reflector::Reflector;
pub use reflector_counters::ReflectorCounters;
pub use template::{Flow, Stretch, Template};
pub use template_spec::{MAX_FRAME_SIZE, TemplateError, TemplateSpec};
pub use vlan::{MAX_VLANS, TPID_CUSTOMER, TPID_SERVICE, VlanError, VlanTag};

/// An Ethernet address as it is on the wire.
pub type Mac = [u8; 6];

/// Bytes of the Ethernet frame check sequence, which counts in a frame's size but is the NIC's own business.
pub const FCS_LEN: usize = 4;
