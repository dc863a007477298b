//! The ledger, the verdict and the summary of a replay.

use measure::place::{CUT_OFF, HELD, TX_DROPPED, TX_ERROR, TX_HELD};
use measure::units::{LAYER1_OVERHEAD_BYTES, RateSpec, format_duration};
use measure::verdict::{Evidence, Role};
use measure::{
    Balance, Clock, Hindrance, Histogram, Imbalance, Note, Percentiles, Place, ReplayRate, ReplaySummary,
    Stall, StarvedSummary, Ticks, TimesSummary, Verdict, expect,
};
use report::number::{count, counted};
use report::published::State;

use super::active::ActiveReplay;
use super::pace::{BEHIND_NS, behind, silence, silent};
use crate::run;
use crate::run::close::{Ending, PortEnd, thrown_away};
use crate::run::workers::STALL_NS;

pub fn summarise(job: &ActiveReplay, mut ending: Ending<'_>) -> ReplaySummary {
    let (dir, counters) = (ending.dir, &job.counters);
    let ns = |ticks: u64| ending.clock.ns_from_ticks(ticks);
    let taken = counters.sent.get();
    let first = Ticks(counters.first_ticks.get());
    let taken_ns = ns(Ticks(counters.last_ticks.get()).since(first));
    let took_ns = job.departure.lasted_ns(taken_ns, first, &ending.clock);
    let held_ns = job.departure.held_ns(taken_ns, first, &ending.clock);
    let planned_ns = job.is_paced.then(|| ns(counters.due_ticks.get()));
    let result = job.result();
    // What came late was sent late by its input, whatever the worker could do.
    let fed_late_ns = ns(counters.starved_ticks.get());
    let (starved, silence) = starved(job, fed_late_ns, silent(ns(result.starved), planned_ns, taken));
    let (late, gap_error) = (
        counters.late_ticks.snapshot(),
        counters.gap_error_ticks.snapshot(),
    );
    if job.is_paced {
        let _ = dir.write_kept_times(&gap_error, &late, ending.clock.tick_ns());
    }
    let ledger = ledger(job, &ending);
    // From the first packet on there is one gap less than there are packets.
    let per_second =
        |packets: u64, ns: u64| (ns > 0).then(|| packets.saturating_sub(1) as f64 / (ns as f64 / 1e9));
    let held = result.held + job.left[0];
    let is_slow = planned_ns.is_some_and(|planned| taken_ns + held_ns > planned + BEHIND_NS + fed_late_ns);
    // How far behind it is was shown by what it took last, unless it took nothing more.
    let overdue_ns = result.overdue().map_or(0, ns);
    let stuck_ns = result
        .ended_at
        .filter(|_| overdue_ns > BEHIND_NS + fed_late_ns)
        .map(ns);
    let asked_pps = match (job.plan.rate(), stuck_ns) {
        (Ok(ReplayRate::Rate(RateSpec::Pps(pps))), Some(_)) => Some(pps),
        (_, Some(lasted_ns)) => per_second(taken + held, lasted_ns),
        (_, None) => planned_ns
            .filter(|_| is_slow)
            .and_then(|planned| per_second(taken, planned)),
    };
    let sending_ns = stuck_ns.map_or(took_ns, |stuck| stuck.max(took_ns));
    let verdict = Verdict::of(&Evidence {
        imbalances: Imbalance::of(&ledger).into_iter().collect(),
        sent: taken,
        intended: taken + if stuck_ns.is_some() { held } else { 0 },
        asked_pps,
        sending_ns,
        senders: 1,
        hindrance: hindrance(job, &ending, (overdue_ns, held_ns)),
        link_losses: ending.link_losses.clone(),
        // Who ended a pipe of programs has ended the one that wrote, too.
        broken_input: job
            .came
            .error
            .clone()
            .filter(|_| !(ending.is_interrupted && job.plan.is_stdin())),
        // Where nothing is due nothing can be late.
        starved: if job.is_paced {
            (starved.packets, starved.ns)
        } else {
            (0, 0)
        },
        ..ending.evidence(Role::Replay)
    });
    ending.notes.extend(notes(job, &ending, (&ledger, &starved)));
    let as_taken = job.departure.untold().filter(|_| !job.is_paced);
    ending.notes.extend(silence.into_iter().chain(as_taken));
    let planned = planned_ns.filter(|_| verdict.reasons.is_empty());
    ending
        .notes
        .extend(planned.and_then(|planned_ns| behind(taken, planned_ns, took_ns)));
    let gone = ledger.left.saturating_sub(job.departure.waiting);
    let rate_tx_pps = per_second(gone, took_ns).unwrap_or(0.0);
    let mean_bytes = counters.wire_bytes.get() as f64 / taken.max(1) as f64;
    let mut summary = ReplaySummary {
        run: dir.path().display().to_string(),
        verdict: verdict.validity,
        reasons: verdict.notes(),
        file: job.plan.file.display().to_string(),
        rate: job.plan.rate.clone(),
        loops: job.read.loops.get(),
        read: job.read.packets.get(),
        sent: ledger.left,
        sent_bytes: counters.bytes.get(),
        snapped: job.read.snapped.get(),
        times: job.came.times,
        starved,
        gap_error_ns: in_ns(&gap_error, &ending.clock),
        late_ns: in_ns(&late, &ending.clock),
        queue_full: counters.queue_full.get(),
        planned_s: planned_ns.map(|ns| ns as f64 / 1e9),
        duration_s: took_ns as f64 / 1e9,
        rate_tx_pps,
        rate_tx_bps_l1: rate_tx_pps * (mean_bytes + LAYER1_OVERHEAD_BYTES) * 8.0,
        ports: ending.port_summaries(),
        queues: job.queues(),
        workers: ending.workers,
        pool: ending.pools.summary(),
        clock: ending.clock_summary,
        explanation: ending.explanation,
        notes: ending.notes,
        ..ReplaySummary::default()
    };
    summary.ledger = ledger;
    summary.expectations = expect::evaluate(&job.plan.expect, &summary);
    summary
}

