//! Watches cores: a spinning thread on every one, and the kernel's events beside it.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use doctor::Sample;
use doctor::noise::record::{Record, Recorder};
use doctor::noise::spin::Stalls;
use doctor::noise::summary::{Seen, SeenOn};
use host::Sys;
use host::cores::{self, Core};
use measure::Note;
use report::live::Live;
use report::out::Console;
use report::published::{Phase, State};

use crate::at_end::AtEnd;
use crate::plan::NoisePlan;
use crate::run::clock::RunClock;
use crate::run::signals::Interrupt;
use crate::run::{placement, privileges};
use crate::status::{Expected, HealthCheck, StatusBoard};

/// Stalls kept of one core; their memory is touched before the measurement.
const STALLS_MAX: usize = 1 << 20;
/// How often the kernel's events are fetched, and the display is brought up to date.
const LOOK: Duration = Duration::from_millis(50);

pub fn watch(
    plan: &NoisePlan,
    sys: &Sys,
    console: Console,
    interrupt: &Interrupt,
    board: Option<&StatusBoard>,
) -> Result<Seen> {
    let list: Vec<usize> = plan.cores.iter().map(|core| core.0 as usize).collect();
    let _home = placement::home();
    let clock = RunClock::calibrate(&list, &dpdk::Reading::now());
    let hz = clock.clock.ticks_from_ns(1_000_000_000) as f64;
    let threshold = clock.clock.ticks_from_ns(plan.threshold_ns);
    let stay = placement::visit(&list)?;
    let mut notes = Vec::new();
    let others = cores::online(sys).without(&plan.cores);
    if others.is_empty() {
        notes.push(Note::new(
            "every_core_used",
            "every core of this machine is polled on: the display and the kernel take turns with the loops",
        ));
    }
    let stop = AtomicBool::new(false);
    // When the loops begin, ticks: not before attaching to the kernel's events is over. They poll for it, since waking up takes
    // time that nobody took.
    let begin = AtomicU64::new(0);
    let before = Sample::take(sys);
    let mut untraced = None;
    let (stalls, record, interrupted) = std::thread::scope(|scope| -> Result<_> {
        // Also where one of the loops could not be started: those that were have nothing to wait for.
        let stops = AtEnd(|| stop.store(true, Ordering::Relaxed));
        let (ready, all_ready) = mpsc::channel::<Infallible>();
        let mut loops = Vec::new();
        for core in &list {
            let (begin, stop, ready) = (&begin, &stop, ready.clone());
            let spin = move || {
                let pinned = dpdk::pin_to_core(*core);
                let mut stalls = Stalls::with_room(STALLS_MAX);
                drop(ready);
                while begin.load(Ordering::Relaxed) == 0 && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                if pinned.is_ok() {
                    stalls.spin(begin.load(Ordering::Relaxed), dpdk::tsc, threshold, stop);
                }
                pinned.map(|()| stalls)
            };
            let thread = std::thread::Builder::new().name(format!("noise-{core}"));
            let started = thread.spawn_scoped(scope, spin);
            loops.push(started.with_context(|| format!("cannot start a thread for core {core}"))?);
        }
        // The loops are where they shall be, and this thread leaves their cores.
        drop(stay);
        placement::leave_to_workers(&list);
        let (mut recorder, why_not) = record(plan, sys);
        untraced = why_not;
        drop(ready);
        // Never told anything: it ends when each loop has its room.
        let _ = all_ready.recv();
        begin.store(dpdk::tsc(), Ordering::Relaxed);
        let interrupted = wait(plan, recorder.as_mut(), console, interrupt, board);
        drop(stops);
        let mut all = Vec::new();
        for (handle, core) in loops.into_iter().zip(&list) {
            let stalls = handle
                .join()
                .map_err(|_| anyhow::anyhow!("the loop on core {core} panicked"))?;
            all.push(stalls.with_context(|| format!("cannot run on core {core}"))?);
        }
        Ok((all, recorder.map(|recorder| recorder.finish(sys)), interrupted))
    })?;
    let after = Sample::take(sys);
    let steal = |core: Core| {
        let of = |sample: &Sample| sample.steal.get(&core).copied().unwrap_or(0);
        of(&after).saturating_sub(of(&before))
    };
    let seen = plan.cores.iter().zip(stalls).map(|(core, stalls)| {
        let none = Record::default();
        let record = record.as_ref().unwrap_or(&none);
        SeenOn {
            core,
            named: record.name(core, stalls.thread, stalls.all()),
            lines: record.completeness(core),
            steal: steal(core),
            stalls,
        }
    });
    let cores = seen.collect();
    notes.extend(record.iter().flat_map(|record| record.notes.clone()));
    Ok(Seen {
        cores,
        hz,
        untraced,
        missed: record.as_ref().map_or(0, |record| record.missed),
        interrupted,
        notes,
    })
}

/// Begins to record the kernel's events, or says why that cannot be.
fn record(plan: &NoisePlan, sys: &Sys) -> (Option<Recorder>, Option<String>) {
    if !plan.trace {
        return (None, Some("--no-trace was given".into()));
    }
    let others = cores::online(sys).without(&plan.cores);
    match Recorder::start(sys, &plan.cores, &others, dpdk::tsc) {
        Ok(recorder) => (Some(recorder), None),
        Err(error) => (None, Some(error.to_string())),
    }
}

/// Waits for the end, fetches the kernel's events meanwhile; says whether somebody asked for an earlier one.
fn wait(
    plan: &NoisePlan,
    mut recorder: Option<&mut Recorder>,
    console: Console,
    interrupt: &Interrupt,
    board: Option<&StatusBoard>,
) -> bool {
    let mut live = Live::stderr(console.quiet, privileges::drop_all);
    let planned = Duration::from_nanos(plan.duration_ns);
    let begun = Instant::now();
    loop {
        let elapsed = begun.elapsed();
        if elapsed >= planned || interrupt.is_set() {
            live.finish();
            return elapsed < planned;
        }
        std::thread::sleep(LOOK.min(planned.saturating_sub(elapsed)));
        let events = recorder.as_mut().map(|recorder| {
            recorder.collect();
            recorder.events()
        });
        let state = state(elapsed, planned, events);
        live.update(&state);
        if let Some(board) = board.filter(|board| board.is_due()) {
            board.tell(state);
        }
    }
}

/// How it stands: nothing moves, and nothing should.
fn state(elapsed: Duration, planned: Duration, events: Option<u64>) -> State {
    let mut state = State {
        phase: Phase::Watching,
        elapsed_s: elapsed.as_secs_f64(),
        planned_s: Some(planned.as_secs_f64()),
        done: Some((elapsed.as_secs_f64() / planned.as_secs_f64()).min(1.0)),
        events,
        ..State::default()
    };
    state.health = HealthCheck::new(Expected::default()).judge(Instant::now(), &state);
    state
}
