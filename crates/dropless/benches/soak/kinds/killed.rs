//! A process is killed in the middle of a run, and a successor goes on in its place.

use std::time::Duration;

use measure::forward::ForwardSummary;
use measure::run_result::RunResult as _;
use measure::summary::{ReflectSummary, Summary};

use crate::balance::{Account, Missing};
use crate::kinds::chain;
use crate::kinds::pair::each_event;
use crate::kinds::path::Path;
use crate::plan::Victim;
use crate::round::{Round, result, sleep, wait_for};
use crate::support::Running;
use crate::support::wire::NO_TIME;

/// What one process has of a memif, each queue: a ring of 1024 each way, and a burst of each in its hands.
const HELD: u64 = 2 * (1024 + 64);
/// A round has time for so many.
const KILLS_MAX: usize = 3;

pub fn killed(round: &Round<'_>) -> Account {
    match round.plan.victim {
        Victim::Reflector => reflector(round),
        Victim::Forwarder => forwarder(round),
        Victim::Sender => sender(round),
    }
}

/// Kills `running` at each instant of the plan, and has `next` in its place; how many were killed, and the last one.
fn succeed(round: &Round<'_>, running: Running, next: impl Fn() -> Running) -> (u64, Running) {
    let events = &round.plan.events[..round.plan.events.len().min(KILLS_MAX)];
    let mut last = Some(running);
    each_event(round, events, |event| {
        if let Some(running) = last.take() {
            let id = running.id();
            round.keep(id, running.kill());
        }
        sleep(Duration::from_millis(u64::from(event.lasts_ms)));
        last = Some(next());
    });
    (events.len() as u64, last.unwrap_or_else(next))
}

fn reflector(round: &Round<'_>) -> Account {
    let path = Path::new(round);
    let first = path.reflect(round);
    let mut near = path.send(round, "");
    wait_for(&mut near, "sending: tx");
    let (kills, last) = succeed(round, first, || path.reflect(round));
    let sent: Summary = result(&round.wait(near));
    let reflected: ReflectSummary = result(&round.end(last));
    let mut account = Account::default();
    went_on(&mut account, &sent, kills * HELD * u64::from(round.plan.queues));
    account.verdict("the last reflector", &reflected, &[]);
    account.balance("the last reflector", &reflected.ledger);
    account.holds(
        || "the last reflector had no packet".into(),
        reflected.received > 0,
    );
    account
}

fn forwarder(round: &Round<'_>) -> Account {
    let first = chain::forward(round, "");
    let far = chain::reflect(round);
    let near = chain::send(round, "");
    let (kills, last) = succeed(round, first, || chain::forward(round, ""));
    let sent: Summary = result(&round.wait(near));
    let returned: ReflectSummary = result(&round.end(far));
    let carried: ForwardSummary = result(&round.end(last));
    let mut account = Account::default();
    // What the forwarders that were killed had, and what the last one lost by name.
    let named = chain::both_ways(&mut account, &carried);
    went_on(
        &mut account,
        &sent,
        named + kills * 2 * HELD * u64::from(round.plan.queues),
    );
    account.verdict("reflect", &returned, &[]);
    account.balance("reflect", &returned.ledger);
    account.holds(|| "the last forwarder had no packet".into(), carried.received > 0);
    account
}

/// The reflector stays, and knows what came of whom.
fn sender(round: &Round<'_>) -> Account {
    let path = Path::new(round);
    let far = path.reflect(round);
    let start = || {
        let mut near = path.send(round, "");
        wait_for(&mut near, "sending: tx");
        near
    };
    let (_, last) = succeed(round, start(), start);
    let sent: Summary = result(&round.wait(last));
    let reflected: ReflectSummary = result(&round.end(far));
    let mut account = Account::default();
    account.sender(&sent, &NO_TIME, &Missing::Nothing);
    account.verdict("reflect", &reflected, &[]);
    account.balance("reflect", &reflected.ledger);
    account.holds(
        || {
            format!(
                "{} received by the reflector of {} sent",
                reflected.received, sent.sent
            )
        },
        reflected.received >= sent.sent,
    );
    account
}

/// The books of a sender whose far side was killed: it says so, goes on, and misses what that had, at most.
fn went_on(account: &mut Account, sent: &Summary, held: u64) {
    let excused = [&NO_TIME[..], &["link_lost"]].concat();
    account.sender(sent, &excused, &Missing::Killed(held));
    let says_so = sent.reasons().iter().any(|reason| reason.code == "link_lost");
    account.holds(|| "send: does not say that its link was lost".into(), says_so);
    account.holds(|| "send: nothing came back".into(), sent.received > 0);
}
