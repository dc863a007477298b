//! Safe ownership of DPDK: the environment, pools, packets, ports and queues, with teardown order in the types.
//!
//! Everything borrows the [`Eal`], so nothing outlives it. A packet is owned by exactly one [`Burst`] or [`Mbuf`];
//! neither can be copied, so a packet cannot be freed twice:
//!
//! ```compile_fail,E0382
//! fn twice(packet: dpdk::Mbuf<'_>) {
//!     drop(packet);
//!     drop(packet);
//! }
//! ```
//!
//! A queue belongs to one thread at a time: it may be moved to a worker, never shared.
//!
//! ```
//! fn moved<T: Send>() {}
//! moved::<dpdk::RxQueue<'static>>();
//! ```
//!
//! ```compile_fail,E0277
//! fn shared<T: Sync>() {}
//! shared::<dpdk::RxQueue<'static>>();
//! ```
//!
//! Nothing outlives the environment:
//!
//! ```compile_fail,E0505
//! fn outlives(eal: dpdk::Eal) {
//!     let mut burst = dpdk::Burst::new(&eal);
//!     drop(eal);
//!     burst.clear();
//! }
//! ```

mod blank;
mod burst;
mod config;
mod device;
mod eal;
mod error;
mod gate;
mod log;
mod mac_kept;
mod mbuf;
mod packet_socket;
mod pool;
mod port;
mod queue;
mod raw;
mod stats;
mod time;
mod virtual_port;
mod worker;
mod xdp_program;

pub use blank::Blank;
pub use burst::{BURST_CAPACITY, Burst};
pub use config::{Capabilities, PortConfig};
pub use device::{Device, Parts};
pub use eal::Eal;
pub use error::{EalError, PoolError, PortError, WorkerError};
pub use mbuf::Mbuf;
pub use packet_socket::PacketSockets;
pub use pool::{MbufTrace, Pool};
pub use port::{Link, Port};
pub use queue::{RxQueue, TxQueue};
pub use stats::{PortStats, QueueMissed};
pub use time::{
    Calibration, both_clocks, calibrate, tsc, tsc_is_invariant, tsc_offset_bounds, tsc_synchronous,
};
pub use worker::{Worker, pin_to_core, spawn_worker};
pub use xdp_program::{XdpProgram, xdp_queue_is_free};
