//! The plan of a `reflect` run.

use std::net::IpAddr;

use anyhow::Result;
use dataplane::fault::FaultSpec;
use serde::{Deserialize, Serialize};

use super::kernel;
use super::{MachinePlan, check_interval};
use crate::about::ensure_about;

/// A `reflect` run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReflectPlan {
    /// Version of this format.
    pub version: u32,
    /// Always `reflect`.
    pub command: String,
    /// The machine's part.
    pub machine: MachinePlan,
    /// Addresses to answer for.
    pub addresses: Vec<IpAddr>,
    /// Return probes only.
    pub only_ours: bool,
    /// Faults to inject.
    pub fault: Option<FaultSpec>,
    /// Seed of the faults.
    pub seed: u64,
    /// Queue pairs a port.
    pub queues: u16,
    /// How long to reflect, ns.
    pub duration_ns: Option<u64>,
    /// End after this long without a packet, ns.
    pub idle_exit_ns: Option<u64>,
    /// Length of a statistics interval, ns.
    pub interval_ns: u64,
}

impl ReflectPlan {
    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        self.machine.validate()?;
        ensure_about!(
            "--queues",
            self.queues > 0,
            "a port needs at least one queue; use --queues 1"
        );
        self.machine
            .check_queues("--queues", self.queues, |port| port.queues.is_none())?;
        check_interval(self.interval_ns)?;
        ensure_about!(
            "--port",
            !self.machine.has(|traits| traits.is_reflected),
            "port ring has its reflector built in, nobody could send to this one; use `dropless send`, or a port that another program can reach"
        );
        self.machine.check_cores(
            self.machine.queues_of_all(self.queues),
            "one for each queue; name fewer, or use more --queues",
        )?;
        kernel::check_reflect(self)
    }
}
