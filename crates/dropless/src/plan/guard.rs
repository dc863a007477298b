//! The plan of a `guard`.

use std::path::PathBuf;

use serde::Serialize;

use super::ForwardPlan;

/// Watching an interface or a capture for floods.
#[derive(Clone, Debug, Serialize)]
pub struct GuardPlan {
    /// What is watched.
    pub source: GuardSource,
    /// The user's own rules.
    pub rules: Option<PathBuf>,
    /// What is never blocked.
    pub allow: Option<PathBuf>,
    /// What is too much.
    pub thresholds: Vec<ThresholdPlan>,
    /// For how long what is usual is learned before it counts, ns.
    pub learn_ns: Option<u64>,
    /// So many times the usual is too much.
    pub factor: f64,
    /// But no less, packets a second.
    pub floor_pps: u64,
    /// Where what is usual is kept.
    pub baseline: Option<PathBuf>,
    /// How long a rule stays after it has met a flood, ns.
    pub expire_ns: u64,
    /// What may be blocked at most.
    pub cap: CapPlan,
    /// Nothing is blocked.
    pub dry_run: bool,
}

/// What is watched.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GuardSource {
    /// A capture.
    File(PathBuf),
    /// What goes from port to port.
    Ports(Box<ForwardPlan>),
    /// An interface.
    Interface {
        /// Its name.
        name: String,
        /// Behind the driver, where the kernel has made a buffer of its own for each packet.
        generic: bool,
        /// Groups of addresses that rates remember.
        groups: u32,
        /// How long, ns.
        duration_ns: Option<u64>,
        /// Although the session of whoever starts it would be cut off.
        force: bool,
    },
}

/// What may be blocked at most.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CapPlan {
    /// Rules at once.
    pub rules: usize,
    /// Of these, rates.
    pub rates: usize,
    /// Share of all packets.
    pub share: f64,
    /// Share of a destination's legitimate packets.
    pub cost: f64,
    /// Shortest source prefix of IPv4.
    pub v4_len: u8,
    /// And of IPv6.
    pub v6_len: u8,
}

/// What is too much of a class.
#[derive(Clone, Debug, Serialize)]
pub struct ThresholdPlan {
    /// Its name.
    pub class: String,
    /// Packets a second.
    pub pps: Option<u64>,
    /// Bits a second.
    pub bps: Option<u64>,
}
