//! The ledger, the verdict and the summary of forwarding.

use measure::place::{
    DENIED, HELD, KERNEL_FULL, OVERSIZED, RX_ERROR, RX_MISSED, RX_NO_BUFFER, TO_KERNEL, TX_DROPPED, TX_ERROR,
    TX_FULL, TX_HELD,
};
use measure::verdict::{Evidence, Role};
use measure::{
    Balance, ForwardSummary, Imbalance, Place, PortSummary, RulesSummary, Verdict, WaySummary, expect,
};
use report::published::State;

use super::active::{ActiveForward, Total, WAYS, kernel_of};
use super::flows;
use super::judges::Judges;
use crate::run;
use crate::run::close::{Ending, PortEnd};
use crate::run::listening::rated_s;

/// What one way counted, or both together.
#[derive(Default)]
struct Counted {
    entered: u64,
    left: u64,
    places: Vec<(&'static str, u64)>,
}

impl Counted {
    fn balance(&self) -> Balance {
        let places = self.places.iter();
        let places = places.map(|(name, count)| (Place::named(name), *count));
        Balance::of(self.entered, self.left, places)
    }
}

pub fn summarise<J: Judges>(job: &ActiveForward<J>, mut ending: Ending<'_>) -> ForwardSummary {
    let (dir, total) = (ending.dir, Total::of(&job.sides, None));
    let counted = WAYS.map(|way| counted(job, way, &ending));
    let [one, other] = &counted;
    let together = Counted {
        entered: one.entered + other.entered,
        left: one.left + other.left,
        places: sums(one, other),
    };
    let ledger = together.balance();
    let ways: Vec<WaySummary> = counted
        .iter()
        .zip(WAYS)
        .map(|(counted, (from, to))| {
            let of_way = Total::of(&job.sides, Some(from));
            WaySummary {
                from: ending.ports[from].summary.uri.clone(),
                to: ending.ports[to].summary.uri.clone(),
                received: of_way.received,
                received_bytes: of_way.bytes,
                forwarded: counted.left,
                to_kernel: of_way.to_kernel,
                from_kernel: of_way.from_kernel,
                copied: of_way.copied,
                uncopied: of_way.uncopied,
                ledger: counted.balance(),
            }
        })
        .collect();
    let rules = job.judges.as_ref().map(J::summary);
    let mut imbalances = unbalanced(&ways, &ledger);
    imbalances.extend(WAYS.into_iter().flat_map(|(from, to)| {
        let tap = |port| kernel_of(&job.plan, port).map(|tap| &ending.ports[tap].summary);
        kernel(&Total::of(&job.sides, Some(from)), tap(from), tap(to))
    }));
    let both = ending.ports.iter().enumerate().take(WAYS.len());
    imbalances.extend(both.filter_map(|(port, end)| {
        let received = Total::of(&job.sides, Some(port)).received;
        uncounted(end, received)
    }));
    imbalances.extend(rules.as_ref().and_then(|rules| unjudged(rules, total.received)));
    let flows = flows::summary(job, &ending);
    if flows.is_some() {
        let tables = job.sides.iter().filter_map(|side| side.flows.as_ref());
        imbalances.extend(flows::uncounted(tables, total.received));
    }
    let verdict = Verdict::of(&Evidence {
        imbalances,
        sent: total.forwarded,
        received: total.received,
        link_losses: ending.costly_link_losses(),
        ..ending.evidence(Role::Forward)
    });
    ending.notes.extend(ending.link_notes());
    ending.notes.extend(job.course.early_note());
    let seconds = job.course.elapsed.as_secs_f64().max(1e-9);
    let mut summary = ForwardSummary {
        run: dir.path().display().to_string(),
        verdict: verdict.validity,
        reasons: verdict.notes(),
        mode: job.plan.mode.name().to_owned(),
        received: total.received,
        received_bytes: total.bytes,
        forwarded: ledger.left,
        ledger,
        ways,
        rules,
        flows,
        rate_rx_pps: (total.received - job.rows.early.received) as f64 / seconds,
        rate_tx_pps: together.left.saturating_sub(job.rows.early.left()) as f64 / seconds,
        duration_s: seconds,
        ports: ports(job, &ending),
        queues: job.queues(),
        workers: ending.workers,
        pool: ending.pools.summary(),
        clock: ending.clock_summary,
        explanation: ending.explanation,
        notes: ending.notes,
        ..ForwardSummary::default()
    };
    summary.expectations = expect::evaluate(&job.plan.expect, &summary);
    summary
}

/// What came in by one port, and where it went. What left is what the other port counts itself, which may be less than its
/// driver took.
fn counted<J: Judges>(job: &ActiveForward<J>, (from, to): (usize, usize), ending: &Ending<'_>) -> Counted {
    let total = Total::of(&job.sides, Some(from));
    let (came, leaves) = (&ending.ports[from].summary, &ending.ports[to]);
    let left = if leaves.forgets() {
        total.forwarded
    } else {
        let thrown_away = leaves.summary.tx_dropped;
        leaves.summary.tx_packets.saturating_sub(thrown_away)
    };
    let totals = job.sides.iter().filter(|side| side.side.place.port == from);
    let held = totals
        .filter_map(|side| side.side.totals.get())
        .map(|totals| totals.held);
    Counted {
        entered: total.received + total.from_kernel + came.rx_missed + came.rx_nombuf + came.rx_errors,
        left,
        places: vec![
            (DENIED, total.denied),
            (OVERSIZED, total.oversized),
            (TX_FULL, total.tx_full),
            (TO_KERNEL, total.to_kernel),
            (KERNEL_FULL, total.kernel_full),
            (HELD, held.sum()),
            (TX_HELD, ending.pools.held()),
            (TX_ERROR, leaves.summary.tx_errors),
            (TX_DROPPED, leaves.summary.tx_dropped),
            (RX_MISSED, came.rx_missed),
            (RX_NO_BUFFER, came.rx_nombuf),
            (RX_ERROR, came.rx_errors),
        ],
    }
}

/// The places of both ways together. Buffers that a driver did not give back are of one pool, whichever way they went.
fn sums(one: &Counted, other: &Counted) -> Vec<(&'static str, u64)> {
    let pairs = one.places.iter().zip(&other.places);
    pairs
        .map(|((name, one), (_, other))| match *name {
            TX_HELD => (*name, *one),
            _ => (*name, one + other),
        })
        .collect()
}

/// The ports' counters. Where the driver forgot its own, the queues speak.
fn ports<J: Judges>(job: &ActiveForward<J>, ending: &Ending<'_>) -> Vec<PortSummary> {
    let mut ports = ending.port_summaries();
    for (from, to) in WAYS {
        let total = Total::of(&job.sides, Some(from));
        if ending.ports[from].forgets() {
            ports[from].rx_packets = total.received;
        }
        if ending.ports[to].forgets() {
            ports[to].tx_packets = total.forwarded;
        }
    }
    ports
}

/// What does not add up in a way, or else in both together: each way may have all that a driver kept, which both have once.
fn unbalanced(ways: &[WaySummary], together: &Balance) -> Vec<Imbalance> {
    let mut imbalances: Vec<Imbalance> = ways.iter().filter_map(|way| Imbalance::of(&way.ledger)).collect();
    imbalances.extend(Imbalance::of(together).filter(|_| imbalances.is_empty()));
    imbalances
}

/// A port whose driver counted other frames than its queues handed over.
fn uncounted(end: &PortEnd, received: u64) -> Option<Imbalance> {
    // What is still in the ring of a NIC is counted by it.
    let by_port = end.summary.rx_packets;
    let is_so = end.counts_on_wire && by_port >= received;
    differs(&end.summary, "received", by_port, received).filter(|_| !is_so && !end.forgets())
}

/// A tap whose driver counted other frames than were handed to it, or came from it, in a way of which `total` was counted.
fn kernel(total: &Total, towards: Option<&PortSummary>, from: Option<&PortSummary>) -> Vec<Imbalance> {
    let sent = towards.and_then(|tap| differs(tap, "sent", tap.tx_packets, total.to_kernel + total.copied));
    let received = from.and_then(|tap| differs(tap, "received", tap.rx_packets, total.from_kernel));
    sent.into_iter().chain(received).collect()
}

/// Two books of one port that are not the same: its driver's, and its queues'.
fn differs(port: &PortSummary, way: &'static str, port_count: u64, queues: u64) -> Option<Imbalance> {
    (port_count != queues).then(|| Imbalance::Port {
        port: port.uri.clone(),
        way,
        port_count,
        queues,
    })
}

/// Every frame is judged once.
fn unjudged(rules: &RulesSummary, frames: u64) -> Option<Imbalance> {
    let met = rules.judged.packets();
    (met != frames).then_some(Imbalance::Judged { frames, met })
}

impl run::Summary for ForwardSummary {
    fn total(&self, state: &mut State) {
        state.total.received = self.received;
        state.total.lost = self.lost();
        state.flows.clone_from(&self.flows);
        state.take_places(&self.ledger);
    }

    fn rated_s(&self) -> f64 {
        rated_s(self.received, self.rate_rx_pps, self.duration_s)
    }
}

#[cfg(test)]
mod tests;
