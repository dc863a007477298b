//! From what the tasks, ports and pools counted to the verdict and the summary of a send run.

use host::Medium;
use measure::bunch::{Bunch, bunches};
use measure::ledger::Ledger;
use measure::units::LAYER1_OVERHEAD_BYTES;
use measure::verdict::{Evidence, Late, Role};
use measure::{GapSummary, Histogram, Jitter, Note, Percentiles, Summary, Verdict, WorkerSummary, expect};
use report::rundir::file;
use wire::{FCS_LEN, Foreign};

use super::active::ActiveSend;
use super::hindrance::{excused_ns, hindrance, sending_ns};
use super::ledger::{Results, ledger, merged, streams};
use super::load::total_rate;
use super::unserved::unserved;
use super::wiring::SendSide;
use crate::run::close::Ending;
use crate::run::kernel_port;

pub fn summarise(job: &ActiveSend, mut ending: Ending<'_>) -> Summary {
    let results = Results::of(&job.wiring);
    let ledger = ledger(job, &results, &ending);
    let asked_pps = asked_pps(job);
    let latency = merged(results.timed().iter().flat_map(|receive| &receive.latency));
    let mut evidence = evidence(job, &results, &ledger, &ending, asked_pps);
    evidence.away_ns = job.away_ns();
    evidence.late = late(job.plan.drain_ns, &ledger, &latency, &ending.workers);
    let verdict = Verdict::of(&evidence);
    ending.notes.extend(notes(job, &results, &ledger, &ending));
    let dir = ending.dir;
    let mut summary = Summary {
        run: dir.path().display().to_string(),
        verdict: verdict.validity,
        reasons: verdict.notes(),
        lost: ledger.lost(),
        late: ledger.arrived.late,
        rate_asked_pps: total_rate(&job.loads),
        jitter_ns: Jitter::mean(
            results
                .timed()
                .iter()
                .flat_map(|receive| &receive.lanes)
                .map(|lane| &lane.jitter),
        ),
        ports: ending.port_summaries(),
        queues: job.wiring.queues(),
        workers: ending.workers,
        pool: ending.pools.summary(),
        clock: ending.clock_summary,
        explanation: ending.explanation,
        notes: ending.notes,
        ..figures(job, &results, &ledger, &latency)
    };
    summary.ledger = ledger;
    summary.expectations = expect::evaluate(&job.plan.expect, &summary);
    let _ = dir.write_latency(&latency);
    let _ = dir.write_pacing(&merged(gap_ticks(job).iter()), ending.clock.tick_ns());
    let _ = dir.write_json(file::LEDGER, &summary.ledger);
    summary
}

/// What the run moved, how fast, and how long it took.
fn figures(job: &ActiveSend, results: &Results<'_>, ledger: &Ledger, latency: &Histogram) -> Summary {
    let seconds = rated_s(job.seconds(), ledger.intended, total_rate(&job.loads));
    let streams = streams(&job.plan, results, seconds);
    let scheduled = merged(results.timed().iter().map(|receive| &receive.latency_scheduled));
    let reordered = streams.iter().map(|stream| stream.reordered).sum();
    let extents = streams.iter().map(|stream| stream.reorder_extent_max);
    let bytes = results.send.iter().map(|send| send.bytes).sum();
    // What had not left when nobody waited any more is in no rate.
    let gone = ledger.accepted.saturating_sub(job.departure.waiting);
    let sent_s = seconds * ledger.accepted as f64 / gone.max(1) as f64;
    let [rate_tx_bps_l1, rate_tx_bps_l2] = bit_rates(ledger.accepted, bytes, sent_s.max(seconds));
    Summary {
        sent: ledger.accepted,
        received: ledger.received,
        duplicate: ledger.arrived.duplicate,
        corrupt: ledger.arrived.corrupt,
        unexplained: ledger.unexplained,
        reordered,
        reorder_extent_max: extents.max().unwrap_or(0),
        rate_tx_pps: gone as f64 / seconds,
        rate_rx_pps: ledger.received as f64 / seconds,
        rate_tx_bps_l1,
        rate_tx_bps_l2,
        duration_s: job.seconds(),
        latency_ns: Percentiles::from(latency),
        latency_scheduled_ns: Percentiles::from(&scheduled),
        pdv_ns: latency.pdv(),
        gap_ns: gaps(job),
        bunches: bunched(job),
        streams,
        ..Summary::default()
    }
}

/// At rate `max` no time is taken for shorter than this: what leaves as one burst has no rate.
const RATED_S_MIN: f64 = 1e-3;

