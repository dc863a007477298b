//! The plan of a `filter run`.

use std::path::PathBuf;

use serde::Serialize;

/// A filter on an interface.
#[derive(Clone, Debug, Serialize)]
pub struct FilterPlan {
    /// The rule file.
    pub rules: PathBuf,
    /// The interface.
    pub interface: String,
    /// Behind the driver, where the kernel has made a buffer of its own for each packet.
    pub generic: bool,
    /// The filter stays in force when its process ends.
    pub stay: bool,
    /// Where denied packets are written.
    pub sample: Option<SamplePlan>,
    /// Groups of addresses that rates remember.
    pub groups: u32,
    /// How long, ns.
    pub duration_ns: Option<u64>,
    /// Although the session of whoever starts it would be cut off.
    pub force: bool,
}

/// Denied packets in a file.
#[derive(Clone, Debug, Serialize)]
pub struct SamplePlan {
    /// The file.
    pub file: PathBuf,
    /// At most so many a second and processor.
    pub per_second: u32,
}
