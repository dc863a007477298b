//! The hot loops: what moves packets, one task a file, over a small statically dispatched I/O trait.
//!
//! A [`worker`] is one pinned core that polls its [`Task`]s in turn: [`send`] writes stamped probes on an absolute
//! schedule, [`replay`] sends a capture by its own times, [`receive`] verifies and accounts for what comes back,
//! [`reflect`] returns what it gets, through [`fault`] when loss is wanted on purpose, [`forward`] hands it on to another port, by rules. A task owns its queues and its counters; the control thread only loads
//! what a task publishes, and finds the exact totals in the task's [`slot`] when the worker has ended.
//!
//! Nothing in a `poll` allocates, locks, logs, formats or makes a system call; but for those of [`kernel_io`], which are its
//! purpose.
#![forbid(unsafe_code)]

pub mod capture;
pub mod dpdk_io;
pub mod fault;
pub mod flows;
pub mod forward;
pub mod held_back;
pub mod io;
pub mod kernel_io;
pub mod memory;
mod policer;
pub mod receive;
pub mod reflect;
pub mod reflector_counters;
pub mod replay;
pub mod reply;
pub mod resolve;
pub mod rest;
pub mod send;
pub mod slot;
pub mod stall;
pub mod swallow;
pub mod tap;
pub mod worker;

use measure::Ticks;

/// Frames offered to or asked from a queue at once, at most.
pub const BURST_MAX: usize = dpdk::BURST_CAPACITY;

/// What the control thread wants of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Queues are polled (old frames are thrown out), nothing is sent yet.
    Warm = 0,
    /// The run.
    Run = 1,
    /// Nothing new is sent; what is under way is received and answered.
    Drain = 2,
    /// Workers return their results.
    Stop = 3,
}

/// One job on one queue, polled by a worker.
pub trait Task: Send {
    /// Does at most one burst of work and returns how many packets it moved.
    fn poll(&mut self, now: Ticks, phase: Phase) -> usize;

    /// Takes what control has left for the task, such as new rules, and leaves what it used before for control to free:
    /// called between two polls, once after each [`worker::Control::publish_generation`]. Never waits.
    fn renew(&mut self) {}

    /// The run is over: takes a burst of what has waited in its queue since before the end, and returns how many packets it moved.
    /// Who has no part in what comes, or was there before it, leaves it.
    fn take_rest(&mut self, _now: Ticks) -> usize {
        0
    }

    /// Once the worker has stopped: leaves the exact totals in the [`slot::Slot`] whose writer the task was made with.
    fn finish(self: Box<Self>);
}
