//! What the capture's parts promise, from outside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says so by failing"
)]

mod disk;
mod foreign;
mod input;
mod merge;

#[path = "../../../dropless/tests/polling/support/mount.rs"]
mod mount;
#[path = "../../../dropless/tests/polling/support/skip.rs"]
mod skip;
