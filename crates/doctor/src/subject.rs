//! What a check looks at.

use host::cores::{Core, CoreSet};
use host::{PortUri, Sys};

use crate::sample::Watched;

/// What is examined: the machine, and what is planned on it.
#[derive(Debug)]
pub struct Subject<'s> {
    /// The machine.
    pub sys: &'s Sys,
    /// The cores that will poll.
    pub workers: CoreSet,
    /// The cores that everything else may have.
    pub housekeeping: CoreSet,
    /// The ports that will be used.
    pub ports: Vec<PortUri>,
    /// What the kernel counted while we watched.
    pub watched: Watched,
    /// What will arrive, where the user said so.
    pub load: Load,
}

impl Subject<'_> {
    /// A file of each core that will poll, and what it holds; without those that are not there.
    pub fn of_workers(&self, file: impl Fn(Core) -> String) -> Vec<(String, String)> {
        let held = |core| Some((file(core), self.sys.text(file(core))?));
        self.workers.iter().filter_map(held).collect()
    }
}

/// What the user says of the load.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// Packets that arrive at each port, 1/s.
    pub rate_pps: Option<f64>,
    /// Receive descriptors of each queue.
    pub descriptors: Option<u16>,
}
