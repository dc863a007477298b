//! What counts as a flood, and what may be done about it.

use serde::Serialize;

use crate::{CLASSES, Class};

/// A rate that is too much; `None` limits nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// Packets a second.
    pub pps: Option<u64>,
    /// Bits a second, of frames without FCS.
    pub bps: Option<u64>,
}

impl Limit {
    /// So many packets a second.
    pub const fn pps(pps: u64) -> Self {
        Self {
            pps: Some(pps),
            bps: None,
        }
    }

    /// Whether these rates are above it.
    pub fn is_over(self, pps: f64, bps: f64) -> bool {
        self.pps.is_some_and(|limit| pps > limit as f64) || self.bps.is_some_and(|limit| bps > limit as f64)
    }

    /// So many times as much.
    #[must_use]
    pub fn times(self, factor: u64) -> Self {
        Self {
            pps: self.pps.map(|pps| pps.saturating_mul(factor)),
            bps: self.bps.map(|bps| bps.saturating_mul(factor)),
        }
    }
}

/// What is too much for one destination, by class; the user's word, where there is one.
pub type Thresholds = [Option<Limit>; CLASSES];

/// What is usual is learned, and what is far above it is too much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learn {
    /// A destination's usual rate is believed after so long; ns.
    pub after_ns: u64,
    /// So many times the usual rate is too much.
    pub factor: f64,
    /// But never less than so many packets a second.
    pub floor_pps: u64,
}

/// What may be blocked at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cap {
    /// So many rules at once.
    pub rules: usize,
    /// Of these, so many that limit a rate.
    pub rates: usize,
    /// Such a share of all packets, from 0 to 1.
    pub share: f64,
    /// Such a share of a destination's legitimate packets, as far as they are known, from 0 to 1.
    pub cost: f64,
    /// No source prefix of IPv4 shorter than this.
    pub v4_len: u8,
    /// No source prefix of IPv6 shorter than this.
    pub v6_len: u8,
}

impl Default for Cap {
    fn default() -> Self {
        Self {
            rules: 32,
            rates: 8,
            share: 1.0,
            cost: 0.0,
            v4_len: 16,
            v6_len: 32,
        }
    }
}

/// How the guard decides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the user says is too much.
    pub thresholds: Thresholds,
    /// What is learned; without, the defaults count.
    pub learn: Option<Learn>,
    /// How long a rule stays after it has met a flood; ns.
    pub expire_ns: u64,
    /// What may be blocked at most.
    pub cap: Cap,
    /// What these let pass is never blocked; they deny the rest.
    pub allowed: Option<rules::Tables>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            thresholds: [None; CLASSES],
            learn: None,
            expire_ns: 60_000_000_000,
            cap: Cap::default(),
            allowed: None,
        }
    }
}

impl Settings {
    /// Too much where neither the user nor experience says something.
    pub const fn by_default(class: Class) -> Limit {
        match class {
            Class::Amplification | Class::Syn | Class::Fragment => Limit::pps(20_000),
            Class::Icmp | Class::Malformed => Limit::pps(10_000),
            Class::Udp => Limit::pps(100_000),
            Class::Other => Limit::pps(50_000),
            Class::Tcp => Limit::pps(500_000),
            Class::All => Limit { pps: None, bps: None },
        }
    }
}
