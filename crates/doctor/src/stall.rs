//! How far each of some cores is put behind by what takes it away from a loop that polls, measured by such a loop.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::noise::spin::Stalls;
use host::cores::{Core, CoreSet};

/// Reading the clock takes some 30 ns; what is below this is not a stall.
const THRESHOLD_NS: u64 = 2_000;
/// No stall is kept: what they come to is known without.
const ROOM: usize = 0;

/// Polls on all of `cores` at once for `time`. A core that we may not run on is left out.
pub fn behind(cores: &CoreSet, time: Duration) -> BTreeMap<Core, Duration> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let loops: Vec<_> = cores
            .iter()
            .filter_map(|core| {
                let stop = &stop;
                let builder = thread::Builder::new().name(format!("doctor-{core}"));
                let spin = move || on_core(core, stop);
                Some((core, builder.spawn_scoped(scope, spin).ok()?))
            })
            .collect();
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let seen = loops
            .into_iter()
            .filter_map(|(core, spin)| Some((core, spin.join().ok()??)));
        seen.collect()
    })
}

fn on_core(core: Core, stop: &AtomicBool) -> Option<Duration> {
    let mut only = CpuSet::new();
    only.set(core.0 as usize).ok()?;
    sched_setaffinity(Pid::from_raw(0), &only).ok()?;
    // Nothing is known of a core that came too late to look.
    if stop.load(Ordering::Relaxed) {
        return None;
    }
    let mut stalls = Stalls::with_room(ROOM);
    stalls.spin(now_ns(), now_ns, THRESHOLD_NS, stop);
    Some(Duration::from_nanos(stalls.behind.ceil() as u64))
}

/// Nanoseconds of the monotonic clock since the first call.
fn now_ns() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_is_not_there_is_left_out() {
        let absent: CoreSet = "1000".parse().unwrap();
        assert_eq!(behind(&absent, Duration::ZERO), BTreeMap::new());
    }
}
