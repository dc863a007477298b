//! A machine made of files, for the tests of the checks: cores 0-3, of which 2-3 are to poll, unless a test says otherwise.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use tempfile::TempDir;

use crate::{Finding, Load, Sample, Subject, Verdict, Watched};
use host::PortUri;
use host::Sys;
use host::cores::CoreSet;

type Check<F> = fn(&Subject<'_>) -> F;

/// The machine and what is planned on it.
pub struct Machine {
    directory: TempDir,
    pub sys: Sys,
    pub watched: Watched,
    pub load: Load,
    workers: CoreSet,
    ports: Vec<PortUri>,
}

impl Machine {
    /// A machine of these files.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        let machine = Self {
            sys: Sys::at(directory.path()),
            directory,
            watched: Watched::default(),
            load: Load::default(),
            workers: "2-3".parse().unwrap(),
            ports: Vec::new(),
        };
        machine.write("/sys/devices/system/cpu/online", "0-3\n");
        machine.write_all(files);
        machine
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn write_all(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            self.write(path, text);
        }
    }

    /// The partition that `tune` makes, of these cores, which this process may enter.
    pub fn partition(&self, cores: &str) {
        let root = "/sys/fs/cgroup";
        self.write("/proc/mounts", &format!("cgroup2 {root} cgroup2 rw 0 0\n"));
        self.write(&format!("{root}/cgroup.controllers"), "cpuset cpu\n");
        let group = format!("{root}/{}", host::partition::NAME);
        self.write(&format!("{group}/cpuset.cpus.partition"), "isolated\n");
        self.write(&format!("{group}/cpuset.cpus"), cores);
        self.write(&format!("{group}/cgroup.threads"), "");
    }

    /// A symbolic link to a place on this machine.
    pub fn link(self, path: &str, target: &str) -> Self {
        let at = |path: &str| self.directory.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::create_dir_all(at(target)).unwrap();
        symlink(at(target), at(path)).unwrap();
        self
    }

    /// A second passes, after which these files have changed.
    pub fn watched(mut self, later: &[(&str, &str)]) -> Self {
        self.watched.before = Sample::take(&self.sys);
        self.write_all(later);
        self.watched.after = Sample::take(&self.sys);
        self.watched.over = Duration::from_secs(1);
        self
    }

    pub fn workers(mut self, workers: &str) -> Self {
        self.workers = workers.parse().unwrap();
        self
    }

    pub fn port(mut self, uri: &str) -> Self {
        self.ports.push(uri.parse().unwrap());
        self
    }

    pub fn run<F: Into<Vec<Finding>>>(&self, check: Check<F>) -> Vec<Finding> {
        let all: CoreSet = "0-3".parse().unwrap();
        check(&Subject {
            sys: &self.sys,
            housekeeping: all.without(&self.workers),
            workers: self.workers.clone(),
            ports: self.ports.clone(),
            watched: self.watched.clone(),
            load: self.load,
        })
        .into()
    }

    /// The finding of a check that has one.
    #[track_caller]
    pub fn finding<F: Into<Vec<Finding>>>(&self, check: Check<F>) -> Finding {
        let mut findings = self.run(check);
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.remove(0)
    }

    #[track_caller]
    pub fn verdict<F: Into<Vec<Finding>>>(&self, check: Check<F>) -> Verdict {
        self.finding(check).verdict
    }
}

impl Finding {
    /// Every file that its remedies change, and the value it gets.
    pub fn changed(&self) -> Vec<(&str, &str)> {
        let changes = self.remedies.iter().flat_map(|remedy| &remedy.changes);
        changes
            .map(|change| (change.path.as_str(), change.value.as_str()))
            .collect()
    }

    /// Every argument of the kernel's command line that its remedies want.
    pub fn booted(&self) -> Vec<&str> {
        self.remedies
            .iter()
            .flat_map(|remedy| &remedy.boot)
            .map(String::as_str)
            .collect()
    }
}
