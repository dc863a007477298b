//! Forwarding in user space: rows beside testpmd.

use crate::rounds::{Bench, Measured};
use crate::support::{Lab, Need};
use crate::user;

/// How one side is measured once.
pub type Side = fn(&Bench, &Lab) -> Measured;

/// One row.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What dropless does.
    pub work: &'static str,
    /// What it is compared with.
    pub beside: &'static str,
    /// The ratio to reach.
    pub target: Option<f64>,
    /// A packet that is lost fails the row.
    pub lossless: bool,
    /// What it takes.
    pub needs: &'static [Need],
    /// dropless.
    pub ours: Side,
    /// The other.
    pub theirs: Option<Side>,
}

const TESTPMD: [Need; 3] = [
    Need::Tool("dpdk-testpmd"),
    Need::Tool("stdbuf"),
    Need::Processors(2),
];

/// All of them.
pub const ROWS: [Row; 5] = [
    Row {
        name: "forward-null",
        work: "forward --mode swap, null to null, no rules",
        beside: "testpmd macswap, null to null",
        target: Some(1.0),
        lossless: false,
        needs: &TESTPMD,
        ours: user::forward_null,
        theirs: Some(user::macswap_null),
    },
    Row {
        name: "forward-memif",
        work: "forward --mode swap, memif to memif, no rules",
        beside: "testpmd macswap, memif to memif",
        target: Some(1.0),
        lossless: false,
        needs: &TESTPMD,
        ours: user::forward_memif,
        theirs: Some(user::macswap_memif),
    },
    Row {
        name: "forward-50",
        work: "forward, null to null, 50 rules",
        beside: "testpmd io, null to null, no rules",
        target: Some(0.5),
        lossless: false,
        needs: &TESTPMD,
        ours: user::forward_50,
        theirs: Some(user::io_null),
    },
    Row {
        name: "forward-10000",
        work: "forward, null to null, 10,000 rules",
        beside: "the same with 50 rules",
        target: Some(0.5),
        lossless: false,
        needs: &TESTPMD,
        ours: user::forward_10000,
        theirs: Some(user::forward_50),
    },
    Row {
        name: "forward-prefixes",
        work: "forward, null to null, 500,000 prefixes",
        beside: "the same with 50 rules",
        target: None,
        lossless: false,
        needs: &TESTPMD,
        ours: user::forward_500k,
        theirs: Some(user::forward_50),
    },
];
