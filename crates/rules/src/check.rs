//! Rules that can never decide about a packet, since an earlier one decides about all of theirs, or there are none.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use wire::checksum::{ICMP, ICMPV6, SCTP, TCP, UDP};

use crate::rule::{Choice, Fragment, Network, Vlan};
use crate::{Action, Layer, Malformed, Part, Prefix, RuleSet, When};

/// Why a rule is never met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Never {
    /// No packet fulfils all its conditions.
    Impossible,
    /// None but later fragments: it asks for extension headers of IPv6, and rules meet what stands behind these.
    LookedThrough,
    /// This rule decides about every packet that it holds for.
    Behind(usize),
}

/// The rules that are never met, by their places. One that several earlier rules cover only together is not found.
pub fn never(set: &RuleSet) -> Vec<(usize, Never)> {
    let mut addresses = Addresses::default();
    let extents: Vec<Extent> = set
        .rules
        .iter()
        .map(|rule| Extent::of(&rule.when, &mut addresses))
        .collect();
    let mut deciding: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for (number, extent) in extents.iter().enumerate() {
        if extent.is_empty() {
            found.push((number, Never::Impossible));
            continue;
        }
        if extent.is_looked_through() {
            found.push((number, Never::LookedThrough));
            continue;
        }
        match deciding
            .iter()
            .find(|earlier| extent.is_within(&extents[**earlier]))
        {
            Some(earlier) => found.push((number, Never::Behind(*earlier))),
            None => {
                if matches!(set.rules[number].action, Action::Decide(_)) {
                    deciding.push(number);
                }
            }
        }
    }
    found
}

/// Ranges in order that neither overlap nor touch.
type Ranges = Arc<Vec<RangeInclusive<u128>>>;

/// What a rule's conditions let through of each thing apart: a rule holds for a packet that lies in all of them.
struct Extent {
    /// Reasons, and one bit more for what is well-formed.
    malformed: u16,
    layers: u8,
    parts: u8,
    protocols: [u64; 4],
    /// Flags, types, and one bit for neither.
    details: [u64; 9],
    /// With one value behind the last for what has none.
    vlans: Ranges,
    ether_types: Ranges,
    source_ports: Ranges,
    destination_ports: Ranges,
    /// Of IPv4 and IPv6; what is not IP has none.
    source: [Ranges; 2],
    destination: [Ranges; 2],
}

const WELL_FORMED: u16 = 1 << Malformed::ALL.len();
const V6: u8 = 1 << Layer::V6 as u8;
const LATER: u8 = 1 << Part::Later as u8;
/// Extension headers of IPv6 that are looked through (`wire::parse`), as protocols: those up to 63, one bit each.
const EXTENSIONS: u64 = 1 | 1 << 43 | 1 << 44 | 1 << 51 | 1 << 60;
const IP: u8 = 1 << Layer::V4 as u8 | 1 << Layer::V6 as u8;
/// Of details: neither flags nor a type.
const NO_DETAIL: usize = 512;
const NO_PORT: u128 = 1 << 16;
const UNTAGGED: u128 = 1 << 12;

impl Extent {
    fn of(when: &When, addresses: &mut Addresses) -> Self {
        let all = || Arc::new(vec![0..=u128::MAX]);
        let mut extent = Self {
            malformed: when.malformed.unwrap_or(WELL_FORMED),
            layers: 7,
            parts: 7,
            protocols: [u64::MAX; 4],
            details: [u64::MAX; 9],
            vlans: all(),
            ether_types: all(),
            source_ports: all(),
            destination_ports: all(),
            source: [all(), all()],
            destination: [all(), all()],
        };
        if *when == When::default() {
            extent.malformed = u16::MAX >> (15 - Malformed::ALL.len());
        }
        match &when.network {
            None => {}
            Some(Network::Ip) => extent.layers = IP,
            Some(Network::Version(layer)) => extent.layers = 1 << *layer as u8,
            Some(Network::NotIp(types)) => {
                extent.layers = 1 << Layer::Other as u8;
                if let Some(types) = types {
                    extent.ether_types = joined(types.iter().map(wide));
                }
            }
        }
        extent.narrow(when);
        for (choice, place) in [
            (&when.source, &mut extent.source),
            (&when.destination, &mut extent.destination),
        ] {
            if let Some(choice) = choice {
                extent.layers &= IP;
                *place = addresses.of(choice);
            }
        }
        // A family of which no address is left is none that the rule holds for.
        for (layer, family) in [(Layer::V4, 0), (Layer::V6, 1)] {
            if extent.source[family].is_empty() || extent.destination[family].is_empty() {
                extent.layers &= !(1 << layer as u8);
            }
        }
        extent
    }

