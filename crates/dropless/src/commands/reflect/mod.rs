//! `dropless reflect`: returns what arrives on its ports until it is told to stop.

pub mod args;
mod publish;
pub mod result;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use dataplane::reflector_counters::OwnCounters;
use dataplane::dpdk_io::{DpdkReceive, DpdkTransmit};
use dataplane::fault::{self, FaultCounters, Faults};
use dataplane::io::{Allocate, FramesMut};
use dataplane::reflect::{ReflectCounters, ReflectPlan as TaskPlan, ReflectTask};
use dataplane::slot::Slot;
use dataplane::worker::{Control, WorkerCounters};
use dataplane::{Phase, Task};
use dpdk::{Pool, PortConfig};
use host::{PortKind, PortUri};
use report::live::{Live, Snapshot, Traffic};
use report::out::Console;
use report::rows::RowWriter;
use report::rundir::{RunDir, file};
use wire::Addresses;

use crate::explain::Explainer;
use crate::live::{Board, StallWatch};
use crate::plan::ReflectPlan;
use crate::run::clock::{RunClock, now};
use crate::run::glance;
use crate::run::open::{self, OpenPort, Rx, Tx};
use crate::run::page;
use crate::run::peer::{Patience, Wait};
use crate::run::placement;
use crate::run::pools::Pools;
use crate::run::session::{self, Needs};
use crate::run::signals::Interrupt;
use crate::run::workers::{Running, Worker};
pub use args::ReflectArgs as Args;
use args::ReflectArgs;
use publish::Teller;
use result::{Ending, Side};

/// How often the control thread looks.
const TICK: Duration = Duration::from_millis(50);
/// The same where missed packets are joined to pauses: the finer, the surer.
const TICK_EXPLAIN: Duration = Duration::from_millis(5);
/// Rows that may wait for the disk.
const ROWS_WAITING: usize = 4096;
/// How long a full transmit queue is waited for.
const HOLD_NS: u64 = 100_000_000;
/// Probes that the injector delays at once, at most.
const DELAYED_MAX: usize = 4096;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &ReflectArgs) -> Result<u8> {
    let plan = ReflectPlan::from_args(args)?;
    let board = Board::open(&args.live, "reflect")?;
    let interrupt = Interrupt::install()?;
    let console = Console {
        json: args.output.json,
        quiet: args.output.quiet,
    };
    let ground = session::check(&plan.machine, &needs(&plan))?;
    let _awake = session::awake_cores();
    let dir = RunDir::create(&args.output.runs, "reflect", SystemTime::now())?;
    let _ = dir.write_json(file::PLAN, &plan);
    let _ = dir.write_json(file::HOST, &session::host_facts());
    board.run_is_in(dir.path());
    let wait = (patience(&plan, console), &interrupt);
    let (eal, devices) = session::start_eal(&plan.machine, &ground, plan.queues, args.start.verbose, wait)?;
    let pools = session::make_pools(eal.as_ref(), &ground)?;
    let pools = pools.as_ref();
    let mut notes = ground.notes.clone();
    notes.extend(board.note());
    let config = PortConfig {
        rx_queues: plan.queues,
        tx_queues: plan.queues,
        rx_descriptors: plan.machine.descriptors,
        tx_descriptors: plan.machine.descriptors,
        ..PortConfig::default()
    };
    if plan.fault.is_some() {
        notes.push(format!(
            "seed {0}: --seed {0} injects the same faults again",
            plan.seed
        ));
    }
    for pool in pools.map_or(&[][..], Pools::all) {
        prefill_null(&plan, pool)?;
    }
    let mut ports = Vec::new();
    for (index, (uri, device)) in ground.ports.iter().zip(&devices).enumerate() {
        let dpdk = pools.map(|pools| pools.of_port(index));
        let open = open::open(dpdk, uri, device, &config, &plan.sockets(), wait)?;
        notes.extend(open.notes());
        ports.push(open);
    }
    let tasks = ports.iter().map(|port| port.rx.len().min(port.tx.len())).sum();
    let (cores, note) = placement::worker_cores(&plan.machine, tasks, ground.numa_node)?;
    notes.extend(note);
    if !args.start.no_doctor {
        glance::tell(console, &cores, &ground.ports, &dir);
    }
    let summary = reflect(
        &plan, pools, ports, &cores, &dir, console, &interrupt, notes, &board,
    )?;
    let _ = dir.write_reflect_summary(&summary);
    publish::end(&board, &summary);
    page::leave(&dir, console);
    console.human(&report::terminal::render_reflect(&summary, &console.style()))?;
    console.object(&summary)?;
    board.linger(&interrupt);
    Ok(summary.exit_code())
}

