//! The kinds of result, one a file. A further one is its file, named here twice: as a module, and in the list.

pub mod compare;
pub mod intervals;
pub mod noise;
pub mod reflect;
pub mod search;
pub mod send;
pub mod unfinished;

use crate::kind::Entry;

/// Every kind that a run directory can hold.
pub const ALL: &[&Entry] = &[
    &send::KIND,
    &reflect::KIND,
    &search::KIND,
    &compare::KIND,
    &noise::KIND,
];
