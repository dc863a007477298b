//! What a send run tells while it goes: gathered by control from what workers and drivers publish anyhow.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dataplane::receive::ReceiveCounters;
use dataplane::send::SendCounters;
use measure::interval::LATENCY_SUB_BITS;
use measure::{Histogram, IntervalRow, Percentiles, Rate, Summary};
use report::published::{Buckets, Ended, Phase, State, Totals};

use super::load::Load;
use super::result::queues;
use super::tasks::Wiring;
use crate::commands::reflect::result::{drops, faults};
use crate::live::{self, Board, Drivers, Expected, Pulse, StallWatch};
use crate::plan::SendPlan;
use crate::run::open::OpenPort;
use crate::run::pools::Pools;

/// Gathers and tells.
pub struct Teller<'w> {
    board: &'w Board,
    pools: Option<&'w Pools<'w>>,
    stalls: StallWatch<'w>,
    pulse: Pulse,
    latency: Histogram,
    drivers: Drivers,
    far_missed: u64,
}

/// Where the run is.
pub struct Progress {
    /// In one word.
    pub phase: Phase,
    /// Since the first packet was due.
    pub elapsed: Duration,
    /// How long it will last.
    pub planned: Option<Duration>,
    /// 0 to 1.
    pub done: Option<f64>,
    /// Packets missing from judged intervals.
    pub lost: u64,
    /// Latencies of the interval that ended last.
    pub recent: Percentiles,
}

impl<'w> Teller<'w> {
    /// Tells on `board`.
    pub fn new(
        board: &'w Board,
        pools: Option<&'w Pools<'w>>,
        stalls: StallWatch<'w>,
        plan: &SendPlan,
        loads: &[Load],
    ) -> Self {
        let rates = loads.iter().map(|load| match load.rate {
            Rate::Pps(pps) => Some(pps),
            Rate::Max => None,
        });
        let rate: Option<f64> = rates.sum();
        let pulse = Pulse::new(Expected {
            one_way: plan.tx_only,
            gap: rate.and_then(|pps| Duration::try_from_secs_f64(1.0 / pps).ok()),
        });
        Self {
            board,
            pools,
            stalls,
            pulse,
            latency: Histogram::new(LATENCY_SUB_BITS),
            drivers: Drivers::default(),
            far_missed: 0,
        }
    }

    /// Whether it is time to tell again.
    pub fn is_due(&self) -> bool {
        self.board.is_due()
    }

    /// An interval is final.
    pub fn add(&mut self, row: &IntervalRow) {
        self.latency.merge(&row.latency);
    }

    /// Tells how it stands.
    pub fn tell(&mut self, wiring: &Wiring<'_>, ports: &[OpenPort<'_>], progress: &Progress) {
        if self.drivers.ask(ports) {
            let far = ports.iter().filter_map(|open| open.far.as_ref());
            self.far_missed = far.map(|far| far.rx_missed()).sum();
        }
        let elapsed_s = progress.elapsed.as_secs_f64();
        let mut state = State {
            phase: progress.phase,
            elapsed_s,
            planned_s: progress.planned.map(|planned| planned.as_secs_f64()),
            done: progress.done,
            total: totals(wiring, progress.lost),
            latency_recent_ns: progress.recent,
            latency_ns: Percentiles::from(&self.latency),
            latency_buckets: Buckets::of(&self.latency),
            places: self.places(wiring, ports),
            ports: self.drivers.ports().to_vec(),
            queues: queues(wiring),
            workers: self.stalls.look(elapsed_s),
            stalls: self.stalls.recent(),
            pool: live::pool_level(self.pools),
            ..State::default()
        };
        state.health = self.pulse.judge(Instant::now(), &state);
        self.board.tell(state);
    }

    /// What each place says so far. What a far machine dropped is only asked for at the end.
    fn places(&self, wiring: &Wiring<'_>, ports: &[OpenPort<'_>]) -> BTreeMap<String, u64> {
        let mut places = BTreeMap::new();
        let mut add = |name: &str, count: u64| {
            if count > 0 {
                *places.entry(name.to_owned()).or_default() += count;
            }
        };
        for (port, open) in self.drivers.ports().iter().zip(ports) {
            if !open.counts_refusals() {
                add("tx_error", port.tx_errors);
            }
            add("rx_nombuf", port.rx_nombuf);
            add("rx_missed", port.rx_missed);
            add("rx_error", port.rx_errors);
        }
        let counters: Vec<_> = wiring.reflect.iter().map(|side| &*side.counters).collect();
        for (name, count) in drops(&counters) {
            add(&format!("reflector_{name}"), count);
        }
        add("reflector_rx_missed", self.far_missed);
        let injected: Vec<_> = wiring.reflect.iter().map(|side| &*side.faults).collect();
        add("fault_drop", faults(&injected).get("drop").copied().unwrap_or(0));
        let received = |pick: fn(&ReceiveCounters) -> u64| received(wiring, pick);
        add("late", received(|counters| counters.late.get()));
        add("too_old", received(|counters| counters.too_old.get()));
        add("corrupt", received(|counters| counters.corrupt.get()));
        places
    }
}

fn received(wiring: &Wiring<'_>, pick: fn(&ReceiveCounters) -> u64) -> u64 {
    wiring.receive.iter().map(|side| pick(&side.counters)).sum()
}

fn totals(wiring: &Wiring<'_>, lost: u64) -> Totals {
    // Received before sent: a look while packets fly must not show more back than out.
    let back = received(wiring, |counters| counters.received.get());
    let sent = |pick: fn(&SendCounters) -> u64| wiring.send.iter().map(|side| pick(&side.counters)).sum();
    Totals {
        intended: sent(|counters| counters.intended.get()),
        sent: sent(|counters| counters.accepted.get()),
        received: back,
        lost,
        unsent: sent(|counters| counters.abandoned.get()),
        duplicate: received(wiring, |counters| counters.duplicate.get()),
        reordered: received(wiring, |counters| counters.reordered.get()),
        corrupt: received(wiring, |counters| counters.corrupt.get()),
        late: received(wiring, |counters| counters.late.get()),
        sent_bytes: sent(|counters| counters.bytes.get()),
        received_bytes: received(wiring, |counters| counters.bytes.get()),
    }
}

/// Tells what the books say at the end.
pub fn end(board: &Board, summary: &Summary) {
    let ended = Ended {
        verdict: summary.verdict.name().into(),
        exit: summary.exit_code(),
        reasons: summary.reasons.clone(),
    };
    board.end(ended, |state| {
        state.elapsed_s = summary.duration_s;
        state.done = state.done.map(|done| done.max(1.0));
        state.total = Totals {
            intended: summary.ledger.intended,
            sent: summary.sent,
            received: summary.received,
            lost: summary.lost,
            unsent: summary.ledger.unsent,
            duplicate: summary.duplicate,
            reordered: summary.reordered,
            corrupt: summary.corrupt,
            late: summary.late,
            ..state.total
        };
        state.latency_ns = summary.latency_ns;
        state.places.clone_from(&summary.ledger.lost_at);
        if summary.unexplained > 0 {
            state.places.insert("unexplained".into(), summary.unexplained);
        }
        state.ports.clone_from(&summary.ports);
        state.queues.clone_from(&summary.queues);
        live::end_workers(&mut state.workers, &summary.workers);
    });
}
