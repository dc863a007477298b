//! The doctor: what on this machine will take a polling core away, one check a file.

mod af_xdp;
mod binding;
pub mod finding;
#[cfg(test)]
mod fixture;
mod frequency;
pub mod gap;
mod hyperv;
mod idle;
mod interrupts;
mod iommu;
mod irqbalance;
mod isolation;
mod kernel_timers;
mod library;
mod locked;
mod look;
mod machine_check;
mod managed;
mod memory;
mod numa;
mod pages;
mod pcie;
mod propose;
mod quota;
mod rcu;
mod reach;
mod realtime;
mod ring;
pub mod sample;
mod service;
mod smi;
mod smt;
mod spare;
mod steal;
mod tick;
mod tsc;
mod workqueues;

use std::time::{Duration, Instant};

pub use finding::{Change, Finding, Reading, Remedy, Verdict, When};
pub use propose::{Proposal, beside, propose};
pub use sample::{Sample, Watched};

use crate::Sys;
use crate::cores::CoreSet;
use crate::noise::interrupts::Interrupts;
use crate::uri::PortUri;

/// What is examined: the machine, and what is planned on it.
#[derive(Debug)]
pub struct Patient<'s> {
    /// The machine.
    pub sys: &'s Sys,
    /// The cores that will poll.
    pub workers: CoreSet,
    /// The cores that everything else may have.
    pub housekeeping: CoreSet,
    /// The ports that will be used.
    pub ports: Vec<PortUri>,
    /// What the kernel counted while we watched.
    pub watched: Watched,
    /// What will arrive, where the user said so.
    pub load: Load,
}

/// What the user says of the load.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// Packets that arrive at each port, 1/s.
    pub rate_pps: Option<f64>,
    /// Receive descriptors of each queue.
    pub descriptors: Option<u16>,
}

/// A check: it looks and says what it found, one finding or several.
pub type Check = fn(&Patient<'_>) -> Vec<Finding>;

/// All checks, in the order in which they are shown: what takes the cores away, then what they need.
pub const CHECKS: &[Check] = &[
    spare::check,
    service::check,
    isolation::check,
    interrupts::check,
    managed::check,
    irqbalance::check,
    tick::check,
    rcu::check,
    workqueues::check,
    realtime::check,
    quota::check,
    kernel_timers::check,
    memory::check,
    idle::check,
    frequency::check,
    smi::check,
    machine_check::check,
    steal::check,
    tsc::check,
    smt::check,
    numa::check,
    ring::check,
    pages::check,
    locked::check,
    reach::check,
    binding::check,
    iommu::check,
    library::check,
    hyperv::check,
    pcie::check,
    af_xdp::check,
];

/// Those that read a few files and tell something without having watched, the worst trouble first.
const QUICK: &[Check] = &[
    quota::check,
    spare::check,
    isolation::check,
    interrupts::check,
    tick::check,
    smt::check,
    numa::check,
    tsc::check,
    frequency::check,
    kernel_timers::check,
    memory::check,
    workqueues::check,
    machine_check::check,
];

/// Runs all checks.
pub fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(patient)).collect()
}

/// What can be found without waiting, warnings and worse only, the worst first.
pub fn glance(sys: &Sys, workers: CoreSet, ports: &[PortUri]) -> Vec<Finding> {
    let Proposal {
        workers,
        housekeeping,
    } = beside(sys, workers);
    let patient = Patient {
        sys,
        workers,
        housekeeping,
        ports: ports.to_vec(),
        watched: Watched::at_a_glance(sys),
        load: Load::default(),
    };
    let mut findings: Vec<Finding> = QUICK.iter().flat_map(|check| check(&patient)).collect();
    // What nothing mends follows from something else that is told.
    findings.retain(|finding| finding.verdict >= Verdict::Warning && !finding.remedies.is_empty());
    // Stable: of those that are equally bad, the order of the checks is kept.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    findings
}

/// Polls on those workers' cores for `time` that nobody else is pinned to, and notes the longest gap of each, and its ticks.
pub fn measure_gaps(patient: &mut Patient<'_>, time: Duration) {
    let taken = service::pinned(patient, &patient.workers);
    let taken = taken
        .iter()
        .fold(CoreSet::default(), |all, task| all.with(&task.allowed));
    let polled = patient.workers.without(&taken);
    let (before, begun) = (Interrupts::read(patient.sys), Instant::now());
    patient.watched.gaps = gap::longest(&polled, time);
    let (after, seconds) = (Interrupts::read(patient.sys), begun.elapsed().as_secs_f64());
    if !after.is_empty() {
        let rate = |core| tick::count(&before, &after, core) as f64 / seconds;
        let cores = patient.watched.gaps.keys();
        patient.watched.ticks = cores.map(|core| (*core, rate(*core))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::Machine;
    use super::*;

    #[test]
    fn a_glance_tells_what_is_worst_first() {
        let machine = Machine::with(&[
            ("/sys/devices/system/cpu/isolated", ""),
            ("/proc/sys/kernel/numa_balancing", "1"),
            ("/proc/self/cgroup", "0::/"),
            ("/sys/fs/cgroup/cpu.max", "5000 100000"),
        ]);
        let findings = glance(&machine.sys, "3".parse().unwrap(), &[]);
        let names: Vec<&str> = findings.iter().map(|finding| finding.check).collect();
        assert_eq!(names, ["cpu-quota", "isolation", "tick", "numa-balancing"]);
        assert!(findings.iter().all(|finding| finding.costs.is_some()));
    }

    #[test]
    fn an_empty_machine_is_told_nothing_wrong_for_certain() {
        let machine = Machine::with(&[]);
        for check in CHECKS {
            for finding in machine.run(*check) {
                assert!(!finding.says.is_empty(), "{} says nothing", finding.check);
                let bad = finding.verdict >= Verdict::Warning;
                assert!(!bad || finding.check == "tick", "{finding:?}");
            }
        }
    }
}
