//! Rules in the kernel: the XDP program, its tables, its counters, and packets that it tells one by one.

mod attach;
mod barrier;
mod counts;
mod image;
mod keep;
mod probes;
mod program;
mod samples;
#[cfg(test)]
#[path = "../../dropless/tests/polling/support/skip.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the tests share it"
)]
mod skip;
mod stay;
mod trie;

pub use attach::{AttachError, Attached, InForce, Mode, PROGRAM};
pub use keep::{Kept, Maker, Ready, Wanted};
pub use probes::{ProbesEnd, ProbesOf};
pub use program::{Error, Filter, Groups, Told, Why};
pub use samples::{Sample, SampleCounts, Samples, Sampling};
pub use stay::{About, State, StayError, Stayed};
