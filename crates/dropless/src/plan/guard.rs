//! The plan of a `guard`.

use std::path::PathBuf;

use guard::{Cap, Class, Limit};
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
    pub cap: Cap,
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

/// What is too much of a class.
#[derive(Clone, Debug, Serialize)]
pub struct ThresholdPlan {
    /// The class.
    pub class: Class,
    /// The rates.
    #[serde(flatten)]
    pub limit: Limit,
}
