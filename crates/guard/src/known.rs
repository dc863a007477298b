//! Who spoke with whom before: pairs of source and destination, in memory of fixed size.
//!
//! Where a set is full, the pair that was met first most lately goes: those of a flood push each other out, and not the
//! pairs that were there before it.

use std::hash::BuildHasher;

use rules::{Detail, Facts, Layer};

use crate::heavy::Seeded;

const WAYS: usize = 8;
/// Kinds of packets that are remembered of a pair.
const KINDS: usize = 4;
/// A pair that was met so seldom may be anybody.
const SELDOM: u32 = 2;
/// A pair that was silent so long is a new one; ns.
const SILENT_NS: u64 = 600_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Pair {
    source: u128,
    destination: u128,
    is_v6: bool,
    first_ns: u64,
    last_ns: u64,
    packets: u32,
    /// Packets of it that are of different kinds.
    kinds: [Option<Facts>; KINDS],
}

/// The two of a pair.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    pub source: u128,
    pub destination: u128,
    pub is_v6: bool,
}

/// Pairs that were met.
#[derive(Debug)]
pub struct Known {
    sets: Box<[Vec<Pair>]>,
    hasher: Seeded,
}

impl Known {
    /// Room for at least so many.
    pub fn new(pairs: usize, seed: u64) -> Self {
        let sets = pairs.div_ceil(WAYS).next_power_of_two();
        Self {
            sets: (0..sets).map(|_| Vec::new()).collect(),
            hasher: Seeded(seed),
        }
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.sets.iter().map(Vec::len).sum()
    }

    fn set(&self, facts: &Facts) -> usize {
        self.hasher.hash_one((facts.source, facts.destination)) as usize & (self.sets.len() - 1)
    }

    /// A packet of a pair.
    pub fn meet(&mut self, facts: &Facts, now_ns: u64) {
        let at = self.set(facts);
        let set = &mut self.sets[at];
        let new = Pair {
            source: facts.source,
            destination: facts.destination,
            is_v6: facts.layer == Layer::V6,
            first_ns: now_ns,
            last_ns: now_ns,
            packets: 1,
            kinds: [Some(*facts), None, None, None],
        };
        if let Some(pair) = set.iter_mut().find(|pair| pair.is(facts)) {
            if now_ns.saturating_sub(pair.last_ns) > SILENT_NS {
                *pair = new;
            }
            pair.last_ns = now_ns;
            pair.packets = pair.packets.saturating_add(1);
            pair.remember(facts);
        } else if set.len() < WAYS {
            set.push(new);
        } else {
            let silent = |pair: &Pair| now_ns.saturating_sub(pair.last_ns) > SILENT_NS;
            if let Some(pair) = set.iter_mut().max_by_key(|pair| (silent(pair), pair.first_ns)) {
                *pair = new;
            }
        }
    }

    /// Whether this packet's pair was met before that time.
    pub fn knows(&self, facts: &Facts, before_ns: u64) -> bool {
        let pair = self.sets[self.set(facts)].iter().find(|pair| pair.is(facts));
        pair.is_some_and(|pair| pair.first_ns < before_ns)
    }

    /// Sources of pairs that are meant and were met before that time: those that were met most often first.
    pub fn sources(&self, before_ns: u64, is_meant: impl Fn(Ends) -> bool) -> Vec<(u128, bool)> {
        let pairs = self.sets.iter().flatten();
        let meant = pairs.filter(|pair| pair.first_ns < before_ns && is_meant(pair.ends()));
        let mut meant: Vec<&Pair> = meant.collect();
        meant.sort_by_key(|pair| (std::cmp::Reverse(pair.packets), pair.first_ns, pair.source));
        meant.into_iter().map(|pair| (pair.source, pair.is_v6)).collect()
    }

    /// Packets of different kinds of pairs that are meant and were met more than once before that time; at most so many.
    pub fn kinds(&self, before_ns: u64, most: usize, is_meant: impl Fn(Ends) -> bool) -> Vec<&Facts> {
        let pairs = self.sets.iter().flatten();
        let meant =
            pairs.filter(|pair| pair.packets >= SELDOM && pair.first_ns < before_ns && is_meant(pair.ends()));
        meant
            .flat_map(|pair| pair.kinds.iter().flatten())
            .take(most)
            .collect()
    }

    /// Forgets pairs that are meant and were met first since that time: some belong to a flood.
    pub fn forget(&mut self, since_ns: u64, is_meant: impl Fn(Ends) -> bool) {
        for set in &mut self.sets {
            set.retain(|pair| pair.first_ns < since_ns || !is_meant(pair.ends()));
        }
    }
}

impl Pair {
    const fn ends(&self) -> Ends {
        Ends {
            source: self.source,
            destination: self.destination,
            is_v6: self.is_v6,
        }
    }

    fn remember(&mut self, facts: &Facts) {
        if self
            .kinds
            .iter()
            .flatten()
            .any(|known| kind(known) == kind(facts))
        {
            return;
        }
        if let Some(free) = self.kinds.iter_mut().find(|kind| kind.is_none()) {
            *free = Some(*facts);
        }
    }

    fn is(&self, facts: &Facts) -> bool {
        self.source == facts.source
            && self.destination == facts.destination
            && self.is_v6 == (facts.layer == Layer::V6)
    }
}

/// What makes packets of one pair different: protocol, the service's port, which is the lower one, whether a connection is
/// opened, the type of ICMP.
fn kind(facts: &Facts) -> (u8, Option<u16>, u8) {
    let detail = match facts.detail {
        Detail::Flags(flags) => u8::from(flags & 0x12 == 0x02),
        Detail::Type(kind) => kind,
        Detail::None => 0,
    };
    (
        facts.protocol,
        facts.ports.map(|ports| ports.0.min(ports.1)),
        detail,
    )
}
