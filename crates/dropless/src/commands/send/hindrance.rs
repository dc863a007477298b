//! What kept a send run from sending, and how much of that is held against its rate.

use host::Medium;
use measure::{Hindrance, Stall};

use super::active::ActiveSend;
use super::load::total_rate;
use super::summary::gaps;
use super::wiring::{SendSide, Times};
use crate::run::close::Ending;
use crate::run::workers::STALL_NS;

/// What kept the senders from sending.
pub fn hindrance(job: &ActiveSend, ending: &Ending<'_>) -> Hindrance {
    let stalls = &ending.kept_stalls;
    let queues = job.wiring.send.len().max(1) as u64;
    let rate_pps = total_rate(&job.loads).unwrap_or(f64::MAX) / queues as f64;
    // What fell due in a shorter one is sent right after.
    let caught_up_ns = (job.wiring.backlog as f64 / rate_pps * 1e9) as u64;
    let sending_ns = taken_ns(job);
    let stalled_on = |core: usize, waits: u64| -> u64 {
        let own = stalls.iter().filter(|stall| stall.core as usize == core);
        let costly = own.filter(|stall| stall.gap_ns > STALL_NS.max(caught_up_ns) && stall.next >= waits);
        costly.map(|stall| stall.within(sending_ns)).sum()
    };
    let medium = |port: usize| job.plan.machine.ports[port].kind.traits().medium;
    // A peer that finds our receive ring full may wait, and have others wait that take what we send elsewhere.
    let receivers = job.wiring.receive.iter().map(|side| side.place);
    let waited_for = receivers.filter(|at| medium(at.port) == Medium::Peer);
    let by_receiver_ns = waited_for.map(|at| stalled_on(at.core, 1)).max().unwrap_or(0);
    // An embedded ring is full while our own reflector stands still.
    let reflectors = job.wiring.reflect.iter().map(|side| side.place);
    let by_reflector_ns = reflectors.map(|at| stalled_on(at.core, 1)).max().unwrap_or(0);
    let stalled = |side: &SendSide| {
        let held_up_ns = match medium(side.place.port) {
            Medium::Peer => by_receiver_ns,
            Medium::Process => by_reflector_ns,
            _ => 0,
        };
        stalled_on(side.place.core, 0).max(held_up_ns)
    };
    let mean = |of: &dyn Fn(&SendSide) -> u64| job.wiring.send.iter().map(of).sum::<u64>() / queues;
    Hindrance {
        stalled_ns: mean(&stalled),
        full_ns: mean(&|side| full_ns(side, ending)) + job.held_ns,
    }
}

/// How long packets of a queue waited because somebody else did not take them, ns.
fn full_ns(side: &SendSide, ending: &Ending<'_>) -> u64 {
    if ending.ports[side.place.port].is_emptied_by_others {
        ending.clock.ns_from_ticks(side.counters.full_ticks.get())
    } else {
        0
    }
}

/// How long it sent, ns.
pub fn sending_ns(job: &ActiveSend) -> u64 {
    (job.seconds() * 1e9) as u64
}

/// How long drivers took packets, ns.
fn taken_ns(job: &ActiveSend) -> u64 {
    sending_ns(job).saturating_sub(job.held_ns + job.unseen_ns)
}

/// How much longer than its schedule the run was for what is no rate kept too low, ns.
pub fn excused_ns(job: &ActiveSend, ending: &Ending<'_>) -> u64 {
    let own_ns = if job.plan.count.is_some() {
        excused_of_count_ns(job, ending)
    } else {
        excused_at_end_ns(job, &ending.kept_stalls)
    };
    own_ns + job.unseen_ns
}

/// What a sender owes at the end of its time it sends right after, ns: that it went on for longer is held against it, as
/// else any sender would keep up with any rate for as long as its backlog lasts; but not what fell due in a stall at the
/// end, which is caught up on as after any other.
fn excused_at_end_ns(job: &ActiveSend, stalls: &[Stall]) -> u64 {
    let sent_ns = taken_ns(job);
    // That it waited below the port is the port's.
    let late_ns = job.late_ns.saturating_sub(job.held_ns + job.unseen_ns);
    let from_ns = sent_ns.saturating_sub(2 * late_ns);
    let at_the_end = |stall: &Stall| {
        let began_ns = stall.at_ns.saturating_sub(stall.gap_ns);
        if stall.at_ns >= from_ns && began_ns < sent_ns {
            stall.gap_ns
        } else {
            0
        }
    };
    let stalled_ns = stalled_ns(job, stalls, &at_the_end, u64::saturating_add);
    if late_ns <= stalled_ns.saturating_add(STALL_NS) {
        late_ns
    } else {
        stalled_ns
    }
}

/// A run by count begins with its first packet and ends with its last: one stall before them makes each late. That is the
/// longest gap as far as it is longer than the schedule's.
fn excused_of_count_ns(job: &ActiveSend, ending: &Ending<'_>) -> u64 {
    let Times { clock, start, .. } = job.wiring.times;
    let counters = || job.wiring.send.iter().map(|side| &side.counters);
    let first = counters().map(|counters| counters.first_ticks.get());
    let first = first.filter(|ticks| *ticks > 0).min().unwrap_or(0);
    let begun_ns = clock.ns_from_ticks(first.saturating_sub(start.0));
    let gaps = gaps(job);
    let late_ns = gaps
        .max
        .unwrap_or(0)
        .saturating_sub(gaps.asked.unwrap_or(0.0) as u64);
    let since_first = |stall: &Stall| stall.within(taken_ns(job)).saturating_sub(stall.within(begun_ns));
    let full_ns = job.wiring.send.iter().map(|side| full_ns(side, ending)).max();
    // Between two stalls it sent what was due: they are in two gaps.
    let own_ns = own_fault_ns(
        late_ns,
        stalled_ns(job, &ending.kept_stalls, &since_first, u64::max),
    );
    (begun_ns + own_ns).saturating_sub(full_ns.unwrap_or(0))
}

/// How much of a gap our own worker's stalls cover, ns: those of up to `STALL_NS` are not known.
fn own_fault_ns(late_ns: u64, stalled_ns: u64) -> u64 {
    late_ns.min(stalled_ns.saturating_add(STALL_NS))
}

/// How long a sender, or whoever it waits for, did not poll, ns: so much as `part` says of each stall, and `join` of several.
fn stalled_ns(
    job: &ActiveSend,
    stalls: &[Stall],
    part: &dyn Fn(&Stall) -> u64,
    join: fn(u64, u64) -> u64,
) -> u64 {
    let long = || stalls.iter().filter(|stall| stall.gap_ns > STALL_NS);
    let stalled_on = |core: usize| -> u64 {
        let own = long().filter(|stall| stall.core as usize == core);
        own.map(part).fold(0, join)
    };
    let waits = |side: &SendSide| job.plan.machine.ports[side.place.port].kind.traits().pushes_back;
    let senders = job.wiring.send.iter().map(|side| side.place.core);
    // What waits for a place may wait for any worker of ours.
    let others = long().map(|stall| stall.core as usize);
    let others = others.filter(|_| job.wiring.send.iter().any(waits));
    senders.chain(others).map(stalled_on).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_our_own_fault_as_far_as_a_stall_of_ours_covers_it() {
        let (stalled, usual) = (30_000_000, 200_000);
        assert_eq!(own_fault_ns(2_000_000_000, 0), STALL_NS);
        assert_eq!(own_fault_ns(2_000_000_000, stalled), stalled + STALL_NS);
        assert_eq!(own_fault_ns(stalled, stalled), stalled);
        assert_eq!(own_fault_ns(usual, 0), usual);
    }
}
