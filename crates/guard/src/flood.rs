//! A flood that was seen: where it goes or comes from, and how much of what it is.

use rules::{Malformed, Prefix};

use crate::traffic::{Rates, WINDOW};
use crate::{Class, Limit, TICK_NS};

/// What has too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// A destination gets it.
    To(Prefix),
    /// A source sends it, to many.
    From(Prefix),
    /// Anybody: packets whose addresses are not believed.
    Malformed(Malformed),
}

/// More of a class than there may be.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    pub at: Where,
    pub class: Class,
    pub rates: Rates,
    pub limit: Limit,
    /// What is usual, packets a second.
    pub usual: Option<f64>,
    pub since_ns: u64,
}

impl Flood {
    /// It began no later than the window in which it was too much.
    pub fn begun_ns(&self) -> u64 {
        self.since_ns.saturating_sub(WINDOW as u64 * TICK_NS)
    }

    /// Its destination.
    pub fn to(&self) -> Option<Prefix> {
        match self.at {
            Where::To(to) => Some(to),
            Where::From(_) | Where::Malformed(_) => None,
        }
    }

    /// Its source, where that has too much.
    pub fn from(&self) -> Option<Prefix> {
        match self.at {
            Where::From(from) => Some(from),
            Where::To(_) | Where::Malformed(_) => None,
        }
    }

    /// Such a share of it.
    #[must_use]
    pub fn part(&self, share: f64) -> Self {
        let Rates { pps, bps } = self.rates;
        Self {
            rates: Rates {
                pps: pps * share,
                bps: bps * share,
            },
            ..*self
        }
    }

    /// Whether it is too much.
    pub fn is_over(&self) -> bool {
        self.limit.is_over(self.rates.pps, self.rates.bps)
    }

    /// The limit in packets a second: of one in bits, so many packets as it has.
    pub fn limit_pps(&self) -> u64 {
        let bits_each = (self.rates.bps / self.rates.pps.max(1.0)).max(1.0);
        let by_bits = || self.limit.bps.map(|bps| (bps as f64 / bits_each) as u64);
        self.limit.pps.or_else(by_bits).unwrap_or_default()
    }
}
