//! A filter in XDP whose rules are exchanged under load, between a sender and a capture behind it.

use std::time::Duration;

use measure::capture::CaptureSummary;
use measure::filter::FilterSummary;
use measure::summary::Summary;

use crate::balance::{Account, Missing};
use crate::kinds::chain::{met, put, read_again};
use crate::kinds::path::load;
use crate::plan::Draw;
use crate::round::{Round, result, sleep};
use crate::support::Running;
use crate::support::wire::{NO_TIME, Wire};

/// Both deny port 7 and allow port 8, spelled differently.
const SETS: [&str; 2] = [
    "deny udp dport 7\nallow udp dport 8\ndefault deny\n",
    "allow udp dport 8-8\ndeny udp dport 7-7\ndefault deny\n",
];

pub fn reloaded(round: &Round<'_>) -> Account {
    let wire = Wire::between(round.lab, 1);
    put(round, SETS[0]);
    let mode = if round.plan.is_xdp { "native" } else { "generic" };
    let line = format!("filter run edge.rules --dev far0 --mode {mode}");
    let filter = round.started(Some(&wire.far), &line, "in force on far0");
    let behind = "capture --port packet:far0 --to behind.pcapng udp";
    let behind = round.started(Some(&wire.far), behind, "capturing from");
    let line = format!(
        "send --port packet:near0 {} --tx-only --to-mac 02:00:00:00:00:01 --to 198.18.0.2:7-8 --flows 2",
        load(round.plan)
            .replace("--to 198.18.0.2 ", "")
            .replace(&format!("--flows {} ", round.plan.flows), "")
    );
    let mut sender = round.start(Some(&wire.near), &line);
    let swaps = exchange(round, &filter, &mut sender);
    let sent: Summary = result(&round.wait(sender));
    let behind: CaptureSummary = result(&round.end(behind));
    let filtered: FilterSummary = result(&round.end(filter));

    let mut account = Account::default();
    account.sender(&sent, &NO_TIME, &Missing::Nothing);
    account.named.clear();
    account.capture(&behind, &[]);
    for reason in &filtered.reasons {
        account.problems.push(format!("filter: INVALID: {reason}"));
    }
    let judged = &filtered.judged;
    let refused = dropped(&wire, "near0", "tx_dropped")
        + dropped(&wire, "far0", "rx_dropped").saturating_sub(judged.denied);
    account.name("denied", judged.denied);
    account.name("wire full", sent.sent.saturating_sub(judged.packets()));
    account.holds(
        || {
            format!(
                "{} judged of {} sent, and the wire had no room for {refused}",
                judged.packets(),
                sent.sent
            )
        },
        judged.packets() <= sent.sent && sent.sent <= judged.packets() + refused,
    );
    account.equal(
        "let through, and come to the capture",
        judged.allowed,
        behind.ledger.entered,
    );
    account.equal("met a default", met(judged, "default"), 0);
    account.equal(
        "denied, and met the rule",
        judged.denied,
        met(judged, "deny udp dport 7"),
    );
    account.equal("exchanges of rules", filtered.reloads, swaps);
    account.equal("refused rules", filtered.reloads_refused, 0);
    let program = wire.far.ip(&["-d", "link", "show", "far0"]);
    account.holds(
        || "the program is still on the interface".into(),
        !program.contains("prog/xdp"),
    );
    account
}

/// Other rules again and again until the sender has ended; how often.
fn exchange(round: &Round<'_>, filter: &Running, sender: &mut Running) -> u64 {
    let mut draw = Draw::new(round.plan.seed);
    let process = filter.id().to_string();
    let mut swaps = 0;
    while sender.is_alive() {
        swaps += 1;
        put(round, SETS[swaps % 2]);
        if draw.one_in(2) {
            let reloaded = round.wait(
                round
                    .lab
                    .dropless(&["filter", "reload", &process, "--json"])
                    .spawn(),
            );
            assert_eq!(reloaded.code, Some(0), "{reloaded}");
        } else {
            read_again(filter);
        }
        sleep(Duration::from_millis(u64::from(draw.between(0, 100))));
    }
    swaps as u64
}

/// A counter of an interface at one end.
fn dropped(wire: &Wire, interface: &str, counter: &str) -> u64 {
    let end = if interface == "near0" {
        &wire.near
    } else {
        &wire.far
    };
    let text = end.run(
        "cat",
        &[&format!("/sys/class/net/{interface}/statistics/{counter}")],
    );
    text.trim().parse().unwrap_or(0)
}
