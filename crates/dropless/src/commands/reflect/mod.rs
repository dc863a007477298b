//! `dropless reflect`: returns what arrives on its ports until it is told to stop.

mod active;
pub mod args;
mod summary;

use std::time::Duration;

use anyhow::Result;
use dpdk::Pool;
use measure::Note;
use serde::Serialize;

pub use args::Args;

use crate::plan::{MachinePlan, ReflectPlan, USUAL_FRAME};
use crate::run::open::OpenPort;
use crate::run::peer::Patience;
use crate::run::pools::Pools;
use crate::run::signals::Interrupt;
use crate::run::stage::Stage;
use crate::run::{self, Job, Needs, pools, reflector};
use active::ActiveReflect;

/// How often control looks.
const TICK: Duration = Duration::from_millis(50);

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let job = ReflectJob {
        plan: args.plan()?,
        is_quiet: args.run.output.quiet,
    };
    run::run(job, &args.run.settings()?)
}

/// A run that reflects.
pub struct ReflectJob {
    plan: ReflectPlan,
    /// Nobody wants to hear that no peer has come.
    is_quiet: bool,
}

impl Job for ReflectJob {
    type Active = ActiveReflect;

    const COMMAND: &'static str = "reflect";

    fn plan(&self) -> &impl Serialize {
        &self.plan
    }

    fn machine(&self) -> &MachinePlan {
        &self.plan.machine
    }

    fn needs(&self) -> Result<Needs> {
        Ok(Needs {
            rx_queues: self.plan.queues,
            tx_queues: self.plan.queues,
            largest_frame: USUAL_FRAME,
            mtu: None,
            takes_all: true,
            held_per_queue: reflector::buffers_held(self.plan.machine.burst, self.plan.fault.is_some()),
            tx_checksum_offload: false,
            sockets: self.plan.sockets(),
            patience: Patience::forever(self.plan.machine.wait_ns, !self.is_quiet),
            tick: TICK,
        })
    }

    fn prefill(&self, pool: &Pool<'_>) -> Result<()> {
        pools::prefill(pool, &self.plan.machine.ports)
    }

    fn meet<'e>(
        &mut self,
        _pools: Option<&Pools<'e>>,
        ports: &mut [OpenPort<'e>],
        _interrupt: &Interrupt,
    ) -> Result<Vec<Note>> {
        for open in ports {
            open.end_probes(&self.plan.addresses, None);
        }
        let seed = self.plan.seed;
        let note = || {
            Note::new(
                "seed",
                format!("seed {seed}: --seed {seed} injects the same faults again"),
            )
        };
        Ok(self.plan.fault.iter().map(|_| note()).collect())
    }

    fn workers(&self, ports: &[OpenPort<'_>]) -> usize {
        ports.iter().map(|port| port.rx.len().min(port.tx.len())).sum()
    }

    fn wire<'p, 'e: 'p>(self, stage: &mut Stage<'_, 'p, 'e>) -> Result<ActiveReflect> {
        Ok(ActiveReflect::wire(self.plan, stage))
    }
}
