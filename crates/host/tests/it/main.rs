//! Machines made of files, and what the crate says of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

mod cores;
mod device;
mod discover;
mod facts;
mod files;
mod fixture;
mod hugepages;
mod interfaces;
mod live;
mod memory;
mod pci;
mod roles;
mod sockets;
mod vmbus;

#[path = "../../../dropless/tests/polling/support/skip.rs"]
mod skip;
