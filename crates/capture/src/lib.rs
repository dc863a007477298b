//! Many receive queues as one ordered stream of packets, back to back in shared memory, for whoever wants it.
//!
//! [`merge`] says which queue's packet is next; time is an argument there.

pub mod merge;
