//! The program under test, started as a user would start it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::Namespace;
use super::process::{Finished, Running, command};

/// A `dropless` command line, not started yet.
pub struct Dropless {
    arguments: Vec<String>,
    program: PathBuf,
    directory: PathBuf,
    environment: Vec<(String, String)>,
    within: Option<String>,
    limit: Duration,
}

impl Dropless {
    pub(super) fn new(program: &Path, directory: &Path, arguments: &[&str]) -> Self {
        Self {
            arguments: arguments.iter().map(ToString::to_string).collect(),
            program: program.to_path_buf(),
            directory: directory.to_path_buf(),
            environment: Vec::new(),
            within: None,
            limit: Duration::from_secs(60),
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.environment.push((key.into(), value.into()));
        self
    }

    /// Runs it in a network namespace.
    #[must_use]
    pub fn within(mut self, namespace: &Namespace) -> Self {
        self.within = Some(namespace.name().into());
        self
    }

    /// How long [`Dropless::run`] waits before it kills it and fails the test (60 s unless told).
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts it. It dies with the thread that calls this.
    pub fn spawn(&self) -> Running {
        Running::spawn(self.command())
    }

    /// Starts it and waits for its end.
    pub fn run(&self) -> Finished {
        self.spawn().wait(self.limit)
    }

    fn command(&self) -> Command {
        let mut command = command(&self.program, self.within.as_deref());
        command
            .args(&self.arguments)
            .current_dir(&self.directory)
            .env("NO_COLOR", "1");
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        command
    }
}
