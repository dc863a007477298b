//! The ledger of a send run: what each lane, stream and place counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use dataplane::receive::{LaneResult, ReceiveCounters, ReceiveResult};
use dataplane::reflect::ReflectCounters;
use dataplane::send::SendResult;
use measure::ledger::{Arrived, Lane, Ledger, LedgerInput};
use measure::place::{
    FAULT_DROP, HELD, OVERSIZED, RX_MISSED, TX_DROPPED, TX_ERROR, TX_FULL, TX_HELD, of_reflector,
};
use measure::{Evidence, Histogram, Jitter, LaneUnion, Percentiles, StreamSummary};
use wire::{DropReason, Foreign};

use super::active::ActiveSend;
use super::wiring::Wiring;
use crate::plan::SendPlan;
use crate::run::close::{Ending, thrown_away};
use crate::run::open::losses;
use crate::run::reflector::{drops, faults};

/// The totals of all tasks whose worker lived.
pub struct Results<'w> {
    pub send: Vec<&'w SendResult>,
    pub receive: Vec<&'w ReceiveResult>,
    /// Frames that the in-process reflector still held.
    pub reflector_held: u64,
    unions: &'w [Arc<LaneUnion>],
}

impl<'w> Results<'w> {
    /// What the tasks left. A slot is empty where a worker died, which the verdict says of the whole run.
    pub fn of(wiring: &'w Wiring) -> Self {
        let reflectors = wiring.reflect.iter().filter_map(|side| side.totals.get());
        Self {
            send: wiring.send.iter().filter_map(|side| side.totals.get()).collect(),
            receive: wiring
                .receive
                .iter()
                .filter_map(|side| side.totals.get())
                .collect(),
            reflector_held: reflectors.map(|totals| totals.held).sum(),
            unions: &wiring.unions,
        }
    }

    /// Packets of the lanes of a stream (or of all, one after the other) that one queue took for first ones, and another
    /// one, too.
    pub fn copies(&self, lanes: impl Iterator<Item = usize>) -> u64 {
        lanes
            .filter_map(|lane| self.unions.get(lane))
            .map(|union| union.copies())
            .sum()
    }

    /// What receivers measured of time: nothing where some packets are in it once for each queue that saw them, and so weigh
    /// more than others.
    pub fn timed(&self) -> &[&'w ReceiveResult] {
        if self.copies(0..self.unions.len()) == 0 {
            &self.receive
        } else {
            &[]
        }
    }

    /// Packets of which nobody can tell whether they are such copies.
    fn unsure(&self) -> u64 {
        self.unions.iter().map(|union| union.unsure()).sum()
    }

    /// Sent and received of every lane.
    fn lanes(&self) -> Vec<Lane> {
        let numbered = |send: &&'w SendResult| (usize::from(send.lane_base)..).zip(&send.accepted);
        let lane = |(lane, accepted): (usize, &u64)| {
            let received = || {
                self.receive
                    .iter()
                    .filter_map(move |receive| receive.lanes.get(lane))
            };
            let first: u64 = received().map(|lane| lane.received).sum();
            Lane {
                lane: lane as u16,
                accepted: *accepted,
                received: first.saturating_sub(self.copies(std::iter::once(lane))),
                beyond: received().map(|lane| lane.beyond).max().unwrap_or(0),
            }
        };
        self.send.iter().flat_map(numbered).map(lane).collect()
    }

