//! Tests of the guard, in time that is made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "these are tests"
)]

mod allowed;
mod attacks;
mod limits;
mod rules_of;
mod spared;
mod spread;
mod world;
