//! What a program's worker threads got of their cores: neighbours and the hypervisor take from both programs, unevenly.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use procfs_core::FromRead as _;
use procfs_core::process::Schedstat;

use crate::support::proc::is_alive;
use crate::support::until;

/// How long a program may take until its workers poll.
const STARTING: Duration = Duration::from_secs(20);

/// The worker threads of some processes, from one instant on.
pub struct Watch {
    threads: Vec<PathBuf>,
    ran_ns: u64,
    begun: Instant,
}

impl Watch {
    /// Waits until each process has its workers. A process that ends first is told by its own output, not here.
    pub fn begin(processes: &[u32]) -> Self {
        until(STARTING, || {
            processes
                .iter()
                .all(|id| !workers(*id).is_empty() || !is_alive(*id))
        });
        // The workers of one process start one after the other.
        std::thread::sleep(Duration::from_millis(50));
        let threads: Vec<PathBuf> = processes.iter().flat_map(|id| workers(*id)).collect();
        Self {
            ran_ns: ran_ns(&threads).unwrap_or(0),
            begun: Instant::now(),
            threads,
        }
    }

    /// The mean share of a core that one worker had since then; nothing when a worker is gone or never came.
    pub fn share(&self) -> Option<f64> {
        let ran_ns = ran_ns(&self.threads)?.checked_sub(self.ran_ns)?;
        let elapsed_ns = self.begun.elapsed().as_nanos() as f64;
        (!self.threads.is_empty()).then(|| ran_ns as f64 / elapsed_ns / self.threads.len() as f64)
    }
}

/// Threads named `dropless-1` (ours), `dpdk-worker1` or `rte-worker-1` (testpmd's, by DPDK's version).
fn workers(process: u32) -> Vec<PathBuf> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let is_worker = |path: &PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        name.starts_with("dropless-") || name.contains("-worker")
    };
    tasks
        .flatten()
        .map(|task| task.path())
        .filter(is_worker)
        .collect()
}

/// Time on a core, of all threads together.
fn ran_ns(threads: &[PathBuf]) -> Option<u64> {
    let of_one = |path: &PathBuf| {
        Some(
            Schedstat::from_file(path.join("schedstat"))
                .ok()?
                .sum_exec_runtime,
        )
    };
    threads.iter().map(of_one).sum()
}
