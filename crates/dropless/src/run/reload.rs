//! Has a run read its rules again, and waits for what comes of it.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use report::published::{Found, RulesInForce, State, is_alive, read};

use crate::status::find::{self, Target};

const LOOK_EVERY: Duration = Duration::from_millis(20);

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
            0 => bail!("no run with rules is active that this user may see; see those of others with sudo"),
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
    kill(Pid::from_raw(i32::try_from(process)?), Signal::SIGHUP).map_err(|error| match error {
        nix::Error::EPERM => {
            anyhow!("process {process} belongs to another user; fix: sudo dropless <the same arguments>")
        }
        other => anyhow!("process {process} cannot be told: {other}"),
    })?;
    loop {
        std::thread::sleep(LOOK_EVERY);
        let state = read(&found.path).ok();
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
    }
}
