//! A loop that does not run although nobody took its core: throttled, stopped, or moved.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::proc::user_time;
use crate::support::served::{scraped, serve};
use crate::support::wire::{has_note, interrupted};
use crate::support::{Finished, Lab, Need, Running, cpu_controller, require, until};
use nix::sys::signal::Signal;
use serde_json::Value;

const NEEDS: [Need; 4] = [
    Need::Root,
    Need::Processors(2),
    Need::File("/sys/kernel/tracing/trace_clock"),
    Need::Tool("taskset"),
];
/// The core that is watched.
const WORKER: &str = "1";
const LIMIT: Duration = Duration::from_secs(60);

/// A cgroup with a quota, in either version. Removed when dropped.
struct Quota(PathBuf);

impl Quota {
    /// `quota_us` of every `period_us`.
    fn new(quota_us: u32, period_us: u32) -> Self {
        let base = cpu_controller().expect("it is there");
        let quota = Self(base.join(format!("dropless-test-{}", std::process::id())));
        std::fs::create_dir(&quota.0).expect("a cgroup");
        let set = |file: &str, value: String| std::fs::write(quota.0.join(file), value);
        set("cpu.max", format!("{quota_us} {period_us}"))
            .or_else(|_| {
                set("cpu.cfs_period_us", period_us.to_string())?;
                set("cpu.cfs_quota_us", quota_us.to_string())
            })
            .expect("a quota");
        quota
    }

    fn take_in(&self, process: u32) {
        std::fs::write(self.0.join("cgroup.procs"), process.to_string()).expect("a process of ours");
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let removed = until(Duration::from_secs(5), || std::fs::remove_dir(&self.0).is_ok());
        assert!(
            removed || std::thread::panicking(),
            "{} is in use",
            self.0.display()
        );
    }
}

/// `dropless noise` on the worker core, once it watches: its loop polls long before, for the others.
fn noise(lab: &Lab, seconds: &str) -> Running {
    let (running, address) = serve(lab, &["noise", "--cores", WORKER, "--duration", seconds]);
    let watches = || scraped(address).contains_key("dropless_run_phase{phase=\"watching\"}");
    assert!(until(LIMIT, watches), "{running:?}");
    running
}

/// The thread of this name, once it polls.
fn thread_of(running: &Running, name: &str) -> String {
    let threads = format!("/proc/{}/task", running.id());
    let mut found = None;
    let there = until(LIMIT, || {
        let mut entries = std::fs::read_dir(&threads).into_iter().flatten().flatten();
        found = entries.find_map(|entry| {
            let comm = std::fs::read_to_string(entry.path().join("comm")).ok()?;
            (comm.trim() == name).then(|| entry.file_name().into_string().ok())?
        });
        found.is_some()
    });
    assert!(there, "no {name} in {threads}");
    let thread = found.expect("the loop was found");
    polls(running, &thread, 20);
    thread
}

/// Waits until the thread has had its core for so many more hundredths of a second.
fn polls(running: &Running, thread: &str, hundredths: u64) {
    let had = || user_time(running.id(), thread);
    let before = had().expect("it lives");
    assert!(until(LIMIT, || had() >= Some(before + hundredths)), "{running:?}");
}

/// The time of each cause, the longest first.
fn causes(run: &Finished) -> Vec<(String, f64)> {
    assert_eq!(run.code, Some(0), "{run}");
    let json = run.json();
    assert_eq!(json["causes_known"], true, "{run}");
    let list = json["cores"][0]["causes"].as_array().expect("causes").clone();
    let cause = |one: &Value| {
        let name = one["cause"].as_str().expect("a name").to_owned();
        (name, one["total_ns"].as_f64().expect("a time"))
    };
    list.iter().map(cause).collect()
}

/// Of all but other tasks, which this machine may have any of, this took most; and nobody is called idle.
fn assert_first(causes: &[(String, f64)], wanted: &str) {
    let mut not_tasks = causes
        .iter()
        .filter(|(cause, _)| !cause.starts_with("preempted by"));
    assert!(
        not_tasks.next().is_some_and(|(cause, _)| cause == wanted),
        "{wanted} is not the first of {causes:?}"
    );
    let is_idle = |cause: &str| cause.contains("swapper");
    assert!(!causes.iter().any(|(cause, _)| is_idle(cause)), "{causes:?}");
}

#[test]
fn who_has_used_up_a_quota_is_not_preempted_by_idle() {
    let Some(lab) = require(&[&NEEDS[..], &[Need::CpuController]].concat()) else {
        return;
    };
    let quota = Quota::new(20_000, 100_000);
    let running = noise(&lab, "2s");
    // Not before: it would take five times as long to start.
    quota.take_in(running.id());
    let causes = causes(&running.wait(LIMIT));
    assert_first(&causes, "not runnable: cgroup quota");
}

#[test]
fn who_was_stopped_says_so() {
    let Some(lab) = require(&NEEDS) else { return };
    let running = noise(&lab, "60s");
    for _ in 0..5 {
        running.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(100));
        running.signal(Signal::SIGCONT);
        std::thread::sleep(Duration::from_millis(50));
    }
    let causes = causes(&interrupted(running));
    assert_first(&causes, "stopped");
}

#[test]
fn a_loop_that_was_moved_is_not_reported_as_its_cores() {
    let Some(lab) = require(&NEEDS) else { return };
    let running = noise(&lab, "60s");
    move_away(&running, "noise-1");
    let run = interrupted(running);
    let causes = causes(&run);
    assert!(
        causes.iter().any(|(cause, _)| cause == "moved to CPU 0"),
        "{causes:?}"
    );
    assert!(is_told(&run), "{run}");
}

#[test]
fn a_worker_that_was_moved_is_told() {
    let Some(lab) = require(&NEEDS) else { return };
    let send = |duration| {
        let fixed = "send --port ring --no-huge --no-doctor --rate 5kpps --cores 1 --json --duration";
        let fixed: Vec<&str> = fixed.split(' ').collect();
        lab.dropless(&[&fixed[..], &[duration]].concat())
    };
    let stays = send("500ms").run();
    assert!(!is_told(&stays), "{stays}");
    let running = send("60s").spawn();
    move_away(&running, "dropless-1");
    let run = interrupted(running);
    assert!(is_told(&run), "{run}");
}

/// Moves a thread that polls to another core, where it goes on.
fn move_away(running: &Running, name: &str) {
    let thread = thread_of(running, name);
    let moved = Command::new("taskset").args(["-cp", "0", &thread]).output();
    assert!(moved.is_ok_and(|moved| moved.status.success()));
    polls(running, &thread, 20);
}

/// Whether a note says that a loop or a worker was moved.
fn is_told(run: &Finished) -> bool {
    has_note(&run.json(), "moved")
}
