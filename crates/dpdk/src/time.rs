//! The time stamp counter: reading it, how fast it runs, and whether it can be trusted.

use std::{
    fs, io, thread,
    time::{Duration, Instant},
};

use crate::worker::pin_to_core;

/// The time stamp counter now.
#[inline]
pub fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has RDTSC, and Linux leaves it to user space.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: reads a register.
    unsafe {
        dpdk_sys::dl_tsc()
    }
}

/// The counter after everything that was loaded before: else the processor may read it ahead of what it waits for.
fn tsc_after_loads() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: part of SSE2, which every x86-64 has.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    tsc()
}

/// `CLOCK_MONOTONIC` now, nanoseconds.
fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// One of the clocks that every kernel has.
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How long the machine has slept since it was booted: `CLOCK_MONOTONIC` stands still meanwhile, the counter may go on.
fn slept_ns() -> u64 {
    // Never too little; whoever is taken off its core between the two reads too much.
    let once = || {
        let awake = monotonic_ns();
        clock_ns(libc::CLOCK_BOOTTIME).saturating_sub(awake)
    };
    (0..READINGS).map(|_| once()).fold(u64::MAX, u64::min)
}

/// How the counter relates to `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// A reading of the counter,
    pub tsc0: u64,
    /// and `CLOCK_MONOTONIC` at that instant, nanoseconds.
    pub ns0: u64,
    /// Ticks per second.
    pub hz: f64,
    /// How far `hz` may be off, parts per million, from the widths of the readings.
    pub uncertainty_ppm: f64,
}

/// One reading of both clocks: the counter before and after that of the kernel.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    tsc: u64,
    ns: u64,
    width: u64,
}

/// Readings tried at each end; the narrowest was disturbed least.
const READINGS: usize = 64;
/// Two readings of how long the machine has slept differ by less than this if it did not, and by more if it did.
const SLEEP_MIN_NS: u64 = 10_000;

fn bracket() -> Bracket {
    let once = || {
        let before = tsc();
        let ns = monotonic_ns();
        let width = tsc().saturating_sub(before);
        Bracket {
            tsc: before + width / 2,
            ns,
            width,
        }
    };
    (0..READINGS).map(|_| once()).fold(
        once(),
        |best, next| if next.width < best.width { next } else { best },
    )
}

/// The counter and `CLOCK_MONOTONIC` (in ns) at one instant: whoever is taken off its core between two readings tries again.
pub fn both_clocks() -> (u64, u64) {
    let Bracket { tsc, ns, .. } = bracket();
    (tsc, ns)
}

/// A reading of both clocks that a calibration may begin with, and the core that it was taken on.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    bracket: Bracket,
    core: Option<usize>,
    slept_ns: u64,
}

impl Reading {
    /// Both clocks now.
    pub fn now() -> Self {
        // Before all else: a sleep from here on is seen.
        let slept_ns = slept_ns();
        let core = current_core();
        let bracket = bracket();
        // Whoever was moved meanwhile does not know whose counter it was.
        let core = core.filter(|core| current_core() == Some(*core));
        Self {
            bracket,
            core,
            slept_ns,
        }
    }

    /// How long ago that was.
    pub fn age(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.bracket.ns))
    }

    /// Whether the machine has slept since.
    fn has_slept(&self) -> bool {
        slept_ns().abs_diff(self.slept_ns) > SLEEP_MIN_NS
    }
}

