//! `dropless replay`: sends a capture again, and accounts for every packet of it.

mod active;
pub mod args;
mod pace;
mod pauses;
mod reader;
mod summary;

use std::time::Duration;

use anyhow::Result;
use host::{Medium, Sys};
use measure::{Note, Timetable};
use serde::Serialize;

pub use args::Args;

use crate::plan::{MachinePlan, ReplayPlan, USUAL_FRAME};
use crate::run::capture_input::CaptureInput;
use crate::run::kernel_port::SocketConfig;
use crate::run::links;
use crate::run::open::OpenPort;
use crate::run::peer::Patience;
use crate::run::pools::Pools;
use crate::run::signals::Interrupt;
use crate::run::stage::Stage;
use crate::run::{self, Job, Needs};
use crate::status::Expected;
use active::ActiveReplay;

/// How often control looks.
const TICK: Duration = Duration::from_millis(20);
/// Head and FCS of a frame: what an interface does not count in its MTU.
const FRAME_OVERHEAD: usize = 18;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let plan = args.plan()?;
    let job = ReplayJob {
        input: reader::open(&plan)?,
        longest: longest(&plan),
        timetable: None,
        plan,
    };
    run::run(job, &args.run.settings()?)
}

/// The longest frame that is sent, with FCS: no longer than an interface of the kernel carries.
fn longest(plan: &ReplayPlan) -> usize {
    let wanted = plan.frame_max.unwrap_or(USUAL_FRAME);
    let mut ports = plan.machine.ports.iter();
    let shared = ports.find(|port| port.kind.traits().medium == Medium::SharedInterface);
    let interface = shared.and_then(|port| port.kind.interface());
    let mtu = interface.and_then(|name| host::interface::interface(&Sys::live(), name)?.mtu);
    mtu.map_or(wanted, |mtu| wanted.min(mtu as usize + FRAME_OVERHEAD))
}

/// A run that replays.
pub struct ReplayJob {
    plan: ReplayPlan,
    input: CaptureInput,
    /// The longest frame that is sent, with FCS.
    longest: usize,
    /// When each packet is due; known once the port is open.
    timetable: Option<Timetable>,
}

impl Job for ReplayJob {
    type Active = ActiveReplay;

    const COMMAND: &'static str = "replay";

    fn plan(&self) -> &impl Serialize {
        &self.plan
    }

    fn machine(&self) -> &MachinePlan {
        &self.plan.machine
    }

    fn needs(&self) -> Result<Needs> {
        Ok(Needs {
            rx_queues: 1,
            tx_queues: 1,
            largest_frame: self.longest,
            mtu: None,
            takes_all: false,
            held_per_queue: dataplane::replay::buffers_held(self.plan.machine.burst),
            tx_checksum_offload: false,
            // It has none.
            sockets: SocketConfig::default(),
            patience: Patience::Until(Duration::from_nanos(self.plan.machine.wait_ns)),
            tick: TICK,
        })
    }

    fn meet<'e>(
        &mut self,
        _pools: Option<&Pools<'e>>,
        ports: &mut [OpenPort<'e>],
        interrupt: &Interrupt,
    ) -> Result<Vec<Note>> {
        let plan = &self.plan;
        links::wait_for_links(ports, Duration::from_nanos(plan.machine.wait_ns), interrupt)?;
        let mut links = ports.iter().map(OpenPort::link);
        let mbps = links.find_map(|link| link.speed_mbps);
        let link_bps = mbps.map(|mbps| f64::from(mbps) * 1e6);
        self.timetable = Some(Timetable::new(
            plan.rate()?,
            link_bps,
            plan.gap_max_ns,
            plan.loop_gap_ns,
        )?);
        Ok(Vec::new())
    }

    /// One: packets of a capture have one order.
    fn workers(&self, _ports: &[OpenPort<'_>]) -> usize {
        1
    }

    fn expected(&self) -> Expected {
        Expected {
            one_way: true,
            gap: None,
        }
    }

    fn wire<'p, 'e: 'p>(self, stage: &mut Stage<'_, 'p, 'e>) -> Result<ActiveReplay> {
        ActiveReplay::wire(self, stage)
    }
}
