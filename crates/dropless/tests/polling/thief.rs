//! Known thieves on a core: each is named, ranked first, and absent where it was not planted.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::wire::Wire;
use crate::support::{Lab, Need, require, until};
use doctor::noise::record::Recorder;
use doctor::noise::spin::Stalls;
use doctor::noise::tally::{Tally, tally};
use host::Sys;
use host::cores::Core;
use nix::sys::pthread::{Pthread, pthread_kill, pthread_self};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

const NEEDS: [Need; 4] = [
    Need::Root,
    Need::Processors(2),
    Need::File("/sys/kernel/tracing/trace_clock"),
    Need::Tool("taskset"),
];
/// The core that is stolen from; the thieves come from, and everything else runs on, core 0.
const WORKER: u32 = 1;
const LIMIT: Duration = Duration::from_secs(60);

/// A program that takes all it gets of the worker core, under a name of its own. Ends with this value.
struct Hog(Child);

impl Hog {
    fn start(lab: &Lab) -> Self {
        let path = lab.path("dl-hog");
        std::fs::copy("/usr/bin/yes", &path).expect("yes is part of every system");
        let mut command = Command::new("taskset");
        // Preferred, so that whatever else this machine does takes less.
        command
            .args(["-c", &WORKER.to_string(), "nice", "-n", "-10"])
            .arg(path);
        let hog = Self(command.stdout(Stdio::null()).spawn().expect("taskset is there"));
        // It comes to its name by way of the two programs that give it its core and its rank.
        let name = format!("/proc/{}/comm", hog.0.id());
        let is_itself = || std::fs::read_to_string(&name).is_ok_and(|name| name.trim() == "dl-hog");
        assert!(until(LIMIT, is_itself), "yes does not start");
        hog
    }

    /// Has it stand still, or go on.
    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.0.id()).expect("a process id");
        kill(Pid::from_raw(id), signal).expect("it is there");
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `dropless noise` on the worker core.
fn noise(lab: &Lab, seconds: &str) -> Value {
    let worker = WORKER.to_string();
    let run = lab
        .dropless(&[
            "noise",
            "--json",
            "--quiet",
            "--cores",
            &worker,
            "--duration",
            seconds,
        ])
        .run();
    assert_eq!(run.code, Some(0), "{run}");
    let noise = run.json();
    assert_eq!(noise["causes_known"], true, "{run}");
    assert_eq!(
        noise["cores"][0]["complete"], true,
        "the trace missed something: {run}"
    );
    noise
}

fn causes(noise: &Value) -> Vec<(String, f64)> {
    let list = noise["cores"][0]["causes"].as_array().expect("causes");
    list.iter()
        .map(|cause| {
            let name = cause["cause"].as_str().expect("a name").to_owned();
            (name, cause["total_ns"].as_f64().expect("a time"))
        })
        .collect()
}

/// The figures of the documentation: `cargo test -p dropless --test polling thief:: -- --nocapture` prints them.
fn tell<'c>(thief: &str, taken: f64, causes: impl Iterator<Item = (&'c str, f64)>) {
    let (mut outside, mut own) = (0.0, 0.0);
    for (cause, time) in causes {
        outside += if cause.starts_with("outside") { time } else { 0.0 };
        own += if cause.contains(thief) { time } else { 0.0 };
    }
    println!(
        "{thief}: {:.2} % of the lost time named, {:.2} % it",
        100.0 - outside / taken * 100.0,
        own / taken * 100.0
    );
}

/// Whether the thief took most. An interrupt is only compared with interrupts: which programs a machine runs besides is
/// not the test's.
fn is_first<'c>(mut causes: impl Iterator<Item = &'c str>, thief: &str) -> bool {
    let is_task = |cause: &str| cause.starts_with("preempted by");
    let first = causes.find(|cause| is_task(thief) || !is_task(cause));
    first.is_some_and(|cause| cause.contains(thief))
}

/// The cause that took most is this one, and all of them together took what the stalls took.
fn assert_first(noise: &Value, thief: &str) {
    let causes = causes(noise);
    let names = causes.iter().map(|(cause, _)| cause.as_str());
    assert!(is_first(names, thief), "{thief} is not the first of {causes:?}");
    let sum: f64 = causes.iter().map(|(_, total)| total).sum();
    tell(
        thief,
        sum,
        causes.iter().map(|(cause, total)| (cause.as_str(), *total)),
    );
    let taken = noise["cores"][0]["taken_ns"].as_f64().expect("a time");
    assert!(
        (sum / taken - 1.0).abs() < 1e-6,
        "causes take {sum}, stalls {taken}"
    );
}

