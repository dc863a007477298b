//! One trial: what was asked, what was offered, and who lost what.

use serde::{Deserialize, Serialize};

use super::result::Limit;
use crate::bunch::{self, Bunch};
use crate::note::Note;
use crate::result::Percentiles;
use crate::shortfall::Shortfall;
use crate::verdict::OFFERED_TOLERANCE;

/// How much a trial sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// For so many ns.
    DurationNs(u64),
    /// So many packets, as a burst.
    Packets(u64),
}

/// A trial that a search wants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Packets per second.
    pub rate_pps: f64,
    /// For how long.
    #[serde(flatten)]
    pub extent: Extent,
}

impl Ask {
    /// A trial by time.
    pub fn lasting(rate_pps: f64, duration_ns: u64) -> Ask {
        Ask {
            rate_pps,
            extent: Extent::DurationNs(duration_ns),
        }
    }

    /// How long it sends, in seconds.
    pub fn seconds(&self) -> f64 {
        match self.extent {
            Extent::DurationNs(ns) => ns as f64 / 1e9,
            Extent::Packets(packets) => packets as f64 / self.rate_pps,
        }
    }

    /// Packets that are due in it.
    pub fn packets(&self) -> u64 {
        match self.extent {
            Extent::DurationNs(_) => (self.rate_pps * self.seconds()).floor() as u64,
            Extent::Packets(packets) => packets,
        }
    }
}

/// Lost packets by whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// On the way, as far as anybody can tell.
    pub path: u64,
    /// By the far reflector's own port.
    pub reflector: u64,
    /// By our receiver: full ring, empty pool, or while it paused.
    pub receiver: u64,
    /// By our own port after it had taken them.
    pub sender: u64,
}

impl Losses {
    /// All of them.
    pub fn total(&self) -> u64 {
        [self.path, self.reflector, self.receiver, self.sender]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// How a trial went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What was asked.
    #[serde(flatten)]
    pub ask: Ask,
    /// Packets that were due.
    pub due: u64,
    /// Who kept our sender from offering them, where it fell short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<Shortfall>,
    /// Packets that our port accepted.
    pub offered: u64,
    /// Of those, the lost ones.
    pub lost: Losses,
    /// How often our sender sent how many packets at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bunches: Vec<Bunch>,
    /// Latency from the real departure, in ns.
    #[serde(default)]
    pub latency_ns: Percentiles,
    /// Why it may not be believed; empty when it may.
    #[serde(default)]
    pub invalid: Vec<Note>,
}

impl Trial {
    /// Whether our sender offered what was asked, within the tolerance, or but for the last packet.
    pub fn is_offered(&self) -> bool {
        let short = self.due.saturating_sub(self.offered);
        self.short.is_none() && (short <= 1 || (short as f64) < self.due as f64 * OFFERED_TOLERANCE)
    }

    /// Lost packets as a part (0 to 1) of those offered.
    pub fn loss_ratio(&self) -> f64 {
        ratio(self.lost.total(), self.offered)
    }

    /// Whether something was sent, and none of it came back: such a path is broken, and has no rate.
    pub fn brought_nothing(&self) -> bool {
        self.offered > 0 && self.lost.total() >= self.offered
    }

    /// Whether it meets a goal of `loss_ratio`. What was not offered was not carried, however much a goal tolerates.
    pub fn is_good(&self, loss_ratio: f64) -> bool {
        self.offered > 0 && self.is_offered() && self.loss_ratio() <= loss_ratio
    }

    /// What counts for where to look next: the loss, and where our sender fell short, also what it did not send.
    pub fn bad_ratio(&self) -> f64 {
        if self.is_offered() && self.offered > 0 {
            return self.loss_ratio();
        }
        let unsent = self.due.saturating_sub(self.offered);
        ratio(unsent.saturating_add(self.lost.total()), self.due)
    }

    /// Packets that came back per second asked for: where to look next.
    pub fn forwarded_pps(&self) -> f64 {
        self.ask.rate_pps * (1.0 - self.bad_ratio())
    }

    /// The same trial, with what our sender's bunches may have cost charged to it, where the path is known to bear `borne`
    /// packets at once.
    #[must_use]
    pub fn without_bunches(&self, borne: u64) -> Trial {
        let mut trial = self.clone();
        let borne = borne.max(bunch::usual(&self.bunches, self.offered, self.ask.rate_pps));
        let ours = self.lost.path.min(bunch::beyond(&self.bunches, borne));
        trial.lost.path -= ours;
        trial.lost.sender = trial.lost.sender.saturating_add(ours);
        trial
    }

    /// Who kept this trial from meeting a goal of `loss_ratio`; `None` when it met it.
    ///
    /// Only what the path alone lost proves that the path was the limit: its loss must exceed the goal without any
    /// help from our own sender, our receiver or the reflector.
    pub fn limit(&self, loss_ratio: f64) -> Option<Limit> {
        if self.is_good(loss_ratio) {
            return None;
        }
        // Where nothing was offered, nothing was learned of the path.
        if self.offered > 0 && ratio(self.lost.path, self.offered) > loss_ratio {
            return Some(Limit::Path);
        }
        if !self.is_offered() {
            return Some(match self.short {
                Some(Shortfall::PortFull) => Limit::Port,
                _ => Limit::Sender,
            });
        }
        let ours = [
            (self.lost.receiver, Limit::Receiver),
            (self.lost.sender, Limit::Sender),
            (self.lost.reflector, Limit::Reflector),
        ];
        // The first of equals: what is nearest to us is the easiest to mend.
        ours.into_iter()
            .rev()
            .max_by_key(|(lost, _)| *lost)
            .map(|(_, limit)| limit)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        // Nothing offered carries nothing.
        return 1.0;
    }
    part as f64 / whole as f64
}