    /// What came, by what it was.
    fn arrived<'c>(&self, receivers: impl Iterator<Item = &'c ReceiveCounters>) -> Arrived {
        let lanes = || self.received();
        let received: u64 = lanes().map(|lane| lane.received).sum();
        // One of them may have come late and been a copy of one in time: then it is taken from those in time all the same.
        let copies = self.copies(0..self.unions.len()).min(received);
        let mut arrived = Arrived {
            received: received - copies,
            duplicate: lanes().map(|lane| lane.duplicate).sum::<u64>() + copies,
            late: lanes().map(|lane| lane.late).sum(),
            too_old: lanes().map(|lane| lane.too_old).sum(),
            ..Arrived::default()
        };
        for counters in receivers {
            arrived.frames += counters.frames.get();
            arrived.corrupt += counters.corrupt.get();
            arrived.answered += counters.answered.get();
            let mut foreign = |name: &str, count: u64| {
                if count > 0 {
                    *arrived.foreign.entry(name.into()).or_default() += count;
                }
            };
            for kind in Foreign::ALL {
                foreign(kind.name(), counters.foreign[kind.index()].get());
            }
            foreign(OVERSIZED, counters.oversized.get());
            foreign("stale", counters.stale.get());
            foreign("never_sent", counters.never_sent.get());
        }
        arrived
    }

    /// What the tasks add to the evidence: what moved, and what speaks against it.
    pub fn evidence(&self, ledger: &Ledger, evidence: Evidence) -> Evidence {
        let sum = |of: fn(&ReceiveResult) -> u64| self.receive.iter().map(|receive| of(receive)).sum::<u64>();
        let backwards = Some(sum(|receive| receive.clock_backwards)).filter(|count| *count > 0);
        let backwards = backwards.map(|count| {
            format!("{count} packets arrived before they were sent: the clocks of the cores disagree")
        });
        Evidence {
            clock_problems: evidence.clock_problems.into_iter().chain(backwards).collect(),
            imbalances: ledger.check(&self.lanes()),
            sent: ledger.accepted,
            received: ledger.received,
            intended: ledger.intended,
            unexplained: ledger.unexplained,
            far_gave_up: ledger.lost_at.get(&of_reflector(TX_FULL)).copied().unwrap_or(0),
            perhaps_copies: self.unsure(),
            contradictions: sum(|receive| receive.contradictions),
            as_sent: sum(|receive| receive.as_sent),
            probes: self.received().map(LaneResult::probes).sum(),
            ..evidence
        }
    }

    /// What the windows of every receiver and lane saw.
    pub fn received(&self) -> impl Iterator<Item = &'w LaneResult> + '_ {
        self.receive.iter().flat_map(|receive| &receive.lanes)
    }
}

/// Whether a far side lost probes in the place of this name: not what it moved, nor what it must not return, which
/// strangers sent. A probe that was damaged on its way there was lost on the way.
fn loses_probes(name: &str) -> bool {
    let is_refused = DropReason::ALL.iter().any(|reason| reason.name() == name);
    !is_refused && !["received", "returned"].contains(&name)
}

