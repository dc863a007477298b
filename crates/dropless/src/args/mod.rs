//! The command line: one file a subcommand, turned into a validated plan before anything starts.

#![allow(
    clippy::doc_markdown,
    reason = "these comments are the help page, where backticks would show"
)]

pub mod compare;
pub mod doctor;
pub mod live;
pub mod noise;
pub mod ports;
pub mod reflect;
pub mod report;
pub mod search;
pub mod send;
pub mod top;
pub mod tune;

use clap::{Parser, Subcommand};

/// Send and reflect packets at line rate, and account for every single one.
#[derive(Debug, Parser)]
#[command(
    name = "dropless",
    version,
    max_term_width = 100,
    after_help = "Examples:
  dropless send                                   the whole job on this machine, nothing needed
  dropless ports                                  what could carry packets here, and what is missing
  dropless doctor                                 what would cost packets here, and what mends it
  dropless reflect --port xdp:eth1                return packets on the far machine
  dropless send --port xdp:eth1 --to 10.0.0.2 --rate 1Mpps --duration 10s
  dropless search --port xdp:eth1 --to 10.0.0.2   the highest rate without loss
  dropless report runs/* --html runs.html         charts, side by side, in one page

Exit codes: 0 measured and clean; 1 measured, and loss or a failed expectation was found;
2 could not measure."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send UDP probes, receive them back, and account for every one
    Send(Box<send::SendArgs>),
    /// Find the highest rate that a path carries, and say who was the limit
    Search(Box<search::SearchArgs>),
    /// Return what arrives: the far end of a measurement
    Reflect(Box<reflect::ReflectArgs>),
    /// Measure kernel sockets, AF_PACKET, AF_XDP and DPDK here, and say which one to take
    Compare(Box<compare::CompareArgs>),
    /// Poll on some cores without packets, and name what takes them away
    Noise(noise::NoiseArgs),
    /// List everything on this machine that could carry packets
    Ports(ports::PortsArgs),
    /// Show runs as a page, in the terminal or for programs, and compare them
    Report(report::ReportArgs),
    /// Keep everything else off the cores that poll, and take it back
    Tune(tune::TuneArgs),
    /// Examine this machine for what takes packets from a program that polls
    Doctor(doctor::DoctorArgs),
    /// Watch a run from another terminal
    Top(top::TopArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}
