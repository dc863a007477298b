//! A run that hands frames on between two ports, by rules, until it is told to stop.

mod active;
mod flows;
mod judges;
mod queues;
mod summary;

use anyhow::Result;
use dataplane::BURST_MAX;
use dpdk::Pool;
use measure::Note;
use serde::Serialize;

use crate::plan::{ForwardPlan, MachinePlan, USUAL_FRAME};
use crate::run::kernel_counts::KernelCounts;
use crate::run::kernel_port::SocketConfig;
use crate::run::open::OpenPort;
use crate::run::peer::Patience;
use crate::run::pools::Pools;
use crate::run::signals::{Hangup, Interrupt};
use crate::run::stage::Stage;
use crate::run::{Job, Needs, generator, pools};
use active::{ActiveForward, WAYS, kernel_of};
pub use judges::{FileRules, Judges, TaskRules};

/// A run that forwards.
pub struct ForwardJob<J: Judges> {
    plan: ForwardPlan,
    /// The whole plan of the command.
    told: J::Plan,
    /// By whose rules; without, all passes.
    judges: Option<J::Before>,
    /// Nobody wants to hear that no peer has come.
    is_quiet: bool,
}

impl<J: Judges> ForwardJob<J> {
    /// By the rules of `judges`, if there are some; `is_quiet` where nobody wants to be told anything. `told` is the plan
    /// of the command.
    pub fn new((plan, told): (ForwardPlan, J::Plan), judges: Option<J::Before>, is_quiet: bool) -> Self {
        Self {
            plan,
            told,
            judges,
            is_quiet,
        }
    }

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

impl<J: Judges> Job for ForwardJob<J> {
    type Active = ActiveForward<J>;

    const COMMAND: &'static str = J::COMMAND;

    fn plan(&self) -> &impl Serialize {
        &self.told
    }

    fn machine(&self) -> &MachinePlan {
        &self.plan.machine
    }

    fn needs(&self) -> Result<Needs> {
        Ok(Needs {
            rx_queues: self.plan.queues,
            tx_queues: self.plan.queues,
            // Longer ones come in several buffers.
            largest_frame: USUAL_FRAME,
            mtu: None,
            takes_all: true,
            held_per_queue: self.buffers_held(),
            tx_checksum_offload: false,
            sockets: SocketConfig::default(),
            patience: Patience::forever(self.plan.machine.wait_ns, !self.is_quiet),
            tick: J::TICK,
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
                // What the host sends beyond its share is the kernel's to drop.
                ports[tap].kernel = KernelCounts::default();
            }
        }
        Ok(Vec::new())
    }

    /// One for each queue and direction.
    fn workers(&self, ports: &[OpenPort<'_>]) -> usize {
        ports.iter().take(WAYS.len()).map(|port| port.rx.len()).sum()
    }

    fn hangup(&self) -> Hangup {
        // Also without rules: whoever asks for a reload wants no end.
        Hangup::Reload
    }

    fn wire<'p, 'e: 'p>(self, stage: &mut Stage<'_, 'p, 'e>) -> Result<ActiveForward<J>> {
        let judges = self.judges.map(|before| J::begin(before, stage.dir));
        ActiveForward::wire(self.plan, judges, stage)
    }
}
