//! Rules in the kernel: the XDP program, its tables, its counters.

mod attach;
mod image;
mod keep;
mod program;

pub use attach::{AttachError, Attached, InForce, Mode};
pub use keep::Kept;
pub use program::{Error, Filter, Groups, Told};
