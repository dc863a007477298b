//! The machine that is measured on: its facts, cores and hugepages, put back as they were at the end.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use host::Sys;
use serde_json::{Value, json};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
/// Two programs at once, with packet pools of 32 k buffers.
const PAGES_NEEDED: u64 = 128;
const PAGES_RESERVED: u64 = 256;

/// The machine, ready to measure on.
pub struct Machine {
    /// Core of the worker, on both sides.
    pub worker: usize,
    /// Core of the second worker, of rows that have one.
    pub second: usize,
    /// Both programs keep their packets on hugepages.
    pub huge: bool,
    /// What a reader has to know.
    pub notes: Vec<String>,
    facts: host::Facts,
    testpmd: String,
    pages_before: Option<u64>,
    interrupted: Arc<AtomicBool>,
}

impl Machine {
    /// Looks around, and reserves hugepages where none are free.
    pub fn prepare() -> Result<Self, String> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The second one ends it at once: it may be waiting for somebody else's turn on the cores.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
                .map_err(|error| format!("watching for Ctrl-C: {error}"))?;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut machine = Self {
            worker: 1.min(cores - 1),
            // Core 0 has the interrupts, and is taken only where there is no third.
            second: if cores > 2 { 2 } else { 0 },
            huge: false,
            notes: Vec::new(),
            facts: host::facts(&Sys::live(), Value::Null),
            testpmd: testpmd_version()?,
            pages_before: None,
            interrupted,
        };
        machine.reserve();
        Ok(machine)
    }

    fn reserve(&mut self) {
        let free = pages("free_hugepages");
        if free >= PAGES_NEEDED {
            self.huge = true;
            self.notes
                .push(format!("both programs use hugepages: {free} of 2 MiB are free"));
            return;
        }
        let before = pages("nr_hugepages");
        let file = Path::new(POOL).join("nr_hugepages");
        let _ = std::fs::write(&file, (before + PAGES_RESERVED).to_string());
        if pages("nr_hugepages") != before {
            self.pages_before = Some(before);
        }
        self.huge = pages("free_hugepages") >= PAGES_NEEDED;
        self.notes.push(if self.huge {
            format!("reserved {PAGES_RESERVED} hugepages of 2 MiB for both programs, until the end of this run")
        } else {
            format!("no hugepages: both programs use ordinary pages; as root: echo {PAGES_RESERVED} > {POOL}/nr_hugepages")
        });
    }

    /// Whether somebody asked this run to end.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// The facts that explain the figures, by name.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let facts = &self.facts;
        let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".into());
        let memory = facts
            .memory_bytes
            .map_or_else(|| "unknown".into(), |bytes| format!("{} GiB", bytes >> 30));
        let pages = if self.huge {
            "hugepages of 2 MiB"
        } else {
            "ordinary pages"
        };
        let mut rows = vec![
            ("CPU", known(&facts.cpu_model)),
            (
                "cores",
                format!(
                    "{} (isolated: {})",
                    facts.cores.online,
                    or_none(&facts.cores.isolated.to_string())
                ),
            ),
            (
                "hypervisor",
                facts.hypervisor.clone().unwrap_or_else(|| "none".into()),
            ),
            ("memory", format!("{memory}, packets on {pages}")),
            ("kernel", known(&facts.kernel)),
            ("distribution", known(&facts.distribution)),
            ("testpmd", self.testpmd.clone()),
            (
                "dropless",
                format!("{}, release build", env!("CARGO_PKG_VERSION")),
            ),
        ];
        if let Some(governor) = &facts.cores.governor {
            rows.push(("governor", governor.clone()));
        }
        rows
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let facts: serde_json::Map<String, Value> = self
            .facts()
            .into_iter()
            .map(|(name, fact)| (name.into(), fact.into()))
            .collect();
        json!({"facts": facts, "worker_core": self.worker, "second_core": self.second, "notes": self.notes})
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(before) = self.pages_before {
            let _ = std::fs::write(Path::new(POOL).join("nr_hugepages"), before.to_string());
        }
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

fn pages(file: &str) -> u64 {
    let text = std::fs::read_to_string(Path::new(POOL).join(file)).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// What EAL calls itself, such as `DPDK 22.11.9`.
fn testpmd_version() -> Result<String, String> {
    let quick = [
        "-v",
        "--no-huge",
        "--no-pci",
        "--in-memory",
        "-m",
        "64",
        "--",
        "--help",
    ];
    let output = Command::new("dpdk-testpmd").args(quick).output();
    let output = output.map_err(|error| format!("dpdk-testpmd: {error}; fix: ./dev setup"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let version = said.split('\'').find(|part| part.starts_with("DPDK "));
    Ok(version.unwrap_or("of an unknown version").into())
}

/// Processor time of all cores since boot, and what of it the hypervisor gave to others, in clock ticks.
pub fn stolen() -> (u64, u64) {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    (ticks.iter().take(8).sum(), ticks.get(7).copied().unwrap_or(0))
}

/// Share of the processors' time that was stolen since then.
pub fn stolen_share(before: (u64, u64)) -> f64 {
    let after = stolen();
    (after.1 - before.1) as f64 / (after.0 - before.0).max(1) as f64
}
