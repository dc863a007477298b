//! A trial as a process of its own: `dropless send` with a plan, its result read from its standard output.
//!
//! DPDK's EAL starts only once in a process, and a trial that dies must not take the search with it.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use measure::Summary;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::run::parent;
use crate::run::signals::Interrupt;
use crate::status::Trials;

/// Between two looks at the child and at the wish to end.
const LOOK: Duration = Duration::from_millis(10);

/// How a trial's process ended.
pub enum Ended {
    /// It measured.
    Measured(Box<Summary>),
    /// Somebody ended it, the kernel for want of memory perhaps: another one may do better.
    Killed(Signal),
    /// We did, as somebody wished.
    Interrupted,
}

impl Ended {
    /// The longest time that one of its workers did not poll, ns.
    pub fn pause_ns(&self) -> u64 {
        match self {
            Self::Measured(summary) => {
                let pauses = summary.workers.iter().map(|worker| worker.poll_gap_ns_max);
                pauses.max().unwrap_or(0)
            }
            _ => 0,
        }
    }
}

/// Runs the plan in the file `plan` to its end. Its run directory is made in `runs`.
pub fn run(
    plan: &Path,
    runs: &Path,
    verbose: bool,
    interrupt: &Interrupt,
    trials: &mut Trials,
) -> Result<Ended> {
    let program = std::env::current_exe().context("cannot find this program to start a trial with")?;
    let mut command = Command::new(program);
    // Or it would send beside the trials of the search that goes on.
    parent::bind(&mut command);
    command
        .args(["send", "--json", "--quiet", "--no-doctor", "--plan"])
        .arg(plan)
        .arg("--runs")
        .arg(runs)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(if verbose { Stdio::inherit() } else { Stdio::piped() });
    if verbose {
        command.arg("--verbose");
    }
    let mut child = command.spawn().context("cannot start a trial")?;
    // Both at once: a full pipe would stop the child.
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let was_interrupted = wait(&mut child, interrupt, trials)?;
    trials.finish();
    let (stdout, stderr) = (text(stdout), text(stderr));
    if was_interrupted {
        return Ok(Ended::Interrupted);
    }
    if let Some(summary) = summary(&stdout) {
        return Ok(Ended::Measured(Box::new(summary)));
    }
    let status = child.wait().context("cannot wait for a trial")?;
    if let Some(signal) = status.signal().and_then(|number| Signal::try_from(number).ok()) {
        return Ok(Ended::Killed(signal));
    }
    bail!("a trial could not be run: {}", last_words(&stderr, status))
}

/// What it measured; nothing where it only told why it could not.
fn summary(stdout: &str) -> Option<Summary> {
    let object: serde_json::Value = serde_json::from_str(stdout).ok()?;
    // Every field of a summary has a default, so that an object of another kind would be a run that lost everything.
    object.get("ledger")?;
    serde_json::from_value(object).ok()
}

/// Waits for its end. An interrupt is passed on once, and the child ends in order.
fn wait(child: &mut Child, interrupt: &Interrupt, trials: &mut Trials) -> Result<bool> {
    let mut told = false;
    loop {
        if child.try_wait().context("cannot wait for a trial")?.is_some() {
            return Ok(told || interrupt.is_set());
        }
        if interrupt.is_set() && !told {
            told = true;
            // A terminal signals the whole group: the child takes two wishes so close together as one.
            if let Ok(id) = i32::try_from(child.id()) {
                let _ = kill(Pid::from_raw(id), Signal::SIGINT);
            }
        }
        trials.look(child.id());
        std::thread::sleep(LOOK);
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn text(reader: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}

/// What it said at the end, or how it ended.
fn last_words(stderr: &str, status: ExitStatus) -> String {
    let said = stderr.lines().rev().find(|line| !line.trim().is_empty());
    said.map_or_else(
        || format!("it ended with {status} and said nothing"),
        |line| line.trim_start_matches("dropless: ").to_owned(),
    )
}
