//! `dropless` as a library: every subcommand can be started without a process of its own.
//!
//! [`commands`] has a folder for each; a run of packets takes the one way through [`run`], whatever its job is.
#![forbid(unsafe_code)]

pub mod args;
pub mod cli;
pub mod commands;
mod complaint;
mod explain;
mod metrics;
pub mod plan;
pub mod run;
mod status;
mod watch;

/// Exit code of a run that could not measure.
pub const EXIT_INVALID: u8 = measure::summary::EXIT_INVALID;
