//! The ledger, the verdict and the summary of a reflecting run.

use measure::place::{FAULT_DROP, HELD, RX_ERROR, RX_MISSED, RX_NO_BUFFER, TX_DROPPED, TX_ERROR};
use measure::verdict::{Evidence, Role};
use measure::{Balance, Imbalance, Place, PortSummary, ReflectSummary, Verdict};
use report::published::State;

use super::active::{ActiveReflect, Total};
use crate::run;
use crate::run::close::{Ending, PortEnd, thrown_away};
use crate::run::listening::rated_s;
use crate::run::reflector::{drops, fault_drops, faults};

pub fn summarise(job: &ActiveReflect, mut ending: Ending<'_>) -> ReflectSummary {
    let dir = ending.dir;
    let total = Total::of(&job.sides);
    let ledger = ledger(job, total, &ending.ports);
    let verdict = Verdict::of(&Evidence {
        imbalances: Imbalance::of(&ledger).into_iter().collect(),
        sent: total.returned,
        received: total.received,
        ..ending.evidence(Role::Reflect)
    });
    ending.notes.extend(ending.link_notes());
    ending.notes.extend(job.course.early_note());
    let seconds = job.course.elapsed.as_secs_f64().max(1e-9);
    let counters = || job.sides.iter().map(|side| &side.counters);
    let mut summary = ReflectSummary {
        run: dir.path().display().to_string(),
        verdict: verdict.validity,
        reasons: verdict.notes(),
        received: total.received,
        returned: ledger.left,
        answered: counters().map(|counters| counters.answered.get()).sum(),
        told: counters().map(|counters| counters.told.get()).sum(),
        dropped: drops(&job.sides),
        faults: faults(&job.sides),
        rate_rx_pps: (total.received - job.rows.early.received) as f64 / seconds,
        rate_tx_pps: ledger.left.saturating_sub(job.rows.early.left()) as f64 / seconds,
        duration_s: seconds,
        ports: ports(job, &ending.ports),
        queues: job.queues(),
        workers: ending.workers,
        pool: ending.pools.summary(),
        clock: ending.clock_summary,
        explanation: ending.explanation,
        notes: ending.notes,
        ..ReflectSummary::default()
    };
    summary.ledger = ledger;
    summary
}

/// What came to the ports, with the copies that the injector made, and where it went: not out, where a port took it and could
/// not send it.
fn ledger(job: &ActiveReflect, total: Total, ends: &[PortEnd]) -> Balance {
    let copies: u64 = job.sides.iter().map(|side| side.faults.duplicate.get()).sum();
    let totals = job.sides.iter().filter_map(|side| side.totals.get());
    let of_ports = |of: fn(&PortSummary) -> u64| ends.iter().map(|end| of(&end.summary)).sum::<u64>();
    let missed = [
        (RX_MISSED, of_ports(|port| port.rx_missed)),
        (RX_NO_BUFFER, of_ports(|port| port.rx_nombuf)),
        (RX_ERROR, of_ports(|port| port.rx_errors)),
    ];
    let unsent = [
        (TX_ERROR, of_ports(|port| port.tx_errors)),
        (TX_DROPPED, thrown_away(ends)),
    ];
    let own = [
        (FAULT_DROP, fault_drops(&job.sides)),
        (HELD, totals.map(|totals| totals.held).sum()),
    ];
    let sum = |counts: &[(&str, u64)]| counts.iter().map(|(_, count)| count).sum::<u64>();
    let counted = missed.into_iter().chain(unsent).chain(own);
    let counted = counted.map(|(name, count)| (Place::named(name), count));
    let dropped = drops(&job.sides).into_iter();
    Balance::of(
        total.received + copies + sum(&missed),
        total.returned.saturating_sub(sum(&unsent)),
        counted.chain(dropped.map(|(name, count)| (Place::of_reflecting(&name), count))),
    )
}

/// The ports' counters. Where a driver forgot its own, the queues speak.
fn ports(job: &ActiveReflect, ends: &[PortEnd]) -> Vec<PortSummary> {
    let count = |(index, end): (usize, &PortEnd)| {
        let mut port = end.summary.clone();
        if end.forgets() {
            let sides = || job.sides.iter().filter(|side| side.place.port == index);
            port.rx_packets = sides().map(|side| side.counters.frames.get()).sum();
            port.tx_packets = sides().map(|side| side.counters.returned.get()).sum();
        }
        port
    };
    ends.iter().enumerate().map(count).collect()
}

impl run::Summary for ReflectSummary {
    fn total(&self, state: &mut State) {
        state.total.received = self.received;
        state.total.lost = self.lost();
        state.take_places(&self.ledger);
    }

    fn rated_s(&self) -> f64 {
        rated_s(self.received, self.rate_rx_pps, self.duration_s)
    }
}
