//! Runs the checks: all of them, or a glance.

use std::time::{Duration, Instant};

use host::cores::CoreSet;
use host::interrupts::Interrupts;
use host::{PortUri, Sys};

use crate::checks::{ALL, Check, service, tick};
use crate::stall;
use crate::{Finding, Load, Proposal, Subject, Verdict, Watched, beside};

/// Runs all checks.
pub fn examine(subject: &Subject<'_>) -> Vec<Finding> {
    ALL.iter().flat_map(|check| (check.run)(subject)).collect()
}

/// What can be found without waiting, warnings and worse only, the worst first.
pub fn glance(sys: &Sys, workers: CoreSet, ports: &[PortUri]) -> Vec<Finding> {
    let Proposal {
        workers,
        housekeeping,
    } = beside(sys, workers);
    let subject = Subject {
        sys,
        workers,
        housekeeping,
        ports: ports.to_vec(),
        watched: Watched::at_a_glance(sys),
        load: Load::default(),
    };
    let mut quick: Vec<&Check> = ALL.iter().filter(|check| check.glance.is_some()).collect();
    quick.sort_by_key(|check| check.glance);
    let mut findings: Vec<Finding> = quick.iter().flat_map(|check| (check.run)(&subject)).collect();
    // What nothing mends follows from something else that is told.
    findings.retain(|finding| finding.verdict >= Verdict::Warning && !finding.remedies.is_empty());
    // Stable: of those that are equally bad, the order of the checks is kept.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    findings
}

/// Polls on those workers' cores for `time` that nobody else is pinned to, and notes how far stalls put each behind, and its ticks.
pub fn measure_stalls(subject: &mut Subject<'_>, time: Duration) {
    let taken = service::pinned(subject, &subject.workers);
    let taken = taken
        .iter()
        .fold(CoreSet::default(), |all, task| all.with(&task.allowed));
    let polled = subject.workers.without(&taken);
    let (before, begun) = (Interrupts::read(subject.sys), Instant::now());
    subject.watched.stalls = stall::behind(&polled, time);
    let (after, seconds) = (Interrupts::read(subject.sys), begun.elapsed().as_secs_f64());
    if !after.is_empty() {
        let rate = |core| tick::count(&before, &after, core) as f64 / seconds;
        let cores = subject.watched.stalls.keys();
        subject.watched.ticks = cores.map(|core| (*core, rate(*core))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

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
        for check in ALL {
            for finding in machine.run(check.run) {
                assert!(!finding.says.is_empty(), "{} says nothing", finding.check);
                let bad = finding.verdict >= Verdict::Warning;
                assert!(!bad || finding.check == "tick", "{finding:?}");
            }
        }
    }
}
