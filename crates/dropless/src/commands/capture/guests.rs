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
    ConsumerLevel {
        name: name(guest),
        lossless: guest.is_lossless,
        taken,
        lost,
        behind: begun.saturating_sub(guest.seat().released),
        behind_max: guest.behind_max,
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
            let all = guests().map(|guest| of_guest(guest, captured));
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

/// What a guest came to, and what is to be told of it. What the ring kept for one that is still there, and did not take it,
/// is lost.
fn of_guest(guest: &Guest, captured: u64) -> (ConsumerSummary, Option<Note>) {
    let seat = guest.seat();
    let (taken, lost) = seat.counts;
    let offered = captured.saturating_sub(seat.first);
    let rest = captured.saturating_sub(charged(&seat));
    let is_cut = guest.is_lossless && !guest.is_gone;
    let (cut, left) = if is_cut { (rest, 0) } else { (0, rest) };
    let note = (rest > 0 && (is_cut || guest.is_gone)).then(|| {
        let name = name(guest);
        if is_cut {
            let text = format!(
                "{name} was still there after the end, and took no more: {rest} packets are lost to it"
            );
            Note::new("consumer_cut", text)
        } else {
            let text =
                format!("{name} left before the end: {rest} packets that it had not taken are no loss");
            Note::new("consumer_left", text)
        }
    });
    let summary = ConsumerSummary {
        name: name(guest),
        lossless: guest.is_lossless,
        offered,
        taken,
        lost: lost.saturating_add(cut),
        left,
        behind_max: guest.behind_max,
    };
    (summary, note)
}
