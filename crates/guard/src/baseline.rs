//! What is usual, to be kept from one run to the next.

use serde::{Deserialize, Serialize};

use crate::Class;

/// What is usual of all destinations and sources that have been learned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Of this form.
    pub version: u32,
    /// By destination.
    pub destinations: Vec<Learned>,
    /// By source.
    #[serde(default)]
    pub sources: Vec<Learned>,
}

/// What is usual of one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// A host or a prefix.
    #[serde(alias = "destination")]
    pub prefix: String,
    /// How long it was learned; ns.
    pub learned_ns: u64,
    /// Packets and bits a second, of classes that it had.
    pub classes: Vec<(Class, u64, u64)>,
}
