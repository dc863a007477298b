//! `dropless tune`: keeps everything else off the cores that poll, reads back what took effect, and takes it back.

pub mod args;
mod prove;
mod show;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use doctor::tune::journal::DEFAULT;
use doctor::tune::{self, Journal, Outcome, Plan, Step, Undone, boot};
use doctor::{Load, Subject, Watched, examine};
use host::cores::CoreSet;
use host::{PortUri, Sys, cores};
use report::out::Console;
use serde::Serialize;

use crate::plan::parse_cores;
pub use args::Args;
use prove::{Proof, Prover};

/// Version of what `--json` prints.
const VERSION: u32 = 1;
/// How long the kernel's counters are watched for the plan.
const WATCH: Duration = Duration::from_secs(1);
/// Exit code where something is not as it was to be.
const EXIT_REFUSED: u8 = 1;

/// What `--json` prints of a plan, and of what became of it.
#[derive(Serialize)]
struct Applied<'p> {
    version: u32,
    #[serde(flatten)]
    plan: &'p Plan,
    /// Of each step what it came to; nothing where nothing was done.
    outcomes: Vec<Outcome>,
    /// The measurements before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<Proof>,
}

/// What `--boot --json` prints.
#[derive(Serialize)]
struct Booted<'p> {
    version: u32,
    boot: &'p [boot::Argument],
    /// What became of the drop-in, where it was to be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<Outcome>,
}

/// What `--undo --json` prints.
#[derive(Serialize)]
struct TakenBack {
    version: u32,
    changes: Vec<Change>,
}

/// A change and what became of it.
#[derive(Serialize)]
struct Change {
    path: String,
    #[serde(flatten)]
    undone: Undone,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let mut sys = Sys::live();
    sys.force = args.force;
    ensure!(
        !(args.apply || args.prove || args.undo || args.write) || nix::unistd::geteuid().is_root(),
        "only root may change this machine; run it with sudo, or leave --apply, --prove, --undo and --write out to see the plan"
    );
    let console = Console::json_or_text(args.json);
    if args.undo {
        return undo(&sys, args, console);
    }
    let plan = plan(&sys, args)?;
    if args.boot {
        return command_line(&sys, args, &plan, console);
    }
    if args.dry_run || !(args.apply || args.prove) {
        let text = show::plan(&plan, args.cores.is_none(), &console.style());
        console.either(&applied(&plan, Vec::new()), &text)?;
        return Ok(0);
    }
    let mut journal = Journal::open(&sys, &args.journal)?;
    let prover = args
        .prove
        .then(|| Prover::new(&sys, &plan, &args.duration, console))
        .transpose()?;
    let before = prover.as_ref().map(Prover::measure).transpose()?;
    ensure!(
        !before.as_ref().is_some_and(|noise| noise.interrupted),
        "interrupted before anything was changed"
    );
    console.human(&show::heading(&plan, &console.style()))?;
    let outcomes = apply(&sys, &plan, &mut journal, console)?;
    let code = exit_code(&outcomes);
    let mut text = show::ending(&plan, &outcomes, &console.style());
    let mut applied = applied(&plan, outcomes);
    if let (Some(prover), Some(before)) = (prover, before) {
        let proof = Proof::new(before, prover.measure()?);
        text = prove::show(&proof, &console.style()) + &text;
        applied.proof = Some(proof);
    }
    console.either(&applied, &text)?;
    Ok(code)
}

/// The plan for the cores, from what the doctor finds now.
fn plan(sys: &Sys, args: &Args) -> Result<Plan> {
    let ports: Vec<PortUri> = args
        .nics
        .iter()
        .map(|text| text.parse().with_context(|| "--nic"))
        .collect::<Result<_>>()?;
    let workers = match &args.cores {
        Some(list) => parse_cores(Some(list))?,
        None => propose(sys, args, &ports)?,
    };
    // Not whether this process may run there: tune is what makes room for those that will.
    let absent = workers.without(&cores::online(sys));
    ensure!(
        absent.is_empty(),
        "--cores: this machine has no core {absent}, or it is switched off; choose from {}",
        cores::online(sys)
    );
    let housekeeping = tune::plan::housekeeping(sys, &workers)?;
    let subject = Subject {
        sys,
        workers,
        housekeeping,
        ports,
        watched: Watched::for_a(WATCH, sys),
        load: Load::default(),
    };
    let findings = examine(&subject);
    let mut plan = tune::plan(sys, &subject.workers, &subject.ports, &findings)?;
    let drop_ins = tune::journal::texts_of(sys, &args.journal, boot::DROP_IN);
    boot::own(&mut plan.boot, &drop_ins);
    Ok(plan)
}

/// Cores for a plan; nothing is changed for cores that nobody named.
fn propose(sys: &Sys, args: &Args, ports: &[PortUri]) -> Result<CoreSet> {
    let cores = doctor::propose(sys, ports)?.workers;
    ensure!(
        !(args.apply || args.prove || args.write),
        "no cores are named, and none are changed unasked; --cores {cores} would suit this machine"
    );
    Ok(cores)
}

/// Makes the changes, and tells of each when it is done.
fn apply(sys: &Sys, plan: &Plan, journal: &mut Journal, console: Console) -> Result<Vec<Outcome>> {
    let style = console.style();
    let mut before: Option<String> = None;
    let mut told = |step: &Step, outcome: &Outcome| {
        let head = before.as_deref() != Some(step.why.as_str());
        before = Some(step.why.clone());
        // A reader who has gone away does not stop the work.
        let _ = console.human(&show::done(step, outcome, head, &style));
    };
    Ok(tune::apply(sys, plan, journal, &mut told)?)
}

/// Done, also where there was nothing to do, or where it takes effect later; but what was refused is not done.
fn exit_code(outcomes: &[Outcome]) -> u8 {
    u8::from(outcomes.iter().any(Outcome::is_refused)) * EXIT_REFUSED
}

fn command_line(sys: &Sys, args: &Args, plan: &Plan, console: Console) -> Result<u8> {
    let written = if args.write {
        let mut journal = Journal::open(sys, &args.journal)?;
        Some(boot::install(sys, &mut journal, &plan.boot)?)
    } else {
        None
    };
    let code = exit_code(written.as_slice());
    let text = show::command_line(&plan.boot, written.as_ref(), &console.style());
    let object = Booted {
        version: VERSION,
        boot: &plan.boot,
        written,
    };
    console.either(&object, &text)?;
    Ok(code)
}

fn undo(sys: &Sys, args: &Args, console: Console) -> Result<u8> {
    // Where there is no journal none is made; one that was named must be there.
    ensure!(
        args.journal.exists() || args.journal == Path::new(DEFAULT),
        "--journal {}: there is no such file; leave it out to undo what is in {DEFAULT}",
        args.journal.display()
    );
    let undone = if args.journal.exists() {
        tune::undo(sys, Journal::open(sys, &args.journal)?)?
    } else {
        Vec::new()
    };
    let changes = undone.into_iter().map(|(path, undone)| Change { path, undone });
    let object = TakenBack {
        version: VERSION,
        changes: changes.collect(),
    };
    let left = |change: &Change| matches!(change.undone, Undone::Refused { .. } | Undone::Foreign { .. });
    let code = u8::from(object.changes.iter().any(left)) * EXIT_REFUSED;
    console.either(&object, &show::undone(&object.changes, &console.style()))?;
    Ok(code)
}

fn applied(plan: &Plan, outcomes: Vec<Outcome>) -> Applied<'_> {
    Applied {
        version: VERSION,
        plan,
        outcomes,
        proof: None,
    }
}