/// How the input kept the worker waiting, that it was silent at the end among it; or only a note of that, where nobody knows
/// whether a packet was due that did not come: by the times of a stream.
fn starved(job: &ActiveReplay, fed_late_ns: u64, silent_ns: Option<u64>) -> (StarvedSummary, Option<Note>) {
    let is_timed = matches!(job.plan.rate(), Ok(ReplayRate::Times(_)));
    let (unread_ns, note) = if is_timed && job.is_stream {
        (None, silent_ns.map(silence))
    } else {
        (silent_ns, None)
    };
    let starved = StarvedSummary {
        times: job.counters.starved.get() + u64::from(unread_ns.is_some()),
        ns: fed_late_ns + unread_ns.unwrap_or(0),
        packets: job.counters.late_by_file.get(),
    };
    (starved, note)
}

/// What kept the packets from leaving, the oldest of which was overdue by so much at the end, and the last of which waited for
/// so long below the port: what was held up before was caught up on.
fn hindrance(job: &ActiveReplay, ending: &Ending<'_>, (overdue_ns, below_ns): (u64, u64)) -> Hindrance {
    let ended_ns = job.ended.as_nanos() as u64;
    let from_ns = if overdue_ns > 0 {
        ended_ns.saturating_sub(overdue_ns)
    } else {
        0
    };
    let stalled = |stall: &Stall| stall.within(ended_ns) - stall.within(from_ns);
    let full_ns = if ending.ports[job.place.port].is_emptied_by_others {
        ending.clock.ns_from_ticks(job.counters.full_ticks.get())
    } else {
        0
    };
    let own = ending
        .kept_stalls
        .iter()
        .filter(|stall| stall.core as usize == job.place.core && stall.gap_ns > STALL_NS);
    let stalled_ns: u64 = own.map(stalled).sum();
    Hindrance {
        // In a stall between two looks at a full queue that was full for sure.
        stalled_ns: stalled_ns.saturating_sub(full_ns),
        full_ns: full_ns + below_ns,
    }
}

/// Where every packet went that was read. What left is what the port counts itself, which may be less than its driver took.
fn ledger(job: &ActiveReplay, ending: &Ending<'_>) -> Balance {
    let taken = job.counters.sent.get();
    let left = if ending.ports.iter().any(PortEnd::forgets) {
        taken
    } else {
        let sent = ending
            .ports
            .iter()
            .map(|port| port.summary.tx_packets)
            .sum::<u64>();
        sent.saturating_sub(thrown_away(&ending.ports))
    };
    let (result, [due, not_due]) = (job.result(), job.left);
    // In the hands of the reader, on the way from it, and in those of the worker.
    let cut_off = job.read.cut_off.get() + not_due + result.not_due;
    let mut places = vec![
        (Place::named(HELD), result.held + due),
        (Place::named(CUT_OFF), cut_off),
        (Place::named(TX_HELD), ending.pools.held()),
    ];
    places.extend(job.read.places().map(|(name, count)| (Place::named(name), count)));
    for port in &ending.ports {
        places.push((Place::named(TX_ERROR), port.summary.tx_errors));
    }
    places.push((Place::named(TX_DROPPED), thrown_away(&ending.ports)));
    Balance::of(job.read.packets.get(), left, places)
}

/// Percentiles of ticks in nanoseconds.
fn in_ns(ticks: &Histogram, clock: &Clock) -> Percentiles {
    let found = Percentiles::from(ticks);
    let ns = |value: Option<u64>| value.map(|ticks| clock.ns_from_ticks(ticks));
    Percentiles {
        min: ns(found.min),
        p50: ns(found.p50),
        p90: ns(found.p90),
        p99: ns(found.p99),
        p999: ns(found.p999),
        max: ns(found.max),
        mean: found.mean.map(|mean| mean * clock.tick_ns()),
    }
}

