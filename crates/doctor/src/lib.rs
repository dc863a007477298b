//! What on this machine takes a polling core away, and how that is mended.
//!
//! [`checks`] look, one a file; [`noise`] watches the kernel take cores away; [`tune`] alone changes the machine, with a
//! journal by which every change is taken back. What the machine is, `host` says.
#![forbid(unsafe_code)]

mod ambient;
pub mod checks;
mod command_line;
mod examine;
mod finding;
#[cfg(test)]
mod fixture;
mod look;
pub mod noise;
mod propose;
mod sample;
mod stall;
mod subject;
pub mod tune;

pub use ambient::ambient;
pub use examine::{examine, glance, measure_stalls};
pub use finding::{Change, Finding, Reading, Remedy, Verdict, When};
pub use propose::{Proposal, beside, propose};
pub use sample::{Sample, Smi, Watched};
pub use subject::{Load, Subject};