fn assert_absent(noise: &Value, thief: &str) {
    let causes = causes(noise);
    assert!(
        !causes.iter().any(|(cause, _)| cause.contains(thief)),
        "{causes:?}"
    );
}

#[test]
fn a_program_on_the_core_is_named() {
    let Some(lab) = require(&NEEDS) else { return };
    let before = noise(&lab, "1s");
    let thief = Hog::start(&lab);
    let during = noise(&lab, "1s");
    drop(thief);
    assert_first(&during, "preempted by dl-hog (");
    assert_absent(&before, "dl-hog");
    let stalls = lab.path(during["run"].as_str().expect("a path")).join("gaps.csv");
    let stalls = std::fs::read_to_string(stalls).expect("a row for every stall");
    assert!(stalls.contains("preempted by dl-hog ("), "{stalls}");
}

#[test]
fn packets_that_the_kernel_receives_on_the_core_are_named() {
    let Some(lab) = require(&[&NEEDS[..], &[Need::Namespaces, Need::Tool("ping")]].concat()) else {
        return;
    };
    let wire = Wire::to_kernel(&lab);
    wire.near.up("near0", &["198.18.0.1/24"]);
    // Receive packet steering: whatever arrives is worked off on the worker core.
    let mask = format!("{:x}", 1 << WORKER);
    let steer = format!("echo {mask} > /sys/class/net/far0/queues/rx-0/rps_cpus");
    wire.far.run("sh", &["-c", &steer]);
    let thief = wire.near.spawn(
        "taskset",
        &["-c", "0", "ping", "-f", "-q", "-s", "1000", "198.18.0.2"],
    );
    let during = noise(&lab, "1s");
    thief.kill();
    assert_first(&during, "softirq NET_RX");
}

/// The tracer counts tasks as the machine does, whichever `/proc` is mounted.
#[test]
fn in_a_pid_namespace_nobody_is_blamed() {
    let Some(lab) = require(&[&NEEDS[..], &[Need::Tool("unshare")]].concat()) else {
        return;
    };
    for proc in ["", "--mount-proc"] {
        let noise = "noise --json --quiet --cores 1 --duration 100ms";
        let script = format!("exec unshare --pid --fork {proc} \"$DROPLESS\" {noise}");
        let run = lab.shell(&script).wait(LIMIT);
        assert_eq!(run.code, Some(0), "{run}");
        let noise = run.json();
        assert_eq!(noise["causes_known"], false, "{run}");
        let why = noise["causes_missing"].as_str().unwrap_or_default();
        assert!(why.contains("--pid=host"), "{run}");
    }
}

/// A machine may have hundreds of cores, and few that are watched.
#[test]
fn only_the_cores_that_are_watched_have_large_buffers() {
    let Some(_lab) = require(&NEEDS) else {
        return;
    };
    let sys = Sys::live();
    let cores = [Core(WORKER)].into_iter().collect();
    let others = host::cores::online(&sys).without(&cores);
    let _recorder = Recorder::start(&sys, &cores, &others, dpdk::tsc).expect("tracefs");
    let ours = format!("dropless-{}-", std::process::id());
    let instances = "/sys/kernel/tracing/instances";
    let size = |instance: &str, core: u32| {
        let file = format!("{instances}/{instance}/per_cpu/cpu{core}/buffer_size_kb");
        sys.number::<u64>(file).expect("the tracer tells its sizes")
    };
    let all = sys
        .names(instances)
        .into_iter()
        .filter(|name| name.starts_with(&ours));
    let mut large = Vec::new();
    for instance in all {
        let (worker, other) = (size(&instance, WORKER), size(&instance, 0));
        assert!(other < 4 << 10, "{instance}: {other} KiB of core 0");
        large.extend((worker >= 16 << 10).then_some(instance));
    }
    assert_eq!(large.len(), 1, "{large:?}");
}