fn notes(
    job: &ActiveReplay,
    ending: &Ending<'_>,
    (ledger, starved): (&Balance, &StarvedSummary),
) -> Vec<Note> {
    let mut notes = Vec::new();
    if ending.is_interrupted {
        notes.push(Note::new(
            "interrupted",
            "interrupted: this is the result up to then",
        ));
    }
    let is_timed = matches!(job.plan.rate(), Ok(ReplayRate::Times(_)));
    notes.extend(of_times(&job.came.times, is_timed));
    let mut tell = |is_so: bool, code, text: String| {
        if is_so {
            notes.push(Note::new(code, text));
        }
    };
    let read = &job.read;
    tell(
        read.not_ethernet.get() > 0,
        "not_ethernet",
        format!(
            "{} of the capture had no Ethernet head, and were not sent; give them heads: tcprewrite --dlt=enet --enet-dmac=MAC --enet-smac=MAC -i FILE -o NEW (or, where they were captured on `any`, capture on one interface)",
            counted(read.not_ethernet.get(), "packet")
        ),
    );
    let snapped = job.counters.snapped.get();
    tell(
        snapped > 0 && job.plan.snapped == crate::plan::Snapped::Send,
        "snapped_sent",
        format!(
            "{} had been captured in part, and went out as short as that; --snapped skip leaves them out, --snapped pad fills them up",
            counted(snapped, "packet")
        ),
    );
    tell(
        read.too_long.get() > 0,
        "too_long",
        format!(
            "{} longer than the port carries; raise the MTU of the interface, or give --max-frame more (where a kernel joined packets before they were captured: ethtool -K INTERFACE gro off, and capture again)",
            counted(read.too_long.get(), "packet")
        ),
    );
    tell(
        starved.times > 0 && !job.is_paced,
        "file_slow",
        format!(
            "the port waited {} times for the file, {} in all: it could send faster than the file is read",
            count(starved.times),
            format_duration(starved.ns)
        ),
    );
    notes.extend(sent_more(ledger));
    notes
}

/// What the port counted and nobody handed to it.
fn sent_more(ledger: &Balance) -> Option<Note> {
    let text = "the port counts more packets than were handed to it: somebody else sends through it";
    (ledger.surplus() > 0).then(|| Note::new("port_sent_more", text))
}

/// What of the times of the capture could not be taken as it is; some of it says nothing of a replay that is not `is_timed`
/// by them.
fn of_times(times: &TimesSummary, is_timed: bool) -> Vec<Note> {
    let told = [
        (
            is_timed && times.backwards > 0,
            "times_backwards",
            format!(
                "{} of the capture had a time before that of the one before, and followed it at once",
                counted(times.backwards, "packet")
            ),
        ),
        (
            is_timed && times.untimed > 0,
            "times_missing",
            format!(
                "{} of the capture had no time, and followed the one before at once",
                counted(times.untimed, "packet")
            ),
        ),
        (
            times.cut > 0,
            "gaps_cut",
            format!(
                "{} longer than --max-gap {} cut, by {} in all",
                counted(times.cut, "gap"),
                if times.cut == 1 { "was" } else { "were" },
                format_duration(times.cut_ns)
            ),
        ),
    ];
    let told = told.into_iter().filter(|(is_so, ..)| *is_so);
    told.map(|(_, code, text)| Note::new(code, text)).collect()
}

impl run::Summary for ReplaySummary {
    fn rated_s(&self) -> f64 {
        // Of its rate there is one gap less than there are packets.
        if self.rate_tx_pps > 0.0 {
            self.sent as f64 / self.rate_tx_pps
        } else {
            self.duration_s
        }
    }

    fn total(&self, state: &mut State) {
        state.total.lost = self.lost();
        state.take_places(&self.ledger);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_others_send_through_is_told() {
        let told =
            |left| sent_more(&Balance::of(10, left, [(Place::named(CUT_OFF), 2)])).map(|note| note.code);
        assert_eq!(told(8), None);
        assert_eq!(told(9).as_deref(), Some("port_sent_more"));
    }

    #[test]
    fn times_that_could_not_be_taken_as_they_are_are_told() {
        let told = |times: TimesSummary, is_timed| -> Vec<(String, String)> {
            let notes = of_times(&times, is_timed).into_iter();
            notes.map(|note| (note.code.to_string(), note.text)).collect()
        };
        let times = TimesSummary {
            backwards: 1,
            untimed: 2,
            cut: 3,
            cut_ns: 4_000_000_000,
        };
        let all = told(times, true);
        let codes: Vec<&str> = all.iter().map(|(code, _)| code.as_str()).collect();
        assert_eq!(codes, ["times_backwards", "times_missing", "gaps_cut"]);
        for ((_, text), begins) in all.iter().zip(["1 packet of", "2 packets of", "3 gaps longer"]) {
            assert!(text.starts_with(begins), "{text}");
        }
        assert_eq!(
            told(times, false),
            all[2..],
            "at a rate of its own only the gaps are the file's"
        );
        assert!(told(TimesSummary::default(), true).is_empty());
    }
}
