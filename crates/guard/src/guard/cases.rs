//! What is known of a flood, and the rules that follow from it.

use std::collections::HashMap;

use rules::{Facts, Layer, Prefix};

use super::Guard;
use crate::block::Block;
use crate::explain::{Case, Found, explain};
use crate::flood::Flood;
use crate::known::Ends;
use crate::recent::Seen;
use crate::shape::Shape;
use crate::spread;
use crate::traffic::ACQUAINTED_NS;

/// Of samples that lie ready, how many are looked at.
const EXPLAINED: usize = 2048;
/// Packets of known sources, of different kinds, that are looked at.
const COMPARED: usize = 4096;
/// Whoever was met so long before a flood belongs to what was there before; ns.
const BEFORE_NS: u64 = 1_000_000_000;

/// What is to be said of a source that sends much.
pub struct Spread {
    /// What it sends to others than hosts that are flooded anyhow.
    pub flood: Flood,
    pub found: Vec<Found>,
    /// By so many legitimate packets that are known.
    pub by: u64,
    /// Why it may go on.
    pub why: Option<&'static str>,
}

impl Guard {
    /// What explains a flood of a destination, by so many legitimate packets that are known.
    pub(super) fn explained(&self, flood: &Flood, to: Prefix) -> (Vec<Found>, u64) {
        let before_ns = flood.since_ns.saturating_sub(BEFORE_NS);
        let is_meant = |ends: Ends| to.contains(ends.destination, ends.is_v6);
        let is_wanted = |seen: &&Seen| {
            !seen.is_met
                && seen.time_ns >= flood.since_ns
                && goes(&seen.facts, to)
                && flood.class.holds(&seen.facts)
        };
        let newest = self.recent.newest().filter(is_wanted);
        let (known, strangers): (Vec<&Facts>, Vec<&Facts>) = newest
            .map(|seen| &seen.facts)
            .take(EXPLAINED)
            .partition(|facts| self.known.knows(facts, before_ns));
        let usual = self.destinations.within(to).flat_map(|traffic| &traffic.usual);
        let case = Case {
            flood: strangers,
            usual: usual.take(EXPLAINED).collect(),
            known,
            kinds: self.known.kinds(before_ns, COMPARED, is_meant),
            known_sources: self.known.sources(before_ns, is_meant),
            to,
            before: self.shapes(|block| block.meets.destination() == Some(to)),
            rate_pps: flood.rates.pps,
            limit_pps: flood.limit_pps(),
            usual_pps: flood.usual,
            cap: &self.settings.cap,
        };
        (explain(&case), legitimate(&case))
    }

    /// What is to be done about a source that sends more than one may, but for what goes to `flooded` destinations; none if
    /// that is little, or goes to one host, which may have it.
    pub(super) fn spread(&self, flood: &Flood, from: Prefix, flooded: &[Prefix]) -> Option<Spread> {
        let before_ns = flood.since_ns.saturating_sub(ACQUAINTED_NS);
        let is_wanted = |seen: &&Seen| {
            seen.is_counted
                && seen.time_ns >= flood.since_ns
                && comes(&seen.facts, from)
                && flood.class.holds(&seen.facts)
        };
        let newest: Vec<&Seen> = self.recent.newest().filter(is_wanted).take(EXPLAINED).collect();
        let is_left =
            |seen: &&&Seen| !seen.is_met && !flooded.iter().any(|flooded| goes(&seen.facts, *flooded));
        let left = newest.iter().filter(is_left).map(|seen| &seen.facts);
        let (known, strangers): (Vec<&Facts>, Vec<&Facts>) =
            left.partition(|facts| self.known.knows(facts, before_ns));
        let part = |packets: usize| flood.part(packets as f64 / newest.len().max(1) as f64);
        let all = part(known.len() + strangers.len());
        let mut hosts: HashMap<u128, usize> = HashMap::new();
        for facts in &strangers {
            *hosts.entry(facts.destination).or_default() += 1;
        }
        let most = hosts.values().max().copied().unwrap_or_default();
        if !all.is_over() {
            return None;
        }
        if !part(strangers.len()).is_over() {
            return Some(Spread {
                flood: all,
                found: Vec::new(),
                by: 0,
                why: Some("without what goes to hosts that it spoke with before it is not too much"),
            });
        }
        if !part(strangers.len() - most).part(2.0).is_over() {
            return None;
        }
        let is_meant = |ends: Ends| from.contains(ends.source, ends.is_v6);
        let usual = self.sources.within(from).flat_map(|traffic| &traffic.usual);
        let case = Case {
            flood: strangers,
            usual: usual.take(EXPLAINED).collect(),
            known,
            kinds: self.known.kinds(before_ns, COMPARED, is_meant),
            known_sources: self.known.sources(before_ns, is_meant),
            to: Prefix::of_bits(0, from.is_v6(), 0),
            before: self.shapes(|block| block.meets.spreading().iter().any(|there| from.covers(there))),
            rate_pps: all.rates.pps,
            limit_pps: flood.limit_pps(),
            usual_pps: flood.usual,
            cap: &self.settings.cap,
        };
        Some(Spread {
            flood: all,
            found: spread::explain(&case, from),
            by: legitimate(&case),
            why: None,
        })
    }

    /// What rules in force ask beside addresses.
    fn shapes(&self, is_meant: impl Fn(&Block) -> bool) -> Vec<Shape> {
        let meant = self.in_force.iter().filter(|block| is_meant(block));
        meant.filter_map(|block| block.meets.shape()).collect()
    }
}

/// How many packets are known that are held to be legitimate.
fn legitimate(case: &Case<'_>) -> u64 {
    (case.usual.len() + case.known.len() + case.kinds.len()) as u64
}

fn goes(facts: &Facts, to: Prefix) -> bool {
    to.contains(facts.destination, facts.layer == Layer::V6)
}

fn comes(facts: &Facts, from: Prefix) -> bool {
    from.contains(facts.source, facts.layer == Layer::V6)
}
