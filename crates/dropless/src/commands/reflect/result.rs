//! What a reflecting run has to say at its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dataplane::fault::FaultCounters;
use dataplane::reflect::{ReflectCounters, ReflectResult};
use dataplane::slot::Slot;
use dataplane::worker::WorkerCounters;
use measure::{PortSummary, QueueSummary, ReflectSummary, Ticks, Validity};
use report::rundir::RunDir;
use wire::{ReflectorCounters, DropReason};

use crate::explain::{self, Explainer, Receiver};
use crate::run::buffers::{Kept, PoolCounts};
use crate::run::clock::RunClock;
use crate::run::open::OpenPort;
use crate::run::pools::Pools;
use crate::run::workers::{self, Left};

/// One reflected queue pair, as the control thread sees it.
pub struct Side {
    /// Index of its port.
    pub port: usize,
    /// Queue of the port.
    pub queue: usize,
    /// Core of its worker.
    pub core: usize,
    /// What it publishes.
    pub counters: Arc<ReflectCounters>,
    /// What its injector publishes.
    pub faults: Arc<FaultCounters>,
    /// What it leaves.
    pub totals: Slot<ReflectResult>,
}

/// Sums over all queues.
#[derive(Clone, Copy, Default)]
pub struct Total {
    /// Frames received.
    pub received: u64,
    /// Frames returned.
    pub returned: u64,
    /// Frames that were not to be returned, or could not.
    pub dropped: u64,
}

impl Total {
    /// A row of `intervals.csv`.
    pub fn row(&self, at: Duration, base: &Self) -> String {
        format!(
            "{},{},{},{}\n",
            at.as_secs_f64() * 1e3,
            self.received - base.received,
            self.returned - base.returned,
            self.dropped - base.dropped
        )
    }
}

/// Sums what the tasks publish.
pub fn total(sides: &[Side]) -> Total {
    let mut total = Total::default();
    for side in sides {
        let counters = &side.counters;
        total.received += counters.frames.get();
        total.returned += counters.returned.get();
        total.dropped += counters.oversized.get() + counters.tx_full.get();
        total.dropped += counters.dropped.iter().map(measure::Counter::get).sum::<u64>();
    }
    total
}

