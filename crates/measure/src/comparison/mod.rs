//! A comparison of ways for packets between a program and a wire: its result, and which way to take.

mod advise;
mod firewall;
mod method;
mod result;

pub use advise::{NEAR_ENOUGH, advise};
pub use firewall::FirewallCost;
pub use method::{Method, UnknownMethod};
pub use result::{Comparison, Cpu, MethodResult, Recommendation, Trial, highest_without_loss};
