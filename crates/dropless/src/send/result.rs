//! From what the tasks, ports and pools counted to the ledger, the verdict and the summary of a send run.

use std::collections::BTreeMap;

use dataplane::TaskResult;
use dataplane::receive::ReceiveResult;
use dataplane::send::SendResult;
use dataplane::worker::WorkerCounters;
use measure::ledger::{Arrived, Lane, Ledger, LedgerInput};
use measure::verdict::{Evidence, Role};
use measure::{
    Expectation, GapSummary, Histogram, Jitter, Percentiles, PortSummary, QueueSummary, Rate, Stall,
    StreamSummary, Summary, Verdict,
};
use report::rundir::file;
use wire::Foreign;

use super::Run;
use super::control::Seen;
use super::load::{self, Load};
use super::tasks::{ReceiveSide, Times, Wiring};
use crate::buffers;
use crate::reflect::result::{drops, faults, port_summary};
use crate::session::{OpenPort, RunClock};
use crate::workers;

/// What is left when the workers have ended.
pub struct Ending {
    /// Of every task.
    pub results: Vec<TaskResult>,
    /// A worker that died.
    pub died: Option<anyhow::Error>,
    /// What the control thread saw.
    pub seen: Seen,
    /// Cores and what was done on them.
    pub roles: Vec<(usize, Vec<&'static str>)>,
    /// What the workers published.
    pub published: Vec<WorkerCounters>,
    /// The clock.
    pub clock: RunClock,
    /// When the run went.
    pub times: Times,
    /// Notes so far.
    pub notes: Vec<String>,
}

/// The results of all tasks, sorted.
#[derive(Default)]
struct Results {
    send: Vec<SendResult>,
    receive: Vec<ReceiveResult>,
    reflector_held: u64,
}

impl Results {
    fn sort(all: Vec<TaskResult>) -> Self {
        let mut sorted = Self::default();
        for result in all {
            match result {
                TaskResult::Send(send) => sorted.send.push(send),
                TaskResult::Receive(receive) => sorted.receive.push(*receive),
                TaskResult::Reflect(reflect) => sorted.reflector_held += reflect.held,
            }
        }
        sorted
    }

