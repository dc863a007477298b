//! What the tests on real interfaces share: what they need, their turn on the cores, and the programs they start.
//!
//! A test opens with what it needs; where that is missing it is skipped, with the reason in the summary:
//!
//! ```ignore
//! let Some(lab) = require(&[Need::Root, Need::Tool("socat")]) else { return };
//! let run = lab.dropless(&["send", "--duration", "1s", "--json"]).run();
//! assert_eq!(run.code, Some(0), "{run}");
//! ```
//!
//! A lab is the test's turn on the cores: no other test runs a poller until it is dropped.

#![allow(
    dead_code,
    unused_imports,
    reason = "the tests and the benchmark each use their own part of this module"
)]

mod dropless;
pub mod golden_files;
mod lab;
mod mount;
mod namespace;
mod need;
pub mod pcap_file;
pub mod proc;
mod process;
pub mod prometheus;
pub mod search;
pub mod served;
mod skip;
mod tagger;
pub mod terminal;
mod testpmd;
pub mod wire;

pub use dropless::Dropless;
pub use lab::Lab;
pub use mount::Mount;
pub use namespace::{Namespace, namespaces};
pub use need::{Need, cpu_controller, oracle, require};
pub use process::{Finished, Running, until};
pub use skip::skip;
pub use tagger::VlanInterface;
pub use testpmd::{Builder as TestpmdBuilder, PortStats, Testpmd};
