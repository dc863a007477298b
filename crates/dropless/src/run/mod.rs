//! The life of a packet run, told once: what is refused before it starts (`preflight`), its start (`start`), its
//! control (`control`) and its close (`close`). A subcommand gives it a [`Job`].

mod below;
pub(crate) mod buffers;
pub(crate) mod capture_input;
pub(crate) mod child;
pub(crate) mod claim;
pub(crate) mod clock;
pub(crate) mod close;
pub(crate) mod control;
mod cut_in_file;
pub(crate) mod departure;
pub(crate) mod eal;
pub(crate) mod finish;
pub(crate) mod forward;
pub(crate) mod generator;
pub(crate) mod glance;
pub(crate) mod judging;
pub(crate) mod kernel_counts;
pub(crate) mod kernel_port;
pub(crate) mod link_losses;
pub(crate) mod links;
pub(crate) mod listening;
pub(crate) mod on_interface;
pub(crate) mod open;
pub(crate) mod opening;
pub(crate) mod output;
pub(crate) mod parent;
pub(crate) mod peer;
pub(crate) mod placement;
pub(crate) mod pools;
pub(crate) mod preflight;
pub(crate) mod privileges;
pub(crate) mod queues;
pub(crate) mod reflector;
pub(crate) mod refusing;
pub(crate) mod reload;
pub(crate) mod rulebook;
pub(crate) mod signals;
pub(crate) mod stage;
pub(crate) mod start;
pub(crate) mod sweep;
pub(crate) mod tap;
pub(crate) mod waiting;
pub(crate) mod workers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use dataplane::worker::{Control, WorkerCounters};
use dpdk::{Pool, Reading};
use host::Sys;
use measure::{Note, RunResult, Ticks};
use report::out::Console;
use report::published::{PoolLevel, State};
use report::rundir::{RunDir, file};
use serde::Serialize;

use crate::about::About as _;
use crate::at_end::AtEnd;
use crate::explain::{Explainer, Received};
use crate::plan::MachinePlan;
use crate::status::{Expected, StallWatch, StatusBoard, StatusSettings, end_workers};
use clock::RunClock;
use close::{Closed, Ending};
use control::{Generations, Look, Watch};
use finish::{Finish, Outcome};
use kernel_port::SocketConfig;
use open::OpenPort;
use peer::Patience;
use pools::Pools;
use preflight::Preflight;
use privileges::Kept;
use signals::{Hangup, Interrupt};
use stage::Stage;
use tap::Taps;
use workers::{Running, Thresholds};

/// How a run is told and where it writes, whatever its job is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who is told what on the terminal.
    pub console: Console,
    /// Where its directory is made, and what it is called.
    pub place: Place,
    /// How it is watched from outside.
    pub status: StatusSettings,
    /// Show DPDK's own log.
    pub verbose: bool,
    /// The machine is looked at for what may cost packets before the start.
    pub has_doctor: bool,
}

/// Where a run directory is made, and what the user calls the run.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory in which it is made.
    pub runs: PathBuf,
    /// What the user calls the run.
    pub label: Option<String>,
}

impl Place {
    /// Makes the directory of a run of `command`.
    pub(crate) fn make(&self, command: &str) -> Result<RunDir> {
        let dir = RunDir::create(&self.runs, command, SystemTime::now())?;
        Ok(dir.called(self.label.as_deref()))
    }
}

/// What a job needs of the machine.
pub struct Needs {
    /// Receive queues a port.
    pub rx_queues: u16,
    /// Transmit queues a port.
    pub tx_queues: u16,
    /// The largest frame, with FCS.
    pub largest_frame: usize,
    /// The MTU that its frames need, bytes, where it is known how many VLAN tags they have.
    pub mtu: Option<usize>,
    /// Frames of others come, too, as long as an interface carries them.
    pub takes_all: bool,
    /// Packet buffers that the tasks of a pair of queues may hold back.
    pub held_per_queue: usize,
    /// Let the NIC fill in UDP checksums.
    pub tx_checksum_offload: bool,
    /// What is wanted of sockets.
    pub sockets: SocketConfig,
    /// How long peers are waited for.
    pub patience: Patience,
    /// From one look of the control thread to the next, at most.
    pub tick: Duration,
}

