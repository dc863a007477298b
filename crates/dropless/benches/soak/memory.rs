//! The memory of the processes of a round, looked at while they run: what only goes on must not grow.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use procfs_core::FromRead as _;
use procfs_core::process::Status;

const EVERY: Duration = Duration::from_millis(200);
/// Fewer looks say nothing of a process that starts, or ends.
const LOOKS_MIN: usize = 20;
/// Within the second half of its life; histograms and windows are touched for the first time in the first.
const GROWTH_MAX_KIB: u64 = 16 << 10;
/// Of a capture, whose ring may not have come round before.
const RING_KIB: u64 = 64 << 10;
/// Of a pool on ordinary pages, a queue: 8,191 buffers, any of which may be used for the first time.
const POOL_KIB: u64 = 20 << 10;

/// A process, and what it had resident at each look.
struct Watched {
    name: String,
    since: Instant,
    resident_kib: Vec<u64>,
}

type Processes = Arc<Mutex<BTreeMap<u32, Watched>>>;

/// Looks until it is dropped.
pub struct Memory {
    processes: Processes,
    over: Arc<AtomicBool>,
    looker: Option<JoinHandle<()>>,
}

impl Memory {
    /// Looks at each for `life`, in which it sends: then it makes its result, for which it needs more, and which may take long.
    pub fn watch(life: Duration) -> Self {
        assert!(resident_kib(std::process::id()).is_some(), "no VmRSS in /proc");
        let (processes, over) = (Processes::default(), Arc::new(AtomicBool::new(false)));
        let (seen, ended) = (Arc::clone(&processes), Arc::clone(&over));
        let looker = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                let all = seen.iter_mut();
                for (process, watched) in all.filter(|(_, watched)| watched.since.elapsed() < life) {
                    watched.resident_kib.extend(resident_kib(*process));
                }
                drop(seen);
                std::thread::sleep(EVERY);
            }
        });
        Self {
            processes,
            over,
            looker: Some(looker),
        }
    }

    /// Looks at this process, too.
    pub fn also(&self, process: u32, name: &str) {
        let watched = Watched {
            name: name.to_owned(),
            since: Instant::now(),
            resident_kib: Vec::new(),
        };
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.insert(process, watched);
    }

    /// A line for each process that grew; `pools` are those of each on ordinary pages.
    pub fn grown(&self, pools: u32) -> Vec<String> {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let told = processes.values().filter_map(|watched| {
            let grown = growth_kib(&watched.resident_kib)?;
            let line = format!(
                "{}: grew by {} MiB in the second half of its life",
                watched.name,
                grown >> 10
            );
            let ring = if watched.name == "capture" { RING_KIB } else { 0 };
            let pool = u64::from(pools) * POOL_KIB;
            (grown > GROWTH_MAX_KIB + ring + pool).then_some(line)
        });
        told.collect()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(looker) = self.looker.take() {
            let _ = looker.join();
        }
    }
}

/// From the middle to the last look; the last few may be of the end of one that ended before.
fn growth_kib(looks: &[u64]) -> Option<u64> {
    let looks = &looks[..looks.len().saturating_sub(2)];
    let middle = looks.get(looks.len() / 2)?;
    (looks.len() >= LOOKS_MIN).then(|| looks.last().copied().unwrap_or(0).saturating_sub(*middle))
}

fn resident_kib(process: u32) -> Option<u64> {
    Status::from_file(format!("/proc/{process}/status")).ok()?.vmrss
}