/// What was intended, what came, and what each place says that it lost.
pub fn ledger(job: &ActiveSend, results: &Results<'_>, ending: &Ending<'_>) -> Ledger {
    let (wiring, one_way) = (&job.wiring, job.plan.tx_only);
    let (mut places, mut raw) = (BTreeMap::new(), BTreeMap::new());
    let mut lose = |place: &str, count: u64| *places.entry(place.to_owned()).or_default() += count;
    let mut tell = |name: &str, count: u64| *raw.entry(name.to_owned()).or_default() += count;
    let held = ending.pools.held();
    if held > 0 {
        lose(TX_HELD, held);
        tell(TX_HELD, held);
    }
    for end in &ending.ports {
        for (name, count) in losses(&end.summary) {
            // A run that only sends leaves what comes back where it is: no loss of its own.
            if name != TX_DROPPED && (!one_way || name == TX_ERROR) {
                lose(name, count);
            }
            tell(name, count);
        }
    }
    for (name, count) in drops(&wiring.reflect) {
        let place = of_reflector(&name);
        lose(&place, count);
        tell(&place, count);
    }
    if !wiring.reflect.is_empty() {
        let sum =
            |pick: fn(&ReflectCounters) -> u64| wiring.reflect.iter().map(|side| pick(&side.counters)).sum();
        tell(&of_reflector("received"), sum(|counters| counters.frames.get()));
        tell(&of_reflector("returned"), sum(|counters| counters.returned.get()));
        lose(&of_reflector(HELD), results.reflector_held);
        let far_missed = ending.ports.iter().map(|port| port.far_missed).sum();
        lose(&of_reflector(RX_MISSED), far_missed);
    }
    for (name, count) in job.told.shown() {
        // The injector's own name, wherever it sits.
        let place = if name == FAULT_DROP {
            name.clone()
        } else {
            of_reflector(name)
        };
        if loses_probes(name) {
            lose(&place, *count);
        }
        tell(&place, *count);
    }
    for (name, count) in faults(&wiring.reflect) {
        if name == "drop" {
            lose(FAULT_DROP, count);
        }
        tell(&format!("fault_{name}"), count);
    }
    // A veth tells some of what it throws away at its other end, too (`rx_dropped`), which a port there has counted as missed.
    let missed =
        [RX_MISSED.to_owned(), of_reflector(RX_MISSED)].map(|name| places.get(&name).copied().unwrap_or(0));
    let told = missed.iter().sum();
    places.insert(TX_DROPPED.into(), thrown_away(&ending.ports).saturating_sub(told));
    tell("tx_queue_full", wiring.sent(|counters| counters.queue_full.get()));
    let never_taken: u64 = results.send.iter().map(|send| send.unsent).sum();
    let input = LedgerInput {
        intended: wiring.sent(|counters| counters.intended.get()),
        accepted: results.send.iter().flat_map(|send| &send.accepted).sum(),
        unsent: wiring.sent(|counters| counters.abandoned.get()) + never_taken,
        arrived: results.arrived(wiring.receive.iter().map(|side| &*side.counters)),
        places,
        raw,
        one_way,
        far_is_shared: job
            .told
            .is_shared(wiring.sent(|counters| counters.accepted.get())),
    };
    let balanced = Ledger::balance(input.clone());
    if balanced.unexplained == 0 || job.told.counted.is_empty() {
        return balanced;
    }
    // Where something is missing that nobody saw, others may have been served unnoticed: no more of theirs came there than of
    // ours did not.
    Ledger::balance(LedgerInput {
        far_is_shared: true,
        ..input
    })
}

/// Per stream, over all its lanes.
pub fn streams<'r>(plan: &SendPlan, results: &Results<'r>, seconds: f64) -> Vec<StreamSummary> {
    let count = plan.streams.len();
    let mut summaries = Vec::with_capacity(count);
    for (index, stream) in plan.streams.iter().enumerate() {
        let of_stream = move |receive: &&'r ReceiveResult| receive.lanes.iter().skip(index).step_by(count);
        let lanes = || results.receive.iter().flat_map(of_stream);
        let sent: u64 = results.send.iter().map(|send| send.accepted[index]).sum();
        let received: u64 = lanes().map(|lane| lane.received).sum();
        let copies = results.copies((index..plan.lanes()).step_by(count)).min(received);
        let received = received - copies;
        let latency = merged(results.timed().iter().map(|receive| &receive.latency[index]));
        let flows: u64 = results.send.iter().map(|send| send.flows[index]).sum();
        summaries.push(StreamSummary {
            name: stream.name.clone(),
            sent,
            received,
            lost: if plan.tx_only {
                0
            } else {
                sent.saturating_sub(received)
            },
            duplicate: lanes().map(|lane| lane.duplicate).sum::<u64>() + copies,
            reordered: lanes().map(|lane| lane.reordered).sum(),
            reorder_extent_max: lanes().map(|lane| lane.extent_max).max().unwrap_or(0),
            corrupt: None,
            late: lanes().map(|lane| lane.late).sum(),
            latency_ns: Percentiles::from(&latency),
            jitter_ns: Jitter::mean(lanes().map(|lane| &lane.jitter)),
            rate_tx_pps: sent as f64 / seconds,
            rate_rx_pps: received as f64 / seconds,
            flows_asked: u64::from(stream.flows),
            flows_sent: flows.min(u64::from(stream.flows)),
        });
    }
    summaries
}

/// All histograms in one, which all have the resolution of the first.
pub fn merged<'h>(histograms: impl Iterator<Item = &'h Histogram>) -> Histogram {
    let all = histograms.cloned().reduce(|mut all, histogram| {
        all.merge(&histogram);
        all
    });
    all.unwrap_or_else(|| Histogram::new(5))
}

#[cfg(test)]
mod tests;