/// Spins in this process, while `plant` works against it, and sums up.
fn spun(plant: impl FnOnce(&AtomicBool, Pthread) + Send) -> (Vec<Tally>, u64) {
    let sys = Sys::live();
    let (cores, others) = (
        [Core(WORKER)].into_iter().collect(),
        host::cores::online(&sys).without(&[Core(WORKER)].into_iter().collect()),
    );
    let stop = AtomicBool::new(false);
    let (tell, told) = std::sync::mpsc::channel();
    let threshold = 2000;
    let (record, stalls) = std::thread::scope(|scope| {
        let stop = &stop;
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let spinner = scope.spawn(move || {
            dpdk::pin_to_core(WORKER as usize).expect("the worker core is there");
            let mut stalls = Stalls::with_room(1 << 20);
            tell.send(pthread_self()).expect("somebody listens");
            wait.recv().expect("somebody says go");
            stalls.spin(dpdk::tsc(), dpdk::tsc, threshold, stop);
            stalls
        });
        let thread = told.recv().expect("the loop is there");
        let done = AtomicBool::new(false);
        let (record, stalls) = std::thread::scope(|inner| {
            let (ready, begin) = std::sync::mpsc::channel::<()>();
            let done = &done;
            inner.spawn(move || {
                dpdk::pin_to_core(0).expect("core 0 is there");
                begin.recv().expect("somebody begins");
                plant(done, thread);
            });
            // Threads of this process must be there by now, to be known as its own.
            let mut recorder = Recorder::start(&sys, &cores, &others, dpdk::tsc).expect("tracefs");
            go.send(()).expect("the loop listens");
            ready.send(()).expect("the thief listens");
            for _ in 0..40 {
                std::thread::sleep(Duration::from_millis(25));
                recorder.collect();
            }
            done.store(true, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
            let stalls = spinner.join().expect("the loop ended");
            (recorder.finish(&sys), stalls)
        });
        (record, stalls)
    });
    let lines = record.completeness(Core(WORKER));
    assert!(
        record.missed == 0 && lines.iter().all(|line| line.proven),
        "{} missed: {lines:?}",
        record.missed
    );
    let named = record.name(Core(WORKER), stalls.thread, stalls.all());
    let taken = stalls.all().iter().map(|stall| stall.ticks()).sum();
    (tally(&named, None, 1e9), taken)
}

fn assert_tally_first((all, taken): &(Vec<Tally>, u64), thief: &str) {
    let names = all.iter().map(|one| one.cause.as_str());
    assert!(is_first(names, thief), "{thief} is not the first of {all:?}");
    assert_eq!(all.iter().map(|one| one.total).sum::<u64>(), *taken);
    tell(
        thief,
        *taken as f64,
        all.iter().map(|one| (one.cause.as_str(), one.total as f64)),
    );
}

#[test]
fn unmapping_in_the_own_process_is_named() {
    let Some(_lab) = require(&NEEDS) else { return };
    let spun = spun(|done, _| {
        while !done.load(Ordering::Relaxed) {
            for _ in 0..2 {
                // Beyond glibc's largest threshold (32 MiB) memory is always mapped, and unmapped, by itself.
                let mut block = vec![0_u8; 33 << 20];
                block[0] = 1;
                std::hint::black_box(&block);
            }
            // What this process sends is traced in small buffers: without a rest they are full before a starved reader comes.
            std::thread::sleep(Duration::from_micros(50));
        }
    });
    assert_tally_first(&spun, "own process: munmap");
    let mut causes = spun.0.iter().map(|one| &one.cause);
    let first = causes
        .find(|cause| cause.contains("munmap"))
        .expect("it was the first");
    assert!(
        first.starts_with("IPI ") && first.contains("from CPU 0"),
        "{first}"
    );
}

#[test]
fn signals_are_named() {
    let Some(_lab) = require(&NEEDS) else { return };
    let seen = std::sync::Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGUSR1, seen).expect("a handler");
    let spun = spun(|done, thread| {
        while !done.load(Ordering::Relaxed) {
            pthread_kill(thread, Signal::SIGUSR1).expect("the loop is alive");
            std::thread::sleep(Duration::from_micros(50));
        }
    });
    assert_tally_first(&spun, "signal SIGUSR1");
}

#[test]
fn nothing_planted_is_nothing_found() {
    let Some(_lab) = require(&NEEDS) else { return };
    let (all, taken) = spun(|_, _| {});
    assert!(taken > 0, "a core without a single stall");
    let planted = ["dl-hog", "own process", "signal SIGUSR1"];
    let found = all
        .iter()
        .find(|one| planted.iter().any(|name| one.cause.contains(name)));
    assert!(found.is_none(), "{found:?}");
}

