//! The ledger of a send run: what each lane, stream and place counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use dataplane::receive::ReceiveResult;
use dataplane::send::SendResult;
use measure::ledger::{Arrived, Lane, Ledger, LedgerInput};
use measure::{Histogram, Jitter, LaneUnion, Percentiles, StreamSummary};
use wire::Foreign;

use super::active::ActiveSend;
use super::wiring::{ReceiveSide, Wiring};
use crate::plan::SendPlan;
use crate::run::close::Ending;
use crate::run::reflector::{drops, faults};

/// The totals of all tasks whose worker lived.
pub struct Results<'w> {
    /// Of the transmit queues.
    pub send: Vec<&'w SendResult>,
    /// Of the receive queues.
    pub receive: Vec<&'w ReceiveResult>,
    /// Frames that the in-process reflector still held.
    pub reflector_held: u64,
    unions: &'w [Arc<LaneUnion>],
}

impl<'w> Results<'w> {
    /// What the tasks left. A slot is empty where a worker died, which the verdict says of the whole run.
    pub fn of(wiring: &'w Wiring) -> Self {
        Self {
            send: wiring.send.iter().filter_map(|side| side.totals.get()).collect(),
            receive: wiring
                .receive
                .iter()
                .filter_map(|side| side.totals.get())
                .collect(),
            reflector_held: wiring
                .reflect
                .iter()
                .filter_map(|side| side.totals.get())
                .map(|totals| totals.held)
                .sum(),
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

    /// Packets of which nobody can tell whether they are such copies.
    pub fn unsure(&self) -> u64 {
        self.unions.iter().map(|union| union.unsure()).sum()
    }

    /// Sent and received of every lane.
    pub fn lanes(&self) -> Vec<Lane> {
        let mut lanes = Vec::new();
        for send in &self.send {
            for (stream, accepted) in send.accepted.iter().enumerate() {
                let lane = send.lane_base + stream as u16;
                let received = self
                    .receive
                    .iter()
                    .filter_map(|rx| rx.lanes.get(usize::from(lane)))
                    .map(|rx| rx.received)
                    .sum::<u64>()
                    .saturating_sub(self.copies(std::iter::once(usize::from(lane))));
                let seen = self
                    .receive
                    .iter()
                    .filter_map(|rx| rx.lanes.get(usize::from(lane)));
                lanes.push(Lane {
                    lane,
                    accepted: *accepted,
                    received,
                    beyond: seen.map(|rx| rx.beyond).max().unwrap_or(0),
                });
            }
        }
        lanes
    }
}

/// What a far side tells that is no loss of ours: what it moved, and what was never a probe.
const NO_LOSS: [&str; 5] = ["received", "returned", "not_ip", "not_udp", "not_ours"];

/// What was intended, what came, and what each place says that it lost.
pub fn ledger(job: &ActiveSend, results: &Results<'_>, ending: &Ending<'_>) -> Ledger {
    let (wiring, one_way) = (&job.wiring, job.plan.tx_only);
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    let mut raw: BTreeMap<String, u64> = BTreeMap::new();
    let held = ending.pools.held();
    if held > 0 {
        places.insert("tx_held".into(), held);
        raw.insert("tx_held".into(), held);
    }
    for end in &ending.ports {
        let port = &end.summary;
        // What a driver refused is still ours and is offered again, whatever the driver calls it.
        let tx_errors = if end.counts_refusals { 0 } else { port.tx_errors };
        for (name, count) in [
            ("tx_error", tx_errors),
            ("rx_nombuf", port.rx_nombuf),
            ("rx_missed", port.rx_missed),
            ("rx_error", port.rx_errors),
        ] {
            // A run that only sends leaves what comes back where it is: no loss of its own.
            if !one_way || name == "tx_error" {
                *places.entry(name.into()).or_default() += count;
            }
            *raw.entry(name.into()).or_default() += count;
        }
    }
    for (name, count) in drops(&wiring.reflect) {
        places.insert(format!("reflector_{name}"), count);
        raw.insert(format!("reflector_{name}"), count);
    }
    if !wiring.reflect.is_empty() {
        let counters = || wiring.reflect.iter().map(|side| &side.counters);
        let returned = counters().map(|counters| counters.returned.get()).sum();
        raw.insert(
            "reflector_received".into(),
            counters().map(|counters| counters.frames.get()).sum(),
        );
        raw.insert("reflector_returned".into(), returned);
        places.insert("reflector_held".into(), results.reflector_held);
        let far_missed = ending.ports.iter().map(|port| port.far_missed).sum();
        places.insert("reflector_rx_missed".into(), far_missed);
    }
    for (name, count) in &job.told.counted {
        // The injector's own name, wherever it sits.
        let place = if name == "fault_drop" {
            name.clone()
        } else {
            format!("reflector_{name}")
        };
        if !NO_LOSS.contains(&name.as_str()) {
            *places.entry(place.clone()).or_default() += count;
        }
        *raw.entry(place).or_default() += count;
    }
    for (name, count) in faults(&wiring.reflect) {
        if name == "drop" {
            places.insert("fault_drop".into(), count);
        }
        raw.insert(format!("fault_{name}"), count);
    }
    let never_taken: u64 = results.send.iter().map(|send| send.unsent).sum();
    raw.insert(
        "tx_queue_full".into(),
        wiring.sent(|counters| counters.queue_full.get()),
    );
    Ledger::balance(LedgerInput {
        intended: wiring.sent(|counters| counters.intended.get()),
        accepted: results.send.iter().flat_map(|send| &send.accepted).sum(),
        unsent: wiring.sent(|counters| counters.abandoned.get()) + never_taken,
        arrived: arrived(&wiring.receive, results),
        places,
        raw,
        one_way,
    })
}

fn arrived(sides: &[ReceiveSide], results: &Results<'_>) -> Arrived {
    let lanes = || results.receive.iter().flat_map(|receive| &receive.lanes);
    let received: u64 = lanes().map(|lane| lane.received).sum();
    // One of them may have come late and been a copy of one in time: then it is taken from those in time all the same.
    let copies = results.copies(0..results.unions.len()).min(received);
    let mut arrived = Arrived {
        received: received - copies,
        duplicate: lanes().map(|lane| lane.duplicate).sum::<u64>() + copies,
        late: lanes().map(|lane| lane.late).sum(),
        too_old: lanes().map(|lane| lane.too_old).sum(),
        ..Arrived::default()
    };
    for side in sides {
        let counters = &side.counters;
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
        foreign("oversized", counters.oversized.get());
        foreign("stale", counters.stale.get());
        foreign("never_sent", counters.never_sent.get());
    }
    arrived
}

/// Per stream, over all its lanes.
pub fn streams(plan: &SendPlan, results: &Results<'_>, seconds: f64) -> Vec<StreamSummary> {
    let count = plan.streams.len();
    let mut summaries = Vec::with_capacity(count);
    for (index, stream) in plan.streams.iter().enumerate() {
        let lanes = || {
            results
                .receive
                .iter()
                .flat_map(move |receive| receive.lanes.iter().skip(index).step_by(count))
        };
        let sent: u64 = results.send.iter().map(|send| send.accepted[index]).sum();
        let received: u64 = lanes().map(|lane| lane.received).sum();
        let copies = results.copies((index..plan.lanes()).step_by(count)).min(received);
        let received = received - copies;
        let latency = merged(results.receive.iter().map(|receive| &receive.latency[index]));
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

/// All of them in one.
pub fn merged<'h>(histograms: impl Iterator<Item = &'h Histogram>) -> Histogram {
    let mut all: Option<Histogram> = None;
    for histogram in histograms {
        match &mut all {
            None => all = Some(histogram.clone()),
            Some(all) => all.merge(histogram),
        }
    }
    all.unwrap_or_else(|| Histogram::new(5))
}
