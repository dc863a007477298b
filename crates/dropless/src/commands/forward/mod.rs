//! `dropless forward`: hands frames on between two ports, by rules, until it is told to stop.

mod active;
pub mod args;
mod flows;
mod summary;

use std::time::Duration;

use anyhow::Result;
use dataplane::BURST_MAX;
use dpdk::Pool;
use measure::Note;
use serde::Serialize;

pub use args::Args;

use crate::plan::{ForwardPlan, MachinePlan};
use crate::run::judging::Judging;
use crate::run::kernel_port::SocketConfig;
use crate::run::open::OpenPort;
use crate::run::peer::Patience;
use crate::run::pools::Pools;
use crate::run::rulebook::Rules;
use crate::run::signals::{Hangup, Interrupt};
use crate::run::stage::Stage;
use crate::run::{self, Job, Needs, generator, pools};
use active::{ActiveForward, WAYS, kernel_of};

/// How often control looks.
const TICK: Duration = Duration::from_millis(20);
/// The largest frame that buffers and links are made for, with FCS; longer ones come in several buffers.
const LARGEST_FRAME: usize = 1518;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let plan = args.plan()?;
    let judging = |path: &std::path::PathBuf| Ok::<_, anyhow::Error>(Judging::new(path, Rules::read(path)?));
    let job = ForwardJob {
        judging: plan.rules.as_ref().map(judging).transpose()?,
        plan,
        is_quiet: args.run.output.quiet,
    };
    run::run(job, &args.run.settings()?)
}

/// A run that forwards.
pub struct ForwardJob {
    plan: ForwardPlan,
    judging: Option<Judging>,
    /// Nobody wants to hear that no peer has come.
    is_quiet: bool,
}

impl ForwardJob {
    fn buffers_held(&self) -> usize {
        let burst = self.plan.machine.burst;
        let held = dataplane::forward::buffers_held(burst);
        if self.plan.machine.has(|traits| traits.is_reflected) {
            held + BURST_MAX + generator::buffers_held(burst)
        } else {
            held
        }
    }
}

impl Job for ForwardJob {
    type Active = ActiveForward;

    const COMMAND: &'static str = "forward";

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
            largest_frame: LARGEST_FRAME,
            held_per_queue: self.buffers_held(),
            tx_checksum_offload: false,
            sockets: SocketConfig::default(),
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
        // Whoever asks who has an address of the host is told the port's MAC address.
        let macs: Vec<[u8; 6]> = ports.iter().map(|port| port.mac).collect();
        for (port, mac) in macs.iter().enumerate().take(WAYS.len()) {
            if let Some(tap) = kernel_of(&self.plan, port) {
                ports[tap].take_mac(*mac)?;
            }
        }
        Ok(Vec::new())
    }

    /// One for each queue and direction.
    fn workers(&self, ports: &[OpenPort<'_>]) -> usize {
        ports.iter().take(WAYS.len()).map(|port| port.rx.len()).sum()
    }

    fn hangup(&self) -> Hangup {
        if self.judging.is_some() {
            Hangup::Reload
        } else {
            Hangup::End
        }
    }

    fn wire<'p, 'e: 'p>(self, stage: &mut Stage<'_, 'p, 'e>) -> Result<ActiveForward> {
        ActiveForward::wire(self.plan, self.judging, stage)
    }
}
