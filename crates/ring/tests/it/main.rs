//! What a ring promises, from outside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says so by failing"
)]

mod any;
mod damaged;
mod daq;
mod in_c;
mod killed;
mod pcapng;
mod ring;
mod share;
mod support;

#[path = "../../../dropless/tests/polling/support/skip.rs"]
mod skip;
