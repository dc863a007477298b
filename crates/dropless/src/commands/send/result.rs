//! From what the tasks, ports and pools counted to the ledger, the verdict and the summary of a send run.

use std::path::PathBuf;

use dataplane::worker::WorkerCounters;
use measure::ledger::Ledger;
use measure::verdict::{Evidence, Role};
use measure::{
    Expectation, GapSummary, Jitter, Percentiles, PortSummary, QueueSummary, Rate, Stall, StreamSummary,
    Summary, Verdict,
};
use report::rundir::file;

use super::Run;
use super::books::{Results, ledger, merged, streams};
use super::control::Seen;
use super::far::Told;
use super::load::Load;
use super::tasks::{Times, Wiring};
use crate::commands::reflect::result::{port_summary, ring_holds_ns};
use crate::explain::{self, Receiver};
use crate::run::buffers::{Kept, PoolCounts};
use crate::run::clock::RunClock;
use crate::run::open::OpenPort;
use crate::run::workers::{self, Left};

/// What is left when the workers have ended.
pub struct Ending {
    /// What the workers left.
    pub left: Left,
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

#[allow(clippy::too_many_lines, reason = "a list of what a summary says")]
/// Makes and writes the summary; the ports are closed and the pool is counted on the way.
pub fn summarise(
    run: &Run<'_, '_>,
    ports: Vec<OpenPort<'_>>,
    loads: &[Load],
    wiring: &Wiring<'_>,
    mut ending: Ending,
) -> Summary {
    let plan = run.plan;
    let results = Results::of(wiring);
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
        .map(|far| far.rx_missed())
        .sum();
    let rate_pps = rate_per_receiver(wiring, &results, seconds);
    let stalls = stalls(&ports, wiring, &ending, rate_pps, plan.machine.pause_ns);
    let receivers = receivers(wiring, &stalls, rate_pps);
    let (pauses, explanation) = explain::explain(
        ending.seen.explainer.take(),
        &ending.left.paused,
        &receivers,
        &ending.times.clock,
        ending.times.clock.ns(ending.times.start),
    );
    let refusals = ports.iter().map(OpenPort::counts_refusals).collect::<Vec<_>>();
    let kept = Kept::by(&ports, run.pools);
    let files: Vec<_> = ports.iter().filter_map(OpenPort::written).collect();
    ending.notes.extend(ports.iter().flat_map(OpenPort::last_notes));
    drop(ports);
    let lanes = results.lanes();
    let pools = PoolCounts::count(run.pools, kept);
    let ledger = ledger(
        wiring,
        &results,
        &port_summaries,
        (far_missed, pools.held()),
        &ending.seen.far.counted,
        &refusals,
        plan.tx_only,
    );
    let (clock, clock_trouble) = ending.clock.finish();
    // A file has no pace.
    let to_files = plan
        .machine
        .ports
        .iter()
        .all(|port| port.kind.traits().medium == host::Medium::Files);
    let asked_pps = total_rate(loads).filter(|_| !to_files);
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
        sending_ns: ((seconds * 1e9) as u64).saturating_sub(paused_ns(plan, wiring, &ending.times)),
        senders: wiring.send.len(),
        link_losses: ending.seen.link_losses.clone(),
        stalls: stalls.clone(),
        short_files: short(&files),
        clock_uncertainty_ppm: clock.uncertainty_ppm,
        clock_problems: clock_trouble.into_iter().collect(),
        pools: pools.evidence(),
        dead_workers: ending
            .left
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
    notes.extend(pools.notes());
    notes.extend(checksum_note(plan, &ledger));
    notes.extend(explain::note(explanation.as_ref()));
    notes.extend(silent_note(&ending.seen.far, &ledger));
    let mut summary = Summary {
        run: run.dir.path().display().to_string(),
        verdict: verdict.validity,
        reasons: verdict.sentences(),
        reason_names: verdict
            .reasons
            .iter()
            .map(|reason| reason.name().into())
            .collect(),
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
        pool: pools.summary(),
        clock,
        explanation,
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
    let _ = run.dir.write_pacing(
        &merged(gap_ticks(wiring).iter()),
        clock_unit_ns(&ending.times.clock),
    );
    let _ = run.dir.write_stalls(&pauses);
    let incomplete = run.dir.note();
    summary.notes.extend(incomplete.clone());
    if run.dir.write_summary(&summary).is_err() {
        // Told once, with the summary itself among what is missing.
        summary.notes.retain(|note| Some(note) != incomplete.as_ref());
        summary.notes.extend(run.dir.note());
    }
    summary
}

/// A run by count begins with its first packet and ends with its last: one pause before them makes each late, and is no
/// rate kept too low.
fn paused_ns(plan: &crate::plan::SendPlan, wiring: &Wiring<'_>, times: &Times) -> u64 {
    if plan.count.is_none() {
        return 0;
    }
    let counters = || wiring.send.iter().map(|side| &side.counters);
    let first = counters().map(|counters| counters.first_ticks.get());
    let begun = first.filter(|ticks| *ticks > 0).min().unwrap_or(0);
    let longest = counters()
        .filter_map(|counters| counters.gap_ticks.snapshot().max())
        .max();
    let ticks = begun.saturating_sub(times.start.0) + longest.unwrap_or(0);
    times.clock.ns_from_ticks(ticks)
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

/// The gaps between departures of each queue, in ticks.
fn gap_ticks(wiring: &Wiring<'_>) -> Vec<measure::Histogram> {
    let gaps = wiring.send.iter().map(|side| side.counters.gap_ticks.snapshot());
    gaps.collect()
}

/// A tick in ns, of very many of them: one alone would be rounded.
fn clock_unit_ns(clock: &measure::Clock) -> f64 {
    clock.ns_from_ticks(1_000_000_000) as f64 / 1e9
}

/// The gaps between departures of all queues, beside the gap that the rate of one queue means.
fn gaps(wiring: &Wiring<'_>, loads: &[Load], clock: &RunClock) -> GapSummary {
    let ticks = gap_ticks(wiring);
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

/// Every queue, and its share.
pub fn queues(wiring: &Wiring<'_>) -> Vec<QueueSummary> {
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
    let lost = plan
        .machine
        .ports
        .iter()
        .any(|port| port.kind.traits().loses_checksums);
    (ledger.arrived.corrupt > 0 && lost).then(|| {
        "corrupt frames: a kernel at the other end of a virtual wire leaves checksums to hardware that is not there, unless told (over there): ethtool -K INTERFACE tx off".into()
    })
}

/// The longest pause of each receiver whose port loses packets silently meanwhile, and what its ring holds. A pause
/// after which nothing waited has filled no ring: such as one after everything had come back.
fn stalls(
    ports: &[OpenPort<'_>],
    wiring: &Wiring<'_>,
    ending: &Ending,
    rate_pps: f64,
    pause_ns: u64,
) -> Vec<Stall> {
    let clock = &ending.clock.clock;
    let mut stalls = Vec::new();
    for side in &wiring.receive {
        let open = &ports[side.port];
        let Some(place) = ending.roles.iter().position(|(core, _)| *core == side.core) else {
            continue;
        };
        if open.pushes_back() {
            continue;
        }
        let ring_holds_ns = ring_holds_ns(open, rate_pps);
        let paused = ending.left.paused.iter().find(|paused| paused.core == side.core);
        // The kept pauses tell only where all that matter were kept.
        let kept = paused.filter(|paused| paused.pauses.dropped == 0 && ring_holds_ns >= pause_ns);
        let longest = kept.map_or_else(
            || ending.published[place].gap_ticks.snapshot().max(),
            |paused| {
                let costly = paused.pauses.all().iter().filter(|pause| pause.next > 0);
                costly.map(|pause| pause.to.since(pause.from)).max()
            },
        );
        stalls.push(Stall {
            core: side.core as u32,
            role: "receive".into(),
            at_ns: 0,
            gap_ns: clock.ns_from_ticks(longest.unwrap_or(0)),
            ring_holds_ns,
            ..Stall::default()
        });
    }
    stalls
}

/// What each receiver has to expect if all that was sent comes back, packets/s.
fn rate_per_receiver(wiring: &Wiring<'_>, results: &Results<'_>, seconds: f64) -> f64 {
    let sent: u64 = results.send.iter().flat_map(|send| &send.accepted).sum();
    sent as f64 / seconds / wiring.receive.len().max(1) as f64
}

/// Who receives from which port, and how long its ring holds.
fn receivers<'w>(wiring: &'w Wiring<'_>, stalls: &[Stall], rate_pps: f64) -> Vec<Receiver<'w>> {
    let holds = |core: usize| {
        let of_core = stalls.iter().filter(|stall| stall.core as usize == core);
        of_core.map(|stall| stall.ring_holds_ns).min().unwrap_or(0)
    };
    let sides = wiring.receive.iter().map(|side| Receiver {
        port: side.port,
        core: side.core,
        ring_holds_ns: holds(side.core),
        rate_pps,
        holes: side.totals.get().map_or(&[], |totals| &totals.holes),
    });
    sides.collect()
}

/// The files that are shorter than what was written to them, and by how many bytes.
fn short(files: &[(PathBuf, u64)]) -> Vec<(String, u64)> {
    files
        .iter()
        .filter_map(|(path, written)| {
            let file = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
            let missing = written.saturating_sub(file.len());
            (missing > 0).then(|| (path.display().to_string(), missing))
        })
        .collect()
}

/// Where unexplained packets may be: with a far side that does not tell.
fn silent_note(far: &Told, ledger: &Ledger) -> Option<String> {
    (far.silent > 0 && ledger.unexplained > 0).then(|| {
        "the far side told no counters (it is no dropless reflect, or its answers were lost): what it lost is unexplained"
            .into()
    })
}

fn extra_notes(watched: &Seen, results: &Results<'_>, seed: u64, random: bool) -> Vec<String> {
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
