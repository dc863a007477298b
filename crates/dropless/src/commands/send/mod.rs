//! `dropless send`: probes out, probes back, and an account of every one.

mod active;
pub mod args;
mod asking;
mod far;
mod hindrance;
mod ledger;
mod load;
mod making;
mod phases;
mod status;
mod summary;
mod unserved;
mod wiring;

use std::time::Duration;

use anyhow::Result;
use measure::Note;
use serde::Serialize;

pub use args::Args;

use crate::about::About as _;
use crate::plan::{MachinePlan, SendPlan};
use crate::run::links;
use crate::run::open::OpenPort;
use crate::run::peer::Patience;
use crate::run::pools::Pools;
use crate::run::signals::Interrupt;
use crate::run::stage::Stage;
use crate::run::{self, Job, Needs};
use crate::status::Expected;
use active::ActiveSend;
use load::Load;
use wiring::Mark;
use xdp::ProbesOf;

/// From the start of the workers to the first packet: they must poll by then.
const LEAD_NS: u64 = 50_000_000;
/// How often control looks. Nothing in the run waits for it.
const TICK: Duration = Duration::from_millis(20);

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    match &args.plan {
        // Whatever is wrong in it is not what a flag says.
        Some(path) => {
            let plan = SendPlan::load(path).and_then(|plan| plan.accept(args.trust_plan));
            send(args, plan.about("--plan")?)
        }
        None => send(args, args.plan()?),
    }
}

fn send(args: &Args, plan: SendPlan) -> Result<u8> {
    let settings = args.run.settings()?;
    // Before the start: what is wrong with the address is told by it, and not by the name.
    for note in plan.hosts() {
        settings.console.human(&format!("{}\n", note.text))?;
    }
    run::run(SendJob::new(plan), &settings)
}

/// A run that sends.
pub struct SendJob {
    plan: SendPlan,
    /// What each port is to send, once the ports are open.
    loads: Vec<Load>,
    mark: Mark,
}

impl SendJob {
    /// A run of this plan.
    pub fn new(plan: SendPlan) -> Self {
        Self {
            plan,
            loads: Vec::new(),
            mark: Mark::draw(),
        }
    }
}

impl Job for SendJob {
    type Active = ActiveSend;

    const COMMAND: &'static str = "send";

    fn plan(&self) -> &impl Serialize {
        &self.plan
    }

    fn machine(&self) -> &MachinePlan {
        &self.plan.machine
    }

    fn needs(&self) -> Result<Needs> {
        let plan = &self.plan;
        Ok(Needs {
            rx_queues: plan.rx_queues,
            tx_queues: plan.tx_queues,
            largest_frame: plan.largest_frame()?,
            mtu: Some(plan.mtu()?),
            takes_all: false,
            held_per_queue: wiring::buffers_held(plan),
            tx_checksum_offload: plan.checksum_offload,
            sockets: plan.sockets()?,
            patience: Patience::Until(Duration::from_nanos(plan.machine.wait_ns)),
            tick: TICK,
        })
    }

    fn meet<'e>(
        &mut self,
        pools: Option<&Pools<'e>>,
        ports: &mut [OpenPort<'e>],
        interrupt: &Interrupt,
    ) -> Result<Vec<Note>> {
        let plan = &self.plan;
        links::wait_for_links(ports, Duration::from_nanos(plan.machine.wait_ns), interrupt)?;
        let mut notes = Vec::new();
        for (index, open) in ports.iter_mut().enumerate() {
            let mut load = load::of_port(plan, index, open)?;
            let dpdk = pools.map(|pools| pools.of_port(index));
            load::find_neighbours(plan, &mut load, dpdk, open, interrupt)?;
            notes.append(&mut load.notes);
            self.loads.push(load);
        }
        if plan.tx_only {
            return Ok(notes);
        }
        let ours = ProbesOf {
            run: self.mark.run,
            first_lane: self.mark.first_lane,
            lanes: plan.lanes() as u32,
        };
        // Last, so that little that is not ours comes between the answers and the run.
        for (index, (open, load)) in ports.iter_mut().zip(&mut self.loads).enumerate() {
            open.end_probes(&load.me.ips, Some(ours));
            if load.asked {
                let dpdk = pools.map(|pools| pools.of_port(index));
                load::ask_before(plan, (load, index), dpdk, open, interrupt)?;
            }
        }
        Ok(notes)
    }

    fn workers(&self, _ports: &[OpenPort<'_>]) -> usize {
        if self.plan.has_reflector() { 2 } else { 1 }
    }

    fn lead_ns(&self) -> u64 {
        // Time to touch the windows and intervals of many queues and lanes.
        let further = u64::from(self.plan.tx_queues.max(self.plan.rx_queues)) - 1;
        let touching = self.plan.lanes() as u64 * 20_000 + further * 25_000_000;
        LEAD_NS + touching
    }

    fn expected(&self) -> Expected {
        let rate = load::total_rate(&self.loads);
        Expected {
            one_way: self.plan.tx_only,
            gap: rate.and_then(|pps| Duration::try_from_secs_f64(1.0 / pps).ok()),
        }
    }

    fn wire<'p, 'e: 'p>(self, stage: &mut Stage<'_, 'p, 'e>) -> Result<ActiveSend> {
        ActiveSend::wire(self.plan, self.loads, self.mark, stage)
    }
}