/// What the run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It goes on.
    GoOn,
    /// Nothing new is sent; what is under way is waited for.
    Drain,
    /// It is over.
    Stop,
}

/// What a subcommand does with packets, before it begins. The run calls these in their order.
pub trait Job {
    /// The same, once its tasks are on their queues.
    type Active: Active;

    /// The subcommand.
    const COMMAND: &'static str;

    /// What `plan.json` holds.
    fn plan(&self) -> &impl Serialize;
    /// The ports, cores and memory of the plan.
    fn machine(&self) -> &MachinePlan;
    /// What it needs of the machine.
    fn needs(&self) -> Result<Needs>;
    /// Writes into the buffers of a pool before any port has them.
    fn prefill(&self, _pool: &Pool<'_>) -> Result<()> {
        Ok(())
    }
    /// The ports are open: waits for links, asks for neighbours; the result is what the user should know.
    fn meet<'e>(
        &mut self,
        pools: Option<&Pools<'e>>,
        ports: &mut [OpenPort<'e>],
        interrupt: &Interrupt,
    ) -> Result<Vec<Note>>;
    /// How many workers it would have at best.
    fn workers(&self, ports: &[OpenPort<'_>]) -> usize;
    /// From the start of the workers to the first packet, ns; 0 where it has no schedule.
    fn lead_ns(&self) -> u64 {
        0
    }
    /// What SIGHUP asks of it.
    fn hangup(&self) -> Hangup {
        Hangup::End
    }
    /// What should move, for whoever watches.
    fn expected(&self) -> Expected {
        Expected::default()
    }
    /// Puts its tasks onto the queues of the ports.
    fn wire<'p, 'e: 'p>(self, stage: &mut Stage<'_, 'p, 'e>) -> Result<Self::Active>;
}

/// A job whose tasks are on their queues. [`Active::step`] and [`Active::status`] are called again and again, on the
/// control thread, which no worker waits for.
pub trait Active {
    /// What it comes to.
    type Summary: Summary;
    /// What its workers move before the run begins is in its totals: so is what ports lose of that.
    const COUNTS_EARLY: bool = false;

