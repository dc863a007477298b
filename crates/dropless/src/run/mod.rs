//! The life of a packet run: what is refused before it starts, its start, its control, its close.

pub mod buffers;
pub mod clock;
pub mod eal;
pub mod glance;
pub mod kernel_port;
pub mod open;
pub mod page;
pub mod parent;
pub mod peer;
pub mod placement;
pub mod pools;
pub mod session;
pub mod signals;
pub mod workers;
