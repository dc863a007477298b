//! What the kernel has counted so far: two samples tell what happens on a core now.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use host::Sys;
use host::cores::{self, Core};
use host::interrupts::Interrupts;
use host::{cpu, facts};

/// `MSR_SMI_COUNT` of Intel's processors since Nehalem (Software Developer's Manual, volume 4).
const SMI_COUNT: u64 = 0x34;

/// One look at the counters.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// `/proc/interrupts`.
    pub interrupts: Interrupts,
    /// `/proc/softirqs`, which looks the same.
    pub softirqs: Interrupts,
    /// Of each core its `steal` of `/proc/stat`, ticks of `USER_HZ`.
    pub steal: BTreeMap<Core, u64>,
    /// Of each core the time in which it ran something, of the same file, ticks of `USER_HZ`.
    pub busy: BTreeMap<Core, u64>,
    /// How often each core entered each of its idle states, by the state's folder: `state2`.
    pub idle: BTreeMap<Core, BTreeMap<String, u64>>,
    /// System management interrupts since power on, of the lowest core (they stop all cores at once); or why that is not known.
    pub smi: Smi,
}

/// What is known of system management interrupts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Smi {
    /// Nobody looked.
    #[default]
    NotRead,
    /// A virtual machine's counter does not count the real machine's.
    Virtual,
    /// Only Intel's processors count them.
    NotCounted,
    /// `/dev/cpu/N/msr` cannot be read: no module `msr`, or no rights.
    NoAccess,
    /// So many.
    Count(u64),
}

impl Sample {
    /// Reads them.
    pub fn take(sys: &Sys) -> Self {
        let stat = sys.text("/proc/stat").unwrap_or_default();
        let rows: Vec<(Core, Vec<u64>)> = stat.lines().filter_map(row).collect();
        let cores = cores::online(sys);
        let field = |fields: &[u64], index: usize| fields.get(index).copied().unwrap_or(0);
        // proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
        let busy = |fields: &[u64]| [0, 1, 2, 5, 6].iter().map(|index| field(fields, *index)).sum();
        Self {
            interrupts: Interrupts::read(sys),
            softirqs: Interrupts::parse(&sys.text("/proc/softirqs").unwrap_or_default()),
            steal: steal(&stat),
            busy: rows.iter().map(|(core, fields)| (*core, busy(fields))).collect(),
            idle: cores.iter().map(|core| (core, idle(sys, core))).collect(),
            smi: smi(sys),
        }
    }
}

/// Of each core its `steal`, ticks of `USER_HZ`; `stat` is the text of `/proc/stat`.
pub fn steal(stat: &str) -> BTreeMap<Core, u64> {
    let rows = stat.lines().filter_map(row);
    rows.map(|(core, fields)| (core, fields.get(7).copied().unwrap_or(0)))
        .collect()
}

/// A core's line of `/proc/stat`.
fn row(line: &str) -> Option<(Core, Vec<u64>)> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    let core = words.next()?.parse().ok().map(Core)?;
    // The sum of all cores is "cpu" and a blank: its first word is no core's number, but a count.
    let is_sum = line.starts_with("cpu ");
    (!is_sum).then(|| (core, words.map_while(|word| word.parse().ok()).collect()))
}

fn idle(sys: &Sys, core: Core) -> BTreeMap<String, u64> {
    let directory = format!("/sys/devices/system/cpu/cpu{core}/cpuidle");
    let states = sys.names(&directory).into_iter();
    states
        .filter_map(|state| {
            let usage = sys.number(format!("{directory}/{state}/usage"))?;
            Some((state, usage))
        })
        .collect()
}

fn smi(sys: &Sys) -> Smi {
    if facts::is_virtual(sys) {
        return Smi::Virtual;
    }
    if !cpu::is_intel(sys) {
        return Smi::NotCounted;
    }
    let Some(core) = cores::online(sys).iter().next() else {
        return Smi::NoAccess;
    };
    let mut value = [0; 8];
    let read = File::open(sys.path(format!("/dev/cpu/{core}/msr")))
        .and_then(|file| file.read_exact_at(&mut value, SMI_COUNT));
    // The upper half of the register is reserved.
    read.map_or(Smi::NoAccess, |()| {
        Smi::Count(u64::from_ne_bytes(value) & 0xFFFF_FFFF)
    })
}

/// Two samples and the time between them.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// The first.
    pub before: Sample,
    /// The second.
    pub after: Sample,
    /// From one to the other; 0 where nobody watched.
    pub over: Duration,
    /// How far each core was behind at most, by the time in which what waited had come, since it was away from a loop that only
    /// looks at the clock: the longest stall, and what was left of those close before it. Where such a loop was run.
    pub stalls: BTreeMap<Core, Duration>,
    /// The timer ticks of each core while that loop ran, 1/s. An idle core has hardly any, and proves nothing.
    pub ticks: BTreeMap<Core, f64>,
}

impl Watched {
    /// Looks twice; sleeps between.
    pub fn for_a(time: Duration, sys: &Sys) -> Self {
        let before = Sample::take(sys);
        let begun = std::time::Instant::now();
        std::thread::sleep(time);
        Self {
            before,
            after: Sample::take(sys),
            over: begun.elapsed(),
            ..Self::default()
        }
    }

    /// Without having watched: what one look tells, which interrupts are in use at all.
    pub fn at_a_glance(sys: &Sys) -> Self {
        let after = Sample {
            interrupts: Interrupts::read(sys),
            ..Sample::default()
        };
        Self {
            after,
            ..Self::default()
        }
    }

    /// Whether there are two looks to compare.
    pub fn is_there(&self) -> bool {
        !self.over.is_zero()
    }

    /// A count in that time as a rate, 1/s.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.over.as_secs_f64().max(1e-9)
    }
}
