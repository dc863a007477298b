//! A rule set as tables: for each thing that rules ask, what values fulfil which rules, as a bit a rule. A packet looks up
//! its row in each table; the first bit that all rows have is its rule.
//!
//! The same tables, as plain words, are what the XDP program looks into. Rules: Lakshman and Stiliadis, "High-speed
//! policy-based packet forwarding" (1998), with a summary of each row as in Baboescu and Varghese (2001).

mod addresses;
mod alone;
mod build;
mod classify;
mod header;
mod memo;
mod poptrie;
mod ranges;
mod rows;

pub use addresses::AddressTable;
pub use memo::Memo;
pub use poptrie::{LEAF, Node, Poptrie, ROOT_BITS, STEP_BITS};
pub use rows::Rows;

use crate::limit::Interval;
use crate::{Rate, Verdict};

/// Bytes that the tables of one set may take.
pub const BYTES_MAX: usize = 1 << 30;
/// Rules that a word of a row has a bit for.
const WORD: usize = 64;

/// Values that are numbers below a bound, each with its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexTable {
    /// The row of each value.
    pub classes: Vec<u16>,
    /// The row of packets that have no such value.
    pub none: u16,
    /// All rows.
    pub rows: Rows,
}

/// What a rule does, for engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// Decides.
    Decide(Verdict),
    /// Limits: by which of [`Tables::rates`].
    Limit(u16),
}

/// A rate that a rule limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The rate.
    pub rate: Rate,
    /// In the clock's units.
    pub interval: Interval,
    /// What its groups are known by ([`crate::limit::number`]).
    pub number: u32,
}

/// A rule set for engines. A table that no rule asks is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// What each rule does.
    pub rules: Vec<Do>,
    /// All rates. They stand apart so that what rules do takes little room where it is looked up.
    pub rates: Vec<Limit>,
    /// Otherwise.
    pub default: Verdict,
    /// Reasons that rules name.
    pub reasons: u16,
    /// By reason.
    pub malformed: IndexTable,
    /// By [`Tables::kind`].
    pub kind: Option<IndexTable>,
    /// By ether type, of what is not IP.
    pub ether_type: Option<IndexTable>,
    /// By outermost VLAN.
    pub vlan: Option<IndexTable>,
    /// By [`Tables::detail`].
    pub detail: Option<IndexTable>,
    /// By source port.
    pub source_port: Option<IndexTable>,
    /// By destination port.
    pub destination_port: Option<IndexTable>,
    /// By source address.
    pub source: Option<AddressTable>,
    /// By destination address.
    pub destination: Option<AddressTable>,
    /// Each rule by itself, where there are more than a row of one word has bits for.
    alone: Vec<alone::Alone>,
}

/// A rule set whose tables would be larger than they may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gibibytes = BYTES_MAX >> 30;
        write!(
            f,
            "the tables of these rules would take more than {gibibytes} GiB: put addresses into sets that several rules share"
        )
    }
}

impl std::error::Error for TooLarge {}
