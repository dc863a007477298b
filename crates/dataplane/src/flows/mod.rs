//! Flows: what each sender has sent to whom, counted packet by packet in a table of fixed size.
//!
//! A worker owns the [`FlowTable`] and notes every packet of a burst in it; control reads beside it through [`FlowReader`]s.
//! Nothing is allocated, locked or waited for after the table was made. What is forgotten for want of room is counted, so
//! that flows, what was forgotten and what is no flow are together every packet that was noted.

mod key;
mod read;
mod table;

pub use key::FlowKey;
pub use read::{Flow, FlowReader, FlowSums, Talkers};
pub use table::FlowTable;
