//! What is written, read back, drawn and printed.
#![allow(clippy::expect_used, reason = "a test says so by failing")]

mod common;
mod damage;
mod disk_full;
mod golden;
mod guard;
mod impossible;
mod killed;
mod mixed;
mod noise;
mod of_many;
mod page;
mod page_files;
mod printing;
mod published;
mod terminal;

#[path = "../../../dropless/tests/polling/support/golden_files.rs"]
mod golden_files;
#[path = "../../../dropless/tests/polling/support/skip.rs"]
mod skip;
