//! The run's clock: the time stamp counter, calibrated against the kernel's and checked.

use std::time::{Duration, SystemTime};

use dpdk::{Calibration, Reading};
use host::cpu::USER_HZ;
use measure::{Clock, ClockSummary, Ticks};
use nix::time::{ClockId, clock_gettime};
use procfs_core::FromRead as _;
use procfs_core::process::Stat;

use crate::run::placement;

/// A drift beyond what the kernel itself makes shows after that time: its readings are some microseconds apart at the worst.
const MEASURED_NS: u64 = 100_000_000;

/// Loading this program takes less: a process that is older was another program before (a shell that ended in `exec`).
const LOADING: Duration = Duration::from_secs(5);

pub struct RunClock {
    /// Ticks to nanoseconds.
    pub clock: Clock,
    calibration: Calibration,
    invariant: bool,
    /// Whether the counters of the workers' cores agree; `None` where that could not be tried.
    synchronous: Option<bool>,
    /// When this process was started, unless as another program.
    started: Option<Ticks>,
}

impl RunClock {
    /// Calibrates the time stamp counter against `CLOCK_MONOTONIC` from `begun` on, and compares those of `cores`, still
    /// idle.
    pub fn calibrate(cores: &[usize], begun: &Reading) -> Self {
        // Where that fails, so does the start of the workers, which says why.
        let _stay = placement::visit(cores);
        let first = cores.first().copied().unwrap_or_default();
        let calibration = dpdk::calibrate_since(begun, first, Duration::from_millis(100));
        let Calibration { tsc0, ns0, hz, .. } = calibration;
        let clock = Clock::from_calibration(tsc0, ns0, hz);
        Self {
            clock,
            started: process_age()
                .filter(|age| age.saturating_sub(begun.age()) < LOADING)
                .and_then(|age| now().0.checked_sub(clock.ticks_from_ns(age.as_nanos() as u64)))
                .map(Ticks),
            calibration,
            invariant: dpdk::tsc_is_invariant(),
            synchronous: dpdk::tsc_synchronous(cores).ok(),
        }
    }

    /// From the start of this process to `at`, ms: up to a tick of the kernel's clock (10 ms) too long, since it tells no
    /// finer when a process was started.
    pub fn since_process_start_ms(&self, at: Ticks) -> Option<f64> {
        let started = self.started?;
        Some(self.clock.ns_from_ticks(at.since(started)) as f64 / 1e6)
    }

    /// Checks the clock against the kernel's once more, at the end: how far apart they are now, and the verdict.
    pub fn finish(&self) -> (ClockSummary, Option<String>) {
        let (ticks, kernel) = dpdk::both_clocks();
        let ours = self.clock.ns(Ticks(ticks)).0;
        let elapsed = kernel.saturating_sub(self.calibration.ns0).max(1);
        let drift_ppm = (ours as f64 - kernel as f64).abs() / elapsed as f64 * 1e6;
        let is_measured = elapsed > MEASURED_NS;
        // NTP slews CLOCK_MONOTONIC by at most 500 ppm (adjtimex(2)); more than twice that is a broken counter.
        let drifted = (drift_ppm > 1000.0 && is_measured).then(|| {
            format!("the time stamp counter drifted {drift_ppm:.0} ppm from CLOCK_MONOTONIC during the run")
        });
        let apart = (self.synchronous == Some(false))
            .then(|| "the time stamp counters of the workers' cores disagree: choose one core, or cores of one socket, with --cores".into());
        let unchecked = match self.synchronous {
            None => Some("the time stamp counters of the workers' cores could not be compared"),
            Some(_) if !self.invariant && !is_measured => Some(
                "the kernel does not call the time stamp counter invariant, and the run was too short to see",
            ),
            Some(_) => None,
        };
        let trouble = drifted.or(apart).or_else(|| unchecked.map(str::to_owned));
        let summary = ClockSummary {
            source: "tsc".into(),
            hz: self.calibration.hz,
            uncertainty_ppm: self.calibration.uncertainty_ppm,
            checked: trouble.is_none(),
        };
        (summary, trouble)
    }
}

/// How old this process is. Of now, and no instant of the counter: over days the two drift apart.
fn process_age() -> Option<Duration> {
    let stat = Stat::from_file("/proc/self/stat").ok()?;
    let started_ns = stat.starttime.checked_mul(1_000_000_000 / USER_HZ)?;
    let since_boot = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?);
    since_boot.checked_sub(Duration::from_nanos(started_ns))
}

/// Now, ns since the epoch of Unix.
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// The time stamp counter, as the loops want it.
pub fn now() -> Ticks {
    Ticks(dpdk::tsc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_as_old_as_the_kernel_says() {
        let age = || process_age().expect("the kernel tells it");
        let begun = age();
        std::thread::sleep(Duration::from_millis(20));
        assert!(begun > Duration::ZERO && age() >= begun + Duration::from_millis(20));
        let seconds = std::process::Command::new("ps")
            .args(["-o", "etimes=", "-p", &std::process::id().to_string()])
            .output();
        let told = seconds.ok().and_then(|told| String::from_utf8(told.stdout).ok());
        if let Some(seconds) = told.and_then(|told| told.trim().parse().ok()) {
            assert!(age() >= Duration::from_secs(seconds), "{seconds}");
        }
    }
}
