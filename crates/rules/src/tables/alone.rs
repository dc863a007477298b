//! What one rule asks, in so few bytes that it can be asked by itself: where a packet's class in some table leaves few rules,
//! that is far less to read than the rows of all tables. Of user space alone; the meaning stays with the rows.

use std::ops::RangeInclusive;

use super::memo::{DESTINATION, DESTINATION_PORT, DETAIL, ETHER_TYPE, KIND, SOURCE, SOURCE_PORT, VLAN};
use crate::rule::{Choice, Network};
use crate::{Facts, Layer, Prefix, When};

/// What a packet has, and a rule may need.
const V4: u8 = 1;
const V6: u8 = 2;
const PORTS: u8 = 4;

/// One rule's conditions: those that are one range, and which tables know the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alone {
    source: Within,
    destination: Within,
    source_port: [u16; 2],
    destination_port: [u16; 2],
    /// What the packet must have.
    needs: u8,
    /// Tables that must be asked beside, a bit each by the place of their class.
    tables: u8,
}

/// A prefix without its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Within {
    address: u128,
    /// Bits that do not count.
    rest: u8,
}

/// What of a packet [`Alone::holds`] goes by.
#[derive(Clone, Copy)]
pub(super) struct Values {
    source: u128,
    destination: u128,
    source_port: u16,
    destination_port: u16,
    has: u8,
}

impl Values {
    #[inline]
    pub(super) fn of(facts: &Facts) -> Self {
        let family = match facts.layer {
            Layer::Other => 0,
            Layer::V4 => V4,
            Layer::V6 => V6,
        };
        let (source_port, destination_port) = facts.ports.unwrap_or_default();
        Self {
            source: facts.source,
            destination: facts.destination,
            source_port,
            destination_port,
            has: family | if facts.ports.is_some() { PORTS } else { 0 },
        }
    }
}

impl Within {
    #[inline]
    fn holds(self, address: u128) -> bool {
        (self.address ^ address)
            .checked_shr(self.rest.into())
            .unwrap_or(0)
            == 0
    }
}

impl Alone {
    /// What this rule asks.
    pub(super) fn new(when: &When) -> Self {
        let mut alone = Self {
            source: Within {
                address: 0,
                rest: 128,
            },
            destination: Within {
                address: 0,
                rest: 128,
            },
            source_port: [0, u16::MAX],
            destination_port: [0, u16::MAX],
            needs: 0,
            tables: 0,
        };
        alone.addresses(SOURCE, when.source.as_ref());
        alone.addresses(DESTINATION, when.destination.as_ref());
        alone.ports(SOURCE_PORT, when.source_port.as_ref());
        alone.ports(DESTINATION_PORT, when.destination_port.as_ref());
        let asks_kind = when.malformed.is_some()
            || when.network.is_some()
            || when.protocols.is_some()
            || when.fragment.is_some();
        for (table, is_asked) in [
            (KIND, asks_kind),
            (DETAIL, when.flags.is_some() || when.types.is_some()),
            (VLAN, when.vlan.is_some()),
            (ETHER_TYPE, matches!(when.network, Some(Network::NotIp(Some(_))))),
        ] {
            alone.tables |= u8::from(is_asked) << table;
        }
        alone
    }

    fn addresses(&mut self, table: usize, choice: Option<&Choice<Prefix>>) {
        let Some(choice) = choice else { return };
        let [prefix] = choice.of[..] else {
            self.tables |= 1 << table;
            return;
        };
        if choice.not {
            self.tables |= 1 << table;
            return;
        }
        let within = Within {
            address: prefix.address(),
            rest: 128 - prefix.bits(),
        };
        self.needs |= if prefix.is_v6() { V6 } else { V4 };
        if table == SOURCE {
            self.source = within;
        } else {
            self.destination = within;
        }
    }

    fn ports(&mut self, table: usize, choice: Option<&Choice<RangeInclusive<u16>>>) {
        let Some(choice) = choice else { return };
        match &choice.of[..] {
            [range] if !choice.not => {
                self.needs |= PORTS;
                let range = [*range.start(), *range.end()];
                if table == SOURCE_PORT {
                    self.source_port = range;
                } else {
                    self.destination_port = range;
                }
            }
            _ => self.tables |= 1 << table,
        }
    }

    /// Whether this packet fulfils all that can be said without a table.
    #[inline]
    #[allow(
        clippy::needless_bitwise_bool,
        reason = "all at once: which of them fails is anybody's guess"
    )]
    pub(super) fn holds(&self, of: &Values) -> bool {
        (self.needs & !of.has == 0)
            & self.source.holds(of.source)
            & self.destination.holds(of.destination)
            & (self.source_port[0] <= of.source_port)
            & (of.source_port <= self.source_port[1])
            & (self.destination_port[0] <= of.destination_port)
            & (of.destination_port <= self.destination_port[1])
    }

    /// Tables that must be asked beside.
    #[inline]
    pub(super) fn tables(&self) -> u8 {
        self.tables
    }
}