/// What is left when the workers have ended.
pub struct Ending {
    /// What the workers left.
    pub left: Left,
    /// What explains pauses.
    pub explainer: Option<Explainer>,
    /// When it began.
    pub start: Ticks,
    /// How long anything came.
    pub active: Duration,
    /// How long it went.
    pub seconds: f64,
    /// Cores and what was done on them.
    pub roles: Vec<(usize, Vec<&'static str>)>,
    /// What the workers published.
    pub published: Vec<WorkerCounters>,
    /// The clock.
    pub clock: RunClock,
    /// Notes so far.
    pub notes: Vec<String>,
}

/// The drops of all queues, by name.
pub fn drops(counters: &[&ReflectCounters]) -> BTreeMap<String, u64> {
    let mut drops: BTreeMap<String, u64> = BTreeMap::new();
    for one in counters {
        for reason in DropReason::ALL {
            *drops.entry(reason.name().into()).or_default() += one.dropped[reason.index()].get();
        }
        *drops.entry("oversized".into()).or_default() += one.oversized.get();
        *drops.entry("tx_full".into()).or_default() += one.tx_full.get();
    }
    drops.retain(|_, count| *count > 0);
    drops
}

/// What the injectors did, by name; `seen` says of how many probes.
pub fn faults(counters: &[&FaultCounters]) -> BTreeMap<String, u64> {
    let mut faults: BTreeMap<String, u64> = BTreeMap::new();
    for one in counters {
        for (name, counter) in [
            ("seen", &one.seen),
            ("drop", &one.drop),
            ("limit", &one.limit),
            ("duplicate", &one.duplicate),
            ("reorder", &one.reorder),
            ("corrupt", &one.corrupt),
            ("delay", &one.delay),
            ("not_done", &one.not_done),
        ] {
            *faults.entry(name.into()).or_default() += counter.get();
        }
    }
    if faults.get("seen") == Some(&0) {
        BTreeMap::new()
    } else {
        faults
    }
}

/// What became of the links; the memif driver forgets its counters with its link, so that for it the queues speak.
fn link_notes(ports: &[OpenPort<'_>], sides: &[Side], summaries: &mut [PortSummary]) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, (open, summary)) in ports.iter().zip(summaries).enumerate() {
        let losses = open.tending.losses;
        if losses > 0 {
            notes.push(format!(
                "port {} lost its link {}, and goes on with whoever comes next",
                open.uri,
                if losses == 1 {
                    "once".into()
                } else {
                    format!("{losses} times")
                }
            ));
        }
        if losses > 0 && summary.driver == "net_memif" {
            let of_port = |pick: fn(&ReflectCounters) -> u64| -> u64 {
                sides
                    .iter()
                    .filter(|side| side.port == index)
                    .map(|side| pick(&side.counters))
                    .sum()
            };
            summary.rx_packets = of_port(|counters| counters.frames.get());
            summary.tx_packets = of_port(|counters| counters.returned.get());
        }
    }
    notes
}

/// The counters of one port.
pub fn port_summary(open: &OpenPort<'_>) -> PortSummary {
    let stats = open.stats();
    let (driver, name) = open.driver_and_name();
    PortSummary {
        uri: open.uri.to_string(),
        driver,
        name,
        link: open.link(),
        tx_packets: stats.opackets,
        rx_packets: stats.ipackets,
        rx_missed: open.rx_missed(),
        rx_nombuf: stats.rx_nombuf,
        rx_errors: stats.ierrors,
        tx_errors: stats.oerrors,
    }
}

/// How long the receive ring of a port holds at `rate` packets/s; 0 where it pushes back instead of losing.
pub fn ring_holds_ns(open: &OpenPort<'_>, rate: f64) -> u64 {
    if open.pushes_back() {
        return 0;
    }
    (f64::from(open.rx_room()) / rate.max(1.0) * 1e9) as u64
}

/// What the port `index` has counted so far, for the sender that asks.
pub fn own_counters(index: usize, open: &OpenPort<'_>, sides: &[Side]) -> ReflectorCounters {
    let port = port_summary(open);
    let mut counters = ReflectorCounters::default();
    counters.add("rx_missed", port.rx_missed);
    counters.add("rx_nombuf", port.rx_nombuf);
    counters.add("rx_error", port.rx_errors);
    if !open.counts_refusals() {
        counters.add("tx_error", port.tx_errors);
    }
    for side in sides.iter().filter(|side| side.port == index) {
        let answered = side.counters.answered.get() + side.counters.told.get();
        counters.received += side.counters.frames.get().saturating_sub(answered);
        counters.returned += side.counters.returned.get().saturating_sub(answered);
        for (name, count) in drops(&[&side.counters]) {
            counters.add(&name, count);
        }
        counters.add("fault_drop", side.faults.drop.get());
    }
    counters
}

#[allow(clippy::too_many_lines, reason = "a list of what a summary says")]
/// Makes the summary; the ports are closed and the pool is counted on the way.
pub fn summarise(
    ports: Vec<OpenPort<'_>>,
    pools: Option<&Pools<'_>>,
    sides: &[Side],
    ending: Ending,
    dir: &RunDir,
) -> ReflectSummary {
    let total = total(sides);
    let (clock, clock_trouble) = ending.clock.finish();
    let counters: Vec<&ReflectCounters> = sides.iter().map(|side| &*side.counters).collect();
    let injected: Vec<&FaultCounters> = sides.iter().map(|side| &*side.faults).collect();
    let faults = faults(&injected);
    let mut port_summaries: Vec<PortSummary> = ports.iter().map(port_summary).collect();
    let link_notes = link_notes(&ports, sides, &mut port_summaries);
    let gone: Vec<String> = ports
        .iter()
        .filter(|open| open.is_gone())
        .map(|open| open.uri.to_string())
        .collect();
    // The ring of the busiest queue, while anything came.
    let most = sides
        .iter()
        .map(|side| side.counters.frames.get())
        .max()
        .unwrap_or(0);
    let rate = most as f64 / ending.active.as_secs_f64().max(1e-3);
    let receivers: Vec<Receiver<'_>> = sides
        .iter()
        .map(|side| Receiver {
            port: side.port,
            core: side.core,
            ring_holds_ns: ring_holds_ns(&ports[side.port], rate),
            rate_pps: rate,
            holes: &[],
        })
        .collect();
    let clock_now = ending.clock.clock;
    let (pauses, explanation) = explain::explain(
        ending.explainer,
        &ending.left.paused,
        &receivers,
        &clock_now,
        clock_now.ns(ending.start),
    );
    let _ = dir.write_stalls(&pauses);
    let kept = Kept::by(&ports, pools);
    drop(ports);
    let pool_counts = PoolCounts::count(pools, kept);
    let held: u64 = sides
        .iter()
        .filter_map(|side| side.totals.get())
        .map(|totals| totals.held)
        .sum();
    let fault = |name: &str| faults.get(name).copied().unwrap_or(0);
    let (enter, leave) = (
        total.received + fault("duplicate"),
        total.returned + total.dropped + fault("drop") + held,
    );
    let mut reasons: Vec<String> = Vec::new();
    if total.received == 0 {
        reasons.push("no packet was received: is the sender running, and does it reach this port?".into());
    }
    if enter != leave {
        reasons.push(format!(
            "the ledger does not balance: {enter} frames came in, {leave} are accounted for"
        ));
    }
    reasons.extend(
        gone.iter()
            .map(|port| format!("port {port} lost its link: the interface was removed")),
    );
    reasons.extend(pool_counts.leaks());
    reasons.extend(clock_trouble);
    reasons.extend(ending.left.died.map(|error| error.to_string()));
    let mut notes = ending.notes;
    notes.extend(link_notes);
    notes.extend(explain::note(explanation.as_ref()));
    if held > 0 {
        notes.push(format!(
            "{held} frames were still waiting to be sent when the run ended"
        ));
    }
    notes.extend(pool_counts.notes());
    notes.extend(dir.note());
    ReflectSummary {
        run: dir.path().display().to_string(),
        verdict: if reasons.is_empty() {
            Validity::Valid
        } else {
            Validity::Invalid
        },
        reasons,
        received: total.received,
        returned: total.returned,
        answered: counters.iter().map(|counters| counters.answered.get()).sum(),
        told: counters.iter().map(|counters| counters.told.get()).sum(),
        dropped: drops(&counters),
        faults,
        rate_rx_pps: total.received as f64 / ending.seconds,
        rate_tx_pps: total.returned as f64 / ending.seconds,
        duration_s: ending.seconds,
        ports: port_summaries,
        queues: queues(sides),
        workers: ending
            .roles
            .iter()
            .zip(&ending.published)
            .map(|((core, roles), counters)| workers::summary(*core, roles, counters, &ending.clock.clock))
            .collect(),
        pool: pool_counts.summary(),
        clock,
        explanation,
        notes,
        ..ReflectSummary::default()
    }
}

/// Every queue, and its share.
pub fn queues(sides: &[Side]) -> Vec<QueueSummary> {
    let mut queues = Vec::new();
    for side in sides {
        let of_port = |pick: fn(&ReflectCounters) -> u64| -> u64 {
            sides
                .iter()
                .filter(|other| other.port == side.port)
                .map(|other| pick(&other.counters))
                .sum()
        };
        let mut push = |direction: &str, pick: fn(&ReflectCounters) -> u64| {
            let packets = pick(&side.counters);
            queues.push(QueueSummary {
                port: side.port as u16,
                queue: side.queue as u16,
                direction: direction.into(),
                core: side.core as u32,
                packets,
                share: packets as f64 / of_port(pick).max(1) as f64,
            });
        };
        push("rx", |counters| counters.frames.get());
        push("tx", |counters| counters.returned.get());
    }
    queues
}