    /// All workers of a job with a schedule poll, and nothing is sent yet; the result is lines for whoever looks on.
    fn ready(&mut self, _look: &Look<'_, '_>) -> Option<String> {
        None
    }
    /// One look: finished intervals are written, and the job says how to go on.
    fn step(&mut self, look: &Look<'_, '_>) -> Next;
    /// A line for whoever looks on, when something has changed that they should know at once.
    fn says(&mut self) -> Option<String> {
        None
    }
    /// When it wants its next look, if that is before the next tick.
    fn wakes_at(&self) -> Option<Ticks> {
        None
    }
    /// The run now: phase, counts, latencies, queues and drops. The run adds what every run has.
    fn status(&self, look: &Look<'_, '_>) -> State;
    /// What of that state follows from all its places, those of the drivers among them.
    fn settle(&self, _state: &mut State) {}
    /// Nothing more is taken from now on.
    fn stopped(&mut self) {}
    /// The workers have ended, their totals are in their slots: the files that were streamed are ended.
    fn joined(&mut self, _dir: &RunDir, _ports: &[OpenPort<'_>]) {}
    /// Who received from which port, how fast, and what was missing.
    fn received(&self) -> Vec<Received<'_>>;
    /// The result, which the run writes. Ports and pool are closed and counted.
    fn close(self, ending: Ending<'_>) -> Self::Summary;
}

/// What a run comes to.
pub trait Summary: Outcome + RunResult {
    /// Makes the totals of `state` those of the result, and its places those of the ledger. What a driver took stays as it is
    /// (`Totals::sent`), whatever of it was not sent: a counter of metrics never falls.
    fn total(&self, state: &mut State);

    /// The time that its rates are of, s.
    fn rated_s(&self) -> f64 {
        self.duration_s()
    }

    /// Makes the state that was told last what the result says.
    fn settle(&self, state: &mut State) {
        self.total(state);
        state.elapsed_s = self.duration_s();
        state.rate.over_s = self.rated_s();
        state.ports = RunResult::ports(self).to_vec();
        state.queues = self.queues().to_vec();
        end_workers(&mut state.workers, RunResult::workers(self));
    }
}

/// Runs `job` from the first check to the printed result, which is its exit code.
pub fn run<J: Job>(job: J, settings: &Settings) -> Result<u8> {
    let begun = Reading::now();
    // Before there is a second thread.
    dpdk::ask_for_barriers();
    let board = StatusBoard::open(&settings.status, J::COMMAND)?;
    let interrupt = Interrupt::install_with(job.hangup())?;
    let needs = job.needs()?;
    let (_claims, removed) = claim::claim(&job.machine().ports).about("--port")?;
    // Before hugepages are counted.
    sweep::sweep_pages();
    let mut preflight = preflight::check(job.machine(), &needs)?;
    preflight.notes.extend(removed);
    // No core sleeps deeply while the run lasts, where we may ask for that.
    let _awake = host::awake::awake(&Sys::live());
    let dir = directory(&settings.place, job.plan(), &board)?;
    for port in &preflight.abandoned {
        port.make_way(&Sys::live())?;
    }
    // They go after the environment that uses them.
    let _pages = (preflight.memory == eal::Memory::Shared).then(|| sweep::OwnPages);
    let (eal, devices) = start::eal(job.machine(), &preflight, &needs, settings.verbose, &interrupt)?;
    let make_pools = |eal| preflight.pools.make(eal, preflight.room);
    let mut pools = eal.as_ref().map(make_pools).transpose()?;
    for pool in pools.as_ref().map_or(&[][..], Pools::all) {
        job.prefill(pool)?;
    }
    let ports = start::ports(pools.as_ref(), &preflight, &devices, &needs, &interrupt)?;
    let run = Run {
        settings,
        begun,
        needs: &needs,
        preflight: &preflight,
        pools: pools.as_ref(),
        dir: &dir,
        interrupt: &interrupt,
        board: &board,
    };
    let (job, closed) = run.go(job, ports)?;
    let summary = job.close(closed.count(pools.as_mut()));
    let finish = Finish {
        dir: &dir,
        console: settings.console,
        board: Some(&board),
    };
    let exit = finish.with(summary, Summary::settle)?;
    board.linger(&interrupt);
    Ok(exit)
}

/// The directory of a run that begins at `place`, with its plan and what the machine is.
pub(crate) fn directory(place: &Place, plan: &impl Serialize, board: &StatusBoard) -> Result<RunDir> {
    let dir = plain_directory(place, plan, &board.told().process.command)?;
    board.run_is_in(dir.path());
    Ok(dir)
}

/// The same for what nobody watches.
pub(crate) fn plain_directory(place: &Place, plan: &impl Serialize, command: &str) -> Result<RunDir> {
    let dir = place.make(command)?;
    let _ = dir.write_labelled(file::PLAN, plan);
    let _ = dir.write_json(file::HOST, &preflight::host_facts());
    Ok(dir)
}

/// A number that no other run has: seeded by the kernel, unlike a clock, which two that start together may share.
pub(crate) fn random() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), ())
}

/// The environment of one run.
struct Run<'r, 'e> {
    settings: &'r Settings,
    /// What the calibration of the clock begins with: all that the start takes is time to measure it.
    begun: Reading,
    needs: &'r Needs,
    preflight: &'r Preflight,
    pools: Option<&'e Pools<'e>>,
    dir: &'r RunDir,
    interrupt: &'r Interrupt,
    board: &'r StatusBoard,
}

impl<'r, 'e> Run<'r, 'e> {
    /// How many buffers there are, and how many are free; none where no port is DPDK's.
    fn pool_level(&self) -> PoolLevel {
        let pools = self.pools.map_or(&[][..], Pools::all);
        PoolLevel {
            size: pools.iter().map(|pool| pool.size() as u64).sum(),
            free: pools.iter().map(|pool| pool.available() as u64).sum(),
        }
    }

