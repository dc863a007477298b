//! Many receive queues as one ordered stream of packets, back to back in shared memory, for whoever wants it.
//!
//! [`merge`] says which queue's packet is next, without I/O; [`ring`] is the shared memory, and [`pcapng`] what lies in
//! it; [`disk`] writes files, [`filter`] judges packets, [`input`] reads files of any program.

pub mod disk;
pub mod filter;
pub mod input;
pub mod merge;

pub use ring::{self, pcapng};
