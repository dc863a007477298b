//! This program as a child of itself: a trial, or the far end of one. What it prints goes to files; it is gone when we are.
//!
//! DPDK's EAL starts only once in a process, and a trial that dies must not take the search with it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use report::published::{self, Phase, Place};
use report::{input, ours};
use serde::de::DeserializeOwned;

use super::parent;
use super::signals::Interrupt;
use crate::complaint::Failure;

/// How long a child may take to end in order.
const ENDING: Duration = Duration::from_secs(5);
/// Between two looks at it.
pub const LOOK: Duration = Duration::from_millis(10);

/// What is to be started, and where its words go: `NAME.json` and `NAME.log` in `directory`.
pub struct Start<'s> {
    /// The arguments, the subcommand first.
    pub arguments: Vec<String>,
    /// The network namespace to run in; `None` is this one.
    pub namespace: Option<&'s str>,
    pub directory: &'s Path,
    pub name: &'s str,
    /// Whether people see what it logs, instead of the file.
    pub shows_log: bool,
}

/// A running child; ended when dropped.
pub struct Child {
    process: std::process::Child,
    id: u32,
    log: PathBuf,
    result: PathBuf,
}

/// How a child ended.
pub enum Ended<T> {
    /// With a result.
    Result(Box<T>),
    /// Somebody ended it, the kernel for want of memory perhaps: another one may do better.
    Killed(Signal),
    /// It could not do what it should: why, in its own words.
    Failed(String),
}

impl Child {
    pub fn start(start: &Start<'_>) -> Result<Self> {
        let mut command = start.namespace.map_or_else(parent::itself, parent::itself_in);
        // Or it would send beside the trials of the one that goes on.
        parent::bind(&mut command);
        let file = |ending: &str| start.directory.join(format!("{}.{ending}", start.name));
        let create =
            |path: &Path| ours::create(path).with_context(|| format!("cannot write {}", path.display()));
        let (log, result) = (file("log"), file("json"));
        let stderr = if start.shows_log {
            Stdio::inherit()
        } else {
            create(&log)?.into()
        };
        let process = command
            .args(&start.arguments)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(create(&result)?)
            .stderr(stderr)
            .spawn()
            .with_context(|| format!("cannot start dropless {}", start.arguments.join(" ")))?;
        let id = published::in_proc(process.id()).unwrap_or_else(|| process.id());
        Ok(Self {
            process,
            id,
            log,
            result,
        })
    }

    /// As `/proc` has it, and what it publishes.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// How its process ended, if it has.
    pub fn status(&mut self) -> Result<Option<ExitStatus>> {
        self.process.try_wait().context("cannot wait for a child")
    }

    /// What it came to. It has ended.
    pub fn outcome<T: DeserializeOwned>(&mut self) -> Result<Ended<T>> {
        let status = self.process.wait().context("cannot wait for a child")?;
        let printed = input::text_file(&self.result).unwrap_or_default();
        if let Ok(failure) = serde_json::from_str::<Failure>(&printed) {
            return Ok(Ended::Failed(failure.error));
        }
        if let Some(signal) = status.signal().and_then(|number| Signal::try_from(number).ok()) {
            return Ok(Ended::Killed(signal));
        }
        if printed.trim().is_empty() {
            return Ok(Ended::Failed(self.last_words(status)));
        }
        serde_json::from_str(&printed)
            .map(|result| Ended::Result(Box::new(result)))
            .with_context(|| format!("{} cannot be read", self.result.display()))
    }

    /// Why it failed. It has ended.
    pub fn failure(&mut self) -> String {
        match self.outcome::<serde_json::Value>() {
            Ok(Ended::Failed(why)) => why,
            Ok(Ended::Killed(signal)) => format!("it was ended by {signal}"),
            Ok(Ended::Result(_)) => "it ended by itself".into(),
            Err(error) => format!("{error:#}"),
        }
    }

    /// Without an object on standard output it died in a library: people are shown the last line of its log.
    fn last_words(&self, status: ExitStatus) -> String {
        let log = input::text_file(&self.log).unwrap_or_default();
        let last = log.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or_else(
            || format!("it ended with {status} and said nothing"),
            str::to_owned,
        )
    }

    /// Waits until its status board says that it is in `phase`, and calls `waiting` meanwhile.
    pub fn await_phase(
        &mut self,
        phase: Phase,
        limit: Duration,
        interrupt: &Interrupt,
        mut waiting: impl FnMut(),
    ) -> Result<()> {
        let (begun, file) = (Instant::now(), Place::own().file(self.id()));
        loop {
            // An earlier process with this id may have left a file.
            let told = published::read(&file).ok();
            let told = told.filter(|state| state.process.parent == published::own_id());
            if told.is_some_and(|state| state.phase == phase) {
                return Ok(());
            }
            if self.status()?.is_some() {
                return Err(anyhow!(self.failure()));
            }
            if interrupt.is_set() || begun.elapsed() > limit {
                bail!("it was not ready after {:.1} s", begun.elapsed().as_secs_f64());
            }
            waiting();
            std::thread::sleep(LOOK);
        }
    }

    /// Asks it to end in order. A terminal signals the whole group: the child takes two wishes so close together as one.
    pub fn ask_to_end(&self) {
        if let Ok(id) = i32::try_from(self.process.id()) {
            let _ = kill(Pid::from_raw(id), Signal::SIGINT);
        }
    }

    /// Asks it to end, and sees to it; `waiting` is called meanwhile.
    pub fn end(&mut self, mut waiting: impl FnMut()) {
        self.ask_to_end();
        let begun = Instant::now();
        while begun.elapsed() < ENDING {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            waiting();
            std::thread::sleep(LOOK);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            self.end(|| {});
        }
    }
}