    /// Until its ports are closed.
    fn go<J: Job>(&self, mut job: J, mut ports: Vec<OpenPort<'e>>) -> Result<(J::Active, Closed<'r>)> {
        let mut notes = self.preflight.notes.clone();
        notes.extend(job.meet(self.pools, &mut ports, self.interrupt)?);
        notes.extend(ports.iter().flat_map(OpenPort::notes));
        let machine = job.machine();
        let numa = self.preflight.numa_node;
        let turn = placement::Turn::take();
        let (cores, told) = placement::worker_cores(machine, job.workers(&ports), numa)?;
        notes.splice(0..0, told);
        if self.settings.has_doctor {
            glance::tell(self.settings.console, &cores, &self.preflight.ports, self.dir);
        }
        let _home = placement::home();
        let clock = RunClock::calibrate(&cores, &self.begun);
        let published: Vec<Arc<WorkerCounters>> = cores.iter().map(|_| Arc::default()).collect();
        let rooms = workers::rooms(cores.len());
        let explainer = Explainer::start(machine, (&cores, &published, &rooms), &ports);
        // All is open that root had to open; what is started from here on has no more rights than this thread keeps.
        let kept = Kept::with(&self.preflight.ports, machine.explain);
        notes.extend(kept.drop_the_rest());
        let thresholds = Thresholds::new(machine.pause_ns, &clock.clock);
        let lead = clock.clock.ticks_from_ns(job.lead_ns());
        let start = Ticks(dpdk::tsc() + lead);
        let on = (&cores[..], &published[..]);
        let mut stage = Stage::new(self.pools, &mut ports, on, (clock.clock, start), self.dir);
        let (has_schedule, expected) = (lead > 0, job.expected());
        let mut job = job.wire(&mut stage)?;
        let taps = Taps::open(stage.take_taps(), &clock.clock);
        notes.extend(taps.note.clone());
        let workers = stage.into_workers();
        let roles: workers::Roles = workers
            .iter()
            .map(|worker| (worker.core, worker.roles.clone()))
            .collect();
        let control = Control::default();
        placement::leave_to_workers(&cores);
        let stalls = StallWatch::new(&roles, &published, clock.clock, thresholds.told);
        let times = (Generations::new(&control, &published), clock.clock, start);
        let mut watch = Watch::new(self, &mut ports, explainer, (stalls, taps), expected, times);
        let left = std::thread::scope(|scope| -> Result<_> {
            // The scope waits for the workers, whatever ends this: an error, or a panic.
            let _stop = AtEnd(|| control.set(dataplane::Phase::Stop));
            let allowed = (self.pools.map(Pools::eal), kept);
            if J::Active::COUNTS_EARLY {
                watch.begin();
            }
            let running = Running::start(
                scope,
                allowed,
                workers,
                &control,
                &published,
                (&rooms, thresholds),
            )?;
            watch.run(&control, &running, &mut job, (has_schedule, turn));
            Ok(running.join())
        })
        .context("cannot start the workers")?;
        let seen = watch.finish(&mut job);
        let closing = close::Closing {
            dir: self.dir,
            clock,
            start,
            left,
            seen,
            roles,
            published,
            notes,
        };
        let closed = closing.close(ports, self.pools, &job.received());
        Ok((job, closed))
    }
}
