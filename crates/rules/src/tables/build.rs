//! Tables of a rule set.

use std::ops::RangeInclusive;

use super::alone::Alone;
use super::ranges::{Asked, table};
use super::rows::{Gather, set};
use super::{AddressTable, Do, IndexTable, Limit, Tables, TooLarge, WORD};
use crate::limit::number;
use crate::rule::{Choice, Network, Vlan};
use crate::{Action, Detail, Layer, Malformed, Part, RuleSet, When};

/// Values of [`Tables::kind`].
const KINDS: usize = 3 << 10;
/// Values of [`Tables::detail`].
const DETAILS: usize = 3 << 8;

impl Tables {
    /// Compiles a rule set.
    ///
    /// # Errors
    ///
    /// If the tables would be too large.
    pub fn new(set: &RuleSet) -> Result<Self, TooLarge> {
        let mut rates: Vec<Limit> = Vec::new();
        let rules = set.rules.iter().map(|rule| match &rule.action {
            Action::Decide(verdict) => Do::Decide(*verdict),
            Action::Limit(rate) => {
                let number = number(&rule.text, |number| {
                    rates.iter().any(|other| other.number == number)
                });
                rates.push(Limit {
                    rate: *rate,
                    interval: rate.into(),
                    number,
                });
                Do::Limit(rates.len() as u16 - 1)
            }
        });
        let rules = rules.collect();
        let when = || set.rules.iter().map(|rule| &rule.when);
        let ports = |choice: fn(&When) -> &Option<Choice<RangeInclusive<u16>>>| {
            let asked: Vec<Asked> = when()
                .map(|when| {
                    choice(when)
                        .as_ref()
                        .map(|choice| (choice.of.to_vec(), choice.not))
                })
                .collect();
            table(&asked, u16::MAX, |_| false)
        };
        let vlans: Vec<Asked> = when()
            .map(|when| match &when.vlan {
                None => None,
                Some(Vlan::Untagged) => Some((Vec::new(), false)),
                Some(Vlan::Tagged(ranges)) => Some((ranges.clone(), false)),
            })
            .collect();
        let is_untagged = |rule: usize| set.rules[rule].when.vlan == Some(Vlan::Untagged);
        let types: Vec<Asked> = when()
            .map(|when| match &when.network {
                Some(Network::NotIp(Some(ranges))) => Some((ranges.clone(), false)),
                _ => None,
            })
            .collect();
        let addresses = |choice: fn(&When) -> Option<&Choice<crate::Prefix>>| {
            AddressTable::new(&when().map(choice).collect::<Vec<_>>())
        };
        Ok(Self {
            rules,
            rates,
            default: set.default,
            reasons: set.reasons(),
            malformed: malformed(set)?,
            kind: kind(set)?,
            ether_type: table(&types, u16::MAX, |_| false)?,
            vlan: table(&vlans, 4095, is_untagged)?,
            detail: detail(set)?,
            source_port: ports(|when| &when.source_port)?,
            destination_port: ports(|when| &when.destination_port)?,
            source: addresses(|when| when.source.as_ref())?,
            destination: addresses(|when| when.destination.as_ref())?,
            alone: if set.rules.len() > WORD {
                when().map(Alone::new).collect()
            } else {
                Vec::new()
            },
        })
    }

    /// Where a packet of this layer, part and protocol is in its table.
    #[inline]
    pub const fn kind(layer: Layer, part: Part, protocol: u8) -> usize {
        (layer as usize) << 10 | (part as usize) << 8 | protocol as usize
    }

    /// Where flags or a type are in their table.
    #[inline]
    pub const fn detail(detail: Detail) -> usize {
        match detail {
            Detail::None => 0,
            Detail::Flags(flags) => 1 << 8 | flags as usize,
            Detail::Type(kind) => 2 << 8 | kind as usize,
        }
    }
}

/// A table whose values are asked one by one: rules that ask nothing hold always.
fn each(
    set_: &RuleSet,
    values: usize,
    asks: impl Fn(&When) -> bool,
    holds: impl Fn(&When, usize) -> bool,
) -> Result<Option<IndexTable>, TooLarge> {
    let asking: Vec<(usize, &When)> = set_
        .rules
        .iter()
        .map(|rule| &rule.when)
        .enumerate()
        .filter(|(_, when)| asks(when))
        .collect();
    if asking.is_empty() {
        return Ok(None);
    }
    let mut gather = Gather::new(set_.rules.len());
    let mut always = gather.blank();
    for (rule, of) in set_.rules.iter().enumerate() {
        set(&mut always, rule, !asks(&of.when));
    }
    let mut classes = Vec::with_capacity(values);
    for value in 0..values {
        let mut row = always.clone();
        for (rule, when) in &asking {
            set(&mut row, *rule, holds(when, value));
        }
        classes.push(gather.add(&row)? as u16);
    }
    Ok(Some(IndexTable {
        none: classes.first().copied().unwrap_or_default(),
        classes,
        rows: gather.finish(),
    }))
}

fn kind(set: &RuleSet) -> Result<Option<IndexTable>, TooLarge> {
    // What is malformed has a table of its own; a rule for it holds for nothing here.
    let asks = |when: &When| {
        when.malformed.is_some()
            || when.network.is_some()
            || when.protocols.is_some()
            || when.fragment.is_some()
    };
    each(set, KINDS, asks, |when, value| {
        let layer = [Layer::Other, Layer::V4, Layer::V6][value >> 10];
        let Some(part) = [Part::Whole, Part::First, Part::Later].get(value >> 8 & 3) else {
            return false;
        };
        let is_ip = layer != Layer::Other;
        let network = when.network.as_ref().is_none_or(|network| match network {
            Network::Ip => is_ip,
            Network::Version(version) => *version == layer,
            Network::NotIp(_) => !is_ip,
        });
        when.malformed.is_none()
            && network
            && when
                .protocols
                .as_ref()
                .is_none_or(|numbers| is_ip && numbers.contains(&(value as u8)))
            && when
                .fragment
                .is_none_or(|fragment| is_ip && fragment.holds(*part))
    })
}

fn detail(set: &RuleSet) -> Result<Option<IndexTable>, TooLarge> {
    let asks = |when: &When| when.flags.is_some() || when.types.is_some();
    each(set, DETAILS, asks, |when, value| {
        let low = value as u8;
        let flags = |flags: crate::Flags| value >> 8 == 1 && low & flags.mask == flags.value;
        let types = |types: &Vec<RangeInclusive<u8>>| {
            value >> 8 == 2 && types.iter().any(|range| range.contains(&low))
        };
        when.flags.is_none_or(flags) && when.types.as_ref().is_none_or(types)
    })
}

fn malformed(set_: &RuleSet) -> Result<IndexTable, TooLarge> {
    let mut gather = Gather::new(set_.rules.len());
    let mut classes = Vec::new();
    for reason in Malformed::ALL {
        let mut row = gather.blank();
        for (rule, of) in set_.rules.iter().enumerate() {
            set(&mut row, rule, of.when.check(&Err(reason)).is_ok());
        }
        classes.push(gather.add(&row)? as u16);
    }
    Ok(IndexTable {
        classes,
        none: 0,
        rows: gather.finish(),
    })
}
