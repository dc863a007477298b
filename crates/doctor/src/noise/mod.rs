//! What takes a core away from a program that polls, and what it is called.
//!
//! The kernel's own events, stamped with the clock of the polling loop, are laid over the stalls that the loop saw:
//! [`trace`] records them, [`page`] and [`mod@format`] read them, [`event`] and [`cause`] give them a meaning, and [`walk`]
//! says which of them a stall was, as [`attribute`] keeps it; [`kept`] bounds what a long run remembers. [`counted`] holds that against the time that the kernel
//! counts as taken, [`symbols`] names functions, and [`profilers`] says whose some timers are. [`tally`] sums up and turns
//! stalls into packets, and [`complete`] proves that the kernel told everything. [`summary`] is the whole result.

pub mod attribute;
pub mod cause;
pub mod complete;
pub mod counted;
pub mod event;
pub mod format;
pub mod kept;
pub mod page;
pub mod profilers;
pub mod record;
pub mod spin;
pub mod summary;
pub mod symbols;
pub mod tally;
pub mod trace;
pub mod walk;
