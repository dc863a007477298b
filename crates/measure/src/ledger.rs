//! The ledger of a `send` run, on top of the general one ([`crate::balance::Balance`]): what was intended, what arrived,
//! and whether the sums agree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::balance::{Balance, Charge};
use crate::imbalance::Imbalance;
pub use crate::place::NOT_AWAITED;
use crate::place::{CORRUPT, LATE, Place, TOO_OLD};

/// Frames that arrived while the receivers ran, by what they were.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Arrived {
    /// All frames the receive queues handed over.
    pub frames: u64,
    /// Distinct packets of this run, in time.
    pub received: u64,
    /// Further copies of packets already received.
    pub duplicate: u64,
    /// Frames damaged on the way.
    pub corrupt: u64,
    /// Packets of this run that came more than the drain time after they were sent.
    pub late: u64,
    /// Packets of this run further behind than the sequence window: new or a copy, nobody can tell.
    pub too_old: u64,
    /// Frames that are not probes of this run, by kind.
    pub foreign: BTreeMap<String, u64>,
    /// Those of `foreign` that were answered (ARP, NDP, echo).
    pub answered: u64,
}

/// The sum, or the largest u64: a result file may hold anything.
fn total(parts: impl IntoIterator<Item = u64>) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}

impl Arrived {
    /// Frames that are not probes of this run.
    pub fn foreign_total(&self) -> u64 {
        total(self.foreign.values().copied())
    }
}

/// The balanced books of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Packets that were due, or, at rate `max`, that were prepared.
    pub intended: u64,
    /// Packets the driver accepted.
    pub accepted: u64,
    /// Packets that were due and never handed to the driver.
    pub unsent: u64,
    /// Distinct packets that came back in time.
    pub received: u64,
    /// Missing packets by the place that lost them; places that lost none are not listed.
    pub lost_at: BTreeMap<String, u64>,
    /// Every place that counted any: whose it is, how much it knows, what it counted, and how much of that is missing
    /// packets; in the order in which they were charged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Charge>,
    /// Missing packets no place accounts for.
    pub unexplained: u64,
    /// What arrived.
    pub arrived: Arrived,
    /// The evidence as read from drivers, reflector and fault injector, also where it is no loss.
    pub raw: BTreeMap<String, u64>,
}

/// What the workers, ports, reflector and fault injector counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerInput {
    /// Packets that were due (at rate `max`: prepared).
    pub intended: u64,
    /// Packets the driver accepted.
    pub accepted: u64,
    /// Packets given up before the driver saw them.
    pub unsent: u64,
    /// What arrived.
    pub arrived: Arrived,
    /// Losses by place: `fault_drop`, `reflector_*` (drops only), `tx_held`, `tx_error`, `tx_dropped`, `rx_nombuf`, `rx_missed`, `rx_error`,
    /// or any further name. `late`, `too_old` and `corrupt` are taken from `arrived`, not from here.
    pub places: BTreeMap<String, u64>,
    /// All counters as read, for the record.
    pub raw: BTreeMap<String, u64>,
    /// True where nothing is meant to come back: all that is missing is then `not_awaited`.
    pub one_way: bool,
    /// True where the far side also served others: what it lost may be theirs, and is at most ours.
    pub far_is_shared: bool,
}

impl Ledger {
    /// Allots the missing packets (`accepted - received`) to the places in order, each at most what it counted.
    pub fn balance(input: LedgerInput) -> Ledger {
        let own = [
            (LATE, input.arrived.late),
            (TOO_OLD, input.arrived.too_old),
            (CORRUPT, input.arrived.corrupt),
        ];
        let others = input
            .places
            .iter()
            .map(|(name, count)| (&**name, *count))
            .filter(|(name, _)| own.iter().all(|(own, _)| own != name));
        let counted = own
            .into_iter()
            .chain(others)
            .map(|(name, count)| (Place::named(name), count))
            .map(|(place, count)| (place.shared(input.far_is_shared), count));
        let balance = Balance::of(input.accepted, input.arrived.received, counted);
        let mut lost_at: BTreeMap<String, u64> = balance
            .places
            .iter()
            .filter(|charge| charge.charged > 0)
            .map(|charge| (charge.place.clone(), charge.charged))
            .collect();
        let mut missing = balance.unexplained;
        if input.one_way && missing > 0 {
            lost_at.insert(NOT_AWAITED.to_owned(), std::mem::take(&mut missing));
        }
        Ledger {
            intended: input.intended,
            accepted: input.accepted,
            unsent: input.unsent,
            received: input.arrived.received,
            lost_at,
            places: balance.places,
            unexplained: missing,
            arrived: input.arrived,
            raw: input.raw,
        }
    }