/// What a reflecting run wants of its ports.
fn needs(plan: &ReflectPlan) -> Needs {
    let by_injector = plan.fault.as_ref().map_or(0, |_| fault::buffers_held(DELAYED_MAX));
    Needs {
        queues: (plan.queues, plan.queues),
        largest_frame: 1518,
        held_per_queue: dataplane::reflect::buffers_held(plan.machine.burst) + by_injector,
    }
}

/// A null port makes frames from whatever its buffers hold: so that there is something to return, they hold a probe.
pub fn prefill_null(plan: &ReflectPlan, pool: &Pool<'_>) -> Result<()> {
    let size = plan.machine.ports.iter().find_map(|port| match port.kind {
        PortKind::Null { size, .. } => Some(size.unwrap_or(60)),
        _ => None,
    });
    let Some(size) = size else { return Ok(()) };
    let template = wire::Template::new(&wire::TemplateSpec {
        src_mac: [2, 0, 0, 0, 0, 1],
        dst_mac: [2, 0, 0, 0, 0, 2],
        vlans: Vec::new(),
        src: ([198, 18, 0, 1], 49152).into(),
        dst: ([198, 18, 0, 2], 7).into(),
        frame_size: size as usize + wire::FCS_LEN,
        ttl: 64,
        dscp: 0,
        run: 0,
        lane: 0,
        flows: 1,
        dst_ports: 7..=7,
    })?;
    pool.prefill(template.bytes());
    Ok(())
}

