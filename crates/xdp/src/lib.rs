//! Rules in the kernel: the XDP program, its tables, its counters.

mod image;
mod program;

pub use program::{Error, Filter, Told};
