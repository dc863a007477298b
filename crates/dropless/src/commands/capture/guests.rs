//! Consumers in other processes: how they stand, and what they came to.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use capture::ring::Ring;
use capture::ring::share::{Door, Guest, SeatState};
use measure::{ConsumerSummary, Note};
use report::number::{count, counted};
use report::published::ConsumerLevel;

/// Guests that take nothing for so long after the end get nothing more.
const QUIET: Duration = Duration::from_secs(3);
/// Nor do those that take a little now and then.
const LONGEST: Duration = Duration::from_secs(60);

/// So many of those that left are told one by one: of more, the first that left are told as a sum.
const KEPT: usize = 256;

/// Whoever joins the ring of a capture.
pub struct Guests {
    door: Door,
    departed: Departed,
}

impl Guests {
    /// Who comes to `door`.
    pub fn at(door: Door) -> Self {
        Self {
            door,
            departed: Departed::default(),
        }
    }

    /// One look, when so many packets have been captured. Never waits.
    pub fn look(&mut self, ring: &Ring, captured: u64) {
        // Those that had left at the last look: what they took was counted by now.
        for guest in self.door.shed(KEPT) {
            let seat = guest.seat();
            let is_believed = is_plausible(&seat, captured, ring.begun());
            self.departed
                .add((guest.is_lossless, is_believed), &seat, guest.behind_max);
        }
        self.door.look(ring);
    }

    /// How those stand who are there, when so many segments have been begun.
    pub fn levels(&self, begun: u64) -> impl Iterator<Item = ConsumerLevel> {
        let there = self.door.guests().iter();
        let there = there.filter(|guest| guest.seat().is_taken && !guest.is_gone);
        there.map(move |guest| level(guest, begun))
    }

    /// See [`see_out`].
    pub fn see_out(self, ring: &Ring, captured: u64) -> (Vec<ConsumerSummary>, Vec<Note>) {
        let (mut summaries, mut notes) = self.departed.of(captured);
        let (others, of_others) = see_out(self.door, ring, captured);
        summaries.extend(others);
        notes.extend(of_others);
        (summaries, notes)
    }
}

/// The sums of guests that left long ago: of the lossless ones and of the others, and apart from each of those that said of
/// themselves what cannot be.
#[derive(Default)]
struct Departed(BTreeMap<(bool, bool), Sum>);

/// What several guests came to.
#[derive(Default)]
struct Sum {
    guests: u64,
    /// The numbers of the first packets that each could take, added up.
    first: u64,
    taken: u64,
    lost: u64,
    behind_max: u64,
}

impl Departed {
    /// One more; whether it was lossless, and is believed.
    fn add(&mut self, kind: (bool, bool), seat: &SeatState, behind_max: u64) {
        // It went before it had a place.
        if !seat.is_taken {
            return;
        }
        let sum = self.0.entry(kind).or_default();
        let ((taken, lost), (_, is_believed)) = (seat.counts, kind);
        sum.guests += 1;
        sum.first = sum.first.saturating_add(seat.first);
        if is_believed {
            sum.taken = sum.taken.saturating_add(taken);
            sum.lost = sum.lost.saturating_add(lost);
            sum.behind_max = sum.behind_max.max(behind_max);
        }
    }

    /// What they came to, of so many packets: of those that are not believed nothing but what they were offered.
    fn of(&self, captured: u64) -> (Vec<ConsumerSummary>, Vec<Note>) {
        let (mut summaries, mut notes) = (Vec::new(), Vec::new());
        for ((is_lossless, is_believed), sum) in &self.0 {
            let offered = sum.guests.saturating_mul(captured).saturating_sub(sum.first);
            let left = offered.saturating_sub(sum.taken).saturating_sub(sum.lost);
            let who = format!("{} that left earlier", counted(sum.guests, "consumer"));
            if !is_believed {
                let text = format!(
                    "{who} said of themselves what cannot be, and are not believed; the fault is in those programs"
                );
                notes.push(Note::new("consumer_implausible", text));
            } else if left > 0 {
                let text = format!("{who} had not taken {} packets: these are no loss", count(left));
                notes.push(Note::new("consumer_left", text));
            }
            summaries.push(ConsumerSummary {
                name: format!("{} that left earlier", count(sum.guests)),
                lossless: *is_lossless,
                offered,
                taken: sum.taken,
                lost: sum.lost,
                left,
                behind_max: sum.behind_max,
                implausible: !is_believed,
            });
        }
        (summaries, notes)
    }
}

/// How a guest stands, when so many segments have been begun.
fn level(guest: &Guest, begun: u64) -> ConsumerLevel {
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
fn see_out(mut door: Door, ring: &Ring, captured: u64) -> (Vec<ConsumerSummary>, Vec<Note>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(first: u64, counts: (u64, u64)) -> SeatState {
        SeatState {
            is_taken: true,
            counts,
            first,
            released: 0,
        }
    }

    #[test]
    fn those_that_left_long_ago_stay_in_the_account() {
        let mut departed = Departed::default();
        departed.add((false, true), &seat(10, (20, 5)), 3);
        departed.add((false, true), &seat(50, (50, 0)), 2);
        departed.add((true, true), &seat(0, (100, 0)), 1);
        departed.add((false, false), &seat(90, (1_000, 1_000)), 9);
        let absent = SeatState {
            is_taken: false,
            ..seat(0, (0, 0))
        };
        departed.add((true, true), &absent, 0);
        let (rows, notes) = departed.of(100);
        let row = |lossless, implausible| {
            let mut found = rows
                .iter()
                .filter(|row| (row.lossless, row.implausible) == (lossless, implausible));
            let row = found.next().unwrap();
            assert_eq!(row.taken + row.lost + row.left, row.offered, "{row:?}");
            (row.name.as_str(), row.offered, row.taken, row.lost, row.left)
        };
        assert_eq!(row(false, false), ("2 that left earlier", 140, 70, 5, 65));
        assert_eq!(row(true, false), ("1 that left earlier", 100, 100, 0, 0));
        assert_eq!(row(false, true), ("1 that left earlier", 10, 0, 0, 10));
        assert_eq!(rows.len(), 3);
        let codes: Vec<_> = notes.iter().map(|note| note.code.as_ref()).collect();
        assert_eq!(codes, ["consumer_implausible", "consumer_left"]);
    }
}