#[allow(
    clippy::too_many_arguments,
    clippy::too_many_lines,
    reason = "the run's whole environment, once, and its wiring"
)]
fn reflect<'e>(
    plan: &ReflectPlan,
    pools: Option<&Pools<'e>>,
    mut ports: Vec<OpenPort<'e>>,
    cores: &[usize],
    dir: &RunDir,
    console: Console,
    interrupt: &Interrupt,
    notes: Vec<String>,
    board: &Board,
) -> Result<measure::ReflectSummary> {
    let clock = RunClock::calibrate(cores);
    let mut sides = Vec::new();
    let mut workers: Vec<Worker<'_>> = cores.iter().map(|core| Worker::new(*core)).collect();
    let own_counters: Vec<Arc<OwnCounters>> = ports.iter().map(|_| Arc::default()).collect();
    for (index, open) in ports.iter_mut().enumerate() {
        let me = Addresses {
            mac: open.mac,
            ips: plan.addresses.clone(),
        };
        let cold = open.is_cold();
        let dpdk = pools.map(|pools| pools.of_port(index));
        for (queue, (rx, tx)) in open.rx.drain(..).zip(open.tx.drain(..)).enumerate() {
            let worker = sides.len() % workers.len();
            let faults = Arc::new(FaultCounters::default());
            let counters = ReflectCounters::new();
            let seed = plan.seed.wrapping_add(sides.len() as u64);
            let task = TaskPlan {
                only_ours: plan.only_ours,
                me: me.clone(),
                burst: plan.machine.burst,
                hold_ticks: clock.clock.ticks_from_ns(HOLD_NS),
                counters: Arc::clone(&counters),
                own_counters: Some(Arc::clone(&own_counters[index])),
            };
            let (totals, leave) = Slot::new();
            let task: Box<dyn Task + '_> = match (rx, tx, dpdk) {
                (Rx::Socket(rx), Tx::Socket(tx), _) => {
                    let faults = injector(plan, seed, &clock, tx.buffers(), &faults);
                    Box::new(ReflectTask::new(*rx, *tx, task, faults, leave))
                }
                (Rx::Device(rx), Tx::Device(tx), Some(dpdk)) => Box::new(ReflectTask::new(
                    DpdkReceive::new(dpdk.eal, rx, cold),
                    DpdkTransmit::new(dpdk.eal, tx),
                    task,
                    injector(plan, seed, &clock, dpdk.buffers(), &faults),
                    leave,
                )),
                _ => continue,
            };
            sides.push(Side {
                port: index,
                queue,
                core: workers[worker].core,
                counters,
                faults,
                totals,
            });
            workers[worker].add("reflect", task);
        }
    }
    let roles: Vec<_> = workers
        .iter()
        .map(|worker| (worker.core, worker.roles.clone()))
        .collect();
    let published: Vec<WorkerCounters> = workers.iter().map(|_| WorkerCounters::default()).collect();
    let control = Control::default();
    placement::leave_to_workers(cores);
    let mut rows = dir
        .keep(RowWriter::create(
            &dir.file(file::INTERVALS),
            HEADER,
            ROWS_WAITING,
        ))
        .ok();
    let mut explainer = Explainer::start(&plan.machine, cores, &ports);
    let (begun, start) = (Instant::now(), now());
    let pause_ticks = clock.clock.ticks_from_ns(plan.machine.pause_ns);
    let stalls = StallWatch::new(&roles, &published, clock.clock, pause_ticks);
    let mut teller = Teller::new(board, pools, stalls);
    let (left, active) = std::thread::scope(|scope| -> Result<_> {
        let running = Running::start(scope, workers, &control, &published, pause_ticks)?;
        control.set(Phase::Run);
        let active = watch(
            plan,
            &mut ports,
            &sides,
            &own_counters,
            console,
            interrupt,
            &running,
            rows.as_mut(),
            dir.path(),
            explainer.as_mut(),
            &mut teller,
        );
        control.set(Phase::Stop);
        Ok((running.join(), active))
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    if let Some(rows) = rows {
        let _ = dir.keep(rows.finish());
    }
    let ending = Ending {
        left,
        explainer,
        start,
        active,
        seconds,
        roles,
        published,
        clock,
        notes,
    };
    Ok(result::summarise(
        ports,
        pools,
        &sides,
        ending,
        dir,
    ))
}

/// What injects the faults of the plan into frames of either kind.
fn injector<A: Allocate<Frames: FramesMut>>(
    plan: &ReflectPlan,
    seed: u64,
    clock: &RunClock,
    buffers: A,
    counters: &Arc<FaultCounters>,
) -> Option<Faults<A>> {
    let spec = plan.fault.as_ref()?;
    Some(Faults::new(
        spec,
        seed,
        clock.clock.hz(),
        DELAYED_MAX,
        buffers,
        Arc::clone(counters),
    ))
}

const HEADER: &str = "time,rx_packets,tx_packets,dropped\n";

/// A reflector waits for its peers for ever, and says so after `--wait` where anything is to be said.
fn patience(plan: &ReflectPlan, console: Console) -> Patience {
    Patience::Forever(if console.quiet {
        Duration::MAX
    } else {
        Duration::from_nanos(plan.machine.wait_ns)
    })
}

/// Shows and records until the run is over.
#[allow(clippy::too_many_arguments, reason = "everything that can be seen")]
fn watch(
    plan: &ReflectPlan,
    ports: &mut [OpenPort<'_>],
    sides: &[Side],
    own_counters: &[Arc<OwnCounters>],
    console: Console,
    interrupt: &Interrupt,
    running: &Running<'_>,
    mut rows: Option<&mut RowWriter<String>>,
    path: &Path,
    mut explainer: Option<&mut Explainer>,
    teller: &mut Teller<'_>,
) -> Duration {
    if !console.quiet {
        let uris: Vec<String> = ports.iter().map(|open| open.uri.to_string()).collect();
        let _ = report::out::print_stderr(&format!(
            "reflecting on {}; Ctrl-C ends it; results in {}\n",
            uris.join(", "),
            path.display()
        ));
    }
    let uris: Vec<PortUri> = ports.iter().map(|open| open.uri.clone()).collect();
    let mut waits: Vec<Wait<'_>> = uris
        .iter()
        .map(|uri| Wait::new(uri, patience(plan, console)))
        .collect();
    let mut live = Live::stderr(console.quiet);
    let begun = Instant::now();
    let interval = Duration::from_nanos(plan.interval_ns);
    let mut next_row = interval;
    let (mut row_base, mut live_base) = (result::total(sides), result::total(sides));
    let (mut live_at, mut moved_at) = (begun, begun);
    let mut rates = (0.0, 0.0);
    let plan_is_quiet = console.quiet;
    let (mut active, mut seen, mut looked) = (Duration::ZERO, 0, begun);
    loop {
        let until = begun.elapsed() + if explainer.is_some() { TICK_EXPLAIN } else { TICK };
        while next_row <= until {
            std::thread::sleep(next_row.saturating_sub(begun.elapsed()));
            let now = result::total(sides);
            if let Some(rows) = rows.as_mut() {
                rows.push(now.row(next_row, &row_base));
            }
            row_base = now;
            next_row += interval;
        }
        std::thread::sleep(until.saturating_sub(begun.elapsed()));
        for (open, wait) in ports.iter_mut().zip(&mut waits) {
            if !open.tend().up && open.tending.losses == 0 {
                // Never over; says once that nobody has come.
                let _ = wait.is_over();
            }
        }
        if let Some(explainer) = &mut explainer {
            explainer.look(ports);
        }
        for (index, (open, own)) in ports.iter().zip(own_counters).enumerate() {
            own.publish(result::own_counters(index, open, sides));
        }
        let now = result::total(sides);
        let elapsed = begun.elapsed();
        if now.received > seen {
            active += looked.elapsed();
        }
        (seen, looked) = (now.received, Instant::now());
        let since = live_at.elapsed().as_secs_f64();
        if since >= 0.5 && (plan_is_quiet || live.is_due(elapsed)) {
            rates = (
                (now.received - live_base.received) as f64 / since,
                (now.returned - live_base.returned) as f64 / since,
            );
            if now.received > live_base.received {
                moved_at = Instant::now();
            }
            live_base = now;
            live_at = Instant::now();
        }
        let planned = plan.duration_ns.map(Duration::from_nanos);
        teller.tell(sides, ports, elapsed, planned);
        live.update(&Snapshot {
            phase: "reflecting".into(),
            elapsed,
            done: planned.map(|planned| (elapsed.as_secs_f64() / planned.as_secs_f64()).min(1.0)),
            planned,
            traffic: Traffic::Reflect {
                rate_rx_pps: rates.0,
                rate_tx_pps: rates.1,
                received: now.received,
                returned: now.returned,
                dropped: now.dropped,
            },
        });
        let idle = plan.idle_exit_ns.is_some_and(|idle| {
            now.received > 0
                && now.received == live_base.received
                && moved_at.elapsed() > Duration::from_nanos(idle)
        });
        if interrupt.is_set()
            || idle
            || running.ended_early().is_some()
            || ports.iter().any(OpenPort::is_gone)
            || planned.is_some_and(|planned| elapsed >= planned)
        {
            break;
        }
    }
    live.finish();
    active
}
