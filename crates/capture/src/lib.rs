//! Many receive queues as one ordered stream of packets, back to back in shared memory, for whoever wants it.
//!
//! [`merge`] says which queue's packet is next, without I/O; [`pcapng`] writes blocks, [`input`] reads
//! capture files of any program; [`ring`] is the shared memory.

pub mod disk;
pub mod input;
pub mod merge;
pub mod pcapng;
pub mod ring;