/// The time that rates are of, s. Each of `due` packets has its own time of the schedule, also the last one, or a run of one
/// packet would have any rate.
fn rated_s(seconds: f64, due: u64, asked_pps: Option<f64>) -> f64 {
    let least = asked_pps.map_or(RATED_S_MIN, |pps| due as f64 / pps);
    seconds.max(least)
}

/// The rates of layers 1 and 2, bits a second, of so many packets with so many bytes without FCS.
fn bit_rates(packets: u64, bytes: u64, seconds: f64) -> [f64; 2] {
    let rate = |more: f64| (bytes as f64 + packets as f64 * more) * 8.0 / seconds;
    let fcs = FCS_LEN as f64;
    [rate(fcs + LAYER1_OVERHEAD_BYTES), rate(fcs)]
}

fn evidence(
    job: &ActiveSend,
    results: &Results<'_>,
    ledger: &Ledger,
    ending: &Ending<'_>,
    asked_pps: Option<f64>,
) -> Evidence {
    let role = if job.plan.tx_only {
        Role::SendOnly
    } else {
        Role::Send
    };
    Evidence {
        asked_pps,
        sending_ns: sending_ns(job).saturating_sub(excused_ns(job, ending)),
        senders: job.wiring.send.len(),
        hindrance: hindrance(job, ending),
        is_answered: job.loads.iter().any(|load| load.asked),
        link_losses: ending.link_losses.clone(),
        unserved: unserved(job, results),
        ..results.evidence(ledger, ending.evidence(role))
    }
}

/// What was late, and how long our workers did not poll: all of them, since each has packets on their way.
fn late(drain_ns: u64, ledger: &Ledger, latency: &Histogram, workers: &[WorkerSummary]) -> Late {
    let longest = workers.iter().max_by_key(|worker| worker.poll_gap_ns_max);
    Late {
        packets: ledger.arrived.late,
        drain_ns,
        usual_ns: latency.percentile(50.0).unwrap_or(0),
        core: longest.map_or(0, |worker| worker.core),
        gap_ns: longest.map_or(0, |worker| worker.poll_gap_ns_max),
    }
}

/// The rate that all ports together are held to; `None` where there is none: a file has no pace.
fn asked_pps(job: &ActiveSend) -> Option<f64> {
    let has_pace = job.plan.machine.has(|traits| traits.medium != Medium::Files);
    total_rate(&job.loads).filter(|_| has_pace)
}

/// The gaps between departures of each queue, in ticks.
fn gap_ticks(job: &ActiveSend) -> Vec<Histogram> {
    let sides = job.wiring.send.iter();
    sides.map(|side| side.counters.gap_ticks.snapshot()).collect()
}

/// How often how many packets were due at once, on all queues.
fn bunched(job: &ActiveSend) -> Vec<Bunch> {
    let counters = || job.wiring.send.iter().map(|side| &side.counters);
    let all: Vec<Histogram> = counters().map(|counters| counters.bunches.snapshot()).collect();
    let whole: Vec<Histogram> = counters()
        .map(|counters| counters.whole_bunches.snapshot())
        .collect();
    bunches(&merged(all.iter()), &merged(whole.iter()))
}

/// The gaps between departures of all queues, beside the gap that the rate of one queue means.
pub fn gaps(job: &ActiveSend) -> GapSummary {
    let asked = total_rate(&job.loads).map(|pps| 1e9 * job.wiring.send.len() as f64 / pps);
    let in_ticks = GapSummary::new(asked, &merged(gap_ticks(job).iter()));
    let ns = |ticks: Option<u64>| ticks.map(|ticks| job.wiring.times.clock.ns_from_ticks(ticks));
    GapSummary {
        asked,
        p50: ns(in_ticks.p50),
        p90: ns(in_ticks.p90),
        p99: ns(in_ticks.p99),
        p999: ns(in_ticks.p999),
        max: ns(in_ticks.max),
    }
}

/// What to look at where nothing came back from a wire: the two usual reasons.
fn no_way_back(job: &ActiveSend, ledger: &Ledger) -> Option<Note> {
    let is_wire = |medium: Medium| !matches!(medium, Medium::Process | Medium::Files | Medium::Sockets);
    let ports = &job.plan.machine.ports;
    let on_wire = ports.iter().any(|port| is_wire(port.kind.traits().medium));
    if job.plan.tx_only || !on_wire || ledger.accepted == 0 || ledger.received > 0 {
        return None;
    }
    let stream = job.plan.streams.first()?;
    let text = format!(
        "nothing came back of what went from {} to {}: is `dropless reflect` (or another host that returns UDP) running there, and has it a way back to that address? --from gives one of that network, --to-mac says whose MAC address it is sent to",
        stream.from.ip(),
        stream.to
    );
    Some(Note::new("no_way_back", text))
}

