//! A sender, a forwarder whose rules are exchanged under load, and a reflector, joined by memif.

use std::time::Duration;

use measure::filter::Judged;
use measure::forward::ForwardSummary;
use measure::summary::{ReflectSummary, Summary};
use nix::sys::signal::Signal;

use crate::balance::{Account, Missing};
use crate::kinds::path::load;
use crate::plan::Draw;
use crate::round::{Round, result, sleep, wait_for};
use crate::support::wire::NO_TIME;
use crate::support::{Running, until};

/// Both let x and what comes back pass, and deny y: no packet may ever meet a default.
const SETS: [&str; 2] = [
    "allow arp\nallow udp dport 5000\nallow udp sport 5000\ndeny udp dport 5001\ndefault deny\n",
    "deny malformed\ndeny tcp\ndeny udp dport 5001,6001\nallow udp dport 4000-5000\nallow udp sport 4000-5000\nallow arp\ndefault deny\n",
];
const IN_FORCE: Duration = Duration::from_secs(30);

/// Starts the forwarder, which serves both sides.
pub fn forward(round: &Round<'_>, further: &str) -> Running {
    let ports = "forward --port memif:a.sock,server --port memif:b.sock,server";
    let line = format!("{ports} --queues {} {further}", round.plan.queues);
    round.started(None, &line, "forwarding between")
}

pub fn reflect(round: &Round<'_>) -> Running {
    let line = format!("reflect --port memif:b.sock --queues {}", round.plan.queues);
    round.started(None, &line, "reflecting on")
}

pub fn send(round: &Round<'_>, further: &str) -> Running {
    let line = format!("send --port memif:a.sock {} {further}", load(round.plan));
    let mut running = round.start(None, &line);
    wait_for(&mut running, "sending: tx");
    running
}

/// Whoever reads the file has one set or the other.
pub fn put(round: &Round<'_>, set: &str) {
    let next = round.lab.path("next.rules");
    let put = std::fs::write(&next, set).and_then(|()| std::fs::rename(&next, round.lab.path("edge.rules")));
    put.unwrap_or_else(|error| panic!("writing rules: {error}"));
}

/// Has a process read its rules again, and waits until it says which are in force, these or those before.
pub fn read_again(running: &Running) {
    let told = || running.stderr().matches("in force").count();
    let before = told();
    running.signal(Signal::SIGHUP);
    assert!(
        until(IN_FORCE, || told() > before),
        "no rules are told to be in force: {running:?}"
    );
}

/// Exchanges the rules again and again while it sends.
pub fn reloaded(round: &Round<'_>) -> Account {
    put(round, SETS[0]);
    let forwarder = forward(round, "--rules edge.rules");
    let reflector = reflect(round);
    let streams =
        ["x,to=198.18.0.2:5000", "y,to=198.18.0.2:5001"].map(|stream| format!("--stream name={stream}"));
    let mut sender = send(round, &streams.join(" "));
    let mut draw = Draw::new(round.plan.seed);
    let (mut swaps, mut wrong) = (0, 0);
    while sender.is_alive() {
        if draw.one_in(5) {
            wrong += 1;
            put(round, "deny udp dport seven\n");
        } else {
            swaps += 1;
            put(round, SETS[swaps % 2]);
        }
        read_again(&forwarder);
        sleep(Duration::from_millis(u64::from(draw.between(0, 150))));
    }
    let sent: Summary = result(&round.wait(sender));
    let reflected: ReflectSummary = result(&round.end(reflector));
    let passing: ForwardSummary = result(&round.end(forwarder));
    let mut account = Account::default();
    let rules = passing.rules.clone().unwrap_or_default();
    let of = |name: &str| {
        sent.streams
            .iter()
            .find(|stream| stream.name == name)
            .cloned()
            .unwrap_or_default()
    };
    let (x, y) = (of("x"), of("y"));
    let lost = both_ways(&mut account, &passing);
    account.sender(&sent, &NO_TIME, &Missing::Denied(y.sent..=y.sent + lost));
    account.verdict("reflect", &reflected, &[]);
    account.balance("reflect", &reflected.ledger);
    account.equal("of y, that is denied, came back", y.received, 0);
    account.equal(
        "denied, and sent of y",
        met(&rules.judged, "deny udp dport"),
        y.sent,
    );
    // The sender's questions for what the reflector counted pass, too.
    let passed = met(&rules.judged, "allow udp dport");
    account.holds(
        || {
            format!(
                "{passed} let through of {} sent and {} asked",
                x.sent, reflected.told
            )
        },
        (x.sent..=x.sent + reflected.told + lost + 10).contains(&passed),
    );
    account.equal("met a default", met(&rules.judged, "default"), 0);
    account.equal("judged, and received", rules.judged.packets(), passing.received);
    account.equal("sets of rules in force", rules.generation, 1 + swaps as u64);
    account.equal("readings of rules", rules.asked, swaps as u64 + wrong);
    account
}

/// The books of a forwarder; what it lost and did not deny.
pub fn both_ways(account: &mut Account, run: &ForwardSummary) -> u64 {
    account.verdict("forward", run, &[]);
    account.balance("forward", &run.ledger);
    for (way, (from, to)) in run.ways.iter().zip([(0, 1), (1, 0)]) {
        account.balance("forward, one way", &way.ledger);
        account.equal(
            "received from a port, and by its driver",
            way.received,
            run.ports[from].rx_packets,
        );
        let queues = run.queues.iter();
        let queues = queues.filter(|queue| usize::from(queue.port) == to && queue.direction == "tx");
        account.equal(
            "forwarded to a port, and by its driver",
            queues.map(|queue| queue.packets).sum(),
            run.ports[to].tx_packets,
        );
        account.equal("forwarded, and left", way.forwarded, way.ledger.left);
    }
    account.equal("ways", run.ways.len() as u64, 2);
    let lost = run.ledger.places.iter().filter(|charge| charge.place != "denied");
    lost.map(|charge| charge.charged).sum()
}

/// What rules met that begin so.
pub fn met(judged: &Judged, rule: &str) -> u64 {
    judged
        .rules
        .iter()
        .filter(|met| met.rule.starts_with(rule))
        .map(|met| met.packets)
        .sum()
}
