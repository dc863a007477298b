//! The plan of a `reflect` run.

use std::net::IpAddr;

use anyhow::{Result, ensure};
use dataplane::fault::FaultSpec;
use serde::{Deserialize, Serialize};

use super::kernel;
use super::machine::{check_queues, default_descriptors, parse_cores, parse_ports};
use super::{
    FAR_V4, FAR_V6, MachinePlan, VERSION, check_interval, clock_seed, duration_ns_or_zero, nonzero_ns,
    pause_ns,
};
use crate::commands::reflect::args::ReflectArgs;

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
    /// Makes a plan of the command line.
    pub fn from_args(args: &ReflectArgs) -> Result<Self> {
        let addresses = if args.address.is_empty() {
            vec![IpAddr::V4(FAR_V4), IpAddr::V6(FAR_V6)]
        } else {
            args.address.clone()
        };
        let mut ports = parse_ports(&args.ports)?;
        kernel::serve(&mut ports);
        let plan = Self {
            version: VERSION,
            command: "reflect".into(),
            machine: MachinePlan {
                descriptors: args.descriptors.unwrap_or_else(|| default_descriptors(&ports)),
                ports,
                eal: args.eal.clone(),
                cores: parse_cores(args.cores.as_deref())?,
                burst: args.burst,
                buffers: args.buffers,
                no_huge: args.no_huge,
                force: args.force,
                wait_ns: duration_ns_or_zero(&args.wait, "--wait")?,
                explain: args.explain.explain,
                pause_ns: pause_ns(&args.explain.pause)?,
            },
            addresses,
            only_ours: args.only_ours,
            fault: args.fault.as_deref().map(str::parse).transpose()?,
            seed: args.seed.unwrap_or_else(clock_seed),
            queues: args.queues,
            duration_ns: args
                .duration
                .as_deref()
                .map(|text| nonzero_ns(text, "--duration"))
                .transpose()?,
            idle_exit_ns: args
                .idle_exit
                .as_deref()
                .map(|text| nonzero_ns(text, "--idle-exit"))
                .transpose()?,
            interval_ns: nonzero_ns(&args.interval, "--interval")?,
        };
        plan.machine.validate()?;
        ensure!(plan.queues > 0, "a port needs at least one queue; use --queues 1");
        check_queues("--queues", plan.queues)?;
        check_interval(plan.interval_ns)?;
        ensure!(
            !plan
                .machine
                .ports
                .iter()
                .any(|port| port.kind.traits().is_reflected),
            "port ring has its reflector built in, nobody could send to this one; use `dropless send`, or a port that another program can reach"
        );
        kernel::check_reflect(&plan)?;
        Ok(plan)
    }
}
