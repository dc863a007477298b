//! A rule that was made, and what it has met since.

use rules::{Facts, Layer, Malformed, Prefix};

use crate::shape::Shape;
use crate::{Sample, TICK_NS};

/// What becomes of packets that a rule meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// All are dropped.
    Deny,
    /// Those above so many a second are, of each source.
    PerSource(u64),
    /// The same of each destination.
    PerDestination(u64),
    /// The same of all sources of a prefix together.
    Together(u64, Prefix),
}

impl Action {
    /// Whether it holds all that `other` holds, of packets that both meet: a rate of each source stops no flood of many.
    pub fn holds_as_much(self, other: Self) -> bool {
        self == Self::Deny || std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// Which packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meets {
    /// That are malformed so.
    Malformed(Malformed),
    /// That go there (anywhere, of a prefix of no bits) and have this shape, from these sources; from all but these; from any, if there are none.
    /// Sources are sorted: every sample is looked for among them.
    Shaped {
        to: Prefix,
        shape: Shape,
        sources: Vec<Prefix>,
        not: bool,
    },
}

impl Meets {
    /// Whether this is one of them.
    pub fn holds(&self, packet: &Result<Facts, Malformed>) -> bool {
        match (self, packet) {
            (Self::Malformed(reason), Err(found)) => reason == found,
            (
                Self::Shaped {
                    to,
                    shape,
                    sources,
                    not,
                },
                Ok(facts),
            ) => {
                let is_v6 = facts.layer == Layer::V6;
                let is_one = || Prefix::any_contains(sources, facts.source, is_v6);
                to.contains(facts.destination, is_v6)
                    && shape.holds(facts)
                    && (sources.is_empty() || is_one() != *not)
            }
            _ => false,
        }
    }

    /// Where they go, if that is a condition.
    pub fn destination(&self) -> Option<Prefix> {
        match self {
            Self::Shaped { to, .. } if to.bits() > 0 => Some(*to),
            _ => None,
        }
    }

    /// Who sends them, wherever they go.
    pub fn spreading(&self) -> &[Prefix] {
        match self {
            Self::Shaped { to, sources, .. } if to.bits() == 0 => sources,
            _ => &[],
        }
    }

    /// What they have in common beside addresses.
    pub fn shape(&self) -> Option<Shape> {
        match self {
            Self::Malformed(_) => None,
            Self::Shaped { shape, .. } => Some(*shape),
        }
    }

    /// Whether all that `other` meets is met, as far as conditions tell; but for sources that are known to be legitimate.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Shaped {
                    to,
                    shape,
                    sources,
                    not,
                },
                Self::Shaped {
                    to: others,
                    shape: narrower,
                    sources: fewer,
                    not: is_other,
                },
            ) => {
                let is_one = |source: &Prefix| sources.iter().any(|wider| wider.covers(source));
                let has_all = || !fewer.is_empty() && !is_other && fewer.iter().all(is_one);
                (sources.is_empty() || *not || has_all()) && to.covers(others) && shape.covers(narrower)
            }
            _ => self == other,
        }
    }
}

/// One rule in force.
#[derive(Clone, Debug)]
pub struct Block {
    pub meets: Meets,
    pub action: Action,
    pub since_ns: u64,
    pub until_ns: u64,
    /// Packets a second that it met at first.
    pub first_pps: f64,
    /// And now, with what was before counting less and less.
    pub pps: f64,
    tick: u64,
    pub packets: u64,
    pub known_packets: u64,
}

/// A rule that meets less than this share of what it met at first is not prolonged.
const STILL: f64 = 0.25;
/// What the last tick counts.
const NEW: f64 = 0.2;

impl Block {
    pub fn new(meets: Meets, action: Action, pps: f64, (now_ns, expire_ns): (u64, u64)) -> Self {
        Self {
            meets,
            action,
            since_ns: now_ns,
            until_ns: now_ns + expire_ns,
            first_pps: pps,
            pps,
            tick: 0,
            packets: 0,
            known_packets: 0,
        }
    }

    /// It met this one, from somebody who was known before or not.
    pub fn meet(&mut self, sample: &Sample, is_known: bool) {
        let packets = u64::from(sample.weight);
        self.tick += packets;
        self.packets += packets;
        if is_known {
            self.known_packets += packets;
        }
    }

    /// The end of a tick: it is prolonged while it meets a flood.
    pub fn tick(&mut self, now_ns: u64, expire_ns: u64) {
        let pps = std::mem::take(&mut self.tick) as f64 * 1e9 / TICK_NS as f64;
        self.pps += (pps - self.pps) * NEW;
        if self.pps >= STILL * self.first_pps {
            self.until_ns = now_ns + expire_ns;
        }
    }

    /// Nothing is known of what it met for so long: it stays for as long as if that time had not been.
    pub fn break_off(&mut self, blind_ns: u64) {
        self.tick = 0;
        self.until_ns += blind_ns;
    }

    /// As the language says it.
    pub fn text(&self) -> String {
        let action = match self.action {
            Action::Deny => "deny".to_owned(),
            Action::PerSource(pps) => format!("rate {pps}pps per source/32,128"),
            Action::PerDestination(pps) => format!("rate {pps}pps per destination/32,128"),
            Action::Together(pps, source) if source.is_v6() => {
                format!("rate {pps}pps per source/32,{}", source.bits())
            }
            Action::Together(pps, source) => format!("rate {pps}pps per source/{},128", source.bits()),
        };
        match &self.meets {
            Meets::Malformed(reason) => format!("{action} malformed {}", reason.name()),
            Meets::Shaped {
                to,
                shape,
                sources,
                not,
            } => {
                let list: Vec<_> = sources.iter().map(Prefix::to_string).collect();
                let from = match (sources.is_empty(), not) {
                    (true, _) => String::new(),
                    (false, true) => format!(" from not {}", list.join(",")),
                    (false, false) => format!(" from {}", list.join(",")),
                };
                let to = match to.bits() {
                    0 => String::new(),
                    _ => format!(" to {to}"),
                };
                // Protocols go behind IPv6's own headers, too: addresses say which family it is.
                format!("{action}{}{from}{to}", shape.text())
            }
        }
    }
}
