//! Which run is meant: the only one, the one of a process, or the one that writes into a directory.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use host::Sys;
use host::threads::ancestors;
use nix::unistd::geteuid;
use report::published::{Found, Place, State};

/// The first process.
const INIT: u32 = 1;

/// What the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Nothing: the only run there is.
    Only,
    Process(u32),
    Directory(PathBuf),
}

impl Target {
    /// A number is a process, unless a directory has that name.
    pub fn parse(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::Only };
        let path = Path::new(text);
        match text.parse() {
            Ok(process) if !path.is_dir() => Self::Process(process),
            _ => Self::Directory(std::path::absolute(path).unwrap_or_else(|_| path.into())),
        }
    }

    /// Whether `found` is what is meant.
    pub fn is(&self, found: &Found) -> bool {
        match self {
            Self::Only => true,
            Self::Process(process) => found.process == *process,
            Self::Directory(path) => found
                .state
                .as_ref()
                .is_ok_and(|state| same(&state.process.run, path)),
        }
    }
}

fn same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
    whole(one) == whole(other)
}

/// Everything that goes on, or was named and went on a moment ago.
pub fn all(target: &Target) -> Vec<Found> {
    let runs = || Place::visible().into_iter().flat_map(|place| place.list());
    let mut found: Vec<Found> = runs()
        .filter(|found| target.is(found) && (found.alive || *target != Target::Only))
        .collect();
    if let (Target::Process(process), true) = (target, found.is_empty()) {
        // What a wrapper started is meant: timeout(1), sudo(8), a script.
        let below = |found: &Found| found.alive && is_below(found.process, *process);
        found = runs().filter(below).collect();
        leave_out_trials(&mut found);
    }
    if *target == Target::Only {
        leave_out_trials(&mut found);
    }
    found
}

/// Whether `ancestor` started `process`, or started what did.
fn is_below(process: u32, ancestor: u32) -> bool {
    // The first process is everybody's ancestor, and names nobody's run.
    ancestor != INIT && ancestors(&Sys::at("/"), Some(process)).contains(&ancestor)
}

/// A trial of a run that is here itself is part of that one.
fn leave_out_trials(found: &mut Vec<Found>) {
    let runs: Vec<u32> = found.iter().map(|found| found.process).collect();
    found.retain(|found| {
        found
            .state
            .as_ref()
            .map_or(true, |state| !runs.contains(&state.process.parent))
    });
}

/// The one run that is meant; `naming` is the command line with which one names it.
pub fn one(target: &Target, naming: &str) -> Result<Found> {
    let mut found = all(target);
    if found.len() > 1 {
        let list: Vec<String> = found.iter().map(named).collect();
        let place = match target {
            Target::Process(process) => format!("below process {process}"),
            _ => "here".to_owned(),
        };
        bail!(
            "{} runs are active {place} ({}); name one: {naming} {}",
            list.len(),
            list.join(", "),
            found[0].process
        );
    }
    match found.pop() {
        Some(found) => {
            let process = found.process;
            let died = |state: &State| !found.alive && state.ended.is_none();
            if let Some(state) = found.state.as_ref().ok().filter(|state| died(state)) {
                bail!(
                    "process {process} died before its run ended; what it left is in {}: dropless report {0}",
                    state.process.run.display()
                );
            }
            if let Err(refusal) = &found.state {
                bail!("process {process}: {} {refusal}", found.path.display());
            }
            Ok(found)
        }
        None => bail!("{}", nothing(target)),
    }
}

/// A run as one of several.
fn named(found: &Found) -> String {
    match &found.state {
        Ok(state) => {
            let run = Path::new(state.process.run.file_name().unwrap_or_default());
            format!("{} {} in {}", found.process, state.process.command, run.display())
        }
        Err(_) => found.process.to_string(),
    }
}

/// What else might be there, for who may not see everybody's runs.
pub fn others_with_sudo() -> &'static str {
    if geteuid().is_root() {
        ""
    } else {
        " that this user may see (sudo shows those of others)"
    }
}

/// Why there is nothing to show, in one line.
pub fn nothing(target: &Target) -> String {
    match target {
        Target::Only => format!("no run is active{}; start one: dropless send", others_with_sudo()),
        Target::Process(INIT) => "process 1 is the ancestor of all others, and no dropless run itself; name the process of the run: `dropless top` lists the active runs".into(),
        Target::Process(process) => format!("process {process} is not a dropless run that this user may see, and has not started one; `dropless top` lists the active runs"),
        Target::Directory(path) if !path.exists() => format!(
            "there is no run directory {}; `dropless top` lists the active runs",
            path.display()
        ),
        Target::Directory(path) => format!(
            "no run is active in {}; how it ended is in its summary.json",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_is_nobodys_wrapper() {
        let process = std::process::id();
        let above = std::os::unix::process::parent_id();
        assert!(above == INIT || is_below(process, above));
        assert!(!is_below(process, INIT));
        assert!(nothing(&Target::Process(INIT)).contains("ancestor of all"));
    }
}
