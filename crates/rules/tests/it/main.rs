//! Tests of the rule language and its engines.

#![allow(
    clippy::format_collect,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "these are tests"
)]

mod agree;
mod check;
mod frames;
mod language;
mod sets;
