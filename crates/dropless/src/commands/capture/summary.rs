//! The ledger, the verdict and the summary of a capture.

use capture::pcapng::Statistics;
use measure::place::{RING_FULL, TAP_BUDGET, TAP_FULL, UNWANTED};
use measure::verdict::{Evidence, Role};
use measure::{Balance, CaptureSummary, ConsumerSummary, Imbalance, Place, PortSummary, Verdict};
use report::published::{Ended, State};
use report::rundir::file;

use super::active::{ActiveCapture, Total};
use super::attach::Link;
use crate::run;
use crate::run::close::Ending;
use crate::status::end_workers;

pub fn summarise(mut job: ActiveCapture, mut ending: Ending<'_>) -> CaptureSummary {
    let dir = ending.dir;
    let total = job.total();
    let held = job.totals.get().map_or(0, |totals| totals.held);
    let seconds = job.course.elapsed.as_secs_f64().max(1e-9);
    let tapped = job.link.as_ref().map(|link| link.counts(total.received));
    let ledger = match &tapped {
        Some((seen, lost, _)) => tap_ledger(*seen, *lost, total, held),
        None => ledger(&ending, total, held),
    };
    ending.notes.extend(tapped.and_then(|(_, _, note)| note));
    let problem = job.link.as_ref().and_then(Link::problem);
    ending.died = ending.died.take().or(problem);
    let last = match &job.link {
        Some(link) => tap_statistics(&job, link),
        None => statistics(&ending, &job),
    };
    let (mut consumers, mut files) = (Vec::new(), None);
    for consumer in std::mem::take(&mut job.consumers) {
        match consumer.finish(total.captured, last.clone()) {
            Ok(left) => {
                consumers.push(left.summary);
                files = files.or(left.files);
                ending.notes.extend(left.notes);
            }
            Err(error) => ending.died = ending.died.take().or(Some(error.to_string())),
        }
    }
    consumers.extend(job.see_out(total.captured));
    let mut imbalances: Vec<Imbalance> = Imbalance::of(&ledger).into_iter().collect();
    imbalances.extend(consumers.iter().filter_map(unbalanced));
    let verdict = Verdict::of(&Evidence {
        imbalances,
        received: total.received,
        link_losses: ending.link_losses.clone(),
        ports: job.link.as_ref().map_or(ending.ports.len(), |link| link.ports),
        ..ending.evidence(Role::Capture)
    });
    ending.notes.extend(dir.note());
    let mut summary = CaptureSummary {
        run: dir.path().display().to_string(),
        verdict: verdict.validity,
        reasons: verdict.notes(),
        received: total.received,
        received_bytes: total.bytes,
        captured: total.captured,
        late: job.merged.late.get(),
        consumers,
        files,
        rate_rx_pps: total.received as f64 / seconds,
        duration_s: seconds,
        ports: ending.port_summaries(),
        queues: job.queues(),
        workers: ending.workers,
        pool: ending.pools.summary(),
        clock: ending.clock_summary,
        explanation: ending.explanation,
        notes: ending.notes,
        ..CaptureSummary::default()
    };
    summary.ledger = ledger;
    let _ = dir.write_json(file::SUMMARY, &summary);
    summary
}

/// What came to the ports, and where it went.
fn ledger(ending: &Ending<'_>, total: Total, held: u64) -> Balance {
    let sum = |of: fn(&PortSummary) -> u64| ending.ports.iter().map(|port| of(&port.summary)).sum::<u64>();
    let (missed, no_buffer) = (sum(|port| port.rx_missed), sum(|port| port.rx_nombuf));
    let counted = [
        (Place::named(RING_FULL), total.ring_full),
        (Place::named(UNWANTED), total.unwanted),
        (Place::named("held"), held),
        (Place::named("rx_missed"), missed),
        (Place::named("rx_nombuf"), no_buffer),
    ];
    Balance::of(total.received + missed + no_buffer, total.captured, counted)
}

/// What went by in the run that was looked into, and where it went.
fn tap_ledger(seen: u64, [no_time, no_room]: [u64; 2], total: Total, held: u64) -> Balance {
    let counted = [
        (Place::named(TAP_BUDGET), no_time),
        (Place::named(TAP_FULL), no_room),
        (Place::named(RING_FULL), total.ring_full),
        (Place::named(UNWANTED), total.unwanted),
        (Place::named("held"), held),
    ];
    Balance::of(seen, total.captured, counted)
}

/// What ends a file: what each port counted.
fn statistics(ending: &Ending<'_>, job: &ActiveCapture) -> Vec<u8> {
    let mut blocks = Vec::new();
    let (from_ns, to_ns) = job.times_ns();
    for (index, port) in ending.ports.iter().enumerate() {
        let sides = || job.sides.iter().filter(|side| side.place.port == index);
        let received: u64 = sides().map(|side| side.counters.frames.get()).sum();
        let dropped: u64 = sides().map(|side| side.counters.refused.get()).sum();
        let missed = port.summary.rx_missed + port.summary.rx_nombuf;
        let statistics = Statistics {
            from_ns,
            to_ns,
            received: received + missed,
            interface_dropped: missed,
            accepted: received,
            dropped,
            delivered: received - dropped,
        };
        blocks.extend(statistics.block(index as u32));
    }
    blocks
}

/// The same of a run that was looked into: what each of its ports moved, and what of that was not copied.
fn tap_statistics(job: &ActiveCapture, link: &Link) -> Vec<u8> {
    let (from_ns, to_ns) = job.times_ns();
    let of_port = |port: usize| {
        let taps = job.sides.iter().zip(&link.taps);
        let mut all = Statistics {
            from_ns,
            to_ns,
            ..Statistics::default()
        };
        for (side, tap) in taps.filter(|(side, _)| side.place.port == port) {
            let (taken, refused) = (side.counters.frames.get(), side.counters.refused.get());
            let missed = tap.no_time.get() + tap.no_room.get();
            all.received += taken + missed;
            all.interface_dropped += missed;
            all.accepted += taken;
            all.dropped += refused;
            all.delivered += taken - refused;
        }
        all.block(port as u32)
    };
    (0..link.ports).flat_map(of_port).collect()
}

/// What a consumer was offered it took, lost, or left.
fn unbalanced(consumer: &ConsumerSummary) -> Option<Imbalance> {
    let charged = consumer.taken + consumer.lost + consumer.left;
    (charged != consumer.offered).then_some(Imbalance::Accepted {
        accepted: consumer.offered,
        received: consumer.taken,
        lost: consumer.lost + consumer.left,
        unexplained: 0,
    })
}

impl run::Summary for CaptureSummary {
    fn ended(&self) -> Ended {
        Ended {
            verdict: self.verdict.name().into(),
            exit: self.exit_code(),
            reasons: self.reasons.clone(),
        }
    }

    fn settle(&self, state: &mut State) {
        state.elapsed_s = self.duration_s;
        state.total.received = self.received;
        state.total.lost = self.lost();
        state.ports.clone_from(&self.ports);
        state.queues.clone_from(&self.queues);
        end_workers(&mut state.workers, &self.workers);
    }
}
