//! `dropless noise`: polls without packets, and names what takes the cores away.

pub mod args;
mod gaps;

use anyhow::{Result, ensure};
use doctor::noise::summary::summarise;
use host::Sys;
use host::cores;
use measure::bucket::{Ring, SERVICE};
use report::rundir::file;

use crate::plan::{self, NoisePlan, optional, packet_rate, parse_cores};
use crate::run::finish::Finish;
use crate::run::signals::Interrupt;
use crate::run::{self, placement};
use crate::status::StatusBoard;
use crate::watch;
pub use args::Args;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let sys = Sys::live();
    let plan = plan_of(args, &sys)?;
    let board = StatusBoard::open(&args.status.settings()?, "noise")?;
    let interrupt = Interrupt::install()?;
    let console = args.output.console();
    let dir = run::directory(&args.output.place(), &plan, &board)?;
    let seen = watch::watch(&plan, &sys, console, &interrupt, Some(&board))?;
    let noise = summarise(&plan.asked(), &seen, &dir.path().display().to_string());
    let _ = dir.write_text(file::GAPS, &gaps::rows(&seen));
    let finish = Finish {
        dir: &dir,
        console,
        board: Some(&board),
    };
    let exit = finish.with(noise, |_, _| {})?;
    board.linger(&interrupt);
    Ok(exit)
}

/// The validated plan.
fn plan_of(args: &Args, sys: &Sys) -> Result<NoisePlan> {
    let mut wanted = parse_cores(args.cores.as_deref())?;
    if wanted.is_empty() {
        wanted = cores::pick(sys, 1, None, &cores::polled(sys))?
            .workers
            .into_iter()
            .collect();
    }
    cores::check(sys, &wanted)?;
    placement::ensure_one_is_left(sys, &wanted)?;
    let threshold_ns = plan::duration_ns_or_zero(&args.threshold, "--threshold")?;
    ensure!(
        threshold_ns >= 100,
        "--threshold {} is below 100ns, about what a look at the clock takes; use 200ns or more",
        args.threshold
    );
    let rate = optional(args.rate.as_deref(), "--rate", packet_rate)?;
    let service = optional(args.service.as_deref(), "--service", packet_rate)?;
    let ring = rate.map(|rate| Ring {
        rate_pps: rate,
        service_pps: service.unwrap_or(rate * SERVICE),
        free: f64::from(args.ring),
    });
    if let Some(ring) = ring {
        ensure!(
            ring.service_pps > ring.rate_pps,
            "--service {} is not above --rate: such a receiver never catches up, stalls or no stalls",
            args.service.as_deref().unwrap_or_default()
        );
    }
    ensure!(args.ring > 0, "--ring 0 holds nothing; 1024 is usual");
    let duration = plan::trial_duration("--duration", &args.duration)?;
    Ok(NoisePlan {
        cores: wanted,
        duration_ns: duration.as_nanos() as u64,
        threshold_ns,
        slots: args.ring,
        ring,
        trace: !args.no_trace,
    })
}
