//! `dropless doctor`: what on this machine will take a polling core away, and what mends it.

pub mod args;
mod show;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Result, ensure};
use doctor::{Finding, Load, Subject, Verdict, Watched};
use host::cores::{self, CoreSet};
use host::{PortUri, Sys};
use report::out::Console;
use serde::Serialize;

use crate::plan::{machine, optional, packet_rate};
pub use args::Args;

/// Version of what `--json` prints.
const VERSION: u32 = 1;
/// A watch is a look, not a vigil.
const WATCH_MAX: Duration = Duration::from_secs(3600);

/// What `--json` prints.
#[derive(Serialize)]
struct Examination {
    version: u32,
    /// The cores that will poll.
    workers: CoreSet,
    /// The cores that everything else may have.
    housekeeping: CoreSet,
    /// How long the counters were watched, ns.
    watched_ns: u64,
    findings: Vec<Finding>,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let sys = Sys::live();
    let ports = machine::parse_ports(&args.ports, "--port")?;
    let asked = machine::parse_cores(args.cores.as_deref())?;
    let watch = watch_time(&args.watch)?;
    let load = Load {
        rate_pps: optional(args.rate.as_deref(), "--rate", packet_rate)?,
        descriptors: args.descriptors,
    };
    ensure!(
        load.descriptors != Some(0),
        "--descriptors 0 is not a ring; 1024 is usual"
    );
    let plan = plan(&sys, asked, &ports)?;
    ensure!(
        !plan.workers.is_empty(),
        "no core to examine: /sys/devices/system/cpu/online names none; fix: mount -t sysfs sysfs /sys"
    );
    let mut subject = Subject {
        sys: &sys,
        workers: plan.workers,
        housekeeping: plan.housekeeping,
        ports,
        watched: Watched::at_a_glance(&sys),
        load,
    };
    if !watch.is_zero() {
        subject.watched = Watched::for_a(watch, &sys);
        // Only then: what a loop of ours does to the counters is not what is asked for.
        doctor::measure_stalls(&mut subject, watch);
    }
    let findings = doctor::examine(&subject);
    let is_good = findings.iter().all(|finding| finding.verdict < Verdict::Warning);
    let examination = Examination {
        version: VERSION,
        workers: subject.workers,
        housekeeping: subject.housekeeping,
        watched_ns: subject.watched.over.as_nanos() as u64,
        findings,
    };
    let console = Console::json_or_text(args.json);
    console.either(&examination, &show::report(&examination, &console.style()))?;
    Ok(u8::from(!is_good))
}

/// The cores the user named, if they are there; else some that suit the ports.
fn plan(sys: &Sys, asked: CoreSet, ports: &[PortUri]) -> Result<doctor::Proposal> {
    if asked.is_empty() {
        return Ok(doctor::propose(sys, ports)?);
    }
    // Cores that this shell may not use can be planned on all the same.
    if !asked.without(&cores::online(sys)).is_empty() {
        cores::check(sys, &asked)?;
    }
    Ok(doctor::beside(sys, asked))
}

fn watch_time(text: &str) -> Result<Duration> {
    if text.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    let time = measure::units::parse_duration(text).map_err(|error| anyhow::anyhow!("--watch: {error}"))?;
    ensure!(
        time <= WATCH_MAX,
        "--watch {text} is long; an hour is the most, and 10s usually tell"
    );
    Ok(time)
}
