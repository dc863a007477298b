//! The narrowest rules that explain a flood: most of what is too much, and as little as possible of what is legitimate.
//!
//! First a shape is looked for that the flood has and legitimate packets have not: protocol, flags, type, ports, fragment.
//! Of those that explain about as much, the one with most conditions is taken. Where legitimate packets look the same, the
//! source tells: prefixes that hold the flood and nobody who is known. Where sources are invented, what is above the limit
//! is dropped, but for sources that are known; and where even known sources send it, each source has a rate.

use std::collections::{HashMap, HashSet};

use rules::{Facts, Layer, Prefix, RATE_MAX};

use crate::block::{Action, Meets};
use crate::settings::Cap;
use crate::shape::Shape;
use crate::sources::{self, PREFIXES_MAX};

/// Rules that are found at once.
pub const RULES_MAX: usize = 4;
/// What explains less than this share of the flood is left to the next look.
pub const WORTH: f64 = 0.05;
/// The flood is explained when so much of it is.
pub const ENOUGH: f64 = 0.9;
/// A narrower rule is as good as a wider one that explains this much more.
const AS_GOOD: f64 = 0.95;
/// So many rules for one destination, and a flood that goes on is one that changes.
const CHANGES: usize = 3;
/// Sources are blamed if they hold so much of what was left.
pub const BLAMED: f64 = 0.6;
/// A rate of one source or destination is never smaller; packets a second.
pub const RATE_MIN: u64 = 100;

/// A flood, and what is known beside it.
pub struct Case<'c> {
    /// Packets that no rule meets yet, of sources that were not there before.
    pub flood: Vec<&'c Facts>,
    /// Packets of before that are held to be legitimate.
    pub usual: Vec<&'c Facts>,
    /// Packets of now whose sources spoke with the destination before.
    pub known: Vec<&'c Facts>,
    /// A packet of each kind of those who spoke with the destination before.
    pub kinds: Vec<&'c Facts>,
    /// Sources that spoke with the destination before.
    pub known_sources: Vec<(u128, bool)>,
    pub to: Prefix,
    /// What `flood` and `known` stand for together; packets a second.
    pub rate_pps: f64,
    /// What may pass; packets a second.
    pub limit_pps: u64,
    /// What is usual, if anything is known of that; packets a second.
    pub usual_pps: Option<f64>,
    /// Shapes of the rules that are in force for this destination: if there are several and the flood goes on, it changes.
    pub before: Vec<Shape>,
    pub cap: &'c Cap,
}

/// A rule that explains something.
#[derive(Clone, Debug)]
pub struct Found {
    pub meets: Meets,
    pub action: Action,
    /// Of the flood.
    pub explained: f64,
    /// Of the legitimate packets that are known.
    pub cost: f64,
    /// Known sources that it should not meet and does, as a rule names no more.
    pub unspared: usize,
}

/// The rules, best first; none if nothing explains enough.
pub fn explain(case: &Case<'_>) -> Vec<Found> {
    let mut left: Vec<&Facts> = case.flood.clone();
    let mut found = Vec::new();
    let whole = left.len();
    let is_little = |left: usize| {
        left as f64 <= (1.0 - ENOUGH) * whole as f64 || case.pps(left) <= case.limit_pps as f64 / 2.0
    };
    while found.len() < RULES_MAX && !is_little(left.len()) {
        let shapes = count(&left);
        let Some((shape, met)) = best(&shapes, case, true) else {
            break;
        };
        if (met as f64) < WORTH * whole as f64 {
            break;
        }
        left.retain(|facts| !shape.holds(facts));
        found.push(Found {
            meets: case.shaped(shape, Vec::new(), false),
            action: Action::Deny,
            explained: case.share(met),
            cost: case.cost(&shape, |_| true),
            unspared: 0,
        });
    }
    if case.pps(left.len()) > case.limit_pps as f64 {
        found.extend(by_source(case, &left, |shape, met| {
            Some(but_for_known(case, shape, met))
        }));
    }
    if case.pps(case.known.len()) > case.limit_pps as f64 {
        found.extend(by_known(case));
    }
    found
}

pub fn count(flood: &[&Facts]) -> HashMap<Shape, usize> {
    let mut shapes = HashMap::new();
    for facts in flood {
        Shape::of(facts, |shape| *shapes.entry(shape).or_insert(0) += 1);
    }
    shapes
}

/// Of shapes that cost little, if that is asked, one that meets most; of those that meet about as much, the narrowest. Of a
/// flood that changes, what it is now has most in common with what it was.
pub fn best(shapes: &HashMap<Shape, usize>, case: &Case<'_>, must_be_cheap: bool) -> Option<(Shape, usize)> {
    let is_good = |shape: &Shape| !must_be_cheap || case.cost(shape, |_| true) <= case.cap.cost;
    let of_all = shapes.values().max().copied().unwrap_or_default() as f64;
    let is_worth = |(_, met): &(&Shape, &usize)| **met as f64 >= WORTH * of_all;
    let worth = shapes.iter().filter(is_worth);
    let mut all: Vec<(Shape, usize)> = worth.map(|(shape, met)| (*shape, *met)).collect();
    all.sort_by_key(|(shape, met)| (std::cmp::Reverse(*met), shape.order()));
    if case.before.len() >= CHANGES {
        let common = |shape: &Shape| case.before.iter().filter(|before| shape.covers(before)).count();
        let (_, most) = *all.first()?;
        let near = all
            .iter()
            .take_while(|(_, met)| *met as f64 >= AS_GOOD * most as f64);
        let near = near.filter(|(shape, _)| common(shape) >= CHANGES && is_good(shape));
        return near
            .max_by_key(|(shape, met)| (common(shape), shape.conditions(), *met))
            .copied();
    }
    // Costs are looked at once for each shape that comes into question: those that meet much.
    let (_, most) = *all.iter().find(|(shape, _)| is_good(shape))?;
    let near = all
        .iter()
        .take_while(|(_, met)| *met as f64 >= AS_GOOD * most as f64);
    let near = near.filter(|(shape, _)| is_good(shape));
    near.max_by_key(|(shape, met)| (shape.conditions(), *met, std::cmp::Reverse(shape.order())))
        .copied()
}