    /// By protocol, ports, fragments, flags, types and VLAN.
    fn narrow(&mut self, when: &When) {
        let only = |numbers: &[u8]| {
            let mut bits = [0; 4];
            for number in numbers {
                bits[usize::from(number / 64)] |= 1 << (number % 64);
            }
            bits
        };
        let and = |protocols: &mut [u64; 4], numbers: &[u8]| {
            for (word, bits) in protocols.iter_mut().zip(only(numbers)) {
                *word &= bits;
            }
        };
        if let Some(protocols) = &when.protocols {
            self.layers &= IP;
            and(&mut self.protocols, protocols);
        }
        if let Some(fragment) = when.fragment {
            self.layers &= IP;
            let parts = [Part::Whole, Part::First, Part::Later]
                .into_iter()
                .filter(|part| Fragment::holds(fragment, *part));
            self.parts = parts.fold(0, |all, part| all | 1 << part as u8);
        }
        for (choice, place) in [
            (&when.source_port, &mut self.source_ports),
            (&when.destination_port, &mut self.destination_ports),
        ] {
            if let Some(choice) = choice {
                self.layers &= IP;
                self.parts &= !(1 << Part::Later as u8);
                and(&mut self.protocols, &[TCP, UDP, SCTP]);
                *place = chosen(joined(choice.of.iter().map(wide)), choice.not, NO_PORT - 1);
            }
        }
        let later = !(1 << Part::Later as u8);
        if when.flags.is_some() || when.types.is_some() {
            self.layers &= IP;
            self.parts &= later;
            self.details = [0; 9];
        }
        if let Some(flags) = when.flags {
            and(&mut self.protocols, &[TCP]);
            for value in (0..=255_u8).filter(|value| value & flags.mask == flags.value) {
                self.details[usize::from(value) / 64] |= 1 << (value % 64);
            }
        }
        for value in when.types.iter().flatten().cloned().flatten() {
            and(&mut self.protocols, &[ICMP, ICMPV6]);
            self.details[4 + usize::from(value) / 64] |= 1 << (value % 64);
        }
        match &when.vlan {
            None => {}
            Some(Vlan::Untagged) => self.vlans = Arc::new(vec![UNTAGGED..=UNTAGGED]),
            Some(Vlan::Tagged(ranges)) => self.vlans = joined(ranges.iter().map(wide)),
        }
        debug_assert!(NO_DETAIL / 64 < self.details.len());
    }

    fn is_empty(&self) -> bool {
        let well_formed = self.layers == 0
            || self.parts == 0
            || self.protocols == [0; 4]
            || self.details == [0; 9]
            || [
                &self.vlans,
                &self.ether_types,
                &self.source_ports,
                &self.destination_ports,
            ]
            .iter()
            .any(|ranges| ranges.is_empty());
        let looked_through = self.asks_extensions() && self.parts & LATER == 0;
        self.malformed == 0 || (self.malformed == WELL_FORMED && (well_formed || looked_through))
    }

    /// Whether it holds for IPv6 alone, and asks for extension headers alone.
    fn asks_extensions(&self) -> bool {
        let [low, rest @ ..] = self.protocols;
        self.malformed == WELL_FORMED && self.layers == V6 && low & !EXTENSIONS == 0 && rest == [0; 3]
    }

