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
//!
//! Nor does a worker that is known to it:
//!
//! ```compile_fail,E0505
//! fn works_without(eal: dpdk::Eal) {
//!     std::thread::scope(|scope| {
//!         let worker = dpdk::spawn_worker(scope, Some(&eal), 0, "late", || ());
//!         drop(eal);
//!         worker.map(dpdk::Worker::join)
//!     });
//! }
//! ```
//!
//! A pool is audited when nobody takes from it any more: neither a worker that allocates, nor a queue that fills itself.
//!
//! ```compile_fail,E0502
//! fn beside_a_worker<'e>(eal: &'e dpdk::Eal, mut pool: dpdk::Pool<'e>) {
//!     let allocates = &pool;
//!     std::thread::scope(|scope| {
//!         let worker = dpdk::spawn_worker(scope, Some(eal), 0, "beside", move || allocates.allocate_one().is_some());
//!         pool.audit();
//!         worker.map(dpdk::Worker::join)
//!     });
//! }
//! ```
//!
//! ```compile_fail,E0502
//! fn beside_a_queue<'e>(device: dpdk::Device<'e>, mut pool: dpdk::Pool<'e>) -> Result<(), dpdk::PortError> {
//!     let (port, mut rx, tx) = device.configure(&dpdk::PortConfig::default(), &pool)?;
//!     pool.audit();
//!     drop((port, rx.pop(), tx));
//!     Ok(())
//! }
//! ```

mod blank;
mod burst;
mod config;
mod device;
mod eal;
mod error;
mod gate;
mod interface_kept;
mod interrupts;
mod log;
mod mbuf;
mod packet_ring;
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
pub use eal::{Eal, version};
pub use error::{EalError, PoolError, PortError, WorkerError};
pub use gate::ask_for_barriers;
pub use mbuf::Mbuf;
pub use packet_ring::PacketRing;
pub use packet_socket::{PacketSockets, Promiscuous};
pub use pool::{MbufTrace, Pool};
pub use port::{Link, Port};
pub use queue::{RxQueue, TxQueue};
pub use stats::PortStats;
pub use time::{
    Calibration, Reading, both_clocks, calibrate, calibrate_since, tsc, tsc_is_invariant, tsc_offset_bounds,
    tsc_synchronous,
};
pub use worker::{Worker, pin_to_core, spawn_worker};
pub use xdp_program::{XdpProgram, xdp_queue_is_free};

/// What lies before a frame in a fresh buffer, bytes (`RTE_PKTMBUF_HEADROOM`).
pub const HEADROOM: usize = raw::HEADROOM;
