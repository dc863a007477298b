//! One core's life: poll the tasks in turn, note every gap, follow the control word.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};

use measure::{Counter, SharedHistogram, Ticks};

use crate::stall::StallLog;
use crate::{Phase, Task};

/// Rounds between two looks at the control word.
pub const ROUNDS_PER_LOOK: u32 = 8;

/// The control words that all workers follow.
#[derive(Debug)]
pub struct Control {
    phase: AtomicU8,
    ready: AtomicUsize,
    generation: AtomicU64,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            phase: AtomicU8::new(Phase::Warm as u8),
            ready: AtomicUsize::new(0),
            generation: AtomicU64::new(0),
        }
    }
}

impl Control {
    /// The phase in force. What was stored before it was set is seen by whoever sees it.
    #[inline]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Warm,
            1 => Phase::Run,
            2 => Phase::Drain,
            _ => Phase::Stop,
        }
    }

    /// Moves all workers on.
    pub fn set(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// How many workers poll already.
    pub fn ready(&self) -> usize {
        self.ready.load(Ordering::Acquire)
    }

    /// Has every task renewed at its worker's next look, and returns the number of this generation. What the tasks are
    /// to find (rules, and the way back for the old ones) must have been left for them before.
    pub fn publish_generation(&self) -> u64 {
        self.generation.fetch_add(1, Ordering::Release) + 1
    }

    /// Whether all these workers have renewed their tasks since `generation` was published, or have ended: what the
    /// tasks used before is used by nobody any more.
    pub fn is_acknowledged<'w>(
        generation: u64,
        workers: impl IntoIterator<Item = &'w WorkerCounters>,
    ) -> bool {
        let mut workers = workers.into_iter();
        workers.all(|worker| worker.generation.load(Ordering::Acquire) >= generation)
    }
}

/// What a worker publishes of itself. One writer.
#[derive(Debug)]
pub struct WorkerCounters {
    /// Rounds over all tasks.
    pub polls: Counter,
    /// Rounds that moved a packet.
    pub busy: Counter,
    /// When the first of these began, ticks; 0 before that.
    pub first_busy: Counter,
    /// Packets moved in those of them that were no stall, and the ticks they took: what a packet costs.
    pub moved: Counter,
    /// See `moved`.
    pub moved_ticks: Counter,
    /// Ticks from one round to the next, since the run began.
    pub gap_ticks: SharedHistogram,
    /// The generation that its tasks have; the last of all once it has ended.
    generation: AtomicU64,
}

/// Rounds without a frame after which nothing waits any more that had come before the first.
const ROUNDS_IDLE: u64 = 64;
/// Rounds after which nothing does, either, where each of them found something: bursts of any receive ring's length.
const ROUNDS_CAUGHT_UP: u64 = 1 << 14;

/// Of a worker that has ended: it uses nothing any more.
const ENDED: u64 = u64::MAX;

impl Default for WorkerCounters {
    fn default() -> Self {
        Self {
            polls: Counter::default(),
            busy: Counter::default(),
            first_busy: Counter::default(),
            moved: Counter::default(),
            moved_ticks: Counter::default(),
            gap_ticks: SharedHistogram::new(5),
            generation: AtomicU64::new(0),
        }
    }
}

impl WorkerCounters {
    /// There is no such worker, since there was nothing for it to do: nobody waits for it.
    pub fn rest(&self) {
        self.generation.store(ENDED, Ordering::Release);
    }

    /// Whether it has taken what waited when it began to poll.
    pub fn is_caught_up(&self) -> bool {
        let polls = self.polls.get();
        polls.saturating_sub(self.busy.get()) >= ROUNDS_IDLE || polls >= ROUNDS_CAUGHT_UP
    }

    /// Whether there is no such worker, or none any more.
    pub fn has_ended(&self) -> bool {
        self.generation.load(Ordering::Acquire) == ENDED
    }
}

/// Polls until told to stop, then finishes every task.
pub fn run(
    mut tasks: Vec<Box<dyn Task + '_>>,
    control: &Control,
    counters: &WorkerCounters,
    stalls: &StallLog<'_>,
    tsc: fn() -> Ticks,
) {
    control.ready.fetch_add(1, Ordering::AcqRel);
    let mut last = tsc();
    let mut moved = 0;
    let mut generation = 0;
    let mut phase = Phase::Warm;
    loop {
        let before = std::mem::replace(&mut phase, control.phase());
        if phase == Phase::Stop {
            // Who is kept away until the end has missed what came meanwhile, too.
            if before != Phase::Warm {
                let now = tsc();
                counters.gap_ticks.record(now.0.saturating_sub(last.0), 1);
                if stalls.record(last, now, moved) {
                    // After the last packet nothing waits: one more poll tells. Not all tasks take anything in it that took some before.
                    let waited: usize = tasks.iter_mut().map(|task| task.poll(tsc(), Phase::Drain)).sum();
                    if waited > 0 || before == Phase::Drain {
                        stalls.followed_by(waited);
                    }
                }
                take_rest(&mut tasks, tsc);
            }
            break;
        }
        let published = control.generation.load(Ordering::Relaxed);
        if published != generation {
            generation = published;
            renew(&mut tasks, generation, counters);
        }
        for _ in 0..ROUNDS_PER_LOOK {
            let now = tsc();
            let mut long = false;
            if phase != Phase::Warm {
                let ticks = now.0.saturating_sub(last.0);
                counters.gap_ticks.record(ticks, 1);
                long = stalls.record(last, now, moved);
                if moved > 0 && !long {
                    counters.moved.add(moved as u64);
                    counters.moved_ticks.add(ticks);
                }
            }
            last = now;
            let Some((first, others)) = tasks.split_first_mut() else {
                counters.generation.store(ENDED, Ordering::Release);
                return;
            };
            moved = first.poll(now, phase);
            for task in others {
                // A stamp must not be older than the work of the task before.
                moved += task.poll(tsc(), phase);
            }
            if long {
                stalls.followed_by(moved);
            }
            counters.polls.add(1);
            if moved > 0 {
                if counters.busy.get() == 0 {
                    counters.first_busy.set(now.0);
                }
                counters.busy.add(1);
            }
        }
    }
    tasks.into_iter().for_each(Task::finish);
    counters.generation.store(ENDED, Ordering::Release);
}

/// What came before the end is taken as far as it goes: what leaves it may be full.
fn take_rest(tasks: &mut [Box<dyn Task + '_>], tsc: fn() -> Ticks) {
    while tasks.iter_mut().map(|task| task.take_rest(tsc())).sum::<usize>() > 0 {}
}

/// Lets every task take what control has left for it, and says so.
#[cold]
fn renew(tasks: &mut [Box<dyn Task + '_>], generation: u64, counters: &WorkerCounters) {
    // What was left before the generation was published is seen from here on.
    fence(Ordering::Acquire);
    for task in tasks {
        task.renew();
    }
    counters.generation.store(generation, Ordering::Release);
}

#[cfg(test)]
mod tests;
