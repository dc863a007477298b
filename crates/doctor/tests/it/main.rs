//! Machines made of files, and what tune makes of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

mod ambient;
mod circles;
#[allow(dead_code, reason = "the tests of host use more of it")]
#[path = "../../../host/tests/it/fixture.rs"]
mod fixture;
mod tune;