/// The rows of `stalls.csv` name sequence numbers, each at most once, and no more than were lost.
fn assert_sequences(lab: &Lab, run: &crate::support::Finished) {
    let path = lab
        .path(run.json()["run"].as_str().expect("a path"))
        .join("stalls.csv");
    let text = std::fs::read_to_string(path).expect("a row for every pause");
    let mut numbers = std::collections::BTreeSet::new();
    let ranges = text.lines().skip(1).filter_map(|row| row.rsplit(',').nth(2));
    for range in ranges
        .flat_map(str::split_whitespace)
        .filter_map(|range| range.strip_prefix("0:"))
    {
        let (first, last) = range.split_once('-').expect("a range");
        for number in first.parse::<u64>().expect("a number")..=last.parse().expect("a number") {
            assert!(numbers.insert(number), "{number} twice: {text}");
        }
    }
    assert!(!numbers.is_empty(), "{text}");
    assert!(
        numbers.len() as u64 <= run.number("lost"),
        "{} of {run}",
        numbers.len()
    );
}

#[test]
fn packets_missed_in_a_run_are_charged_to_the_thief() {
    let Some(lab) = require(&[&NEEDS[..], &[Need::Namespaces]].concat()) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let reflector = wire.reflect_far(&lab, "packet", &["--only-ours", "--cores", "0"]);
    let thief = Hog::start(&lab);
    // What comes before and after the sending takes several times as long beside it.
    thief.signal(Signal::SIGSTOP);
    let far = wire.far.mac("far0");
    let flags = [
        "--to-mac",
        &far,
        "--cores",
        "0,1",
        "--rate",
        "50kpps",
        "--duration",
        "3s",
        "--descriptors",
        "64",
        "--explain",
    ];
    let mut sender = wire.send(&lab, "packet", &flags).spawn();
    sender.wait_for("sending: tx", LIMIT);
    thief.signal(Signal::SIGCONT);
    until(LIMIT, || {
        !sender.is_alive() || sender.stderr().contains("draining: tx")
    });
    drop(thief);
    let run = sender.wait(LIMIT);
    reflector.signal(Signal::SIGINT);
    reflector.wait(LIMIT);
    let explanation = &run.json()["explanation"];
    let missed = run.number("explanation.missed");
    assert!(missed > 0, "the thief cost nothing: {run}");
    assert_eq!(missed, run.number("ports.0.rx_missed"), "{run}");
    assert_eq!(missed, run.number("ledger.lost_at.rx_missed"), "{run}");
    assert!(run.number("explanation.explained") <= missed, "{run}");
    // What else this machine does may cost more packets at once, but no other task takes more of the core. Eight compilers do,
    // who have one name and so are one cause.
    let causes = explanation["causes"].as_array().expect("causes").iter();
    let is_several = |cause: &Value| {
        cause["cause"]
            .as_str()
            .is_some_and(|name| name.ends_with(" tasks)"))
    };
    let most = causes
        .filter(|cause| cause["core"] == WORKER && !is_several(cause))
        .max_by_key(|cause| cause["total_ns"].as_u64())
        .expect("a pause");
    let name = most["cause"].as_str().expect("a cause");
    assert!(name.contains("preempted by dl-hog ("), "{explanation}");
    assert!(most["lost"].as_u64() > Some(0), "{explanation}");
    let sum: u64 = explanation["causes"]
        .as_array()
        .expect("causes")
        .iter()
        .filter_map(|cause| cause["lost"].as_u64())
        .sum();
    assert_eq!(sum, run.number("explanation.explained"));
    assert_sequences(&lab, &run);
}

/// The tracer's instances of a process.
fn instances(process: u32) -> usize {
    let all = std::fs::read_dir("/sys/kernel/tracing/instances").expect("a tracer");
    let own = format!("dropless-{process}-");
    let names = all.flatten().map(|entry| entry.file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with(&own))
        .count()
}

/// What it asked the kernel to write down would cost every core, until somebody looks for thieves again.
#[test]
fn what_a_killed_run_left_in_the_tracer_goes_with_the_next_run() {
    let Some(lab) = require(&NEEDS) else { return };
    let port = ["send", "--port", "ring", "--rate", "1kpps", "--json"];
    let explained = lab
        .dropless(&[&port[..], &["--explain", "--duration", "60s"]].concat())
        .spawn();
    let process = explained.id();
    assert!(
        until(Duration::from_secs(30), || instances(process) > 0),
        "{explained:?}"
    );
    explained.kill();
    assert!(instances(process) > 0, "the kernel removes them by itself");
    let next = lab.dropless(&[&port[..], &["--count", "10"]].concat()).run();
    assert_eq!(next.number("received"), 10, "{next}");
    assert_eq!(instances(process), 0, "{next}");
}
