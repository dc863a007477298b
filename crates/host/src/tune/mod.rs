//! Prepares this machine for polling cores, and takes every change back: a plan from the doctor's findings, a journal
//! that is written before each change, and the reading back of what really took effect.

pub mod apply;
mod binding;
pub mod boot;
mod hand;
pub mod hold;
mod irqbalance;
pub mod journal;
pub mod kernel;
pub mod partition;
pub mod plan;
mod trail;
pub mod undo;
mod value;

pub use apply::apply;
pub use hand::Outcome;
pub use journal::Journal;
pub use kernel::Kernel;
pub use plan::{Action, ByHand, Plan, Step, plan};
pub use undo::{Undone, undo};
