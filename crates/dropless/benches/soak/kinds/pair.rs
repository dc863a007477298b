//! A sender and a reflector: left alone, robbed of their cores, or stopped.

use std::time::{Duration, Instant};

use measure::summary::{ReflectSummary, Summary};
use nix::sys::signal::Signal;

use crate::balance::{Account, Missing};
use crate::kinds::path::{Path, fault, load};
use crate::plan::{Event, Victim};
use crate::round::{Round, result, sleep, wait_for};
use crate::support::wire::NO_TIME;
use crate::support::{Finished, Running};
use crate::thief::Thief;

/// Through the reflector in the same process, whose faults it knows itself.
pub fn inside(round: &Round<'_>) -> Account {
    let plan = round.plan;
    let port = if plan.is_memif { "ring" } else { "ring,direct" };
    // Nobody is between both ends of a direct ring.
    let faults = if plan.is_memif { fault(plan) } else { String::new() };
    let line = format!("send --port {port} {} {faults}", load(plan));
    let sent: Summary = result(&round.wait(round.start(None, &line)));
    let mut account = Account::default();
    account.sender(&sent, &["underoffered", "given_up_by_stall"], &Missing::Nothing);
    let raw = |name: &str| sent.ledger.raw.get(name).copied().unwrap_or(0);
    let at = |name: &str| sent.ledger.lost_at.get(name).copied().unwrap_or(0);
    account.equal(
        "dropped on purpose, and found",
        raw("fault_drop"),
        at("fault_drop"),
    );
    // What a full ring refused for too long may have been any of them.
    let refused = raw("reflector_tx_full");
    for (found, name) in [
        (sent.corrupt, "corrupt"),
        (sent.duplicate, "duplicate"),
        (sent.reordered, "reorder"),
    ] {
        let done = raw(&format!("fault_{name}"));
        account.holds(
            || format!("{done} {name} on purpose, {found} found, {refused} refused"),
            found <= done && done <= found + refused,
        );
    }
    account
}

/// Into a port where nothing comes back.
pub fn swallowed(round: &Round<'_>) -> Account {
    let line = format!("send --port null --tx-only {}", load(round.plan));
    let sent: Summary = result(&round.wait(round.start(None, &line)));
    let mut account = Account::default();
    account.sender(&sent, &["underoffered"], &Missing::Nothing);
    account
}

/// Both ends of a path, left alone.
pub fn reflected(round: &Round<'_>) -> Account {
    let path = Path::new(round);
    meet(round, &path, "", |_, _| {})
}

/// The same, while somebody takes a core in bursts.
pub fn robbed(round: &Round<'_>) -> Account {
    let path = Path::new(round);
    let thief = Thief::start(round, round.plan.core);
    meet(round, &path, "--explain", |_, _| {
        each_event(round, &round.plan.events, |event| {
            thief.works(Duration::from_millis(u64::from(event.lasts_ms)));
        });
    })
}

/// The same, while one end is stopped again and again.
pub fn stopped(round: &Round<'_>) -> Account {
    let path = Path::new(round);
    meet(round, &path, "", |near, far| {
        let victim = if round.plan.victim == Victim::Sender {
            near
        } else {
            far
        };
        each_event(round, &round.plan.events, |event| {
            victim.signal(Signal::SIGSTOP);
            sleep(Duration::from_millis(u64::from(event.lasts_ms)));
            victim.signal(Signal::SIGCONT);
        });
    })
}

/// Does something at each instant of the plan.
pub fn each_event(round: &Round<'_>, events: &[Event], mut what: impl FnMut(&Event)) {
    let begun = Instant::now();
    for event in events {
        sleep(round.instant(event.at).saturating_sub(begun.elapsed()));
        what(event);
    }
}

/// Runs both ends; `meanwhile` begins when the sender sends.
fn meet(
    round: &Round<'_>,
    path: &Path,
    further: &str,
    meanwhile: impl FnOnce(&Running, &Running),
) -> Account {
    let far = path.reflect(round);
    let mut near = path.send(round, further);
    wait_for(&mut near, "sending: tx");
    meanwhile(&near, &far);
    let (near, far) = (round.wait(near), round.end(far));
    account_of(path, (&near, &far))
}

fn account_of(path: &Path, (near, far): (&Finished, &Finished)) -> Account {
    let (near, far): (Summary, ReflectSummary) = (result(near), result(far));
    let mut account = Account::default();
    account.sender(&near, &NO_TIME, &Missing::Nothing);
    account.explained(&near);
    account.verdict("reflect", &far, &[]);
    if path.is_memif() {
        account.both_ends(&near, &far);
        let fault = |name: &str| far.faults.get(name).copied().unwrap_or(0);
        let full = far.dropped.get("tx_full").copied().unwrap_or(0);
        account.holds(
            || {
                format!(
                    "{} lost, {} dropped and {} damaged on purpose, {full} refused",
                    near.lost,
                    fault("drop"),
                    fault("corrupt")
                )
            },
            (fault("drop") + fault("corrupt")..=fault("drop") + fault("corrupt") + full).contains(&near.lost),
        );
    } else {
        account.balance("reflect", &far.ledger);
    }
    account
}
