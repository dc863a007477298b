//! Whether what was sent is received or named, by the results of the programs alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use measure::Balance;
use measure::capture::CaptureSummary;
use measure::result::PortSummary;
use measure::run_result::RunResult;
use measure::summary::{ReflectSummary, Summary};
use measure::verdict::Validity;
use serde::Serialize;

/// What the results of a round came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Packets that were sent.
    pub packets: u64,
    /// What of them is missing, by the place that counted it.
    pub named: BTreeMap<String, u64>,
    /// What no place counted.
    pub unexplained: u64,
    /// Codes of the reasons that a verdict was allowed to have.
    pub excused: BTreeSet<String>,
    /// What does not hold.
    pub problems: Vec<String>,
}

/// What a sender may miss that its far side does not know of.
pub enum Missing {
    Nothing,
    /// What a forwarder between them denied, or lost.
    Denied(RangeInclusive<u64>),
    /// What processes had that were killed, at most.
    Killed(u64),
}

impl Account {
    /// Two numbers that must be equal.
    pub fn equal(&mut self, what: &str, one: u64, other: u64) {
        if one != other {
            self.problems.push(format!("{what}: {one} is not {other}"));
        }
    }

    /// Something that must hold.
    pub fn holds(&mut self, what: impl FnOnce() -> String, holds: bool) {
        if !holds {
            self.problems.push(what());
        }
    }

    /// A sender's books, where `missing` is what others than its far side took.
    pub fn sender(&mut self, sent: &Summary, excused: &[&str], missing: &Missing) {
        let ledger = &sent.ledger;
        let broken = ledger.check(&[]);
        self.problems
            .extend(broken.iter().map(|broken| format!("send: {broken}")));
        self.equal("send: sent, and what its ledger has", sent.sent, ledger.accepted);
        self.equal(
            "send: unexplained, and what its ledger has",
            sent.unexplained,
            ledger.unexplained,
        );
        self.verdict("send", sent, excused);
        self.packets += sent.sent;
        for (place, count) in &ledger.lost_at {
            self.name(place, *count);
        }
        let unexplained = ledger.unexplained;
        let (name, allowed) = match missing {
            Missing::Nothing => ("", 0..=0),
            Missing::Denied(counted) => ("denied", counted.clone()),
            Missing::Killed(most) => ("killed", 0..=*most),
        };
        self.holds(
            || {
                format!(
                    "send: {unexplained} unexplained, where {} to {} {name} may be",
                    allowed.start(),
                    allowed.end()
                )
            },
            allowed.contains(&unexplained),
        );
        self.name(name, unexplained.min(*allowed.end()));
        self.unexplained += unexplained.saturating_sub(*allowed.end());
    }

    /// Packets that are missing, and who had them.
    pub fn name(&mut self, place: &str, count: u64) {
        if count > 0 {
            *self.named.entry(place.to_owned()).or_default() += count;
        }
    }

    /// A balance of any other run.
    pub fn balance(&mut self, who: &str, balance: &Balance) {
        let charged: u64 = balance.places.iter().map(|charge| charge.charged).sum();
        self.equal(
            &format!("{who}: entered, and left, charged and unexplained"),
            balance.entered,
            balance.left + charged + balance.unexplained,
        );
        self.unexplained += balance.unexplained;
        self.equal(&format!("{who}: unexplained"), balance.unexplained, 0);
        self.equal(&format!("{who}: more left than entered"), balance.surplus(), 0);
    }

    /// What every run must have: a verdict that is valid but for what is excused, and no buffer missing.
    pub fn verdict(&mut self, who: &str, run: &dyn RunResult, excused: &[&str]) {
        for reason in run.reasons() {
            if excused.iter().any(|code| *code == reason.code) {
                self.excused.insert(reason.code.to_string());
            } else {
                self.problems.push(format!("{who}: INVALID: {reason}"));
            }
        }
        self.holds(
            || format!("{who}: INVALID, and no reason is given"),
            run.validity() == Validity::Valid || !run.reasons().is_empty(),
        );
        self.equal(&format!("{who}: leaked buffers"), run.pool().leaked, 0);
    }

    /// Two ends that lose nothing between them: what a port says it sent the other one says it received, both ways.
    pub fn both_ends(&mut self, near: &Summary, far: &ReflectSummary) {
        self.balance("reflect", &far.ledger);
        let counts = |ports: &[PortSummary]| {
            ports
                .first()
                .map_or((0, 0), |port| (port.tx_packets, port.rx_packets))
        };
        let ((sent, received), (returned, came)) = (counts(&near.ports), counts(&far.ports));
        self.equal("sent by the near port, and received by the far one", sent, came);
        self.equal(
            "returned by the far port, and received by the near one",
            returned,
            received,
        );
        let others = far.answered + far.told;
        self.equal(
            "probes sent, and received by the reflector",
            near.sent + others,
            far.received,
        );
    }

    /// What `--explain` says of a sender's misses: each is charged to one cause, or to none.
    pub fn explained(&mut self, sent: &Summary) {
        let Some(explanation) = &sent.explanation else {
            return;
        };
        let charged: u64 = explanation.causes.iter().map(|cause| cause.lost).sum();
        self.equal(
            "send: misses that are explained, and those of all causes",
            explanation.explained,
            charged,
        );
        let missed: u64 = sent.ports.iter().map(|port| port.rx_missed).sum();
        self.holds(
            || {
                format!(
                    "send: {charged} explained of {} missed of {missed}",
                    explanation.missed
                )
            },
            charged <= explanation.missed && explanation.missed <= missed,
        );
    }

    /// A capture's ring, consumers and files.
    pub fn capture(&mut self, run: &CaptureSummary, excused: &[&str]) {
        self.verdict("capture", run, excused);
        self.balance("capture", &run.ledger);
        self.equal("capture: left, and captured", run.ledger.left, run.captured);
        for consumer in &run.consumers {
            let accounted = consumer.taken + consumer.lost + consumer.left;
            self.equal(
                &format!("capture: offered to {}, and taken, lost and left", consumer.name),
                consumer.offered,
                accounted,
            );
        }
        let files = run.files.as_ref().map_or(0, |files| files.packets);
        let taken = run.consumers.iter().find(|consumer| consumer.name == "files");
        self.equal(
            "capture: packets in files, and taken for them",
            files,
            taken.map_or(0, |taken| taken.taken),
        );
    }
}
