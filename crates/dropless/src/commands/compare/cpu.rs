//! Processor time of children, of the kernel's helper threads and of soft interrupts, looked at while a trial sends.

use std::fs;
use std::time::{Duration, Instant};

use host::Sys;
use host::cpu::USER_HZ;
use procfs_core::FromRead as _;
use procfs_core::process::Schedstat;

use super::result::Cpu;

/// From the start of a sender's worker to its first packet, about.
const LEAD: Duration = Duration::from_millis(60);

#[derive(Clone, Copy)]
struct Look {
    at: Instant,
    near_ns: u64,
    far_ns: u64,
    ksoftirqd_ns: u64,
    softirq_ticks: u64,
}

pub struct CpuWatch {
    near: u32,
    far: Option<u32>,
    /// Their schedstat files.
    ksoftirqd: Vec<String>,
    working_since: Option<Instant>,
    looks: Vec<Look>,
}

impl CpuWatch {
    /// Of the sender `near` and the reflector `far`.
    pub fn new(near: u32, far: Option<u32>) -> Self {
        let is_ksoftirqd = |id: &String| {
            fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with("ksoftirqd/"))
        };
        let processes = Sys::at("/").processes().into_iter();
        Self {
            near,
            far,
            ksoftirqd: processes
                .filter(is_ksoftirqd)
                .map(|id| format!("/proc/{id}/schedstat"))
                .collect(),
            working_since: None,
            looks: Vec::new(),
        }
    }

    pub fn look(&mut self) {
        if self.working_since.is_none() && has_worker(self.near) {
            self.working_since = Some(Instant::now());
        }
        if self.working_since.is_none_or(|since| since.elapsed() < LEAD) {
            return;
        }
        let look = Look {
            at: Instant::now(),
            near_ns: of_process(self.near),
            far_ns: self.far.map_or(0, of_process),
            ksoftirqd_ns: self.ksoftirqd.iter().map(|file| ran_ns(file)).sum(),
            softirq_ticks: softirq_ticks(),
        };
        // A process that is gone has used nothing.
        if look.near_ns > 0 {
            self.looks.push(look);
        }
    }

    /// What was used from the first packet on, for as long as was sent; `None` where that was too short to be measured.
    pub fn finish(&self, sending: Duration) -> Option<Cpu> {
        let first = self.looks.first()?;
        let mut backwards = self.looks.iter().rev();
        let last = backwards.find(|look| look.at - first.at <= sending)?;
        let seconds = (last.at - first.at).as_secs_f64();
        if seconds < 0.05 {
            return None;
        }
        let cores = |pick: fn(&Look) -> u64| pick(last).saturating_sub(pick(first)) as f64 / 1e9 / seconds;
        let ticks = last.softirq_ticks.saturating_sub(first.softirq_ticks);
        Some(Cpu {
            near_cores: cores(|look| look.near_ns),
            far_cores: self.far.map(|_| cores(|look| look.far_ns)),
            ksoftirqd_cores: cores(|look| look.ksoftirqd_ns),
            softirq_cores: ticks as f64 / USER_HZ as f64 / seconds,
        })
    }
}

/// Workers have their core in their name.
fn has_worker(process: u32) -> bool {
    tasks(process).any(|task| {
        fs::read_to_string(format!("{task}/comm")).is_ok_and(|name| name.starts_with("dropless-"))
    })
}

fn tasks(process: u32) -> impl Iterator<Item = String> {
    fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().display().to_string())
}

fn of_process(process: u32) -> u64 {
    tasks(process)
        .map(|task| ran_ns(&format!("{task}/schedstat")))
        .sum()
}

/// Time on a processor, ns, by a schedstat file.
fn ran_ns(path: &str) -> u64 {
    Schedstat::from_file(path).map_or(0, |ran| ran.sum_exec_runtime)
}

/// All processors' time in soft interrupts: the seventh number after the first word of /proc/stat.
fn softirq_ticks() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let word = text.split_whitespace().nth(7);
    word.and_then(|number| number.parse().ok()).unwrap_or(0)
}