    /// Whether only what says nothing but the first of its headers is left: later fragments.
    fn is_looked_through(&self) -> bool {
        self.asks_extensions() && self.parts != LATER
    }

    fn is_within(&self, other: &Self) -> bool {
        let bits = |of: &[u64], within: &[u64]| of.iter().zip(within).all(|(of, within)| of & !within == 0);
        let ranges = |of: &Ranges, within: &Ranges| Arc::ptr_eq(of, within) || covers(within, of);
        let addresses = |of: &[Ranges; 2], within: &[Ranges; 2]| {
            [Layer::V4, Layer::V6]
                .into_iter()
                .zip(of.iter().zip(within))
                .all(|(layer, (of, within))| self.layers & 1 << layer as u8 == 0 || ranges(of, within))
        };
        self.malformed & !other.malformed == 0
            && (self.malformed & WELL_FORMED == 0
                || (self.layers & !other.layers == 0
                    && self.parts & !other.parts == 0
                    && bits(&self.protocols, &other.protocols)
                    && bits(&self.details, &other.details)
                    && ranges(&self.vlans, &other.vlans)
                    && ranges(&self.ether_types, &other.ether_types)
                    && ranges(&self.source_ports, &other.source_ports)
                    && ranges(&self.destination_ports, &other.destination_ports)
                    && addresses(&self.source, &other.source)
                    && addresses(&self.destination, &other.destination)))
    }
}

fn wide<T: Into<u128> + Copy>(range: &RangeInclusive<T>) -> RangeInclusive<u128> {
    (*range.start()).into()..=(*range.end()).into()
}

fn joined(ranges: impl Iterator<Item = RangeInclusive<u128>>) -> Ranges {
    let mut sorted: Vec<_> = ranges.collect();
    sorted.sort_unstable_by_key(|range| *range.start());
    let mut joined: Vec<RangeInclusive<u128>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start().saturating_sub(1) <= *last.end() => {
                *last = *last.start()..=(*last.end()).max(*range.end());
            }
            _ => joined.push(range),
        }
    }
    Arc::new(joined)
}

/// The ranges, or what they leave of everything up to `last`.
fn chosen(ranges: Ranges, not: bool, last: u128) -> Ranges {
    if !not {
        return ranges;
    }
    let mut left = Vec::new();
    let mut next = Some(0);
    for range in ranges.iter() {
        left.extend(
            next.filter(|next| next < range.start())
                .map(|next| next..=range.start() - 1),
        );
        next = range.end().checked_add(1);
    }
    left.extend(next.filter(|next| *next <= last).map(|next| next..=last));
    Arc::new(left)
}

/// Whether every value of `of` is in `within`; both are joined.
fn covers(within: &Ranges, of: &Ranges) -> bool {
    of.iter().all(|range| {
        let place = within.partition_point(|other| other.end() < range.end());
        within
            .get(place)
            .is_some_and(|other| other.start() <= range.start() && other.end() >= range.end())
    })
}

/// The ranges of each set, made once.
#[derive(Default)]
struct Addresses(HashMap<(*const Vec<Prefix>, bool), [Ranges; 2]>);

impl Addresses {
    fn of(&mut self, choice: &Choice<Prefix>) -> [Ranges; 2] {
        let made = self
            .0
            .entry((Arc::as_ptr(&choice.of), choice.not))
            .or_insert_with(|| {
                [false, true].map(|is_v6| {
                    let prefixes = choice.of.iter().filter(|prefix| prefix.is_v6() == is_v6);
                    let ranges = prefixes.map(|prefix| {
                        let rest = u128::MAX.checked_shr(prefix.bits().into()).unwrap_or(0);
                        prefix.address()..=prefix.address() | rest
                    });
                    chosen(joined(ranges), choice.not, u128::MAX)
                })
            });
        made.clone()
    }
}