    /// Packets sent that did not come back in time (and were awaited).
    pub fn lost(&self) -> u64 {
        let not_awaited = self.lost_at.get(NOT_AWAITED).copied().unwrap_or(0);
        self.accepted
            .saturating_sub(self.received)
            .saturating_sub(not_awaited)
    }

    /// Packets charged to named places.
    pub fn lost_at_total(&self) -> u64 {
        total(self.lost_at.values().copied())
    }

    /// Every identity that does not hold; a valid run has none.
    pub fn check(&self, lanes: &[Lane]) -> Vec<Imbalance> {
        let sum = |parts: &[u64]| parts.iter().map(|&part| u128::from(part)).sum::<u128>();
        let arrived = &self.arrived;
        let foreign = arrived.foreign_total();
        let mut broken = Vec::new();
        if sum(&[self.intended]) != sum(&[self.accepted, self.unsent]) {
            broken.push(Imbalance::Intended {
                intended: self.intended,
                accepted: self.accepted,
                unsent: self.unsent,
            });
        }
        if sum(&[self.accepted]) != sum(&[self.received, self.lost_at_total(), self.unexplained]) {
            broken.push(Imbalance::Accepted {
                accepted: self.accepted,
                received: self.received,
                lost: self.lost_at_total(),
                unexplained: self.unexplained,
            });
        }
        let classes = [
            arrived.received,
            arrived.duplicate,
            arrived.corrupt,
            arrived.late,
            arrived.too_old,
            foreign,
        ];
        if sum(&[arrived.frames]) != sum(&classes) {
            broken.push(Imbalance::Arrived {
                frames: arrived.frames,
                classified: total(classes),
            });
        }
        if arrived.received != self.received {
            broken.push(Imbalance::Received {
                ledger: self.received,
                arrived: arrived.received,
            });
        }
        if arrived.answered > foreign {
            broken.push(Imbalance::Answered {
                answered: arrived.answered,
                foreign,
            });
        }
        broken.extend(lanes.iter().filter_map(Lane::imbalance));
        broken.extend(lanes.iter().filter_map(Lane::forged));
        if !lanes.is_empty() {
            let accepted = total(lanes.iter().map(|lane| lane.accepted));
            let received = total(lanes.iter().map(|lane| lane.received));
            if accepted != self.accepted || received != self.received {
                broken.push(Imbalance::Lanes {
                    accepted: self.accepted,
                    lanes_accepted: accepted,
                    received: self.received,
                    lanes_received: received,
                });
            }
        }
        broken
    }
}

/// One sequence space (port, transmit queue, stream) and its two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lane {
    /// The lane's number as the probe carries it.
    pub lane: u16,
    /// Packets of it the driver accepted.
    pub accepted: u64,
    /// Distinct packets of it that came back in time.
    pub received: u64,
    /// One more than the highest sequence number that came back.
    pub beyond: u64,
}

impl Lane {
    /// What was never sent cannot come back.
    fn forged(&self) -> Option<Imbalance> {
        (self.beyond > self.accepted).then(|| Imbalance::Forged {
            lane: self.lane,
            accepted: self.accepted,
            sequence: self.beyond - 1,
        })
    }

    /// More back than sent: a surplus here could hide a loss elsewhere.
    fn imbalance(&self) -> Option<Imbalance> {
        (self.received > self.accepted).then_some(Imbalance::Lane {
            lane: self.lane,
            accepted: self.accepted,
            received: self.received,
        })
    }
}
