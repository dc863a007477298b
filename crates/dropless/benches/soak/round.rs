//! One round under way: the processes it starts, what they said, their memory, and what they leave behind.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;

use crate::memory::Memory;
use crate::plan::Plan;
use crate::support::proc::hugepages_free_bytes;
use crate::support::{Finished, Lab, Namespace, Running, until};

/// Until a program takes packets. Two pollers may have both cores meanwhile.
const STARTING: Duration = Duration::from_secs(60);
/// From the wish to end to the end.
const ENDING: Duration = Duration::from_secs(60);

/// Enough for three programs.
const HUGEPAGES_MIN_BYTES: u64 = 512 << 20;

/// Set by Ctrl-C, where somebody listens for it.
pub static STOPPED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

pub fn is_stopped() -> bool {
    STOPPED
        .get()
        .is_some_and(|stopped| stopped.load(Ordering::Relaxed))
}

/// A round, with a lab of its own.
pub struct Round<'a> {
    pub plan: &'a Plan,
    pub lab: &'a Lab,
    /// Whether its programs keep their packets on hugepages.
    pub is_huge: bool,
    memory: Memory,
    commands: RefCell<Vec<String>>,
}

impl<'a> Round<'a> {
    pub fn new(plan: &'a Plan, lab: &'a Lab) -> Self {
        Self {
            plan,
            lab,
            is_huge: plan.is_huge && hugepages_free_bytes() >= HUGEPAGES_MIN_BYTES,
            memory: Memory::watch(Duration::from_secs(plan.seconds.into())),
            commands: RefCell::default(),
        }
    }

    /// Starts `dropless` with the words of this line, for a result that can be read.
    pub fn start(&self, within: Option<&Namespace>, line: &str) -> Running {
        let mut arguments: Vec<&str> = line.split_whitespace().collect();
        arguments.push("--json");
        let moves_packets = arguments[0] != "filter";
        arguments.extend(moves_packets.then_some("--no-doctor"));
        arguments.extend((moves_packets && !self.is_huge).then_some("--no-huge"));
        let place = within.map_or_else(String::new, |namespace| {
            let name = namespace.name();
            format!("ip netns exec {} ", name.rsplit('-').next().unwrap_or(name))
        });
        let line = format!("{place}dropless {}", arguments.join(" "));
        let _ = std::fs::write(self.lab.path("commands.txt"), self.with(line).join("\n"));
        let mut command = self.lab.dropless(&arguments);
        if let Some(namespace) = within {
            command = command.within(namespace);
        }
        let running = command.spawn();
        // With --explain it keeps the kernel's events until its end: millions of each core, at most.
        if !arguments.contains(&"--explain") {
            self.memory.also(running.id(), arguments[0]);
        }
        running
    }

    fn with(&self, line: String) -> Vec<String> {
        self.commands.borrow_mut().push(line);
        self.commands.borrow().clone()
    }

    /// The command lines so far.
    pub fn commands(&self) -> Vec<String> {
        self.commands.borrow().clone()
    }

    /// The same, and waits until it says `ready`.
    pub fn started(&self, within: Option<&Namespace>, line: &str, ready: &str) -> Running {
        let mut running = self.start(within, line);
        wait_for(&mut running, ready);
        running
    }

    /// How long after the start of sending this is, in thousandths of the sending time.
    pub fn instant(&self, at: u32) -> Duration {
        Duration::from_millis(u64::from(self.plan.seconds) * u64::from(at))
    }

    /// Waits for the end of what ends by itself: a watchdog that no sound run meets.
    pub fn wait(&self, running: Running) -> Finished {
        let limit = Duration::from_secs(4 * u64::from(self.plan.seconds)) + ENDING;
        self.within(running, limit)
    }

    /// Ends it in order.
    pub fn end(&self, running: Running) -> Finished {
        running.signal(Signal::SIGINT);
        self.within(running, ENDING)
    }

    fn within(&self, mut running: Running, limit: Duration) -> Finished {
        let id = running.id();
        let ended = until(limit, || is_stopped() || !running.is_alive());
        assert!(!is_stopped(), "interrupted");
        if !ended {
            let _ = std::fs::write(self.lab.path(&format!("hung-{id}.txt")), threads(id));
        }
        // Kills what has not ended, and says so.
        self.keep(id, running.wait(Duration::from_millis(100)))
    }

    /// What it said stays beside its run directory.
    pub fn keep(&self, id: u32, finished: Finished) -> Finished {
        let _ = std::fs::write(self.lab.path(&format!("said-{id}.txt")), finished.to_string());
        finished
    }

    /// What grew although it only goes on.
    pub fn grown(&self) -> Vec<String> {
        self.memory.grown(if self.is_huge { 0 } else { self.plan.queues })
    }
}

/// Waits until it says `words`.
pub fn wait_for(running: &mut Running, words: &str) {
    wait_until(running, |running| {
        running.stderr().contains(words) || running.stdout().contains(words)
    });
}

/// Waits until something is so of a process that must live meanwhile.
pub fn wait_until(running: &mut Running, is_so: impl Fn(&Running) -> bool) {
    let mut is_alive = true;
    let came = until(STARTING, || {
        is_alive = running.is_alive();
        is_stopped() || is_so(running) || !is_alive
    });
    assert!(!is_stopped(), "interrupted");
    // Its last words first: they say why, where it has ended.
    let last = running.stderr().lines().last().unwrap_or_default().to_owned();
    assert!(
        came && is_so(running),
        "not started (alive: {is_alive}): {last}\n{running:?}"
    );
}

/// Sleeps, unless the session is to end.
pub fn sleep(time: Duration) {
    assert!(!until(time, is_stopped), "interrupted");
}

/// A result as its own type.
pub fn result<T: DeserializeOwned>(run: &Finished) -> T {
    assert!(run.signal.is_none(), "ended by a signal: {run}");
    // Fields that are not there have defaults: a refusal would read as a result of nothing.
    assert!(run.json()["error"].is_null(), "refused: {}", run.stderr.trim());
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("no result: {error}: {run}"))
}

/// What each thread of a process does, for whoever looks into a hang.
fn threads(process: u32) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    let one = |path: PathBuf| {
        let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default();
        format!(
            "{} {} {}\n{}\n",
            path.display(),
            read("comm").trim(),
            read("wchan"),
            read("stack")
        )
    };
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .map(|task| one(task.path()))
        .collect()
}

/// What the processes of a round left behind, though they and its namespaces are gone.
pub fn left_behind(lab: &Path) -> Vec<String> {
    let ours = std::process::id();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lives_here =
        |process: &PathBuf| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(lab));
    let mut left: Vec<String> = processes
        .map(|entry| entry.path())
        .filter(lives_here)
        .map(|process| format!("a process is left: {}", process.display()))
        .collect();
    let prefix = format!("dropless-{ours}-");
    let namespaces = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = namespaces.map(|entry| entry.file_name().to_string_lossy().into_owned());
    left.extend(
        names
            .filter(|name| name.starts_with(&prefix))
            .map(|name| format!("a namespace is left: {name}")),
    );
    left
}
