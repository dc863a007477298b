//! Rules swapped under a polling worker, by real threads.

use std::sync::Arc;
use std::thread;

use crossbeam_queue::ArrayQueue;

use super::*;
use crate::stall::Stalls;

/// Rules that say whether they are still in force.
struct Rules {
    number: u64,
    in_force: Arc<AtomicU64>,
}

/// Uses its rules at every poll, and takes new ones from `new` when it is told to.
struct Ruled {
    rules: Box<Rules>,
    new: Arc<ArrayQueue<Box<Rules>>>,
    old: Arc<ArrayQueue<Box<Rules>>>,
    wrong: Arc<AtomicU64>,
}

impl Task for Ruled {
    fn poll(&mut self, _now: Ticks, _phase: Phase) -> usize {
        // Control withdraws a generation only when it is acknowledged that nobody uses it.
        if self.rules.in_force.load(Ordering::Relaxed) > self.rules.number {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        0
    }

    fn renew(&mut self) {
        if let Some(rules) = self.new.pop() {
            let _ = self.old.push(std::mem::replace(&mut self.rules, rules));
        }
    }

    fn finish(self: Box<Self>) {}
}

fn now() -> Ticks {
    Ticks(0)
}

fn poll(tasks: Vec<Box<dyn Task>>, control: &Control, counters: &WorkerCounters) {
    run(
        tasks,
        control,
        counters,
        &StallLog::new(&Stalls::default(), u64::MAX, || 0),
        now,
    );
}

/// What came before the worker polled is taken once nothing is found, or more than any ring holds.
#[test]
fn a_worker_has_caught_up_when_it_finds_nothing_or_always_something() {
    let after = |polls, busy| {
        let counters = WorkerCounters::default();
        counters.polls.set(polls);
        counters.busy.set(busy);
        counters.is_caught_up()
    };
    assert!(!after(0, 0) && !after(1000, 1000), "nobody has looked for more");
    assert!(after(ROUNDS_IDLE, 0) && after(1000 + ROUNDS_IDLE, 1000));
    assert!(after(ROUNDS_CAUGHT_UP, ROUNDS_CAUGHT_UP));
}

#[test]
fn nobody_uses_rules_once_the_next_generation_is_acknowledged() {
    const GENERATIONS: u64 = 100;
    let control = Control::default();
    let counters = [WorkerCounters::default(), WorkerCounters::default()];
    let (in_force, wrong) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let mailbox = || Arc::new(ArrayQueue::new(1));
    let mailboxes = [(mailbox(), mailbox()), (mailbox(), mailbox())];
    let rules = |number| {
        Box::new(Rules {
            number,
            in_force: Arc::clone(&in_force),
        })
    };
    thread::scope(|scope| {
        for (counters, (new, old)) in counters.iter().zip(&mailboxes) {
            let task = Ruled {
                rules: rules(0),
                new: Arc::clone(new),
                old: Arc::clone(old),
                wrong: Arc::clone(&wrong),
            };
            let control = &control;
            scope.spawn(move || poll(vec![Box::new(task)], control, counters));
        }
        for number in 1..=GENERATIONS {
            for (new, _) in &mailboxes {
                assert!(new.push(rules(number)).is_ok(), "{number}");
            }
            assert_eq!(control.publish_generation(), number);
            while !Control::is_acknowledged(number, &counters) {
                thread::yield_now();
            }
            in_force.store(number, Ordering::Relaxed);
            for (_, old) in &mailboxes {
                assert_eq!(old.pop().map(|rules| rules.number), Some(number - 1));
            }
        }
        control.set(Phase::Stop);
    });
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
}

#[test]
fn a_worker_that_has_ended_holds_no_generation_up() {
    let (control, counters) = (Control::default(), WorkerCounters::default());
    let generation = control.publish_generation();
    assert!(!Control::is_acknowledged(generation, [&counters]));
    control.set(Phase::Stop);
    poll(Vec::new(), &control, &counters);
    assert!(Control::is_acknowledged(generation + 7, [&counters]));
}

/// Is kept from its core in the last round before it looks whether it should stop, and told to stop meanwhile.
struct Away<'c> {
    control: &'c Control,
    rounds: u32,
}

const AWAY: u64 = 5_000;
/// What had come meanwhile.
const WAITED: usize = 3;
static CLOCK: AtomicU64 = AtomicU64::new(1);

impl Task for Away<'_> {
    fn poll(&mut self, _now: Ticks, _phase: Phase) -> usize {
        self.rounds += 1;
        if self.rounds == ROUNDS_PER_LOOK {
            CLOCK.fetch_add(AWAY, Ordering::Relaxed);
            self.control.set(Phase::Stop);
        }
        if self.rounds > ROUNDS_PER_LOOK { WAITED } else { 0 }
    }

    fn renew(&mut self) {}

    fn finish(self: Box<Self>) {}
}

#[test]
fn a_stall_that_lasts_until_the_end_is_one() {
    for (phase, kept) in [(Phase::Run, vec![Some(WAITED as u32)]), (Phase::Warm, vec![])] {
        let (control, counters, stalls) = (
            Control::default(),
            WorkerCounters::default(),
            Stalls::with_room(8),
        );
        control.set(phase);
        let task = Box::new(Away {
            control: &control,
            rounds: 0,
        });
        run(
            vec![task],
            &control,
            &counters,
            &StallLog::new(&stalls, AWAY - 1, || 0),
            || Ticks(CLOCK.load(Ordering::Relaxed)),
        );
        let waited: Vec<_> = stalls.after(0).map(|stall| stall.next).collect();
        assert_eq!(waited, kept, "{phase:?}");
        assert_eq!(
            counters.gap_ticks.snapshot().max().is_some_and(|gap| gap >= AWAY),
            !kept.is_empty()
        );
    }
}
