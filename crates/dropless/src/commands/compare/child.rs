//! Our own executable as a child: in a namespace or not, its words in files, gone when we are.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::run::parent;
use crate::run::signals::Interrupt;

/// How long a child may take to end in order.
const ENDING: Duration = Duration::from_secs(5);

/// A running child; ended when dropped.
pub struct Ours {
    child: Child,
    said: PathBuf,
    result: PathBuf,
}

impl Ours {
    /// Starts `dropless ARGUMENTS`; what it prints goes to `NAME.json` and `NAME.log` in `directory`.
    pub fn start(
        namespace: Option<&str>,
        arguments: &[String],
        directory: &Path,
        name: &str,
    ) -> Result<Self> {
        let executable = std::env::current_exe().context("cannot find this executable")?;
        let mut words: Vec<String> = Vec::new();
        if let Some(namespace) = namespace {
            words.extend(["ip", "netns", "exec", namespace].map(Into::into));
        }
        words.push(executable.display().to_string());
        words.extend(arguments.iter().cloned());
        let said = directory.join(format!("{name}.log"));
        let result = directory.join(format!("{name}.json"));
        let create =
            |path: &Path| File::create(path).with_context(|| format!("cannot write {}", path.display()));
        let (stdout, stderr) = (create(&result)?, create(&said)?);
        let mut command = Command::new(&words[0]);
        parent::bind(&mut command);
        let child = command
            .args(&words[1..])
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .with_context(|| format!("cannot start {}", words.join(" ")))?;
        Ok(Self { child, said, result })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// What it said to people.
    pub fn words(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// Why it failed, in its own words.
    pub fn complaint(&self) -> String {
        let words = self.words();
        let line = words
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("dropless: "));
        line.or_else(|| words.lines().last())
            .unwrap_or("it said nothing")
            .to_owned()
    }

    /// The object that it printed.
    pub fn object<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        let text = std::fs::read_to_string(&self.result)?;
        if text.trim().is_empty() {
            bail!("{}", self.complaint());
        }
        serde_json::from_str(&text)
            .with_context(|| format!("{} is not what it should be", self.result.display()))
    }

    /// Waits until it has said `word`, and calls `waiting` meanwhile.
    pub fn await_word(
        &mut self,
        word: &str,
        limit: Duration,
        interrupt: &Interrupt,
        mut waiting: impl FnMut(),
    ) -> Result<()> {
        let begun = Instant::now();
        while !self.words().contains(word) {
            if self.ended()?.is_some() {
                bail!("{}", self.complaint());
            }
            if interrupt.is_set() || begun.elapsed() > limit {
                bail!("it was not ready after {:.1} s", begun.elapsed().as_secs_f64());
            }
            waiting();
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Asks it to end, and sees to it; `waiting` is called meanwhile.
    pub fn end(&mut self, mut waiting: impl FnMut()) {
        if let Ok(id) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(id), Signal::SIGINT);
        }
        let begun = Instant::now();
        while begun.elapsed() < ENDING {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            waiting();
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end(|| {});
        }
    }
}