fn notes(job: &ActiveSend, results: &Results<'_>, ledger: &Ledger, ending: &Ending<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    if ending.is_interrupted {
        notes.push(Note::new(
            "interrupted",
            "interrupted: this is the result up to then",
        ));
    }
    for (code, count, why) in [
        (
            "rows_incomplete",
            job.collector.overrun(),
            "the control thread was late",
        ),
        (
            "rows_written_before",
            job.collector.stale(),
            "their rows had been written",
        ),
    ] {
        if count > 0 {
            let rows = file::INTERVALS;
            let text = format!("{count} packets are missing from {rows}: {why} (the totals include them)");
            notes.push(Note::new(code, text));
        }
    }
    let copies = results.copies(0..job.plan.lanes());
    if copies > 0 {
        let text = format!(
            "{copies} packets came to two receive queues: each counts once, and its copies as duplicates; latency is not told, and the rows of {} and the display count both",
            file::INTERVALS
        );
        notes.push(Note::new("copies_between_queues", text));
    }
    if job.wiring.hear_each_other {
        let text = "a probe that one port sends and another one hears counts as returned: where ports share a link, that says nothing of what is behind it";
        notes.push(Note::new("several_ports", text));
    }
    notes.extend(no_way_back(job, ledger));
    notes.extend(job.plan.hosts());
    notes.extend(job.plan.without_effect());
    if job.plan.fault.is_some() {
        let seed = job.plan.seed;
        let text = format!("seed {seed}: --seed {seed} injects the same faults again");
        notes.push(Note::new("seed", text));
    }
    // The usual reason for corrupt frames on a wire that is not one.
    if ledger.arrived.corrupt > 0 && job.plan.machine.has(|traits| traits.loses_checksums) {
        notes.push(Note::new("checksums_left_out", "corrupt frames: the kernel at the other end of a virtual link leaves checksums to hardware that does not exist; turn that off there: ethtool -K INTERFACE tx off"));
    }
    // What a peer returns fills a ring that nobody empties.
    let is_full = |side: &SendSide| {
        let medium = job.plan.machine.ports[side.place.port].kind.traits().medium;
        medium == Medium::Peer && side.counters.full_ticks.get() > 0
    };
    if job.plan.tx_only && job.wiring.send.iter().any(is_full) {
        notes.push(Note::new("nobody_receives", "with --tx-only nobody takes what the other end of the port returns: one that reflects takes nothing more once the ring for that is full; leave --tx-only out, or have it return nothing"));
    }
    notes.extend(refused(ledger));
    notes.extend(job.told.notes(ledger.accepted, ledger.unexplained));
    notes
}

/// Errors about our packets that came as frames; sockets are told of theirs by the kernel.
fn refused(ledger: &Ledger) -> Option<Note> {
    let errors = ledger.arrived.foreign.get(Foreign::IcmpErrorOurs.name())?;
    let all_back = ledger.received == ledger.accepted;
    Some(kernel_port::refused("this run", *errors, all_back))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_about_packets_that_came_back_are_told_as_no_loss() {
        let text = |received| {
            let mut ledger = Ledger {
                accepted: 9,
                received,
                ..Ledger::default()
            };
            let errors = (Foreign::IcmpErrorOurs.name().into(), 6);
            ledger.arrived.foreign.extend([errors]);
            refused(&ledger).map(|note| note.text).unwrap_or_default()
        };
        assert!(text(9).contains("came back all the same"), "{}", text(9));
        assert!(text(8).contains("not delivered"), "{}", text(8));
        assert!(refused(&Ledger::default()).is_none());
    }

    #[test]
    fn no_rate_is_higher_than_asked_however_short_the_run() {
        let rate = |seconds, packets, asked| packets as f64 / rated_s(seconds, packets, asked);
        assert!((rate(1e-6, 1, Some(1e4)) - 1e4).abs() < 1e-6);
        assert!((rate(1e-4, 2, Some(1e4)) - 1e4).abs() < 1e-6);
        assert!((rate(1.0, 1_000_000, Some(1e6)) - 1e6).abs() < 1e-6);
        assert!((rate(1e-6, 32, None) - 32_000.0).abs() < 1e-6);
        assert!((rate(2.0, 64, None) - 32.0).abs() < 1e-6);
    }

    #[test]
    fn rates_in_bits_are_of_what_was_sent() {
        // Two packets of 64 and 128 bytes with FCS, in a tenth of a second.
        let [layer_1, layer_2] = bit_rates(2, 60 + 124, 0.1);
        assert!((layer_1 - (84.0 + 148.0) * 80.0).abs() < 1e-6);
        assert!((layer_2 - (64.0 + 128.0) * 80.0).abs() < 1e-6);
    }
}