fn current_core() -> Option<usize> {
    // SAFETY: takes nothing and writes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Measures the counter of `core` against `CLOCK_MONOTONIC`, from `begun` on where the counter it read then is the same
/// one and the machine did not sleep, for at least `duration`: what was done since needs not be waited for again.
pub fn calibrate_since(begun: &Reading, core: usize, duration: Duration) -> Calibration {
    let is_same = |other: usize| other == core || matches!(tsc_synchronous(&[other, core]), Ok(true));
    if !tsc_is_invariant() || !begun.core.is_some_and(is_same) {
        return calibrate(duration);
    }
    thread::sleep(duration.saturating_sub(begun.age()));
    let end = bracket();
    if begun.has_slept() {
        return calibrate(duration);
    }
    between(begun.bracket, end)
}

/// Measures the counter against `CLOCK_MONOTONIC` over `duration` (at least 1 ms), asleep in between.
pub fn calibrate(duration: Duration) -> Calibration {
    let start = bracket();
    thread::sleep(duration.max(Duration::from_millis(1)));
    between(start, bracket())
}

fn between(start: Bracket, end: Bracket) -> Calibration {
    let ticks = end.tsc.saturating_sub(start.tsc).max(1) as f64;
    let ns = end.ns.saturating_sub(start.ns).max(1) as f64;
    // Each instant is known to half its bracket.
    let unsure_ticks = (start.width + end.width) as f64 / 2.0;
    Calibration {
        tsc0: end.tsc,
        ns0: end.ns,
        hz: ticks / ns * 1e9,
        uncertainty_ppm: unsure_ticks / ticks * 1e6,
    }
}

/// Whether the kernel says that the counter runs at one speed and through idle states; false where it is unknown.
pub fn tsc_is_invariant() -> bool {
    if cfg!(target_arch = "aarch64") {
        // The generic timer is so by architecture.
        return true;
    }
    let Ok(text) = fs::read_to_string("/proc/cpuinfo") else {
        return false;
    };
    let Some(flags) = text.lines().find(|line| line.starts_with("flags")) else {
        return false;
    };
    let has = |flag| flags.split_whitespace().any(|word| word == flag);
    has("constant_tsc") && has("nonstop_tsc")
}

/// The bounds, in ticks, of how far the counters of `core` are ahead (+) or behind (-) of those of `reference`, from
/// `rounds` exchanges between two threads. 0 within the bounds means: not told apart.
pub fn tsc_offset_bounds(reference: usize, core: usize, rounds: usize) -> io::Result<(i64, i64)> {
    offset::bounds(reference, core, rounds)
}

/// Exchanges per pair of cores in [`tsc_synchronous`].
const ROUNDS: usize = 500;

/// Whether the counters of these cores cannot be told apart by exchanging readings. The cores must not be busy
/// otherwise; one core alone is always synchronous.
pub fn tsc_synchronous(cores: &[usize]) -> io::Result<bool> {
    let Some((first, others)) = cores.split_first() else {
        return Ok(true);
    };
    for core in others.iter().filter(|core| *core != first) {
        let (low, high) = tsc_offset_bounds(*first, *core, ROUNDS)?;
        if low > 0 || high < 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

mod offset {
    //! Two pinned threads exchange readings through one cache line each way.
    use super::{Duration, Instant, io, pin_to_core, thread, tsc, tsc_after_loads};
    use std::sync::atomic::{AtomicU64, Ordering};

    #[repr(align(128))]
    #[derive(Default)]
    struct Line(AtomicU64);

    /// A partner that does not answer within this time is not there.
    const PATIENCE: Duration = Duration::from_secs(2);

    fn wait_for(line: &Line, deadline: Instant, old: u64) -> io::Result<u64> {
        let mut spins = 0_u32;
        loop {
            let value = line.0.load(Ordering::Acquire);
            if value != old {
                return Ok(value);
            }
            spins += 1;
            if spins % 1024 == 0 {
                // Both threads may share one core.
                thread::yield_now();
                if Instant::now() > deadline {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            std::hint::spin_loop();
        }
    }

    /// Two's complement: right for any readings less than 2^63 ticks (centuries) apart.
    #[allow(clippy::cast_possible_wrap, reason = "the wrap is the sign")]
    fn difference(a: u64, b: u64) -> i64 {
        a.wrapping_sub(b) as i64
    }

    pub(super) fn bounds(reference: usize, core: usize, rounds: usize) -> io::Result<(i64, i64)> {
        let (question, answer) = (Line::default(), Line::default());
        let deadline = Instant::now() + PATIENCE;
        thread::scope(|scope| {
            let far = thread::Builder::new().spawn_scoped(scope, || {
                pin_to_core(core)?;
                let mut seen = 0;
                for _ in 0..rounds {
                    seen = wait_for(&question, deadline, seen)?;
                    answer.0.store(tsc_after_loads(), Ordering::Release);
                }
                Ok::<_, io::Error>(())
            })?;
            // Where it cannot be started, the other one loses its patience.
            let near = thread::Builder::new().spawn_scoped(scope, || {
                pin_to_core(reference)?;
                let (mut low, mut high) = (i64::MIN, i64::MAX);
                let mut answered = 0;
                for _ in 0..rounds {
                    let sent = tsc();
                    question.0.store(sent, Ordering::Release);
                    answered = wait_for(&answer, deadline, answered)?;
                    let back = tsc_after_loads();
                    // The answer was read after `sent` and before `back` of this core's clock.
                    low = low.max(difference(answered, back));
                    high = high.min(difference(answered, sent));
                }
                Ok::<_, io::Error>((low, high))
            })?;
            let panicked = || io::Error::other("a measuring thread panicked");
            far.join().map_err(|_| panicked())??;
            near.join().map_err(|_| panicked())?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_calibrations_agree() {
        let first = calibrate(Duration::from_millis(50));
        let second = calibrate(Duration::from_millis(50));
        // Far wider than the kernel's own slewing (500 ppm), far narrower than a wrong unit.
        assert!((first.hz / second.hz - 1.0).abs() < 0.01, "{first:?} {second:?}");
        assert!(first.uncertainty_ppm < 10_000.0, "{first:?}");
        let between_ns = (second.tsc0 - first.tsc0) as f64 / second.hz * 1e9;
        let really_ns = (second.ns0 - first.ns0) as f64;
        assert!(
            (between_ns / really_ns - 1.0).abs() < 0.01,
            "{between_ns} {really_ns}"
        );
    }

    #[test]
    fn one_that_began_before_agrees() {
        let begun = Reading::now();
        thread::sleep(Duration::from_millis(30));
        let least = Duration::from_millis(50);
        for core in [
            0,
            thread::available_parallelism().map_or(0, |count| count.get() - 1),
        ] {
            let since = calibrate_since(&begun, core, least);
            let apart = calibrate(least);
            assert!((since.hz / apart.hz - 1.0).abs() < 0.01, "{since:?} {apart:?}");
            // It took as long as was asked for at least, with what had passed.
            assert!(since.ns0 - begun.bracket.ns >= least.as_nanos() as u64);
        }
        // On a core that nobody knows it is measured anew.
        let nowhere = Reading { core: None, ..begun };
        let again = monotonic_ns();
        assert!(calibrate_since(&nowhere, 0, least).ns0 - again >= least.as_nanos() as u64);
        // So it is after a sleep, which one of the two clocks knows nothing of.
        let asleep = Reading {
            slept_ns: begun.slept_ns + 1_000_000,
            ..begun
        };
        assert!(asleep.has_slept() && !begun.has_slept());
        let again = monotonic_ns();
        assert!(calibrate_since(&asleep, 0, least).ns0 - again >= least.as_nanos() as u64);
    }

    #[test]
    fn offsets_are_bounded() {
        let core = thread::available_parallelism().map_or(0, |count| count.get() - 1);
        // Read before what it waits for, one in a million was off: so many are tried.
        let measured = (0..1000).filter_map(|_| tsc_offset_bounds(0, core, 1000).ok());
        let both = |(low, high): (i64, i64), (l, h): (i64, i64)| (low.max(l), high.min(h));
        let (low, high) = measured.reduce(both).unwrap();
        assert!(low <= high, "the bounds exclude everything: {low} {high}");
        assert!(tsc_synchronous(&[0]).unwrap());
        assert!(tsc_offset_bounds(0, 1000, 1).is_err(), "no such core");
    }
}
