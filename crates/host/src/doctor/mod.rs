//! The doctor: what on this machine will take a polling core away, one check a file.

pub mod finding;
pub mod sample;
mod tick;

pub use finding::{Change, Finding, Reading, Remedy, Verdict, When};
pub use sample::{Sample, Watched};

use crate::Sys;
use crate::cores::CoreSet;
use crate::uri::PortUri;

/// What is examined: the machine, and what is planned on it.
#[derive(Debug)]
pub struct Patient<'s> {
    /// The machine.
    pub sys: &'s Sys,
    /// The cores that will poll.
    pub workers: CoreSet,
    /// The cores that everything else may have.
    pub housekeeping: CoreSet,
    /// The ports that will be used.
    pub ports: Vec<PortUri>,
    /// What the kernel counted while we watched.
    pub watched: Watched,
}

/// A check: it looks and says what it found, one finding or several.
pub type Check = fn(&Patient<'_>) -> Vec<Finding>;

/// All checks, in the order in which they are shown.
pub const CHECKS: &[Check] = &[tick::check];

/// Runs all checks.
pub fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(patient)).collect()
}
