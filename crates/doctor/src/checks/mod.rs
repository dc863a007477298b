//! The checks, one a file: `check` looks and returns what it found, one [`Finding`] or several.
//!
//! A further one is a file and a line here.

use crate::{Finding, Subject};

/// A check.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Looks, and says what it found.
    pub run: fn(&Subject<'_>) -> Vec<Finding>,
    /// Where it stands in a glance, the worst trouble first: only for those that read a few files and tell something
    /// without having watched.
    pub glance: Option<u8>,
}

macro_rules! checks {
    (@rank) => { None };
    (@rank $rank:literal) => { Some($rank) };
    ($($name:ident $(glance $rank:literal)?;)*) => {
        $(pub(crate) mod $name;)*

        /// All checks, in the order in which they are shown: what takes the cores away, then what they need.
        pub const ALL: &[Check] = &[$(Check { run: |subject| $name::check(subject).into(), glance: checks!(@rank $($rank)?) }),*];
    };
}

checks! {
    spare glance 2;
    service;
    isolation glance 3;
    interrupts glance 4;
    managed;
    irqbalance;
    tick glance 5;
    rcu;
    workqueues glance 12;
    realtime;
    quota glance 1;
    kernel_timers glance 10;
    memory glance 11;
    damon;
    idle;
    frequency glance 9;
    smi;
    machine_check glance 13;
    steal;
    tsc glance 8;
    smt glance 6;
    numa glance 7;
    ring;
    pages;
    locked;
    reach;
    binding;
    iommu;
    library;
    hyperv;
    pcie;
    af_xdp;
}
