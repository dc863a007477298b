//! Has a run read its rules again, and waits for what comes of it.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use nix::sys::signal::Signal;
use report::published::{Found, RulesInForce, State, is_alive, is_stopped, read};

use super::signals::tell;
use crate::status::find::{self, Target};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A run tells how it stands ten times a second, whatever else it does: one that is silent for so long does nothing.
const SILENCE: Duration = Duration::from_secs(30);
/// The same of one that was stopped: who steps through it goes on sooner.
const STOPPED: Duration = Duration::from_secs(2);

/// The run that is meant, of those that have rules; `naming` is the command line with which one names it.
pub fn with_rules(target: &Target, naming: &str) -> Result<Found> {
    let has_rules = |found: &Found| {
        let state = found.state.as_ref();
        found.alive && state.is_ok_and(|state| state.rules.is_some() && state.ended.is_none())
    };
    if *target == Target::Only {
        let found: Vec<Found> = find::all(target).into_iter().filter(has_rules).collect();
        let processes: Vec<String> = found.iter().map(|found| found.process.to_string()).collect();
        return match found.len() {
            0 => bail!("no run with rules is active{}", find::others_with_sudo()),
            1 => found.into_iter().next().ok_or_else(|| anyhow!("none")),
            several => bail!(
                "{several} runs with rules are active (processes {}); name one: {naming} {}",
                processes.join(", "),
                processes[0]
            ),
        };
    }
    let found = find::one(target, naming)?;
    if !has_rules(&found) {
        bail!("process {} has no rules to read", found.process);
    }
    Ok(found)
}

/// Asks the run to read its rules again; the result is how they stand then.
pub fn reload(found: &Found) -> Result<RulesInForce> {
    let process = found.process;
    let before = found.state.as_ref().map_err(|refusal| anyhow!("{refusal}"))?;
    let heard = before.rules.as_ref().map_or(0, |rules| rules.heard);
    tell(process, Signal::SIGHUP)?;
    let mut told = (before.sequence, Instant::now());
    loop {
        std::thread::sleep(LOOK_EVERY);
        let state = read(&found.path).ok();
        if let Some(sequence) = state.as_ref().map(|state| state.sequence) {
            if sequence != told.0 {
                told = (sequence, Instant::now());
            }
        }
        let rules = |state: State| state.rules.filter(|rules| rules.answered > heard);
        let is_over = state
            .as_ref()
            .is_none_or(|state| state.ended.is_some() || !is_alive(&state.process));
        if let Some(rules) = state.and_then(rules) {
            return Ok(rules);
        }
        if is_over {
            bail!("process {process} ended before it had read its rules again");
        }
        let silent = told.1.elapsed();
        if silent > STOPPED && is_stopped(process) {
            bail!(
                "process {process} is stopped (SIGSTOP, or a debugger): it reads its rules when it goes on, and those before are in force until then; fix: kill -CONT {process}"
            );
        }
        if silent > SILENCE {
            bail!(
                "process {process} was asked, and has told nothing for {} s: whether it reads its rules is not known; fix: see what it waits for (cat /proc/{process}/stack)",
                SILENCE.as_secs()
            );
        }
    }
}
