//! What a reflector tells while it goes.

use std::time::{Duration, Instant};

use dataplane::reflect::ReflectCounters;
use measure::ReflectSummary;
use report::published::{Ended, Phase, State, Totals};

use super::result::{self, Side, drops, faults, queues};
use crate::live::{self, Board, Drivers, Pulse, StallWatch};
use crate::run::open::OpenPort;
use crate::run::pools::Pools;

/// Gathers and tells.
pub struct Teller<'w> {
    board: &'w Board,
    pools: Option<&'w Pools<'w>>,
    stalls: StallWatch<'w>,
    pulse: Pulse,
    drivers: Drivers,
}

impl<'w> Teller<'w> {
    /// Tells on `board`.
    pub fn new(board: &'w Board, pools: Option<&'w Pools<'w>>, stalls: StallWatch<'w>) -> Self {
        Self {
            board,
            pools,
            stalls,
            pulse: Pulse::default(),
            drivers: Drivers::default(),
        }
    }

    /// Tells how it stands, if it is time to.
    pub fn tell(
        &mut self,
        sides: &[Side],
        ports: &[OpenPort<'_>],
        elapsed: Duration,
        planned: Option<Duration>,
    ) {
        if !self.board.is_due() {
            return;
        }
        let _ = self.drivers.ask(ports);
        let counters: Vec<&ReflectCounters> = sides.iter().map(|side| &*side.counters).collect();
        let mut places = drops(&counters);
        let injected: Vec<_> = sides.iter().map(|side| &*side.faults).collect();
        let mut add = |name: &str, count: u64| {
            if count > 0 {
                *places.entry(name.to_owned()).or_default() += count;
            }
        };
        add("fault_drop", faults(&injected).get("drop").copied().unwrap_or(0));
        for port in self.drivers.ports() {
            add("rx_missed", port.rx_missed);
            add("rx_nombuf", port.rx_nombuf);
            add("rx_error", port.rx_errors);
        }
        let total = result::total(sides);
        let elapsed_s = elapsed.as_secs_f64();
        let mut state = State {
            phase: Phase::Reflecting,
            elapsed_s,
            planned_s: planned.map(|planned| planned.as_secs_f64()),
            done: planned.map(|planned| (elapsed_s / planned.as_secs_f64()).min(1.0)),
            total: Totals {
                sent: total.returned,
                received: total.received,
                lost: total.dropped,
                received_bytes: counters.iter().map(|counters| counters.bytes.get()).sum(),
                ..Totals::default()
            },
            places,
            ports: self.drivers.ports().to_vec(),
            queues: queues(sides),
            workers: self.stalls.look(elapsed_s),
            stalls: self.stalls.recent(),
            pool: live::pool_level(self.pools),
            ..State::default()
        };
        state.health = self.pulse.judge(Instant::now(), &state);
        self.board.tell(state);
    }
}

/// Tells what the books say at the end.
pub fn end(board: &Board, summary: &ReflectSummary) {
    let ended = Ended {
        verdict: summary.verdict.name().into(),
        exit: summary.exit_code(),
        reasons: summary.reasons.clone(),
    };
    board.end(ended, |state| {
        state.elapsed_s = summary.duration_s;
        state.total.sent = summary.returned;
        state.total.received = summary.received;
        state.total.lost = summary.dropped.values().sum();
        state.ports.clone_from(&summary.ports);
        state.queues.clone_from(&summary.queues);
        live::end_workers(&mut state.workers, &summary.workers);
    });
}
