//! One rule language, and the engines that agree on every packet: a reference, and tables for poll loops and for XDP.
//!
//! No I/O, no clock, no unsafe. A rule file becomes a [`RuleSet`] by [`parse`]; [`look`] says what a packet is, and
//! [`RuleSet::judge`] what becomes of it, rule by rule: that is the meaning of the language, and what faster engines are
//! measured against.
#![forbid(unsafe_code)]

pub mod check;
mod counts;
mod facts;
pub mod limit;
mod looked;
mod malformed;
mod prefix;
mod reference;
mod rule;
pub mod tables;
mod text;

pub use counts::{Count, Counts, Spelling, Totals};
pub use facts::{Detail, Facts, Layer, ON_REQUEST, Part, is_cut, look};
pub use looked::Looked;
pub use malformed::Malformed;
pub use prefix::Prefix;
pub use reference::{Decision, Groups, Step};
pub use rule::{
    Action, Choice, End, Flags, Fragment, Network, Place, Rate, Rule, RuleSet, Unmet, Verdict, Vlan, When,
};
pub use tables::Tables;
pub use text::{LIMITS_MAX, Problem, RATE_MAX, RULES_MAX, parse};
// Who reads facts needs the numbers that stand in them.
pub use wire::checksum::{ICMP, ICMPV6, SCTP, TCP, UDP};