    /// Sent and received of every lane.
    fn lanes(&self) -> Vec<Lane> {
        let mut lanes = Vec::new();
        for send in &self.send {
            for (stream, accepted) in send.accepted.iter().enumerate() {
                let lane = send.lane_base + stream as u16;
                let received = self
                    .receive
                    .iter()
                    .filter_map(|rx| rx.lanes.get(usize::from(lane)))
                    .map(|rx| rx.received)
                    .sum();
                lanes.push(Lane {
                    lane,
                    accepted: *accepted,
                    received,
                });
            }
        }
        lanes
    }
}

#[allow(clippy::too_many_lines, reason = "a list of what a summary says")]
/// Makes and writes the summary; the ports are closed and the pool is counted on the way.
pub fn summarise(
    run: &Run<'_, '_>,
    ports: Vec<OpenPort<'_>>,
    loads: &[Load],
    wiring: &Wiring<'_>,
    ending: Ending,
) -> Summary {
    let plan = run.plan;
    let results = Results::sort(ending.results);
    let seconds = (ending
        .seen
        .stopped
        .since(ending.times.clock.ns(ending.times.start)) as f64
        / 1e9)
        .max(1e-9);
    let port_summaries: Vec<PortSummary> = ports.iter().map(port_summary).collect();
    let far_missed: u64 = ports
        .iter()
        .filter_map(|open| open.far.as_ref())
        .map(|far| port_summary(far).rx_missed)
        .sum();
    let stalls = stalls(
        &ports,
        wiring,
        &ending.published,
        &ending.roles,
        &results,
        seconds,
        &ending.clock,
    );
    let refusals = ports.iter().map(load::counts_refusals).collect::<Vec<_>>();
    let kept = buffers::Kept::by(&ports);
    drop(ports);
    let lanes = results.lanes();
    let pool = buffers::count(run.pool, kept);
    let ledger = ledger(
        wiring,
        &results,
        &port_summaries,
        (far_missed, pool.held),
        &refusals,
        plan.tx_only,
    );
    let (clock, clock_trouble) = ending.clock.finish();
    let asked_pps = total_rate(loads);
    let verdict = Verdict::of(&Evidence {
        role: if plan.tx_only { Role::SendOnly } else { Role::Send },
        imbalances: ledger.check(&lanes),
        ports: port_summaries.len(),
        sent: ledger.accepted,
        received: ledger.received,
        intended: ledger.intended,
        unexplained: ledger.unexplained,
        rx_missed: port_summaries.iter().map(|port| port.rx_missed).sum(),
        asked_pps,
        sending_ns: ((seconds * 1e9) as u64).saturating_sub(last_pause_ns(plan, wiring, &ending.times)),
        senders: wiring.send.len(),
        link_losses: ending.seen.link_losses.clone(),
        stalls: stalls.clone(),
        clock_uncertainty_ppm: clock.uncertainty_ppm,
        clock_problems: clock_trouble.into_iter().collect(),
        pools: vec![(pool.summary.clone(), pool.leak)],
        dead_workers: ending
            .died
            .iter()
            .map(|error| ("dropless".into(), error.to_string()))
            .collect(),
    });
    let streams = streams(plan, &results, seconds);
    let latency = merged(results.receive.iter().flat_map(|receive| &receive.latency));
    let scheduled = merged(results.receive.iter().map(|receive| &receive.latency_scheduled));
    let sum = |pick: fn(&StreamSummary) -> u64| streams.iter().map(pick).sum::<u64>();
    let mean_bits = loads.iter().map(|load| load.mean_size).sum::<f64>() / loads.len().max(1) as f64;
    let rate_tx_pps = ledger.accepted as f64 / seconds;
    let mut notes = ending.notes;
    notes.extend(extra_notes(
        &ending.seen,
        &results,
        plan.seed,
        plan.fault.is_some(),
    ));
    notes.extend(pool.note);
    notes.extend(checksum_note(plan, &ledger));
    let mut summary = Summary {
        run: run.dir.path().display().to_string(),
        verdict: verdict.validity,
        reasons: verdict.sentences(),
        sent: ledger.accepted,
        received: ledger.received,
        lost: ledger.lost(),
        duplicate: ledger.arrived.duplicate,
        reordered: sum(|stream| stream.reordered),
        reorder_extent_max: streams
            .iter()
            .map(|stream| stream.reorder_extent_max)
            .max()
            .unwrap_or(0),
        corrupt: ledger.arrived.corrupt,
        late: ledger.arrived.late,
        unexplained: ledger.unexplained,
        rate_asked_pps: asked_pps,
        rate_tx_pps,
        rate_rx_pps: ledger.received as f64 / seconds,
        rate_tx_bps_l1: rate_tx_pps * (mean_bits + 20.0) * 8.0,
        rate_tx_bps_l2: rate_tx_pps * mean_bits * 8.0,
        duration_s: seconds,
        latency_ns: Percentiles::from(&latency),
        latency_scheduled_ns: Percentiles::from(&scheduled),
        jitter_ns: Jitter::mean(
            results
                .receive
                .iter()
                .flat_map(|receive| &receive.lanes)
                .map(|lane| &lane.jitter),
        ),
        pdv_ns: latency.pdv(),
        gap_ns: gaps(wiring, loads, &ending.clock),
        ledger,
        streams,
        ports: port_summaries,
        queues: queues(wiring),
        workers: ending
            .roles
            .iter()
            .zip(&ending.published)
            .map(|((core, roles), counters)| workers::summary(*core, roles, counters, &ending.clock.clock))
            .collect(),
        pool: pool.summary,
        clock,
        notes,
        ..Summary::default()
    };
    summary.expectations = plan
        .expect
        .iter()
        .filter_map(|text| text.parse::<Expectation>().ok())
        .map(|expectation| expectation.evaluate(&summary))
        .collect();
    let _ = run.dir.write_latency(&latency);
    let _ = run.dir.write_stalls(&stalls);
    let incomplete = run.dir.note();
    summary.notes.extend(incomplete.clone());
    if run.dir.write_summary(&summary).is_err() {
        // Told once, with the summary itself among what is missing.
        summary.notes.retain(|note| Some(note) != incomplete.as_ref());
        summary.notes.extend(run.dir.note());
    }
    summary
}

/// The books: what was intended, what came, and what each place says that it lost.
fn ledger(
    wiring: &Wiring<'_>,
    results: &Results,
    ports: &[PortSummary],
    (far_missed, held): (u64, u64),
    counts_refusals: &[bool],
    one_way: bool,
) -> Ledger {
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    let mut raw: BTreeMap<String, u64> = BTreeMap::new();
    if held > 0 {
        places.insert("tx_held".into(), held);
        raw.insert("tx_held".into(), held);
    }
    for (port, counts_refusals) in ports.iter().zip(counts_refusals) {
        // What a driver refused is still ours and is offered again, whatever the driver calls it.
        let tx_errors = if *counts_refusals { 0 } else { port.tx_errors };
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
    let counters: Vec<_> = wiring.reflect.iter().map(|side| &*side.counters).collect();
    for (name, count) in drops(&counters) {
        places.insert(format!("reflector_{name}"), count);
        raw.insert(format!("reflector_{name}"), count);
    }
    if !wiring.reflect.is_empty() {
        let returned = counters.iter().map(|counters| counters.returned.get()).sum();
        raw.insert(
            "reflector_received".into(),
            counters.iter().map(|counters| counters.frames.get()).sum(),
        );
        raw.insert("reflector_returned".into(), returned);
        places.insert("reflector_held".into(), results.reflector_held);
        places.insert("reflector_rx_missed".into(), far_missed);
    }
    let injected: Vec<_> = wiring.reflect.iter().map(|side| &*side.faults).collect();
    for (name, count) in faults(&injected) {
        if name == "drop" {
            places.insert("fault_drop".into(), count);
        }
        raw.insert(format!("fault_{name}"), count);
    }
    let sent = |pick: fn(&dataplane::send::SendCounters) -> u64| {
        wiring.send.iter().map(|side| pick(&side.counters)).sum()
    };
    let abandoned: u64 = sent(|counters| counters.abandoned.get());
    let never_taken: u64 = results.send.iter().map(|send| send.unsent).sum();
    raw.insert("tx_queue_full".into(), sent(|counters| counters.queue_full.get()));
    Ledger::balance(LedgerInput {
        intended: sent(|counters| counters.intended.get()),
        accepted: results.send.iter().flat_map(|send| &send.accepted).sum(),
        unsent: abandoned + never_taken,
        arrived: arrived(&wiring.receive, results),
        places,
        raw,
        one_way,
    })
}

fn arrived(sides: &[ReceiveSide], results: &Results) -> Arrived {
    let lanes = || results.receive.iter().flat_map(|receive| &receive.lanes);
    let mut arrived = Arrived {
        received: lanes().map(|lane| lane.received).sum(),
        duplicate: lanes().map(|lane| lane.duplicate).sum(),
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
    }
    arrived
}

/// Per stream, over all its lanes.
fn streams(plan: &crate::plan::SendPlan, results: &Results, seconds: f64) -> Vec<StreamSummary> {
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
            duplicate: lanes().map(|lane| lane.duplicate).sum(),
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

fn merged<'h>(histograms: impl Iterator<Item = &'h Histogram>) -> Histogram {
    let mut all: Option<Histogram> = None;
    for histogram in histograms {
        match &mut all {
            None => all = Some(histogram.clone()),
            Some(all) => all.merge(histogram),
        }
    }
    all.unwrap_or_else(|| Histogram::new(5))
}

/// A run by count ends with its last packet, and one pause at the end makes that late: it is not a rate kept too low.
fn last_pause_ns(plan: &crate::plan::SendPlan, wiring: &Wiring<'_>, times: &Times) -> u64 {
    if plan.count.is_none() {
        return 0;
    }
    let pauses = wiring
        .send
        .iter()
        .filter_map(|side| side.counters.gap_ticks.snapshot().max());
    pauses.max().map_or(0, |ticks| times.clock.ns_from_ticks(ticks))
}

/// The rate of all ports together; `None` where one has no schedule.
fn total_rate(loads: &[Load]) -> Option<f64> {
    loads
        .iter()
        .map(|load| match load.rate {
            Rate::Pps(pps) => Some(pps),
            Rate::Max => None,
        })
        .sum()
}

/// The gaps between departures of all queues, beside the gap that the rate of one queue means.
fn gaps(wiring: &Wiring<'_>, loads: &[Load], clock: &RunClock) -> GapSummary {
    let ticks = wiring
        .send
        .iter()
        .map(|side| side.counters.gap_ticks.snapshot())
        .collect::<Vec<_>>();
    let asked = total_rate(loads).map(|pps| 1e9 * wiring.send.len() as f64 / pps);
    let in_ticks = GapSummary::new(asked, &merged(ticks.iter()));
    let ns = |ticks: Option<u64>| ticks.map(|ticks| clock.clock.ns_from_ticks(ticks));
    GapSummary {
        asked,
        p50: ns(in_ticks.p50),
        p90: ns(in_ticks.p90),
        p99: ns(in_ticks.p99),
        p999: ns(in_ticks.p999),
        max: ns(in_ticks.max),
    }
}

fn queues(wiring: &Wiring<'_>) -> Vec<QueueSummary> {
    let tx = wiring.send.iter().map(|side| {
        (
            "tx",
            side.port,
            side.queue,
            side.core,
            side.counters.accepted.get(),
        )
    });
    let rx = wiring
        .receive
        .iter()
        .map(|side| ("rx", side.port, side.queue, side.core, side.counters.frames.get()));
    let all: Vec<_> = tx.chain(rx).collect();
    let summary = |&(direction, port, queue, core, packets): &(&str, usize, usize, usize, u64)| {
        let of_port: u64 = all
            .iter()
            .filter(|other| other.0 == direction && other.1 == port)
            .map(|other| other.4)
            .sum();
        QueueSummary {
            port: port as u16,
            queue: queue as u16,
            direction: direction.into(),
            core: core as u32,
            packets,
            share: packets as f64 / of_port.max(1) as f64,
        }
    };
    all.iter().map(summary).collect()
}

/// The usual reason for corrupt frames on a wire that is not one.
fn checksum_note(plan: &crate::plan::SendPlan, ledger: &Ledger) -> Option<String> {
    let by_kernel = |port: &host::PortUri| matches!(port.kind_name(), "xdp" | "packet" | "tap");
    (ledger.arrived.corrupt > 0 && plan.machine.ports.iter().any(by_kernel)).then(|| {
        "corrupt frames: a kernel at the other end of a virtual wire leaves checksums to hardware that is not there, unless told (over there): ethtool -K INTERFACE tx off".into()
    })
}

/// The longest pause of each receiver whose port loses packets silently meanwhile, and what its ring holds.
fn stalls(
    ports: &[OpenPort<'_>],
    wiring: &Wiring<'_>,
    published: &[WorkerCounters],
    roles: &[(usize, Vec<&'static str>)],
    results: &Results,
    seconds: f64,
    clock: &RunClock,
) -> Vec<Stall> {
    let mut stalls = Vec::new();
    for side in &wiring.receive {
        let open = &ports[side.port];
        let Some(place) = roles.iter().position(|(core, _)| *core == side.core) else {
            continue;
        };
        if load::pushes_back(open) {
            continue;
        }
        let gaps = published[place].gap_ticks.snapshot();
        let sent: u64 = results.send.iter().flat_map(|send| &send.accepted).sum();
        let rate = (sent as f64 / seconds / wiring.receive.len() as f64).max(1.0);
        stalls.push(Stall {
            core: side.core as u32,
            role: "receive".into(),
            at_ns: 0,
            gap_ns: clock.clock.ns_from_ticks(gaps.max().unwrap_or(0)),
            ring_holds_ns: (f64::from(open.port.granted().rx_descriptors) / rate * 1e9) as u64,
        });
    }
    stalls
}

fn extra_notes(watched: &Seen, results: &Results, seed: u64, random: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if watched.interrupted {
        notes.push("interrupted: this is the result up to then".into());
    }
    if watched.overrun > 0 {
        notes.push(format!(
            "{} packets are in no row of {}: the control thread was late (the totals have them)",
            watched.overrun,
            file::INTERVALS
        ));
    }
    let backwards: u64 = results
        .receive
        .iter()
        .map(|receive| receive.clock_backwards)
        .sum();
    if backwards > 0 {
        notes.push(format!("{backwards} packets arrived before they were sent: the cores' clocks disagree; their latency counts as 0"));
    }
    if random {
        notes.push(format!(
            "seed {seed}: --seed {seed} injects the same faults again"
        ));
    }
    notes
}
