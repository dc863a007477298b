//! What the crate promises, against simple models and over many seeds.

mod dice;
mod expect;
mod interval;
mod ledger;
mod pacer;
mod reflected;
mod schedule;
mod search;
mod search_bunches;
mod search_drift;
mod search_rfc2544;
mod sequence;
mod summary;
mod union;
mod units;
mod verdict;
