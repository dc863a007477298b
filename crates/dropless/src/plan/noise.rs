//! The plan of a `noise` run.

use doctor::noise::summary::Asked;
use host::cores::CoreSet;
use measure::bucket::Ring;
use serde::Serialize;

/// A `noise` run.
#[derive(Debug, Serialize)]
pub struct NoisePlan {
    /// Cores to poll on.
    pub cores: CoreSet,
    /// How long, ns.
    pub duration_ns: u64,
    /// Shorter stalls are none, ns.
    pub threshold_ns: u64,
    /// Receive descriptors that costs are worked out for.
    pub slots: u32,
    /// The receiver that costs are worked out for, where a rate was given.
    pub ring: Option<Ring>,
    /// Whether the kernel is asked for causes.
    pub trace: bool,
}

impl NoisePlan {
    /// Causes and stalls of `cores` for `duration_ns`, and no costs.
    pub fn of(cores: CoreSet, duration_ns: u64) -> Self {
        Self {
            cores,
            duration_ns,
            threshold_ns: 1000,
            slots: 1024,
            ring: None,
            trace: true,
        }
    }

    /// What its result is worked out for.
    pub fn asked(&self) -> Asked {
        Asked {
            threshold_ns: self.threshold_ns,
            descriptors: self.slots,
            ring: self.ring,
        }
    }
}
