//! Prepares this machine for polling cores, and takes every change back: a plan from the doctor's findings, a journal
//! that is written before each change, and the reading back of what really took effect.

pub mod apply;
mod argument;
mod binding;
pub mod boot;
mod history;
mod huge;
mod irqbalance;
pub mod journal;
pub mod kernel;
mod operator;
mod partition;
pub mod plan;
mod step;
pub mod undo;
mod undone;
mod value;

pub use apply::apply;
pub use journal::Journal;
pub use kernel::Kernel;
pub use operator::Outcome;
pub use plan::{ByHand, Plan, plan};
pub use step::{Action, Step};
pub use undo::undo;
pub use undone::Undone;
