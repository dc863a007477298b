//! `dropless filter stop`: takes rules off an interface, whoever put them there.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow, bail};
use host::Sys;
use nix::sys::signal::Signal;
use report::number::{count, counted};
use report::out::Console;
use report::published::is_stopped;
use rules::{Totals, Verdict};
use serde::Serialize;
use xdp::{InForce, PROGRAM, StayError, Stayed};

use super::status::sums;
use crate::run::{claim, signals};

/// Version of what `--json` prints.
const VERSION: u32 = 1;
/// A run writes its page before it ends.
const PATIENCE: Duration = Duration::from_secs(30);
/// One that was stopped does not.
const STOPPED: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Take the rules off an interface: its run ends in order, and what stays there goes; all passes again
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The interface
    #[arg(value_name = "INTERFACE")]
    dev: String,
    /// Print JSON: what a filter that stayed had counted
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Stopped {
    version: u32,
    interface: String,
    /// The run that was ended.
    process: Option<u32>,
    /// Of a filter that stayed.
    allowed: u64,
    denied: u64,
    rules: Vec<Met>,
}

#[derive(Serialize)]
struct Met {
    rule: String,
    denies: bool,
    packets: u64,
    bytes: u64,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let name = &args.dev;
    let index = host::link::index(&Sys::live(), name);
    let taken = index.map(|index| take_off(name, index)).transpose()?.flatten();
    let gone = remove_gone(name)?;
    if taken.is_none() && gone.is_none() {
        host::device(&Sys::live(), name, "")?;
        bail!(
            "{name}: no rules of dropless are in force there; `dropless filter status` lists those that are"
        );
    }
    let (process, mut totals) = taken.unwrap_or_default();
    totals.add_all(&gone.unwrap_or_default());
    let judged = sums(&totals);
    let mut met: Vec<Met> = totals
        .rules
        .into_iter()
        .map(|(rule, met)| Met {
            denies: rule.verdict == Verdict::Deny,
            rule: rule.text,
            packets: met.packets,
            bytes: met.bytes,
        })
        .collect();
    met.sort_by(|one, other| (other.packets, &one.rule).cmp(&(one.packets, &other.rule)));
    let stopped = Stopped {
        version: VERSION,
        interface: name.clone(),
        process,
        allowed: judged.allowed,
        denied: judged.denied,
        rules: met,
    };
    Console::json_or_text(args.json).either(&stopped, &stopped.text())?;
    Ok(0)
}

/// Ends what is in force on an interface: the process that looked after it, and what it counted where it stayed.
fn take_off(name: &str, index: u32) -> Result<Option<(Option<u32>, Totals)>> {
    host::device(&Sys::live(), name, "")?;
    let there = InForce::on(index)?;
    let ours = there.filter(|there| there.name.as_deref() == Some(PROGRAM));
    let process = claim::holder_of(index).filter(|_| ours.is_some());
    if let Some(process) = process {
        end(process, index)?;
    }
    let (_claim, _) = claim::interface(name, index, false)?;
    let mut stayed = match Stayed::on(index) {
        Err(StayError::NotMounted(_)) => None,
        other => other?,
    };
    if let (None, None, Some(ours)) = (&stayed, process, &ours) {
        // Moved with its interface: what belongs to it lies under the name of the other namespace.
        let holder = host::xdp::holder(&Sys::live(), ours.program);
        if holder.is_none() {
            stayed = Stayed::of_program(ours.program)?;
        }
        if stayed.is_none() {
            return Err(from_elsewhere(name, holder));
        }
    }
    if stayed.is_none() && process.is_none() {
        return Ok(None);
    }
    let totals = stayed.map(Stayed::remove).transpose()?;
    Ok(Some((process, totals.unwrap_or_default())))
}

/// Removes what is left of rules that should be in force on an interface of this name, and are not; what they had counted.
fn remove_gone(name: &str) -> Result<Option<Totals>> {
    let gone = match Stayed::gone(name) {
        Err(StayError::NotMounted(_)) => Vec::new(),
        other => other?,
    };
    let mut totals: Option<Totals> = None;
    for gone in gone {
        totals.get_or_insert_default().add_all(&gone.remove()?);
    }
    Ok(totals)
}

/// Of rules that came with their interface, whose run is in another network namespace.
fn from_elsewhere(name: &str, process: Option<u32>) -> Error {
    let what = format!(
        "{name}: its rules were put in force elsewhere: in another network namespace, which it was moved from"
    );
    match process {
        Some(process) => anyhow!("{what}, by process {process}; fix: end that: kill {process}"),
        None => anyhow!(
            "{what}, or stays there by another DROPLESS_BPF_DIR than this command has; fix: set that as it was, or take it off: bpftool link list, then bpftool link detach id N"
        ),
    }
}

/// Asks a run to end, and waits for that.
fn end(process: u32, index: u32) -> Result<()> {
    signals::tell(process, Signal::SIGTERM)?;
    let begun = Instant::now();
    while claim::holder_of(index) == Some(process) {
        if begun.elapsed() > STOPPED && is_stopped(process) {
            bail!(
                "process {process} is stopped (SIGSTOP, or a debugger), and ends when it goes on; fix: kill -CONT {process}, then this again"
            );
        }
        if begun.elapsed() > PATIENCE {
            bail!("process {process} was asked to end and does not; fix: kill -9 {process}, then this again");
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

impl Stopped {
    fn text(&self) -> String {
        let ended = self
            .process
            .map_or_else(String::new, |process| format!("process {process} has ended; "));
        let mut text = format!("{ended}nothing is filtered on {} any more\n", self.interface);
        if !self.rules.is_empty() {
            let packets = counted(self.allowed + self.denied, "packet");
            let _ = writeln!(
                text,
                "{packets} judged, {} allowed, {} denied",
                count(self.allowed),
                count(self.denied)
            );
        }
        for rule in &self.rules {
            let _ = writeln!(text, "{:>15}  {}", count(rule.packets), rule.rule);
        }
        text
    }
}
