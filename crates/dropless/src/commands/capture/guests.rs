//! Consumers in other processes: how they stand, and what they came to.

use std::time::{Duration, Instant};

use capture::ring::Ring;
use capture::ring::share::{Door, Guest, SeatState};
use measure::{ConsumerSummary, Note};
use report::published::ConsumerLevel;

/// Guests that take nothing for so long after the end get nothing more.
const QUIET: Duration = Duration::from_secs(3);
/// Nor do those that take a little now and then.
const LONGEST: Duration = Duration::from_secs(60);

/// How a guest stands, when so many segments have been begun.
pub fn level(guest: &Guest, begun: u64) -> ConsumerLevel {
    let (taken, lost) = guest.seat().counts;
    let behind = begun.saturating_sub(guest.seat().released);
    ConsumerLevel {
        name: name(guest),
        lossless: guest.is_lossless,
        taken,
        lost,
        behind,
        // It may be more now than at the last look.
        behind_max: guest.behind_max.max(behind),
    }
}

/// The producer has ended after so many packets: guests take what is left, as long as they go on taking, for a minute.
pub fn see_out(mut door: Door, ring: &Ring, captured: u64) -> (Vec<ConsumerSummary>, Vec<Note>) {
    let ended = Instant::now();
    let mut moved = (0, ended);
    loop {
        door.look(ring);
        let guests = || door.guests().iter().filter(|guest| guest.seat().is_taken);
        let mut waits = guests().filter(|guest| !guest.is_gone);
        let waits = waits.any(|guest| charged(&guest.seat()) < captured);
        let taken = guests().map(|guest| guest.seat().counts.0);
        let taken = taken.fold(0, u64::saturating_add);
        if taken > moved.0 {
            moved = (taken, Instant::now());
        }
        if !waits || moved.1.elapsed() > QUIET || ended.elapsed() > LONGEST {
            let all = guests().map(|guest| of_guest(guest, ring, captured));
            let (summaries, notes): (Vec<_>, Vec<_>) = all.unzip();
            return (summaries, notes.into_iter().flatten().collect());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Packets of the ring up to the last one that it says it took or lost: its page is its own, and may say any number.
fn charged(seat: &SeatState) -> u64 {
    let (taken, lost) = seat.counts;
    seat.first.saturating_add(taken).saturating_add(lost)
}

fn name(guest: &Guest) -> String {
    format!("{} ({})", guest.name, guest.process)
}

/// Whether what it says of itself can be, after so many packets in so many segments.
fn is_plausible(seat: &SeatState, captured: u64, begun: u64) -> bool {
    charged(seat) <= captured && seat.released <= begun
}

/// What a guest came to, and what is to be told of it. What the ring kept for one that is still there, and did not take it,
/// is lost; so is what was overwritten (all before packet `oldest`) before one that is still there noticed.
fn of_guest(guest: &Guest, ring: &Ring, captured: u64) -> (ConsumerSummary, Option<Note>) {
    let seat = guest.seat();
    let offered = captured.saturating_sub(seat.first);
    let mut summary = ConsumerSummary {
        name: name(guest),
        lossless: guest.is_lossless,
        offered,
        ..ConsumerSummary::default()
    };
    let (name, (taken, lost)) = (&summary.name, seat.counts);
    if !is_plausible(&seat, captured, ring.begun()) {
        let text = format!(
            "{name} says that it took {taken} packets, lost {lost} and released {} segments, of {offered} packets that it was offered in {} segments: that cannot be, and is not believed; the fault is in that program",
            seat.released,
            ring.begun()
        );
        summary.left = offered;
        summary.implausible = true;
        return (summary, Some(Note::new("consumer_implausible", text)));
    }
    let rest = captured - charged(&seat);
    let cut = match (guest.is_gone, guest.is_lossless) {
        (true, _) => 0,
        (false, true) => rest,
        (false, false) => ring.oldest().saturating_sub(charged(&seat)).min(rest),
    };
    let left = rest - cut;
    let note = match (guest.is_gone, guest.is_lossless) {
        (true, _) if left > 0 => {
            let text =
                format!("{name} left before the end: {left} packets that it had not taken are no loss");
            Some(Note::new("consumer_left", text))
        }
        (false, true) if cut > 0 => {
            let text = format!(
                "{name} was still there after the end, and took no more: {cut} packets are lost to it"
            );
            Some(Note::new("consumer_cut", text))
        }
        (false, false) if cut > 0 => {
            let text = format!(
                "{name} stood still: {cut} packets were overwritten before it took them, and {left} are there for it still"
            );
            Some(Note::new("consumer_overtaken", text))
        }
        _ => None,
    };
    (summary.taken, summary.lost, summary.left) = (taken, lost + cut, left);
    summary.behind_max = guest.behind_max;
    (summary, note)
}
