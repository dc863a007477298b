//! The phases of a send run: sending, draining, and when each is over.

use std::sync::atomic::Ordering;

use measure::Nanos;

use super::wiring::Wiring;
use crate::plan::SendPlan;
use crate::run::clock::now;
use crate::run::control::Look;
use crate::run::waiting::Waiting;

/// Copies may trail the last first copy by this much.
const GRACE_NS: u64 = 50_000_000;
/// With packets still coming in, the drain ends after this many drain times all the same.
const DRAINS_MAX: u64 = 5;
/// Workers that are kept from their cores are waited for, but no longer than this, ns.
const AWAY_MAX_NS: u64 = 10_000_000_000;

/// Whether nothing more is to be sent.
pub fn sending_is_over(plan: &SendPlan, wiring: &Wiring, look: &Look<'_, '_>) -> bool {
    let end = wiring.times.end;
    // A sender that cannot get rid of its last burst is not waited for longer than a second.
    let overdue = end.0 != u64::MAX && now().since(end) > wiring.times.clock.ticks_from_ns(1_000_000_000);
    look.is_interrupted || wiring.is_done() || overdue || is_given_up(plan, wiring, look) || look.worker_died
}

/// A run without an end in time does not wait longer for a lost link than it would have at the start.
fn is_given_up(plan: &SendPlan, wiring: &Wiring, look: &Look<'_, '_>) -> bool {
    wiring.times.end.0 == u64::MAX && look.has_lost_link_for(plan.machine.wait_ns)
}

/// Ends the sending now, and says when it ended: a run by time ends with its time; one by count with its last packet.
pub fn end_sending(plan: &SendPlan, wiring: &Wiring) -> Nanos {
    let times = &wiring.times;
    let asked_to_stop = now().min(times.end);
    wiring.cut.store(asked_to_stop.0, Ordering::Release);
    let end = if plan.count.is_some() && wiring.is_done() {
        wiring.last_sent().min(asked_to_stop)
    } else {
        asked_to_stop
    };
    times.clock.ns(end.max(times.start))
}

/// The wait until everything is back or known to be lost, or nothing has come for the drain time.
pub struct Drain {
    /// The time in which all workers polled.
    begun: Waiting,
    /// All of it.
    lasts: Waiting,
    quiet: Waiting,
    arrived: u64,
    rounds: Vec<u64>,
    away_ns: u64,
}

impl Drain {
    pub fn begin(wiring: &Wiring, look: &Look<'_, '_>) -> Self {
        Self {
            begun: Waiting::begin(),
            lasts: Waiting::begin(),
            quiet: Waiting::begin(),
            arrived: wiring.received(|counters| counters.frames.get()),
            rounds: look.rounds.clone(),
            away_ns: 0,
        }
    }

    /// How long workers had been away when they were waited for no longer, ns; 0 where that was not so.
    pub const fn away_ns(&self) -> u64 {
        self.away_ns
    }

    /// One look more: whether it is over.
    pub fn is_over(&mut self, plan: &SendPlan, wiring: &Wiring, look: &Look<'_, '_>) -> bool {
        let arrived = wiring.received(|counters| counters.frames.get());
        if arrived != self.arrived {
            (self.arrived, self.quiet) = (arrived, Waiting::begin());
        }
        // What lies in a ring is not quiet for as long as its worker is away.
        let before = std::mem::replace(&mut self.rounds, look.rounds.clone());
        let mut rounds = self.rounds.iter().zip(&before);
        let all_polled = rounds.all(|(now, before)| *now >= before + 2);
        let waited = self.quiet.look(all_polled).as_nanos() as u64;
        let begun = self.begun.look(all_polled).as_nanos() as u64;
        let away_ns = (self.lasts.look(true).as_nanos() as u64).saturating_sub(begun);
        if away_ns >= AWAY_MAX_NS {
            self.away_ns = away_ns;
        }
        let back = wiring.received(|counters| counters.received.get());
        // Where two may have heard one packet, what came says nothing of what is still to come.
        let damaged = wiring.received(|counters| counters.corrupt.get());
        let everything = !wiring.hear_each_other
            && back + known_lost(wiring) >= wiring.sent(|counters| counters.accepted.get())
            && damaged >= known_damaged(wiring);
        // Where ports share a link, what one hears of another one is no quiet of its own.
        let quiet = plan.quiet_ns.filter(|_| !wiring.hear_each_other);
        waited >= quiet.unwrap_or(plan.drain_ns).min(plan.drain_ns)
            || (everything && waited >= GRACE_NS.min(plan.drain_ns))
            || begun >= plan.drain_ns * DRAINS_MAX
            || self.away_ns > 0
            || look.worker_died
    }
}

/// Probes of which it is sure that they will not come back whole: what else was spoiled may be a stranger's. Those that our
/// own injector damages come as well, as what they are.
fn known_lost(wiring: &Wiring) -> u64 {
    let dropped: u64 = wiring.reflect.iter().map(|side| side.faults.drop.get()).sum();
    dropped + known_damaged(wiring)
}

fn known_damaged(wiring: &Wiring) -> u64 {
    wiring.reflect.iter().map(|side| side.faults.corrupt.get()).sum()
}