/// Where those who were there before send it, or somebody in their name: nobody is cut off, but none gets more than all
/// had. They are named, as far as a rule can: strangers who look so go on being judged.
fn by_known(case: &Case<'_>) -> Option<Found> {
    let (shape, _) = best(&count(&case.known), case, false)?;
    let usual = case
        .usual_pps
        .map_or(case.limit_pps / 4, |usual| (usual * 2.0) as u64);
    let mut packets: HashMap<(u128, bool), usize> = HashMap::new();
    for facts in case.known.iter().filter(|facts| shape.holds(facts)) {
        *packets.entry((facts.source, is_v6(facts))).or_insert(0) += 1;
    }
    // Those who send most, where they are too many for a rule: of the others it would meet strangers, too.
    let mut senders: Vec<_> = packets.into_iter().collect();
    senders.sort_by_key(|(source, packets)| (std::cmp::Reverse(*packets), *source));
    senders.truncate(PREFIXES_MAX);
    let met = senders.iter().map(|(_, packets)| packets).sum();
    let senders = hosts(senders.into_iter().map(|(source, _)| source));
    Some(Found {
        meets: case.shaped(shape, senders, false),
        action: Action::PerSource(usual.clamp(RATE_MIN, RATE_MAX)),
        explained: case.share(met),
        cost: 0.0,
        unspared: 0,
    })
}

/// Where legitimate packets look as the flood does: prefixes that hold it and nobody who is known are denied, and where there
/// are none, `limited` makes a rule of the shape that most of it has, which so many packets have.
pub fn by_source(
    case: &Case<'_>,
    left: &[&Facts],
    limited: impl FnOnce(Shape, usize) -> Option<Found>,
) -> Option<Found> {
    let (shape, _) = best(&count(left), case, false)?;
    let met: Vec<&Facts> = left.iter().copied().filter(|facts| shape.holds(facts)).collect();
    let mut legitimate = case.known_sources.clone();
    let looks_so = case
        .usual
        .iter()
        .chain(&case.known)
        .filter(|facts| shape.holds(facts));
    legitimate.extend(looks_so.map(|facts| (facts.source, is_v6(facts))));
    let prefixes = sources::prefixes(&met, &legitimate, case.cap);
    let is_blamed = |facts: &Facts| holds(&prefixes, facts);
    let held = met.iter().filter(|facts| is_blamed(facts)).count();
    if held as f64 >= BLAMED * met.len() as f64 {
        return Some(Found {
            cost: case.cost(&shape, is_blamed),
            meets: case.shaped(shape, prefixes, false),
            action: Action::Deny,
            explained: case.share(held),
            unspared: 0,
        });
    }
    limited(shape, met.len())
}

/// Of those who are not spared, as many pass as may: legitimate ones among them have a share of that.
fn but_for_known(case: &Case<'_>, shape: Shape, met: usize) -> Found {
    let mut told = HashSet::new();
    // Of a network a source may have spoken with many hosts.
    let mut known = case.known_sources.iter().filter(|source| told.insert(**source));
    let spared = hosts(known.by_ref().take(PREFIXES_MAX).copied());
    let unspared = known.count();
    Found {
        cost: case.cost(&shape, |facts| !holds(&spared, facts)),
        meets: case.shaped(shape, spared, true),
        action: Action::PerDestination(case.limit_pps.clamp(RATE_MIN, RATE_MAX)),
        explained: case.share(met),
        unspared,
    }
}

/// As sources of a rule, sorted.
fn hosts(sources: impl Iterator<Item = (u128, bool)>) -> Vec<Prefix> {
    let mut hosts: Vec<Prefix> = sources
        .map(|(source, is_v6)| Prefix::of_bits(source, is_v6, 128))
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

fn is_v6(facts: &Facts) -> bool {
    facts.layer == Layer::V6
}

/// Whether one of these, which are sorted, holds its source.
pub fn holds(prefixes: &[Prefix], facts: &Facts) -> bool {
    Prefix::any_contains(prefixes, facts.source, is_v6(facts))
}

impl Case<'_> {
    /// Of all packets that were looked at.
    pub fn share(&self, packets: usize) -> f64 {
        packets as f64 / (self.flood.len() + self.known.len()).max(1) as f64
    }

    /// What so many of them stand for.
    pub fn pps(&self, packets: usize) -> f64 {
        self.share(packets) * self.rate_pps
    }

    pub fn shaped(&self, shape: Shape, sources: Vec<Prefix>, not: bool) -> Meets {
        Meets::Shaped {
            to: self.to,
            shape,
            sources,
            not,
        }
    }

    /// The share of legitimate packets that a shape meets, of those from sources that are meant: the largest of what was
    /// usual, what known sources send now, and the kinds of packets that they ever sent.
    pub fn cost(&self, shape: &Shape, is_meant: impl Fn(&Facts) -> bool) -> f64 {
        let of = |all: &[&Facts]| {
            let met = all
                .iter()
                .filter(|facts| shape.holds(facts) && is_meant(facts))
                .count();
            if all.is_empty() {
                0.0
            } else {
                met as f64 / all.len() as f64
            }
        };
        of(&self.usual).max(of(&self.known)).max(of(&self.kinds))
    }
}
