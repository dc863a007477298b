//! The ledger, the verdict and the summary of a capture.

use std::collections::BTreeMap;

use capture::pcapng::FILTER_MAX;
use measure::place::{
    FILTERED, HELD, RING_FULL, RX_ERROR, RX_MISSED, RX_NO_BUFFER, SAMPLED_OUT, TAP_BUDGET, TAP_FULL, UNWANTED,
};
use measure::verdict::{Evidence, Role};
use measure::{
    Balance, CaptureSummary, ConsumerSummary, Imbalance, Note, Place, PortSummary, Verdict, WorkerSummary,
    expect,
};
use report::number::{count, counted};
use report::published::State;

use super::active::{ActiveCapture, Generated, Total};
use super::attach::Link;
use crate::run;
use crate::run::close::Ending;

pub fn summarise(mut job: ActiveCapture, mut ending: Ending<'_>) -> CaptureSummary {
    let (dir, expectations) = (ending.dir, job.plan.expect.clone());
    let total = job.total();
    let held = job.totals.get().map_or(0, |totals| totals.held);
    let seconds = job.course.elapsed.as_secs_f64().max(1e-9);
    let tapped = job.link.as_ref().map(|link| link.counts(total.received));
    let ledger = ledger(&ending, tapped, total, held);
    let last = statistics(&ending, &job);
    let problem = job.link.as_ref().and_then(Link::problem);
    ending.died = ending.died.take().or(problem);
    let (mut consumers, mut files) = (Vec::new(), None);
    for consumer in std::mem::take(&mut job.consumers) {
        match consumer.finish(total.captured, last.clone()) {
            Ok(left) => {
                consumers.push(left.summary);
                files = files.or(left.files);
                ending.short_files.extend(left.short);
                ending.notes.extend(left.notes);
            }
            Err(error) => ending.died = ending.died.take().or(Some(error.to_string())),
        }
    }
    if let Some(guests) = job.guests.take() {
        let (guests, notes) = guests.see_out(&job.ring, total.captured);
        consumers.extend(guests);
        ending.notes.extend(grouped(notes));
    }
    let mut imbalances: Vec<Imbalance> = Imbalance::of(&ledger).into_iter().collect();
    imbalances.extend(consumers.iter().filter_map(unbalanced));
    imbalances.extend(job.generated().and_then(uneven));
    let verdict = Verdict::of(&Evidence {
        imbalances,
        received: total.received,
        link_losses: ending.link_losses.clone(),
        ports: job.link.as_ref().map_or(ending.ports.len(), |link| link.ports),
        unended_taps: job.link.as_ref().and_then(Link::unended),
        ..ending.evidence(Role::Capture)
    });
    ending.notes.extend(full_core(&ending.workers, missed(&ending)));
    ending.notes.extend(cut(&job));
    ending.notes.extend(job.wall.note());
    ending.notes.extend(job.plan.filter.as_deref().and_then(not_told));
    let mut summary = CaptureSummary {
        run: dir.path().display().to_string(),
        verdict: verdict.validity,
        reasons: verdict.notes(),
        filter: job.plan.filter.clone(),
        sampled_one_in: job.plan.sample,
        stamped_by: stamped_by(&ending, job.stamped_by),
        generated: job.generated().map(|generated| generated.sent),
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
    summary.expectations = expect::evaluate(&expectations, &summary);
    summary
}

/// What came to the ports, or went by in the run that was looked into (`tapped`: so much, of which so much was lost for want
/// of time and of room), and where it went.
fn ledger(ending: &Ending<'_>, tapped: Option<(u64, [u64; 2])>, total: Total, held: u64) -> Balance {
    let sum = |of: fn(&PortSummary) -> u64| ending.ports.iter().map(|port| of(&port.summary)).sum::<u64>();
    let (missed, no_buffer) = (sum(|port| port.rx_missed), sum(|port| port.rx_nombuf));
    let errors = sum(|port| port.rx_errors);
    let came = total.received + missed + no_buffer + errors;
    let (seen, [no_time, no_room]) = tapped.unwrap_or((came, [0; 2]));
    let counted = [
        (Place::named(TAP_BUDGET), no_time),
        (Place::named(TAP_FULL), no_room),
        (Place::named(FILTERED), total.filtered),
        (Place::named(SAMPLED_OUT), total.sampled_out),
        (Place::named(RING_FULL), total.ring_full),
        (Place::named(UNWANTED), total.unwanted),
        (Place::named(HELD), held),
        (Place::named(RX_MISSED), missed),
        (Place::named(RX_NO_BUFFER), no_buffer),
        (Place::named(RX_ERROR), errors),
    ];
    Balance::of(seen, total.captured, counted)
}

/// What ends a file: what each port counted, and what it says at the end that it missed.
fn statistics(ending: &Ending<'_>, job: &ActiveCapture) -> Vec<u8> {
    job.counted.blocks(job.times_ns(), |index| {
        match (&job.link, ending.ports.get(index)) {
            (Some(link), _) => link.lost(|tap| job.sides[tap].place.port == index),
            (None, port) => port.map_or(0, |port| port.summary.rx_missed + port.summary.rx_nombuf),
        }
    })
}

/// A worker that moves packets in so many of its rounds hardly ever waits for one.
const FULL_SHARE: f64 = 0.9;

/// What the ports missed.
fn missed(ending: &Ending<'_>) -> u64 {
    ending.ports.iter().map(|port| port.summary.rx_missed).sum()
}

/// The one worker did all it could, and that was too little.
fn full_core(workers: &[WorkerSummary], missed: u64) -> Option<Note> {
    let [only] = workers else { return None };
    (missed > 0 && only.busy_share > FULL_SHARE).then(|| {
        let text = format!(
            "core {0} moved packets in {1:.0} % of its rounds, and the ports missed {2}: more cores may help, as --cores {0},N: the first merges, the others receive",
            only.core,
            only.busy_share * 100.0,
            count(missed)
        );
        Note::new("core_full", text)
    })
}

/// Packets that lie in the file as if they had been whole.
fn cut(job: &ActiveCapture) -> Option<Note> {
    let cut = job.sides.iter().map(|side| side.counters.written.cut.get()).sum();
    (cut > 0).then(|| {
        let text = format!(
            "{} packets were longer than the ring of their port, which cut them without a word: switch segmentation offload off at the sender (ethtool -K IF tso off gso off)",
            count(cut)
        );
        Note::new("packets_cut", text)
    })
}

/// A filter that no file can tell.
fn not_told(filter: &str) -> Option<Note> {
    (filter.len() > FILTER_MAX).then(|| {
        let text = format!(
            "the filter has {} bytes, and files can tell of {} at most: they say nothing of it",
            count(filter.len() as u64),
            count(FILTER_MAX as u64)
        );
        Note::new("filter_not_told", text)
    })
}

/// All that a generator sent in this process has come.
fn uneven(Generated { sent, received }: Generated) -> Option<Imbalance> {
    (sent != received).then_some(Imbalance::Accepted {
        accepted: sent,
        received,
        lost: 0,
        unexplained: 0,
    })
}

/// Notes of one kind that are told one by one.
const ALIKE_MAX: usize = 2;

/// Of many notes of a kind the first ones, and how many more there are.
fn grouped(notes: Vec<Note>) -> Vec<Note> {
    let mut told: Vec<Note> = Vec::new();
    let mut more: BTreeMap<_, u64> = BTreeMap::new();
    for note in notes {
        let alike = told.iter().filter(|other| other.code == note.code).count();
        if alike < ALIKE_MAX {
            told.push(note);
        } else {
            *more.entry(note.code).or_default() += 1;
        }
    }
    told.extend(more.into_iter().map(|(code, count)| {
        let text = format!("so it is with {}: see Consumers", counted(count, "more consumer"));
        Note { code, text }
    }));
    told
}

/// The clock of each port's stamps.
fn stamped_by(ending: &Ending<'_>, clock: &str) -> BTreeMap<String, String> {
    let ports = ending.ports.iter();
    ports
        .map(|port| (port.summary.uri.clone(), clock.to_owned()))
        .collect()
}

/// What a consumer was offered it took, lost, or left.
fn unbalanced(consumer: &ConsumerSummary) -> Option<Imbalance> {
    // What one of another process says may be any number.
    let gone = consumer.lost.saturating_add(consumer.left);
    (consumer.taken.saturating_add(gone) != consumer.offered).then_some(Imbalance::Accepted {
        accepted: consumer.offered,
        received: consumer.taken,
        lost: gone,
        unexplained: 0,
    })
}

impl run::Summary for CaptureSummary {
    fn total(&self, state: &mut State) {
        state.total.received = self.received;
        state.total.captured = self.captured;
        state.total.lost = self.lost_before_ring();
        state.take_places(&self.ledger);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_cores_are_advised_where_one_was_full_and_packets_were_missed() {
        let worker = |core: u32, busy_share: f64| WorkerSummary {
            core,
            busy_share,
            ..WorkerSummary::default()
        };
        let note = full_core(&[worker(3, 0.97)], 12).expect("a note");
        assert!(
            note.code == "core_full" && note.text.contains("--cores 3,N") && note.text.contains("97 %"),
            "{note:?}"
        );
        assert_eq!(full_core(&[worker(3, 0.97)], 0), None, "nothing was missed");
        assert_eq!(full_core(&[worker(3, 0.5)], 12), None, "it had time");
        assert_eq!(full_core(&[worker(3, 0.97), worker(4, 0.97)], 12), None);
    }

    #[test]
    fn many_notes_of_a_kind_are_one() {
        let left = |number: u64| Note::new("consumer_left", format!("reader {number} left"));
        let cut = Note::new("consumer_cut", "reader 9 was still there");
        let notes = grouped((0..7).map(left).chain([cut.clone()]).collect());
        let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        let rest = "so it is with 5 more consumers: see Consumers";
        assert_eq!(texts, ["reader 0 left", "reader 1 left", &cut.text, rest]);
        assert_eq!(notes[3].code, "consumer_left");
        assert_eq!(grouped(vec![left(0), left(1)]).len(), 2);
    }
}
