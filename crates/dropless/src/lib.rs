//! `dropless` as a library: every subcommand can be started without a process of its own.
//!
//! [`commands`] has a folder for each; a run of packets takes the one way through [`run`], whatever its job is.
#![forbid(unsafe_code)]
#![allow(
    clippy::doc_markdown,
    clippy::struct_excessive_bools,
    rustdoc::broken_intra_doc_links,
    reason = "comments on arguments are the help page, where backticks would show, and each flag is a bool"
)]

mod about;
pub mod args;
mod at_end;
pub mod cli;
pub mod commands;
mod complaint;
mod explain;
mod metrics;
pub mod plan;
mod preset;
pub mod run;
mod status;
mod watch;

/// Exit code of a run that could not measure.
pub const EXIT_INVALID: u8 = measure::summary::EXIT_INVALID;
