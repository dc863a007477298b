//! `dropless send`: probes out, probes back, and an account of every one.

pub mod args;
mod books;
mod control;
mod far;
mod load;
mod publish;
mod result;
mod tasks;
mod waiting;

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use dataplane::worker::{Control, WorkerCounters};
use dpdk::PortConfig;
use measure::Ticks;
use report::out::Console;
use report::rundir::{RunDir, file};

use crate::explain::Explainer;
use crate::live::{Board, StallWatch};
use crate::plan::SendPlan;
use crate::run::clock::RunClock;
use crate::run::glance;
use crate::run::open::{self, OpenPort};
use crate::run::page;
use crate::run::peer::Patience;
use crate::run::pools::Pools;
use crate::run::placement;
use crate::run::session::{self, Ground};
use crate::run::signals::Interrupt;
use crate::run::workers::Running;
pub use args::SendArgs as Args;
use args::SendArgs;
use control::Watch;
use far::FarSides;
use publish::Teller;
use result::Ending;
use tasks::Times;

/// From the start of the workers to the first packet: they must poll by then.
const LEAD_NS: u64 = 50_000_000;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &SendArgs) -> Result<u8> {
    let plan = match &args.plan {
        Some(path) => SendPlan::load(path)?,
        None => SendPlan::from_args(args)?,
    };
    let board = Board::open(&args.live, "send")?;
    let interrupt = Interrupt::install()?;
    let console = Console {
        json: args.output.json,
        quiet: args.output.quiet,
    };
    let ground = session::check(&plan.machine, &tasks::needs(&plan)?)?;
    let _awake = session::awake_cores();
    let dir = RunDir::create(&args.output.runs, "send", SystemTime::now())?;
    let _ = dir.write_json(file::PLAN, &plan);
    let _ = dir.write_json(file::HOST, &session::host_facts());
    board.run_is_in(dir.path());
    let queues = plan.rx_queues.max(plan.tx_queues);
    let wait = (
        Patience::Until(Duration::from_nanos(plan.machine.wait_ns)),
        &interrupt,
    );
    let (eal, devices) = session::start_eal(&plan.machine, &ground, queues, args.start.verbose, wait)?;
    let pools = session::make_pools(eal.as_ref(), &ground)?;
    let pools = pools.as_ref();
    let config = PortConfig {
        rx_queues: plan.rx_queues,
        tx_queues: plan.tx_queues,
        rx_descriptors: plan.machine.descriptors,
        tx_descriptors: plan.machine.descriptors,
        max_frame_size: plan.largest_frame()?,
        tx_checksum_offload: plan.checksum_offload,
        ..PortConfig::default()
    };
    let mut ports = Vec::new();
    for (index, (uri, device)) in ground.ports.iter().zip(&devices).enumerate() {
        let dpdk = pools.map(|pools| pools.of_port(index));
        ports.push(open::open(dpdk, uri, device, &config, &plan.sockets()?, wait)?);
    }
    open::wait_for_links(&mut ports, Duration::from_nanos(plan.machine.wait_ns), &interrupt)?;
    let run = Run {
        plan: &plan,
        pools,
        ground: &ground,
        dir: &dir,
        console,
        interrupt: &interrupt,
        board: &board,
        has_doctor: !args.start.no_doctor,
    };
    let summary = run.go(ports)?;
    publish::end(&board, &summary);
    page::leave(&dir, console);
    console.human(&report::terminal::render(&summary, &console.style()))?;
    console.object(&summary)?;
    board.linger(&interrupt);
    Ok(summary.exit_code())
}

/// The environment of one run.
struct Run<'r, 'e> {
    plan: &'r SendPlan,
    pools: Option<&'r Pools<'e>>,
    ground: &'r Ground,
    dir: &'r RunDir,
    console: Console,
    interrupt: &'r Interrupt,
    board: &'r Board,
    /// The machine is looked at before the start.
    has_doctor: bool,
}

impl<'e> Run<'_, 'e> {
    fn go(&self, mut ports: Vec<OpenPort<'e>>) -> Result<measure::Summary> {
        let plan = self.plan;
        let mut notes = self.ground.notes.clone();
        notes.extend(self.board.note());
        let mut loads = Vec::new();
        for (index, open) in ports.iter_mut().enumerate() {
            let mut load = load::of_port(plan, index, open)?;
            let dpdk = self.pools.map(|pools| pools.of_port(index));
            load::find_neighbours(plan, &mut load, dpdk, open, self.interrupt)?;
            notes.append(&mut load.notes);
            notes.extend(open.notes());
            loads.push(load);
        }
        let wanted = if plan.has_reflector() { 2 } else { 1 };
        let (cores, note) = placement::worker_cores(&plan.machine, wanted, self.ground.numa_node)?;
        notes.extend(note);
        if self.has_doctor {
            glance::tell(self.console, &cores, &self.ground.ports, self.dir);
        }
        let clock = RunClock::calibrate(&cores);
        let asks = !plan.tx_only && loads.iter().any(|load| load.asked);
        let lead_ns = LEAD_NS + start_up_ns(plan) + if asks { far::ASK_NS } else { 0 };
        let explainer = Explainer::start(&plan.machine, &cores, &ports);
        let start = Ticks(dpdk::tsc() + clock.clock.ticks_from_ns(lead_ns));
        let times = Times {
            clock: clock.clock,
            start,
            end: plan
                .duration_ns
                .map_or(Ticks(u64::MAX), |ns| start.after(clock.clock.ticks_from_ns(ns))),
            run: (clock.clock.ns(start).0 ^ plan.seed.wrapping_mul(0x9E37_79B9)) as u8,
        };
        let mut wiring = tasks::wire(plan, self.pools, &mut ports, &loads, &cores, times)?;
        let roles: Vec<_> = wiring
            .workers
            .iter()
            .map(|worker| (worker.core, worker.roles.clone()))
            .collect();
        let published: Vec<WorkerCounters> = cores.iter().map(|_| WorkerCounters::default()).collect();
        let far = FarSides::new(plan, &loads, &wiring.desks, times.run)?;
        let workers = std::mem::take(&mut wiring.workers);
        let control = Control::default();
        placement::leave_to_workers(&cores);
        let pause_ticks = clock.clock.ticks_from_ns(plan.machine.pause_ns);
        let stalls = StallWatch::new(&roles, &published, clock.clock, pause_ticks);
        let teller = Teller::new(self.board, self.pools, stalls, plan, &loads);
        let mut watch = Watch::new(
            plan,
            &wiring,
            &mut ports,
            self.dir,
            self.console,
            self.interrupt,
            times,
            teller,
        )
        .explaining(explainer);
        let left = std::thread::scope(|scope| -> Result<_> {
            let running = Running::start(scope, workers, &control, &published, pause_ticks)?;
            watch.run(&control, &running, far);
            Ok(running.join())
        })
        .context("cannot start the workers")?;
        let ending = Ending {
            left,
            seen: watch.finish(),
            roles,
            published,
            clock,
            times,
            notes,
        };
        Ok(result::summarise(self, ports, &loads, &wiring, ending))
    }
}

/// Time to touch the windows and intervals of many queues and lanes.
fn start_up_ns(plan: &SendPlan) -> u64 {
    let further = u64::from(plan.tx_queues.max(plan.rx_queues)) - 1;
    plan.lanes() as u64 * 20_000 + further * 25_000_000
}
